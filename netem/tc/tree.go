package tc

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A tree is the disciplines, classes and filters of one device, in the order in
// which they are made.
type tree struct {
	qdiscs  []qdisc
	classes []class
	filters []filter
}

// qdisc is a queueing discipline; of its options the one that belongs to its kind
// is set.
type qdisc struct {
	handle, parent uint32
	kind           string
	netem          netem
	tbf            tbf
	limit          int // of pfifo in packets, of bfifo in bytes
}

// netem is what one netem does.
type netem struct {
	latency, jitter vtime.Duration
	table           pipe.Distribution
	loss            pipe.Loss
	states          *LossStates
	duplicate       vtime.Fraction
	corrupt         vtime.Fraction
	// held is the share of packets that have the jitter as an additional delay; then
	// no distribution counts.
	held     vtime.Fraction
	rate     uint64 // bytes per second
	overhead int
	limit    int
	seed     uint64
	slots    *Slots
}

// tbf keeps a rate by a bucket of tokens.
type tbf struct {
	rate     uint64 // bytes per second
	overhead int
	burst    uint32 // bytes
	limit    uint32 // bytes of the queue that it makes itself
}

// class is one of htb's.
type class struct {
	id       uint32
	rate     uint64 // bytes per second
	overhead int
	burst    uint32 // bytes
}

// filter sends a peer's packets to a class.
type filter struct {
	priority uint16
	protocol uint16
	class    uint32
	keys     []key
}

// key is one 32-bit word that a packet must have, under a mask, so many bytes
// behind the network header.
type key struct {
	mask, value uint32
	offset      int32
}

// The handles: the upper 16 bits number the disciplines. Each kind has a range of
// its own, so that a discipline of another kind never has the handle of the one
// that it replaces, which the kernel refuses. From 8000: on they are the kernel's.
const (
	rootHTB   = 0x4000 << 16
	firstOurs = 0x4000 << 16
	lastOurs  = 0x7fff << 16
	rootOf    = 0xffffffff // the parent of a root (TC_H_ROOT)
)

var majors = map[string]uint32{"netem": 0x4100, "tbf": 0x5100, "pfifo": 0x6100, "bfifo": 0x7100}

// The stages of a class, in the order in which packets pass.
const (
	delayStage = iota
	rateStage
	lastStage  // below the rate
	aloneStage // the same where there is no rate: the kernel moves nothing
	stages
)

// handleOf numbers a stage of a chain: chain 0 is at the root, chain i+1 below the
// class i of htb. The kernel does not move a discipline from one to the other.
func handleOf(kind string, chain, stage int) uint32 {
	return (majors[kind] + uint32(chain*stages+stage)) << 16
}

// isOurs says whether a handle is one that this package gives.
func isOurs(handle uint32) bool { return handle >= firstOurs && handle <= lastOurs }

// line is the rate of a stage that has none and still keeps its packets in order,
// and of a class that only sorts: 80 Gbit/s. In bytes per second.
const line = 10_000_000_000

// plan writes the tree for the classes of one device. hasNetem says whether the
// kernel has netem; without it, a shape that needs it was refused before.
func plan(classes []Class, source bool, hasNetem bool) tree {
	var t tree
	if len(classes) == 1 && len(classes[0].Peers) == 0 && classes[0].shaper(hasNetem) != HTBShaper {
		t.stages(0, &classes[0].Shape, rootOf, hasNetem)
		return t
	}
	t.qdiscs = append(t.qdiscs, qdisc{handle: rootHTB, parent: rootOf, kind: "htb"})
	for i := range classes {
		c := &classes[i]
		k := class{id: rootHTB | uint32(i+1), rate: line, burst: bucket(line)}
		if c.shaper(hasNetem) == HTBShaper {
			k.rate = uint64(c.Rate / 8)
			k.burst = bucket(k.rate)
			k.overhead = int(c.Overhead)
		}
		t.classes = append(t.classes, k)
		t.stages(i+1, &c.Shape, k.id, hasNetem)
		t.filters = append(t.filters, filters(i, c, k.id, source)...)
	}
	return t
}

// shaper is what keeps the class's rate; "" where it has none.
func (c *Class) shaper(hasNetem bool) Shaper { return c.Shape.shaper(hasNetem) }

func (s *Shape) shaper(hasNetem bool) Shaper {
	switch {
	case s.Rate == 0:
		return AnyShaper
	case s.Shaper != AnyShaper:
		return s.Shaper
	case hasNetem && s.LimitBytes == 0 && s.Duplicate == 0:
		return NetemShaper
	}
	return TBFShaper
}

// queue is the queue's length in packets; 0 where it is counted in bytes or
// nothing waits.
func (s *Shape) queue() int {
	switch {
	case s.Rate == 0 || s.LimitBytes > 0:
		return 0
	case s.Limit > 0:
		return s.Limit
	}
	return SizedLimit(s.Rate, s.Delay)
}

