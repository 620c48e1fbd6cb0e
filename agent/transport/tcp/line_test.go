package tcp

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// line joins two connections by a path in virtual time: in each direction a
// drop-tail queue, a rate, a delay, and whatever a filter does to a segment.
type line struct {
	now    vtime.Time
	seq    uint64
	events lineHeap
	pool   *Pool
	end    [2]*Conn
	dir    [2]wire // dir[i]: from end i to the other
	app    [2]func(now vtime.Time, c *Conn)
	timer  [2]vtime.Time
	rng    *rand.Rand
	trace  func(now vtime.Time, from int, s *Segment, dropped bool)
	hash   uint64
	count  int
	after  func(end int) // called when an end has handled an event
}

type wire struct {
	rate          vtime.BitRate
	delay         vtime.Duration
	limit         int // packets in the queue, the one in service included; 0 = no limit
	overhead      vtime.Bytes
	queued        int
	busy          vtime.Time
	loss          float64
	reorder       float64 // share of segments delayed by extra
	extra         vtime.Duration
	dup           float64
	drop          func(s *Segment) bool
	sent, dropped int
}

type lineEvent struct {
	at   vtime.Time
	n    uint64
	kind int // 0 timer of end to, 1 leaves the queue of from, 2 arrives at to
	to   int
	s    *Segment
}

type lineHeap []lineEvent

func (h lineHeap) Len() int { return len(h) }
func (h lineHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h lineHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *lineHeap) Push(x any)   { *h = append(*h, x.(lineEvent)) }
func (h *lineHeap) Pop() any {
	o := *h
	e := o[len(o)-1]
	*h = o[:len(o)-1]
	return e
}

func newLine(t testing.TB, cfg0, cfg1 Config, seed uint64) *line {
	t.Helper()
	l := &line{pool: new(Pool), rng: rand.New(rand.NewPCG(seed, 1)), timer: [2]vtime.Time{vtime.Never, vtime.Never}}
	for i, cfg := range []Config{cfg0, cfg1} {
		c, err := New(cfg, l.pool)
		if err != nil {
			t.Fatal(err)
		}
		l.end[i] = c
	}
	return l
}

func (l *line) at(t vtime.Time, kind, to int, s *Segment) {
	l.seq++
	heap.Push(&l.events, lineEvent{t, l.seq, kind, to, s})
}

// settle drains what end i has to send and sets its timer.
func (l *line) settle(i int) {
	c := l.end[i]
	if l.app[i] != nil {
		l.app[i](l.now, c)
	}
	for {
		s, ok := c.Poll(l.now)
		if !ok {
			break
		}
		l.transmit(i, s)
	}
	if l.after != nil {
		l.after(i)
	}
	if d := c.Deadline(); d != l.timer[i] {
		l.timer[i] = d
		if d != vtime.Never {
			l.at(max(d, l.now), 0, i, nil)
		}
	}
}

func (l *line) transmit(from int, s *Segment) {
	w := &l.dir[from]
	w.sent++
	drop := w.limit > 0 && w.queued >= w.limit || w.drop != nil && w.drop(s) || w.loss > 0 && l.rng.Float64() < w.loss
	if l.trace != nil {
		l.trace(l.now, from, s, drop)
	}
	if drop {
		w.dropped++
		l.pool.Put(s)
		return
	}
	done := l.now
	if w.rate > 0 {
		w.busy = max(w.busy, l.now).Add(w.rate.TxTime(s.WireLen() + w.overhead))
		done = w.busy
		w.queued++
		l.at(done, 1, from, nil)
	}
	arrive := done.Add(w.delay)
	if w.reorder > 0 && l.rng.Float64() < w.reorder {
		arrive = arrive.Add(w.extra)
	}
	if w.dup > 0 && l.rng.Float64() < w.dup {
		d := l.pool.Get()
		*d = *s
		l.at(arrive.Add(l.dir[from].extra/3), 2, 1-from, d)
	}
	l.at(arrive, 2, 1-from, s)
}

// run processes events up to t.
func (l *line) run(t vtime.Time) {
	for len(l.events) > 0 && l.events[0].at <= t {
		e := heap.Pop(&l.events).(lineEvent)
		if l.count++; l.count > 5_000_000 {
			panic("the line does not come to rest")
		}
		l.now = e.at
		switch e.kind {
		case 0:
			if l.timer[e.to] != e.at {
				continue // an older setting
			}
			l.timer[e.to] = vtime.Never
			l.end[e.to].Expire(l.now)
			l.settle(e.to)
		case 1:
			l.dir[e.to].queued--
		case 2:
			s := e.s
			l.hash = l.hash*1099511628211 ^ uint64(e.at) ^ s.Seq<<1 ^ s.Ack<<7 ^ uint64(s.Window)<<40
			l.end[e.to].Receive(l.now, s)
			l.pool.Put(s)
			l.settle(e.to)
		}
	}
	l.now = t
}

// bulk writes for ever; sink reads all there is.
func bulk(now vtime.Time, c *Conn) {
	for {
		if n := c.Writable(); n == 0 || c.Write(now, n) == 0 {
			return
		}
	}
}

func sink(now vtime.Time, c *Conn) {
	c.Read(now, 1<<40)
}

// open starts the connection from end 0 to end 1.
func (l *line) open() {
	l.end[1].Listen()
	l.end[0].Connect(l.now)
	l.settle(0)
}
