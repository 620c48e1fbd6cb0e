package capture

import (
	"strconv"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// log makes the lines of an event log, without allocating: time in seconds on
// the run's clock, place, what happened, details.
type log struct {
	cfg            *Config
	nodes          []string    // padded names
	places         [][2]string // of links, padded
	rates          []namedRate
	lines, dropped uint64
}

type namedRate struct {
	rate vtime.BitRate
	name string
}

func (l *log) init(cfg *Config) {
	l.cfg = cfg
	width := 0
	for _, n := range cfg.Nodes {
		width = max(width, len(n))
	}
	for i := range cfg.Links {
		width = max(width, len(cfg.Place(i, 0)), len(cfg.Place(i, 1)))
	}
	padded := func(s string) string {
		for len(s) < width {
			s += " "
		}
		return s
	}
	for _, n := range cfg.Nodes {
		l.nodes = append(l.nodes, padded(n))
	}
	for i := range cfg.Links {
		l.places = append(l.places, [2]string{padded(cfg.Place(i, 0)), padded(cfg.Place(i, 1))})
	}
	for _, std := range []wifi.Standard{wifi.StandardG, wifi.StandardA} { // g has the rates of b
		for _, r := range wifi.Rates(std) {
			l.rates = append(l.rates, namedRate{r, r.String()})
		}
	}
}

// line counts a line, or that it found no room.
func (s *Sniffer) line(b []byte) {
	if b == nil {
		s.log.dropped++
		return
	}
	s.log.lines++
	s.events.done(b)
}

// head is what stands before the events.
func (l *log) head(b []byte, comment string) []byte {
	for _, text := range []string{l.cfg.Comment, comment} {
		if text != "" {
			b = append(append(append(b, "# "...), text[:min(len(text), maxText/2)]...), '\n')
		}
	}
	return append(b, "# seconds since the run's time 0, place, what\n"...)
}

// begin appends time, place and what happened.
func (l *log) begin(b []byte, at vtime.Time, place, what string) []byte {
	var digits [20]byte
	n := len(strconv.AppendInt(digits[:0], int64(at)/1e9, 10))
	for ; n < 4; n++ {
		b = append(b, ' ')
	}
	b = strconv.AppendInt(b, int64(at)/1e9, 10)
	b = append(b, '.')
	rest := int64(at) % 1e9
	for unit := int64(1e8); unit > 0; unit /= 10 {
		b = append(b, byte('0'+rest/unit%10))
	}
	b = append(b, "  "...)
	b = append(b, place...)
	b = append(b, "  "...)
	return append(b, what...)
}

func word(b []byte, key, value string) []byte {
	b = append(b, ' ')
	b = append(b, key...)
	return append(b, value...)
}

func number(b []byte, key string, v int64) []byte {
	b = append(b, ' ')
	b = append(b, key...)
	return strconv.AppendInt(b, v, 10)
}

func (l *log) to(b []byte, node int) []byte {
	if node == wifi.Broadcast {
		return word(b, "to=", "all")
	}
	return word(b, "to=", l.cfg.Nodes[node])
}

// frame is the line of a transmission that has ended.
func (l *log) frame(b []byte, at vtime.Time, r radio, t *wifi.Transmission) []byte {
	if b == nil {
		return nil
	}
	b = l.begin(b, at, l.nodes[t.Src], t.Kind.String())
	if t.Kind != wifi.KindCtsSelf {
		b = l.to(b, t.Dst)
	}
	if t.Kind == wifi.KindData {
		b = word(b, "ac=", t.AC.String())
	}
	for _, n := range l.rates {
		if n.rate == t.Rate {
			b = word(b, "rate=", n.name)
			break
		}
	}
	b = number(b, "bytes=", int64(r.length(t)))
	b = number(b, "us=", int64(t.End.Sub(t.Start)/vtime.Microsecond))
	if t.Nav > 0 {
		b = number(b, "nav=", int64(t.Nav/vtime.Microsecond))
	}
	if t.Kind == wifi.KindData {
		b = number(b, "seq=", int64(t.Seq))
	}
	if t.Retry {
		b = append(b, " retry"...)
	}
	if t.NoAck {
		b = append(b, " no-ack"...)
	}
	if t.Fate != wifi.FateUnknown {
		b = word(b, "fate=", t.Fate.String())
	}
	return append(b, '\n')
}

// drop is the line of a frame that its sender drops.
func (l *log) drop(b []byte, at vtime.Time, f *wifi.Frame, o wifi.Outcome) []byte {
	if b == nil {
		return nil
	}
	b = l.begin(b, at, l.nodes[f.Src], "drop")
	b = l.to(b, f.Dst)
	b = word(b, "ac=", f.AC.String())
	b = number(b, "packet=", int64(f.Len))
	b = word(b, "why=", o.String())
	if f.Attempts > 0 {
		b = number(b, "attempts=", int64(f.Attempts))
	}
	return append(b, '\n')
}

// The words for a packet's steps, and why it is dropped.
var (
	stepWords = [...]string{pipe.Entered: "enter", pipe.LostAtEntry: "drop", pipe.QueueFull: "drop", pipe.LostOnWire: "drop", pipe.Arrived: "arrive", pipe.NodeOff: "drop"}
	stepWhy   = [...]string{pipe.LostAtEntry: "loss", pipe.QueueFull: "overflow", pipe.LostOnWire: "loss-on-wire", pipe.Arrived: "", pipe.NodeOff: "node-off"}
)

// step is the line of a packet's step through a pipe.
func (l *log) step(b []byte, at vtime.Time, w *wire, p *pipe.Packet, s pipe.Step) []byte {
	if b == nil {
		return nil
	}
	here, key := w.end, "to="
	if s == pipe.Arrived {
		here, key = 1-w.end, "from="
	}
	ends := &l.cfg.Links[w.link]
	b = l.begin(b, at, l.places[w.link][here], stepWords[s])
	b = word(b, key, l.cfg.Nodes[ends.Ends[1-here]])
	b = append(append(b, ':'), ends.Interfaces[1-here]...)
	b = number(b, "packet=", int64(p.Len))
	if why := stepWhy[s]; why != "" {
		b = word(b, "why=", why)
	}
	if s == pipe.Arrived {
		b = number(b, "us=", int64((at.Sub(p.Sent)+vtime.Duration(w.s.epoch))/vtime.Microsecond))
		if p.Duplicate {
			b = append(b, " second-copy"...)
		}
	}
	return append(b, '\n')
}

// length is that of the MPDU, FCS included (802.11-2012 8.3).
func (r radio) length(t *wifi.Transmission) int {
	switch t.Kind {
	case wifi.KindData:
		n := 24 + len(llcSnap) + 2 + int(t.Frame.Len) + fcsLen
		if r.qos {
			n += 2
		}
		return n
	case wifi.KindRts:
		return 16 + fcsLen
	}
	return 10 + fcsLen
}
