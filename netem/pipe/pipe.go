package pipe

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Packet is what a pipe carries. It comes from NewPacket and belongs to the
// pipe from Send on; the sink may look at it until it returns.
type Packet struct {
	Len     vtime.Bytes // IP packet; Config.Overhead comes on top
	Data    []byte      // live: the packet itself; the capacity is kept by the pool
	Payload any         // virtual time: what the packet stands for

	Sent      vtime.Time // when Send was called
	Duplicate bool       // the second copy

	due  vtime.Time
	slot int32
	next *Packet
}

// Cause says why a packet was dropped.
type Cause uint8

// The causes of a drop.
const (
	Lost     Cause = iota // the loss model
	Overflow              // the queue was full
	Off                   // the sender or the receiver is switched off
)

// String names the cause.
func (c Cause) String() string { return [...]string{"lost", "overflow", "off"}[c] }

// Sink receives what comes out of a pipe. A packet is valid until the call
// returns; Payload and Data may be kept.
type Sink interface {
	Deliver(now vtime.Time, p *Packet)
	Drop(now vtime.Time, p *Packet, c Cause)
}

// Cloner is a Sink that copies payloads: the second copy of a duplicated
// packet then carries a payload of its own. Without it both carry the same.
type Cloner interface{ Clone(payload any) any }

// Leaver is a Sink that wants to know when there is room again: Left is called
// once for each packet that Send took, when it has left the queue and whatever
// the link then does with it. Where nothing waits it is called before Send
// returns. It may send.
type Leaver interface {
	Left(now vtime.Time, p *Packet)
}

// Stats are the pipe's counters.
type Stats struct {
	Entered, Delivered     uint64 // packets; a duplicate counts as delivered only
	DeliveredBytes         vtime.Bytes
	LostPackets, Overflows uint64
	SwitchedOff            uint64 // packets lost because a node was switched off
	Duplicates, HeldBack   uint64
	Queued                 int // packets waiting now, the one in service included
	QueuedBytes            vtime.Bytes
	MaxQueued              int
	BusyTime               vtime.Duration // the link carried something
	QueueIntegral          float64        // packet-seconds in the queue
}

// Pipe is one direction of a link.
type Pipe struct {
	eng     *des.Engine
	cfg     Config
	sink    Sink
	left    Leaver   // the sink, if it is one
	expect  Expecter // the sink, if it is one
	monitor Monitor
	up      bool
	off     [2]bool // the node at the sending, the receiving end is switched off
	bad     bool    // Gilbert–Elliott state

	loss, jitter, reorder, dup *des.Stream

	queue      fifo
	queueBytes vtime.Bytes
	server     server
	lastDue    vtime.Time // order of delivery
	flight     []*Packet  // by slot
	arrivals   *des.Lane  // of packets that do not overtake
	freeSlots  []int32
	free       *Packet
	change     int

	stats   Stats
	statsAt vtime.Time
}

// The events of a pipe; flight events carry their slot above them.
const (
	evService = iota
	evChange
	evFlight
)

// New returns a pipe. name separates its random draws from those of other
// pipes with the same seed.
func New(eng *des.Engine, seed uint64, name string, cfg Config, sink Sink) (*Pipe, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if cfg.Epoch > eng.Now() {
		return nil, fmt.Errorf("%s: pipe: the epoch %v lies ahead of the engine's %v", name, cfg.Epoch, eng.Now())
	}
	p := &Pipe{
		eng: eng, cfg: cfg, sink: sink, up: true,
		loss:    des.NewStream(seed, name+"/loss"),
		jitter:  des.NewStream(seed, name+"/jitter"),
		reorder: des.NewStream(seed, name+"/reorder"),
		dup:     des.NewStream(seed, name+"/duplicate"),
		statsAt: eng.Now(),
	}
	p.arrivals = eng.NewLane(p)
	p.left, _ = sink.(Leaver)
	p.expect, _ = sink.(Expecter)
	p.server.init(&p.cfg)
	p.scheduleChange()
	return p, nil
}

// NewPacket returns an empty packet whose Data has length 0 and keeps its
// capacity.
func (p *Pipe) NewPacket() *Packet {
	k := p.free
	if k == nil {
		return new(Packet)
	}
	p.free = k.next
	*k = Packet{Data: k.Data[:0]}
	return k
}

func (p *Pipe) release(k *Packet) {
	k.Payload = nil
	k.next = p.free
	p.free = k
}

