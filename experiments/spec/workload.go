package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// WorkloadKind names a traffic source.
type WorkloadKind string

// The traffic sources. All but Continual and Sized consist of messages whose
// delays are measured.
const (
	// Continual always has data to send.
	Continual WorkloadKind = "continual"
	// Sized sends a number of bytes once.
	Sized WorkloadKind = "sized"
	// Poisson sends messages at random moments that do not depend on each other.
	Poisson WorkloadKind = "poisson"
	// TraceKind sends the messages that a file lists.
	TraceKind WorkloadKind = "trace"
	// VoIP sends the packets of a telephone codec.
	VoIP WorkloadKind = "voip"
	// Web answers a user's requests for pages of objects.
	Web WorkloadKind = "web"
)

// MaxMessages bounds the messages of one run, by what its flows' workloads are
// expected to have: each is a row of the results, and lies in memory until the
// run is stored.
const MaxMessages = 1_000_000

// Workload is what a flow carries; written as a name, or as a mapping with the
// kind and its parameters. Only the fields of its kind are set.
type Workload struct {
	// Kind is the kind of traffic source.
	Kind WorkloadKind `key:"kind" required:"true" enum:"continual|sized|poisson|trace|voip|web"`
	// Size is the amount of data of a sized transfer, or the mean size of a poisson source's messages.
	Size vtime.Bytes `key:"size" min:"1B" max:"1GB"`
	// Interval is the mean time between two messages of a poisson source.
	Interval vtime.Duration `key:"interval" min:"100us" max:"24h"`
	// Sizes is how a poisson source's sizes vary about their mean: pareto has the shape 1.2 and ends at 1,000 times the mean.
	Sizes Sizes `key:"sizes" enum:"fixed|exponential|pareto" default:"fixed"`
	// File is the list of a trace's messages, relative to the experiment file.
	File string `key:"file" pattern:"path"`
	// Codec is the codec of a voip source: g729 is a packet of 20 B each 20 ms, g711 one of 160 B, and 12 B of RTP before either.
	Codec Codec `key:"codec" enum:"g729|g711" default:"g729"`
	// Objects is the number of objects that a web server has.
	Objects int `key:"objects" min:"1" max:"1000000" default:"1000"`
	// Zipf is the exponent of the objects' popularity by rank; with 0 all are equally popular.
	Zipf float64 `key:"zipf" min:"0" max:"4" default:"1"`
	// ObjectSize is the mean size of a web object: most are lognormal, the largest follow a Pareto distribution.
	ObjectSize vtime.Bytes `key:"object-size" min:"100B" max:"10MB" default:"20kB"`
	// MaxSize is the size of the largest web object that there can be.
	MaxSize vtime.Bytes `key:"max-size" min:"100B" max:"100MB" default:"1MB"`
	// PageObjects is the mean number of objects of a page, the page itself included.
	PageObjects float64 `key:"page-objects" min:"1" max:"100" default:"2.7"`
	// Think is the mean time that a user spends on a page before asking for the next one, exponentially distributed.
	Think vtime.Duration `key:"think" min:"10ms" max:"24h" default:"3s"`
	// Request is the size of the request for an object.
	Request vtime.Bytes `key:"request" min:"1B" max:"64KiB" default:"350B"`

	// Transfers is what File lists; nil where it was left unread.
	Transfers []Transfer
}

// Sizes names a distribution of message sizes.
type Sizes string

// The distributions of message sizes.
const (
	SizesFixed       Sizes = "fixed"
	SizesExponential Sizes = "exponential"
	SizesPareto      Sizes = "pareto"
)

// Codec names a telephone codec.
type Codec string

// The codecs.
const (
	G729 Codec = "g729"
	G711 Codec = "g711"
)

// voipInterval is the distance of two packets of either codec.
const voipInterval = 20 * vtime.Millisecond

// Role says which half of an exchange a flow is; a flow that is no part of one
// has none.
type Role string

// The halves of an exchange.
const (
	Responses Role = "responses" // the flow of the file, from the server to the client
	Requests  Role = "requests"  // from the client to the server
)

// workloadKeys are the keys of each kind; those without a default must be given.
var workloadKeys = map[WorkloadKind][]string{
	Continual: {},
	Sized:     {"size"},
	Poisson:   {"size", "interval", "sizes"},
	TraceKind: {"file"},
	VoIP:      {"codec"},
	Web:       {"objects", "zipf", "object-size", "max-size", "page-objects", "think", "request"},
}

// workloadExamples are what a file may write for each kind.
var workloadExamples = map[WorkloadKind]string{
	Continual: "continual",
	Sized:     "{kind: sized, size: 10MB}",
	Poisson:   "{kind: poisson, size: 1kB, interval: 100ms}",
	TraceKind: "{kind: trace, file: messages.txt}",
	VoIP:      "voip, or {kind: voip, codec: g711}",
	Web:       "web, or {kind: web, think: 5s}",
}

