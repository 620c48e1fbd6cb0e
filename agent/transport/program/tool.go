package program

import (
	"fmt"
	"io"
	"strconv"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// reader reads a program's output to its end, and keeps what was understood.
type reader interface {
	read(io.Reader)
	got() *report
}

func (p *iperf3Reader) got() *report { return &p.report }
func (p *iperf2Reader) got() *report { return &p.report }

// tool is a program that measures: how it is started, and read.
type tool struct {
	family  string // of transports
	program string // in PATH
	pack    string // Debian's package
	major   int    // of the versions that are understood
	// longest is the longest test that the program makes; 0 = no bound.
	longest vtime.Duration
	sized   bool // a number of bytes can be sent, and waited for
	server  func(*test) []string
	client  func(*test) []string
	reader  func(receiver bool, v version, now func() vtime.Time) reader
}

// test is one run of a tool.
type test struct {
	flow    *proto.Flow
	version version
	every   vtime.Duration // between two lines of the report
	length  vtime.Duration // of a continual test
}

func (t *test) udp() bool { _, v := transport.Split(t.flow.Transport); return v == "udp" }
func (t *test) cc() string {
	_, v := transport.Split(t.flow.Transport)
	return v
}
func (t *test) port() string { return strconv.Itoa(transport.FlowPort + t.flow.ID) }
func (t *test) tos() string  { return "0x" + strconv.FormatInt(int64(t.flow.Options.DSCP<<2), 16) }

// seconds writes a time as both programs read it.
func seconds(d vtime.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

var iperf3Tool = tool{
	family: "iperf3", program: "iperf3", pack: "iperf3", major: 3, longest: 86400 * vtime.Second, // MAX_TIME
	server: func(t *test) []string {
		// One test, then the end: a server that is kept busy by a client that has
		// vanished would never take another.
		a := []string{"iperf3", "-s", "-1", "-4", "-B", t.flow.DstAddr.String(), "-p", t.port(), "-i", seconds(t.every), iperf3Form(t.version)}
		if t.version.least(3, 10) {
			// The network may be silent for longer than the 2 minutes after which the
			// server would give up.
			a = append(a, "--rcv-timeout", "86400000")
		}
		return a
	},
	client: func(t *test) []string {
		o := t.flow.Options
		// Whole seconds are all that it takes.
		length := strconv.FormatInt(int64((t.length+vtime.Second-1)/vtime.Second), 10)
		a := []string{"iperf3", "-c", t.flow.DstAddr.String(), "-4", "-B", t.flow.SrcAddr.String(), "-p", t.port(), "-t", length, "-i", seconds(t.every), iperf3Form(t.version)}
		if t.udp() {
			a = append(a, "-u", "-b", strconv.FormatInt(int64(o.Rate), 10), "-l", strconv.FormatInt(int64(o.PacketSize), 10))
		} else {
			a = append(a, "-C", t.cc())
			if t.version.least(3, 16) {
				// Its receiver counts whole blocks, of 128 KiB by itself.
				a = append(a, "-l", "8K")
			}
		}
		if o.SendBuffer > 0 {
			a = append(a, "-w", strconv.FormatInt(int64(o.SendBuffer), 10))
		}
		if o.DSCP > 0 {
			a = append(a, "-S", t.tos())
		}
		return a
	},
	reader: func(receiver bool, _ version, now func() vtime.Time) reader {
		return &iperf3Reader{receiver: receiver, now: now}
	},
}

// atEnd tells that the program says nothing before its end, so that one which was
// killed may have done anything.
func (t *tool) atEnd(v version) bool { return t.program == "iperf3" && iperf3Form(v) == "--json" }

// stuck tells of a version that may not end when it is told to: the client of
// iperf3 3.16 waits for a lock that its own thread has, and leaves no report.
func (t *tool) stuck(v version) bool { return t.program == "iperf3" && v.major == 3 && v.minor == 16 }

// iperf3Form asks for a document at the end, or, where the version has it, for
// one with each interval: then a test that is broken off leaves what was before.
func iperf3Form(v version) string {
	if v.least(3, 17) {
		return "--json-stream"
	}
	return "--json"
}

var iperf2Tool = tool{
	family: "iperf2", program: "iperf", pack: "iperf", major: 2, sized: true,
	server: func(t *test) []string {
		a := append([]string{"iperf", "-s", "-B", t.flow.DstAddr.String()}, iperf2Common(t)...)
		if t.udp() {
			a = append(a, "-l", strconv.FormatInt(int64(t.flow.Options.PacketSize), 10))
		}
		return a
	},
	client: func(t *test) []string {
		o := t.flow.Options
		a := append([]string{"iperf", "-c", t.flow.DstAddr.String(), "-B", t.flow.SrcAddr.String()}, iperf2Common(t)...)
		if n := t.flow.Workload.Size; n > 0 {
			a = append(a, "-n", strconv.FormatInt(int64(n), 10))
		} else {
			a = append(a, "-t", seconds(t.length))
		}
		if t.udp() {
			a = append(a, "-b", strconv.FormatInt(int64(o.Rate), 10), "-l", strconv.FormatInt(int64(o.PacketSize), 10))
		} else {
			a = append(a, "-Z", t.cc())
		}
		if o.DSCP > 0 {
			a = append(a, "-S", t.tos())
		}
		return a
	},
	reader: func(receiver bool, _ version, now func() vtime.Time) reader {
		return &iperf2Reader{receiver: receiver, now: now}
	},
}

// iperf2Common are the arguments of both sides.
func iperf2Common(t *test) []string {
	a := []string{"-p", t.port(), "-i", seconds(t.every)}
	if t.version.least(2, 1) {
		a = append(a, "-e", "-f", "b")
	} else {
		a = append(a, "-y", "C")
	}
	if t.udp() {
		a = append(a, "-u")
	}
	if w := t.flow.Options.SendBuffer; w > 0 {
		a = append(a, "-w", strconv.FormatInt(int64(w), 10))
	}
	return a
}

// The time between two lines of a report: the programs' own bounds, and so many
// lines at most.
const (
	leastEvery = 100 * vtime.Millisecond
	mostEvery  = 60 * vtime.Second
	mostLines  = 10_000
)

// everyOf is the time between two lines of the report of a test of a length, for
// samples at an interval.
func everyOf(length, sample vtime.Duration) vtime.Duration {
	every := max(sample, leastEvery, length/mostLines)
	return min((every+vtime.Millisecond-1)/vtime.Millisecond*vtime.Millisecond, mostEvery)
}

// check refuses what the tool does not do.
func (t *tool) check(f *proto.Flow) error {
	_, variant := transport.Split(f.Transport)
	if variant == "" {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Got: f.Transport, Wanted: t.family + "/CC or " + t.family + "/udp"}
	}
	o := f.Options
	udp := variant == "udp"
	if f.Workload.HasMessages() || f.Workload.Size > 0 && (udp || !t.sized) {
		return &proto.Error{Code: proto.CodeOrder, What: "workload", Got: string(f.Workload.Kind), Detail: f.Transport + " cannot carry it"}
	}
	if udp && (o.Rate <= 0 || o.PacketSize < 64 || o.PacketSize > 1472) {
		return &proto.Error{Code: proto.CodeOrder, What: "options rate and packet_size", Got: fmt.Sprintf("%v, %v", o.Rate, o.PacketSize), Wanted: "a rate, and 64 to 1472 bytes of UDP payload"}
	}
	if o.DSCP < 0 || o.DSCP > 63 || o.SendBuffer < 0 || o.SendBuffer != o.ReceiveBuffer {
		return &proto.Error{Code: proto.CodeOrder, What: "options dscp, send_buffer and receive_buffer", Detail: "want a code point, and one size for both buffers"}
	}
	return refuse(t.family, map[string]bool{"mss": o.MSS != 0, "not_sent_low_water": o.NotSentLow != 0, "nodelay": o.NoDelay, "relay_buffer": o.RelayBuffer != 0,
		"block_size": o.BlockSize != 0, "connect_within": o.ConnectWithin != 0, "receive_window": o.ReceiveWindow != 0, "cwnd_cap": o.CwndCap != 0,
		"program": o.Program != nil, "rate": !udp && o.Rate != 0, "packet_size": !udp && o.PacketSize != 0})
}

// refuse names an option that is set and must not be.
func refuse(family string, set map[string]bool) error {
	least := ""
	for name, is := range set {
		if is && (least == "" || name < least) {
			least = name
		}
	}
	if least == "" {
		return nil
	}
	return &proto.Error{Code: proto.CodeOrder, What: "option " + least, Detail: "the transport " + family + " does not know it", Remedy: "leave it out"}
}