// Send puts a packet into the pipe at the engine's now. It reports false when
// the packet was dropped at once (after telling the sink).
func (p *Pipe) Send(k *Packet) bool {
	now := p.eng.Now()
	k.Sent = now
	p.stats.Entered++
	if p.off[sender] {
		p.drop(now, k, NodeOff)
		return false
	}
	if !p.cfg.LossAfterQueue && p.lose() {
		p.drop(now, k, LostAtEntry)
		return false
	}
	if p.server.unlimited() && p.Up() && p.queue.n == 0 {
		p.observe(now, k, Entered)
		if p.left != nil {
			p.left.Left(now, k)
		}
		p.launch(now, k)
		return true
	}
	q := p.cfg.Queue
	if q.Packets > 0 && p.queue.n >= q.Packets || q.Bytes > 0 && p.queueBytes+k.Len > q.Bytes {
		p.drop(now, k, QueueFull)
		return false
	}
	p.observe(now, k, Entered)
	p.account(now)
	p.queue.push(k)
	p.queueBytes += k.Len
	p.stats.MaxQueued = max(p.stats.MaxQueued, p.queue.n)
	p.serve(now)
	return true
}

func (p *Pipe) observe(now vtime.Time, k *Packet, s Step) {
	if p.monitor != nil {
		p.monitor.Passed(now, k, s)
	}
}

func (p *Pipe) drop(now vtime.Time, k *Packet, s Step) {
	p.observe(now, k, s)
	c := Lost
	switch s {
	case QueueFull:
		c = Overflow
		p.stats.Overflows++
	case NodeOff:
		c = Off
		p.stats.SwitchedOff++
	default:
		p.stats.LostPackets++
	}
	p.eng.Mix(uint64(c), uint64(k.Len))
	p.sink.Drop(now, k, c)
	p.release(k)
}

// Fire implements des.Handler.
func (p *Pipe) Fire(now vtime.Time, arg uint64) {
	switch arg & 3 {
	case evService:
		p.server.event = 0
		p.served(now)
	case evChange:
		p.applyChange(now)
	case evFlight:
		slot := int32(arg >> 2)
		k := p.flight[slot]
		p.flight[slot] = nil
		p.freeSlots = append(p.freeSlots, slot)
		if p.off[receiver] {
			p.drop(now, k, NodeOff)
			return
		}
		p.stats.Delivered++
		p.stats.DeliveredBytes += k.Len
		p.observe(now, k, Arrived)
		p.sink.Deliver(now, k)
		p.release(k)
	}
}

// leave takes the head of the queue, which the link has carried, to the wire.
func (p *Pipe) leave(now vtime.Time) {
	p.account(now)
	k := p.queue.pop()
	p.queueBytes -= k.Len
	if p.left != nil {
		p.left.Left(now, k)
	}
	p.launch(now, k)
}

// launch sends a packet on its way: loss, reordering, duplication, delay.
func (p *Pipe) launch(now vtime.Time, k *Packet) {
	if p.cfg.LossAfterQueue && p.lose() {
		p.drop(now, k, LostOnWire)
		return
	}
	due := now.Add(p.delay())
	held := p.cfg.Reorder.Share > 0 && p.reorder.Bool(float64(p.cfg.Reorder.Share))
	inOrder := !p.cfg.Jitter.Overtake && !held
	if inOrder {
		due = max(due, p.lastDue)
		p.lastDue = due
	}
	if held {
		p.stats.HeldBack++
		due = due.Add(p.cfg.Reorder.Extra)
	}
	p.fly(k, due, inOrder)
	if p.cfg.Duplicate > 0 && p.dup.Bool(float64(p.cfg.Duplicate)) {
		d := p.NewPacket()
		d.Len, d.Payload, d.Sent, d.Duplicate = k.Len, k.Payload, k.Sent, true
		d.Data = append(d.Data, k.Data...)
		if c, ok := p.sink.(Cloner); ok {
			d.Payload = c.Clone(k.Payload)
		}
		p.stats.Duplicates++
		p.fly(d, due, inOrder)
	}
}

func (p *Pipe) fly(k *Packet, due vtime.Time, inOrder bool) {
	var slot int32
	if n := len(p.freeSlots); n > 0 {
		slot = p.freeSlots[n-1]
		p.freeSlots = p.freeSlots[:n-1]
		p.flight[slot] = k
	} else {
		slot = int32(len(p.flight))
		p.flight = append(p.flight, k)
	}
	k.due, k.slot = due, slot
	if p.expect != nil {
		p.expect.Expect(due)
	}
	if arg := uint64(slot)<<2 | evFlight; inOrder {
		p.arrivals.Schedule(due, arg)
	} else {
		p.eng.Schedule(due, p, arg)
	}
}

// account adds the time since the last change of the queue to the integral.
func (p *Pipe) account(now vtime.Time) {
	if p.queue.n > 0 {
		d := now.Sub(p.statsAt).Seconds()
		p.stats.QueueIntegral += float64(d * float64(p.queue.n))
	}
	p.statsAt = now
}

// fifo is a list of packets.
type fifo struct {
	head, tail *Packet
	n          int
}

func (f *fifo) push(k *Packet) {
	k.next = nil
	if f.tail == nil {
		f.head = k
	} else {
		f.tail.next = k
	}
	f.tail = k
	f.n++
}

func (f *fifo) pop() *Packet {
	k := f.head
	f.head = k.next
	if f.head == nil {
		f.tail = nil
	}
	k.next = nil
	f.n--
	return k
}