func (w *Workload) decodeNode(d *decoder, n *node, at string) {
	*w = Workload{}
	v := reflect.ValueOf(w).Elem()
	fields := fieldsOf(v.Type())
	if n.kind == scalar {
		d.scalar(n, at, reflect.ValueOf(&w.Kind).Elem(), fields[0])
	} else {
		d.block(n, at, v)
	}
	keys, ok := workloadKeys[w.Kind]
	if !ok {
		return // reported already
	}
	defaults := defaultsOf(v.Type())
	for _, f := range fields[1:] {
		given := d.set[join(at, f.key)]
		switch {
		case !slices.Contains(keys, f.key):
			if given != nil {
				d.bad(given, join(at, f.key), fmt.Sprintf("has no meaning here: a %s workload has no %s", w.Kind, f.key), workloadExamples[w.Kind])
			}
			v.FieldByIndex(f.index).SetZero()
		case given != nil:
		case f.def == "":
			d.bad(n, at, fmt.Sprintf("a %s workload needs its %s", w.Kind, f.key), workloadExamples[w.Kind])
		default:
			v.FieldByIndex(f.index).Set(defaults.FieldByIndex(f.index))
		}
	}
	if w.Kind == TraceKind {
		w.read(d, at)
	}
}

// read reads the file of a trace.
func (w *Workload) read(d *decoder, at string) {
	file := d.set[join(at, "file")]
	if w.File == "" || file == nil || d.files == nil {
		return
	}
	var err error
	if w.Transfers, err = d.files.transfers(w.File); err != nil {
		d.bad(file, join(at, "file"), err.Error(), transfersHelp)
	}
}

// HasMessages reports whether the workload's data are messages whose delays are
// measured.
func (w *Workload) HasMessages() bool {
	return w.Kind == Poisson || w.Kind == TraceKind || w.Kind == VoIP || w.Kind == Web
}

// BeginsMeasured reports whether the flow begins with the measured interval
// unless the file says otherwise. The others begin with the run, so that the
// warm-up brings them into their steady state.
func (w *Workload) BeginsMeasured() bool { return w.Kind == Sized || w.Kind == TraceKind }

// Begin is when the group's flows begin on the run's clock.
func (f *Flow) Begin(warmup vtime.Duration) vtime.Duration {
	switch {
	case f.Start != nil:
		return *f.Start
	case f.Workload.BeginsMeasured():
		return warmup
	}
	return 0
}

// Number is how many flows of the file the group has.
func (f *Flow) Number() int {
	if f.Pairs.Random() {
		return f.Count
	}
	return len(f.Pairs.Listed)
}

// Messages is how many messages one flow of the group is expected to have in a
// run: the mean where they are drawn, and of web pages, which wait for the
// network, an upper bound of the mean.
func (f *Flow) Messages(warmup, duration vtime.Duration) float64 {
	begin, end := f.Begin(warmup), warmup+duration
	if f.Stop != nil {
		end = min(end, *f.Stop)
	}
	length := float64(max(0, end-begin))
	switch w := &f.Workload; w.Kind {
	case Poisson:
		if w.Interval > 0 {
			return length / float64(w.Interval)
		}
	case VoIP:
		return length / float64(voipInterval)
	case Web:
		if w.Think > 0 {
			return length / float64(w.Think)
		}
	case TraceKind:
		n := 0
		for n < len(w.Transfers) && begin+w.Transfers[n].At < end {
			n++
		}
		return float64(n)
	}
	return 0
}

// Offered is the mean rate of the application's data that one flow of the group
// offers, whatever the network makes of it; 0 where the network decides it. A
// web flow offers at most as much.
func (f *Flow) Offered() vtime.BitRate {
	per := func(size vtime.Bytes, every vtime.Duration) vtime.BitRate {
		return vtime.BitRate(8 * float64(size) / max(1, every).Seconds())
	}
	switch w := &f.Workload; w.Kind {
	case Poisson:
		return per(w.Size, w.Interval)
	case VoIP:
		return per(w.Codec.Packet(), voipInterval)
	case Web:
		return per(vtime.Bytes(w.PageObjects*float64(w.ObjectSize)), w.Think)
	case TraceKind:
		if n := len(w.Transfers); n > 1 && w.Transfers[n-1].At > w.Transfers[0].At {
			var sum vtime.Bytes
			for _, t := range w.Transfers[:n-1] {
				sum += t.Size
			}
			return per(sum, w.Transfers[n-1].At-w.Transfers[0].At)
		}
	}
	return 0
}

// Packet is the size of a packet of the codec with its RTP header (RFC 3551,
// RFC 3550 section 5.1): 20 ms of speech.
func (c Codec) Packet() vtime.Bytes {
	if c == G711 {
		return 160 + 12
	}
	return 20 + 12
}

// String writes the workload as a file would, without what is the default.
func (w *Workload) String() string {
	v := reflect.ValueOf(w).Elem()
	defaults := defaultsOf(v.Type())
	var parts []string
	for _, f := range fieldsOf(v.Type())[1:] {
		x := v.FieldByIndex(f.index)
		if !slices.Contains(workloadKeys[w.Kind], f.key) || f.def != "" && x.Equal(defaults.FieldByIndex(f.index)) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s: %v", f.key, x.Interface()))
	}
	if len(parts) == 0 {
		return string(w.Kind)
	}
	return "{kind: " + string(w.Kind) + ", " + strings.Join(parts, ", ") + "}"
}
