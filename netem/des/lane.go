package des

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Lane is a row of events of one handler whose times never decrease, such as the
// arrivals of packets that do not overtake each other. They fire exactly as if each
// had been scheduled by Schedule, but only the first of them takes part in the
// engine's ordering, so that an event costs the same however many are on their way.
// They cannot be cancelled.
type Lane struct {
	eng  *Engine
	h    Handler
	row  []laned // a ring, its length a power of two
	head int     // of the first waiting event
	n    int     // waiting events, the one in the engine not included
	busy bool    // one of the lane's events is in the engine
	last vtime.Time
}

// laned is a waiting event, with the number that it was scheduled under.
type laned struct {
	at       vtime.Time
	seq, arg uint64
}

// NewLane returns an empty lane of h.
func (e *Engine) NewLane(h Handler) *Lane { return &Lane{eng: e, h: h, row: make([]laned, 4)} }

// Last returns the time of the event that was scheduled last; the zero time before
// the first one.
func (l *Lane) Last() vtime.Time { return l.last }

// Schedule arranges for h.Fire(at, arg). It panics, beside Schedule's reasons, when
// at lies before the last event of the lane.
func (l *Lane) Schedule(at vtime.Time, arg uint64) {
	e := l.eng
	e.check(at)
	if at < l.last {
		panic(fmt.Sprintf("des: event scheduled at %v in a lane whose last one is at %v: a lane's times never decrease", at, l.last))
	}
	l.last = at
	e.seq++
	if !l.busy {
		l.busy = true
		e.insert(at, e.slot(l, arg, e.seq))
		return
	}
	if l.n == len(l.row) {
		row := make([]laned, 2*len(l.row))
		k := copy(row, l.row[l.head:])
		copy(row[k:], l.row[:l.head])
		l.row, l.head = row, 0
	}
	l.row[(l.head+l.n)&(len(l.row)-1)] = laned{at, e.seq, arg}
	l.n++
	e.laned++
}

// Fire implements Handler.
func (l *Lane) Fire(now vtime.Time, arg uint64) {
	if l.busy = l.n > 0; l.busy {
		next := &l.row[l.head]
		l.head = (l.head + 1) & (len(l.row) - 1)
		l.n--
		l.eng.laned--
		l.eng.insertNumbered(next.at, l.eng.slot(l, next.arg, next.seq))
	}
	l.h.Fire(now, arg)
}
