package linkprobe

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The bounds of an order.
const (
	// Headers are the bytes of IPv4 and UDP before a probe's own.
	Headers vtime.Bytes = 28
	// MinSize is the shortest probe, MaxSize the longest that is not fragmented
	// on Ethernet and 802.11 alike, both as IP packets.
	MinSize             = Headers + headerSize
	MaxSize vtime.Bytes = 1500
	// MinPeriod keeps the probes of a few neighbours from filling the channel.
	MinPeriod = 10 * vtime.Millisecond
	MaxPeriod = 10 * 60 * vtime.Second
	MaxCount  = 100_000
	// MaxNodes bounds the numbers of nodes that a prober counts.
	MaxNodes = 1 << 16
	// maxMissing bounds the numbers that a report lists for a node.
	maxMissing = 1000
)

// The probe, in network byte order: magic, measurement, node, number. Padding
// follows.
const (
	magic      = 0x68_62_6c_70 // "hblp"
	headerSize = 20
)

// Port is the UDP port to which probes are sent and at which they arrive.
const Port = 4411

// Prober is the state machine of one node. It is not for several goroutines.
type Prober struct {
	node   int
	order  proto.Probe
	phase  vtime.Duration
	jitter *des.Stream
	next   vtime.Time // of the next probe; Never when all are sent
	due    bool
	sent   int
	late   int
	worst  vtime.Duration
	from   map[int]*heard
	buf    []byte
}

// heard is what arrived of one node: a bit for each number.
type heard struct {
	bits  []uint64
	count int
	last  int
}

// Check says what is wrong with an order; nil if nothing is. The error is a
// *proto.Error of CodeOrder.
func Check(o *proto.Probe) error {
	bad := func(what, wanted string, got any) error {
		return &proto.Error{Code: proto.CodeOrder, What: "probe: " + what, Wanted: wanted, Got: fmt.Sprint(got)}
	}
	switch {
	case o.Count < 1 || o.Count > MaxCount:
		return bad("count", fmt.Sprintf("1 to %d", MaxCount), o.Count)
	case o.Period < MinPeriod || o.Period > MaxPeriod:
		return bad("period", fmt.Sprintf("%v to %v", MinPeriod, MaxPeriod), o.Period)
	case o.Size < MinSize || o.Size > MaxSize:
		return bad("size", fmt.Sprintf("%v to %v", MinSize, MaxSize), o.Size)
	case o.DSCP < 0 || o.DSCP > 63:
		return bad("dscp", "0 to 63", o.DSCP)
	}
	return nil
}

// Late is how long after its time a probe may be sent without being counted as
// late: some times as long as the longest is on the air.
const Late = 5 * vtime.Millisecond

// Span is the time from the epoch in which every node has sent its probes.
func Span(count int, period vtime.Duration) vtime.Duration {
	return vtime.Duration(count)*period + period/jitterPart
}

// jitterPart: each probe is moved by up to a quarter of the period (RFC 3626,
// 18.1: MAXJITTER = HELLO_INTERVAL/4).
const jitterPart = 4

// New returns the prober of a node. Its times are those of a clock on which the
// measurement begins at the moment 0. Every node has a phase of its own within
// the period: nodes that begin by the same clock would otherwise send at the same
// moment for ever, and measure their collisions.
func New(node int, o proto.Probe) (*Prober, error) {
	if err := Check(&o); err != nil {
		return nil, err
	}
	if node < 0 || node >= MaxNodes {
		return nil, &proto.Error{Code: proto.CodeOrder, What: "probe: node", Wanted: fmt.Sprintf("0 to %d", MaxNodes-1), Got: fmt.Sprint(node)}
	}
	p := &Prober{node: node, order: o, from: map[int]*heard{}, buf: make([]byte, o.Size-Headers)}
	p.jitter = des.NewStream(o.Seed, fmt.Sprintf("linkprobe/%d", node))
	p.phase = p.part(o.Period)
	p.schedule()
	binary.BigEndian.PutUint32(p.buf[0:], magic)
	binary.BigEndian.PutUint64(p.buf[4:], o.Tag)
	binary.BigEndian.PutUint32(p.buf[12:], uint32(node))
	return p, nil
}

// part draws a uniform part of d.
func (p *Prober) part(d vtime.Duration) vtime.Duration {
	return vtime.Duration(float64(d) * p.jitter.Float64())
}

func (p *Prober) schedule() {
	if p.sent >= p.order.Count {
		p.next = vtime.Never
		return
	}
	at := p.phase + vtime.Duration(p.sent)*p.order.Period + p.part(p.order.Period/jitterPart)
	p.next = vtime.Time(at)
}

// Deadline is the moment of the next probe; vtime.Never when all are sent.
func (p *Prober) Deadline() vtime.Time { return p.next }

// Expire makes the probes that are due by now ready for Poll.
func (p *Prober) Expire(now vtime.Time) { p.due = p.next <= now }

// Poll returns the next probe that is due, the bytes after the UDP header; they
// are valid until the next call. A prober that was kept from running sends what
// it is behind with at once, so that every node sends the number that the others
// count on.
func (p *Prober) Poll(now vtime.Time) ([]byte, bool) {
	if !p.due {
		return nil, false
	}
	binary.BigEndian.PutUint32(p.buf[16:], uint32(p.sent))
	if late := now.Sub(p.next); late > Late {
		p.late++
		p.worst = max(p.worst, late)
	}
	p.sent++
	p.schedule()
	p.due = p.next <= now
	return p.buf, true
}

// Receive counts a packet that arrived, the bytes after the UDP header. It says
// whether it was a probe of another node of this measurement that had not been
// counted: the node's own, copies, and what others send to the same port are not.
func (p *Prober) Receive(_ vtime.Time, b []byte) bool {
	if len(b) != len(p.buf) || binary.BigEndian.Uint32(b) != magic || binary.BigEndian.Uint64(b[4:]) != p.order.Tag {
		return false
	}
	node, number := binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:])
	if node >= MaxNodes || int(node) == p.node || number >= uint32(p.order.Count) {
		return false
	}
	h := p.from[int(node)]
	if h == nil {
		h = &heard{bits: make([]uint64, (p.order.Count+63)/64)}
		p.from[int(node)] = h
	}
	word, bit := number/64, uint64(1)<<(number%64)
	if h.bits[word]&bit != 0 {
		return false
	}
	h.bits[word] |= bit
	h.count++
	h.last = max(h.last, int(number))
	return true
}

// Heard reports what was sent and heard so far, by node.
func (p *Prober) Heard() *proto.Heard {
	r := &proto.Heard{Node: p.node, Sent: p.sent, From: []proto.HeardFrom{}, Late: p.late, LateMax: p.worst}
	for n, h := range p.from {
		f := proto.HeardFrom{Node: n, Received: h.count, Last: h.last}
		for k := 0; k < h.last && len(f.Missing) < maxMissing; k++ {
			if h.bits[k/64]&(1<<(k%64)) == 0 {
				f.Missing = append(f.Missing, k)
			}
		}
		r.From = append(r.From, f)
	}
	slices.SortFunc(r.From, func(a, b proto.HeardFrom) int { return a.Node - b.Node })
	return r
}
