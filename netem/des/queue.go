package des

import "github.com/hopbed/hopbed/netem/vtime"

// The pending events lie in two places. The next few are in near, a sorted array
// whose last entry fires first: a medium schedules and cancels almost only there,
// within microseconds of now, and an insertion moves but the few entries that fire
// before the new one. All others are in far, a 4-ary heap, where retransmission
// timers and the like wait; an event that is cancelled there leaves its entry
// behind (a tombstone), which costs less than to keep every entry's place known.
//
// Whatever lies in near fires before whatever lies in far. New events at or after
// horizon go to far: they have the greatest numbers, so that those of the very
// time of the horizon, too, come after the ones in near.

const (
	arity    = 4
	nearMost = 64 // above it the later half moves to far
	nearKeep = nearMost / 2
)

// entry is an event in near. The order of its ties is that of the array.
type entry struct {
	at   vtime.Time
	slot int32
}

// node is an event in far, dead when its slot has another number by now.
type node struct {
	at   vtime.Time
	seq  uint64
	slot int32
}

func before(a, b *node) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// insert adds an event that has the greatest number of all.
func (e *Engine) insert(at vtime.Time, slot int32) {
	if at >= e.horizon {
		e.push(node{at: at, seq: e.slots[slot].seq, slot: slot})
		return
	}
	e.near = append(e.near, entry{})
	n := e.near
	i := len(n) - 1
	for i > 0 && n[i-1].at <= at {
		n[i] = n[i-1]
		i--
	}
	n[i] = entry{at: at, slot: slot}
	if len(n) > nearMost {
		e.spill()
	}
}

// insertNumbered adds an event whose number may be lower than that of others at its
// time.
func (e *Engine) insertNumbered(at vtime.Time, slot int32) {
	seq := e.slots[slot].seq
	follows := func(n *entry) bool { return n.at < at || n.at == at && e.slots[n.slot].seq < seq }
	if at >= e.horizon && (len(e.near) == 0 || follows(&e.near[0])) {
		e.push(node{at: at, seq: seq, slot: slot})
		return
	}
	e.near = append(e.near, entry{})
	n := e.near
	i := len(n) - 1
	for i > 0 && follows(&n[i-1]) {
		n[i] = n[i-1]
		i--
	}
	n[i] = entry{at: at, slot: slot}
	if len(n) > nearMost {
		e.spill()
	}
}

// spill moves the later part of near to far.
func (e *Engine) spill() {
	moved := e.near[:len(e.near)-nearKeep]
	e.horizon = moved[len(moved)-1].at
	for i := len(moved) - 1; i >= 0; i-- {
		m := &moved[i]
		e.push(node{at: m.at, seq: e.slots[m.slot].seq, slot: m.slot})
	}
	e.near = e.near[:copy(e.near, e.near[len(moved):])]
}

// refill moves the next events from far into the empty near, and reports whether
// there were any.
func (e *Engine) refill() bool {
	var next [nearKeep]entry
	k := len(next)
	for k > 0 && len(e.far) > 0 {
		n := e.pop()
		if s := &e.slots[n.slot]; s.seq == n.seq {
			k--
			next[k] = entry{at: n.at, slot: n.slot}
			s.far = false
		} else {
			e.dead--
		}
	}
	e.near = append(e.near, next[k:]...)
	e.horizon = vtime.Never
	if len(e.far) > 0 {
		e.horizon = e.far[0].at
	}
	return k < len(next)
}

// remove takes the pending event of the slot out.
func (e *Engine) remove(slot int32) {
	if e.slots[slot].far {
		e.dead++
		return
	}
	n := e.near
	i := len(n) - 1
	moved := n[i]
	for moved.slot != slot { // the entries that fire before it move up meanwhile
		i--
		moved, n[i] = n[i], moved
	}
	e.near = n[:len(n)-1]
}

// bury removes the tombstones when they outnumber the living.
func (e *Engine) bury() {
	if e.dead <= len(e.far)/2+nearMost {
		return
	}
	live := e.far[:0]
	for _, n := range e.far {
		if e.slots[n.slot].seq == n.seq {
			live = append(live, n)
		}
	}
	e.far, e.dead = live, 0
	for i := (len(live) - 2) / arity; i >= 0; i-- {
		e.down(i)
	}
}

func (e *Engine) push(n node) {
	e.slots[n.slot].far = true
	e.far = append(e.far, n)
	h := e.far
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / arity
		if !before(&n, &h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = n
}

func (e *Engine) pop() node {
	h := e.far
	top, last := h[0], len(h)-1
	h[0] = h[last]
	e.far = h[:last]
	if last > 0 {
		e.down(0)
	}
	return top
}

func (e *Engine) down(i int) {
	h := e.far
	n := h[i]
	for {
		c := arity*i + 1
		if c >= len(h) {
			break
		}
		least := c
		for k := c + 1; k < min(c+arity, len(h)); k++ {
			if before(&h[k], &h[least]) {
				least = k
			}
		}
		if !before(&h[least], &n) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = n
}
