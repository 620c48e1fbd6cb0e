package des

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Handler receives the events that were scheduled for it. arg is the word given
// to Schedule: a handler with several timers tells them apart by it, so that no
// closure is needed (closures allocate).
type Handler interface {
	Fire(now vtime.Time, arg uint64)
}

// EventID names one scheduled event. The zero value names none. An id stays
// harmless after its event was fired or cancelled: its slot carries a
// generation, so a stale id never reaches the slot's next event.
type EventID uint64

// event is one slot of the arena. Slots are reused; gen counts the uses.
type event struct {
	h    Handler
	arg  uint64
	seq  uint64 // number of the scheduled event; 0: the slot is free
	gen  uint32
	next int32 // the next free slot, −1: none
	far  bool  // it lies in Engine.far
}

// Engine is a single-threaded event engine. Events of one nanosecond fire in
// the order in which they were scheduled.
type Engine struct {
	now     vtime.Time
	horizon vtime.Time // see queue.go
	seq     uint64
	fired   uint64
	hash    uint64
	near    []entry
	far     []node
	dead    int // tombstones in far
	laned   int // events that wait in lanes
	slots   []event
	free    int32 // the first free slot, −1: none
}

// New returns an engine at time zero without events.
func New() *Engine { return &Engine{hash: traceBasis, horizon: vtime.Never, free: -1} }

// Now returns the current virtual time.
func (e *Engine) Now() vtime.Time { return e.now }

// Fired returns the number of events fired so far.
func (e *Engine) Fired() uint64 { return e.fired }

// Pending returns the number of scheduled events.
func (e *Engine) Pending() int { return len(e.near) + len(e.far) - e.dead + e.laned }

// Schedule arranges for h.Fire(at, arg). It panics when at lies before Now or is
// vtime.Never: both are programming errors, and to fire such an event late would
// silently break causality.
func (e *Engine) Schedule(at vtime.Time, h Handler, arg uint64) EventID {
	e.check(at)
	e.seq++
	slot := e.slot(h, arg, e.seq)
	e.insert(at, slot)
	return EventID(uint64(e.slots[slot].gen)<<32 | uint64(uint32(slot)))
}

func (e *Engine) check(at vtime.Time) {
	if at < e.now || at == vtime.Never {
		panic(fmt.Sprintf("des: event scheduled at %v, but it is already %v (or the time is 'never'): a handler must schedule at or after its own now", at, e.now))
	}
}

// slot fills a slot of the arena.
func (e *Engine) slot(h Handler, arg, seq uint64) int32 {
	slot := e.free
	if slot < 0 {
		slot = int32(len(e.slots))
		e.slots = append(e.slots, event{gen: 1, next: -1})
	}
	s := &e.slots[slot]
	e.free = s.next
	s.h, s.arg, s.seq = h, arg, seq
	return slot
}

// Cancel removes the event and reports whether it was still pending.
func (e *Engine) Cancel(id EventID) bool {
	slot := uint32(id)
	if int(slot) >= len(e.slots) {
		return false
	}
	s := &e.slots[slot]
	if s.gen != uint32(id>>32) || s.seq == 0 {
		return false
	}
	e.remove(int32(slot))
	far := s.far
	e.release(int32(slot))
	if far {
		e.bury()
	}
	return true
}

// Next returns the time of the earliest pending event, vtime.Never if there is
// none.
func (e *Engine) Next() vtime.Time {
	if len(e.near) == 0 && !e.refill() {
		return vtime.Never
	}
	return e.near[len(e.near)-1].at
}

// Step fires exactly one event and reports whether there was one.
func (e *Engine) Step() bool {
	if len(e.near) == 0 && !e.refill() {
		return false
	}
	last := len(e.near) - 1
	top := e.near[last]
	e.near = e.near[:last]
	s := &e.slots[top.slot]
	h, arg := s.h, s.arg
	e.release(top.slot)
	e.now = top.at
	e.fired++
	e.hash = mix(mix(e.hash, uint64(top.at)), arg)
	h.Fire(top.at, arg)
	return true
}

// RunUntil fires every event up to and including t, among them those that the
// events themselves schedule, and leaves Now at t.
func (e *Engine) RunUntil(t vtime.Time) {
	for e.Next() <= t && e.Step() {
	}
	e.AdvanceTo(t)
}

// AdvanceTo moves the clock to t without firing anything. Events at exactly t
// may be pending; an event before t, or a t before Now, is a programming error
// and panics.
func (e *Engine) AdvanceTo(t vtime.Time) {
	if t < e.now {
		panic(fmt.Sprintf("des: AdvanceTo(%v) would turn the clock back from %v", t, e.now))
	}
	if next := e.Next(); next < t {
		panic(fmt.Sprintf("des: AdvanceTo(%v) would skip the event at %v: fire it first", t, next))
	}
	e.now = t
}

// Mix adds words to the trace hash: a component records what it decided (an
// outcome, a draw), which times and arguments alone do not show.
func (e *Engine) Mix(words ...uint64) {
	for _, w := range words {
		e.hash = mix(e.hash, w)
	}
}

// TraceHash returns the hash of all events fired and words mixed so far. Equal
// programs with equal seeds have equal hashes on every architecture.
func (e *Engine) TraceHash() uint64 { return finish(e.hash) }

func (e *Engine) release(slot int32) {
	s := &e.slots[slot]
	s.h = nil
	s.seq = 0
	s.far = false
	s.gen++
	if s.gen == 0 { // the id of slot 0 in generation 0 would be "none"
		s.gen = 1
	}
	s.next = e.free
	e.free = slot
}
