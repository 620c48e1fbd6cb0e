package hop

import "github.com/hopbed/hopbed/netem/vtime"

// timerKind says what a timer's expiry means.
type timerKind uint8

const (
	timerSend    timerKind = iota // send side: a BSYN was not answered
	timerReceive                  // receive side: the grant's sender is silent
	timerVirtual                  // end-to-end timeout, or a VBSYN was not answered
	timerLook                     // port: look at the MAC's queues again, or end a gap
)

// timer is one deadline; it lives inside what it belongs to, so that arming
// it does not allocate.
type timer struct {
	at   vtime.Time
	seq  uint64 // order of arming: the tie-break
	pos  int    // index in the heap + 1; 0 when not armed
	kind timerKind
	b    *block
	p    *port // of timerLook
}

// timers is a binary heap by time, then by order of arming.
type timers struct {
	heap []*timer
	seq  uint64
}

func (q *timers) next() vtime.Time {
	if len(q.heap) == 0 {
		return vtime.Never
	}
	return q.heap[0].at
}

// set arms t, or moves it if it is armed.
func (q *timers) set(t *timer, at vtime.Time) {
	q.seq++
	t.at, t.seq = at, q.seq
	if t.pos == 0 {
		q.heap = append(q.heap, t)
		t.pos = len(q.heap)
	}
	q.up(t.pos - 1)
	q.down(t.pos - 1)
}

// stop disarms t.
func (q *timers) stop(t *timer) {
	if t.pos == 0 {
		return
	}
	i, last := t.pos-1, len(q.heap)-1
	moved := q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	t.pos = 0
	if i < last {
		q.heap[i] = moved
		moved.pos = i + 1
		q.up(i)
		q.down(moved.pos - 1)
	}
}

// pop removes and returns the earliest timer that is due at now, or nil.
func (q *timers) pop(now vtime.Time) *timer {
	if len(q.heap) == 0 || q.heap[0].at > now {
		return nil
	}
	t := q.heap[0]
	q.stop(t)
	return t
}

func (q *timers) less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *timers) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.heap[i].pos, q.heap[j].pos = i+1, j+1
}

func (q *timers) up(i int) {
	for i > 0 && q.less(i, (i-1)/2) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q *timers) down(i int) {
	for {
		c := 2*i + 1
		if c+1 < len(q.heap) && q.less(c+1, c) {
			c++
		}
		if c >= len(q.heap) || !q.less(c, i) {
			return
		}
		q.swap(i, c)
		i = c
	}
}

// rtt smooths BSYN→BACK times as RFC 6298 smooths round trips (α = 1/8).
type rtt struct {
	srtt   vtime.Duration
	rttvar vtime.Duration // β = 1/4; for PollAdaptive

	// Wires: answers in a row that gave no sample, and while there is no srtt the
	// interval that the last one of them needed.
	missed  int
	backoff vtime.Duration
}

func (r *rtt) sample(d vtime.Duration) {
	r.missed, r.backoff = 0, 0
	if r.srtt == 0 {
		r.srtt, r.rttvar = max(d, 1), d/2
		return
	}
	r.rttvar += (max(d-r.srtt, r.srtt-d) - r.rttvar) / 4
	r.srtt += (d - r.srtt) / 8
}

// maxMissed is the number of answers in a row without a sample after which the
// srtt is taken for too small: at a loss of 20 % either way one in 3,500.
const maxMissed = 8

// miss takes an answer to a repeated BSYN. A wire may be longer than any timer
// that was tried: the interval is kept until there is a sample (RFC 6298,
// 5.5–5.7), but only then, because control is lost on wires like anything else.
func (r *rtt) miss(interval vtime.Duration) {
	if r.missed++; r.missed >= maxMissed {
		r.srtt, r.missed = 0, 0
	}
	if r.srtt == 0 {
		r.backoff = interval
	}
}

// pollInterval is the first wait for a bitmap: 3 × srtt within the bounds.
func (n *Node) pollInterval(b *block) vtime.Duration {
	r := &b.f.srtt
	if n.adapts(b) {
		return r.adaptive(n.cfg.PollCeil)
	}
	return min(max(3*r.srtt, r.backoff, n.cfg.PollFloor), n.pollCeil(b))
}

// pollCeil bounds the wait for a bitmap. The answer of a radio's neighbour
// takes no longer than PollCeil; a wire is as long as it was measured to be.
func (n *Node) pollCeil(b *block) vtime.Duration {
	switch r := &b.f.srtt; {
	case n.adapts(b):
		return min(adaptiveSpan*r.adaptive(n.cfg.PollCeil), n.cfg.PollCeil)
	case !b.port.wire:
		return n.cfg.PollCeil
	case r.srtt == 0:
		return max(n.cfg.PollCeil, n.cfg.BSYNCeil)
	default:
		return max(n.cfg.PollCeil, 3*r.srtt)
	}
}