// stages adds the disciplines of one class, a chain, below parent. Where the kernel has
// netem the first one is always there, so that a link which is changed keeps it
// and what is in it.
//
//	loss, delay, jitter, corruption, copies → rate and queue → holding back, loss after the queue
//
// The delay precedes the queue. For a constant delay it makes no difference to who
// sends or receives, and the queue's length is exactly what was asked: one netem
// for both would count what is on its way as well, in packets, so that small ones
// would be dropped while the queue is empty.
func (t *tree) stages(chain int, s *Shape, parent uint32, hasNetem bool) {
	queue, shaper := s.queue(), s.shaper(hasNetem)
	add := func(stage int, q qdisc) {
		q.handle, q.parent = handleOf(q.kind, chain, stage), parent
		parent = q.handle | 1
		t.qdiscs = append(t.qdiscs, q)
	}
	last := netem{limit: s.inFlight(queue), seed: derive(s.Seed, lastStage)}
	if s.Reorder.Share > 0 {
		last.jitter, last.held = s.Reorder.Extra, s.Reorder.Share
		last.limit = (&Shape{Rate: s.Rate, Delay: s.Reorder.Extra}).inFlight(queue)
	}
	if hasNetem && shaper != HTBShaper {
		n := netem{latency: s.Delay, jitter: table(s.Jitter.Distribution).spread(s.Jitter.Spread), table: s.Jitter.Distribution,
			duplicate: s.Duplicate, corrupt: s.Corrupt, limit: s.inFlight(queue), seed: derive(s.Seed, delayStage)}
		if s.Rate == 0 && s.Limit > 0 {
			n.limit = s.Limit
		}
		if n.jitter > 0 && !s.Jitter.Overtake {
			n.rate = line // netem keeps the order of what has a rate
		}
		if s.LossAfterQueue {
			last.loss, last.states = s.Loss, s.LossStates
		} else {
			n.loss, n.states = s.Loss, s.LossStates
		}
		if shaper != NetemShaper {
			n.slots = s.Slots
		}
		add(delayStage, qdisc{kind: "netem", netem: n})
	}
	switch shaper {
	case NetemShaper:
		add(rateStage, qdisc{kind: "netem", netem: netem{rate: uint64(s.Rate / 8), overhead: int(s.Overhead), limit: queue, seed: derive(s.Seed, rateStage), slots: s.Slots}})
	case TBFShaper:
		rate := uint64(s.Rate / 8)
		q := qdisc{kind: "tbf", tbf: tbf{rate: rate, overhead: int(s.Overhead), burst: bucket(rate), limit: uint32(s.LimitBytes)}}
		if s.LimitBytes == 0 {
			q.tbf.limit = uint32(queue) // handed on to the pfifo below, which counts packets
		}
		add(rateStage, q)
	}
	end := lastStage
	if shaper != NetemShaper && shaper != TBFShaper {
		end = aloneStage
	}
	if shaper == TBFShaper || shaper == HTBShaper {
		q := qdisc{kind: "pfifo", limit: queue}
		if s.LimitBytes > 0 {
			q = qdisc{kind: "bfifo", limit: int(s.LimitBytes)}
		}
		add(end, q)
	}
	if s.lastStage() {
		add(end, qdisc{kind: "netem", netem: last})
	}
}

// bucket is the size of a bucket of tokens in bytes: two full frames, or 250 µs of
// the rate, in which the kernel's timer is late.
func bucket(rate uint64) uint32 { return uint32(max(2*1600, rate/4000)) }

// derive gives each stage a seed of its own; 0 = the kernel's.
func derive(seed uint64, stage int) uint64 {
	if seed == 0 {
		return 0
	}
	return seed + uint64(stage)*0x9e3779b97f4a7c15
}

const (
	protoAll  = 0x0003
	protoIPv4 = 0x0800
	protoIPv6 = 0x86dd
)

// filters sends a class's peers to it. The priority is the class's, once for each
// protocol, so that the first class that fits takes a packet.
func filters(i int, c *Class, id uint32, source bool) []filter {
	priority := uint16(2*i + 1)
	if len(c.Peers) == 0 {
		return []filter{{priority, protoAll, id, []key{{}}}}
	}
	var out []filter
	for _, p := range c.Peers {
		f := filter{priority: priority, protocol: protoIPv4, class: id}
		offset := int32(16) // destination in an IPv4 header
		if source {
			offset = 12
		}
		if p.Addr().Is6() {
			f.priority, f.protocol, offset = priority+1, protoIPv6, 24
			if source {
				offset = 8
			}
		}
		a := p.Addr().AsSlice()
		for w := 0; w*32 < p.Bits() || w == 0; w++ {
			bits := max(0, min(32, p.Bits()-w*32))
			mask := uint32(uint64(0xffffffff) << (32 - bits))
			f.keys = append(f.keys, key{mask, uint32(a[4*w])<<24 | uint32(a[4*w+1])<<16 | uint32(a[4*w+2])<<8 | uint32(a[4*w+3]), offset + int32(4*w)})
		}
		out = append(out, f)
	}
	return out
}

// handleName writes a handle as tc does.
func handleName(h uint32) string {
	if h == rootOf {
		return "root"
	}
	if h&0xffff == 0 {
		return fmt.Sprintf("%x:", h>>16)
	}
	return fmt.Sprintf("%x:%x", h>>16, h&0xffff)
}
