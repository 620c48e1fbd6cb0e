package wifi

import (
	"math"
	"math/rand/v2"
	"slices"
)

// stepper is a second, independent implementation of 802.11 contention for
// comparison: it walks through the ticks of a microsecond clock and asks every
// station at each what it hears and does, instead of keeping events. All durations are integers of µs. Saturated senders, one frame length,
// ACK, EIFS, NAV, no capture, every overlap destroys.
type stepper struct {
	hears [][]bool // hears[j][i]: j hears i
	to    []int    // destination of a saturated sender, −1: only receives
	edca  bool     // countdown rule
	noAck bool     // a transmission is a burst that nobody acknowledges
	rng   *rand.Rand

	slot, sifs, difs, eifs, data, ack, ackTimeout, detect int
	cwmin, cwmax, retries                                 int
	nodes                                                 []stepNode
	starts                                                []int
}

type stepNode struct {
	onAir            bool
	isAck            bool
	peer             int // addressee of the transmission
	start, end       int
	lock             int // transmitter locked on, −1
	clean            bool
	waiting          bool
	deadline         int
	respond, respTo  int // tick of the ACK, −1
	wasBusy          bool
	errored          bool // EIFS applies
	idle             int  // tick at which the medium turned idle
	nav, hold, base  int
	backoff, cw      int
	fails            int
	known            bool // the current frame has reached its destination before
	delivered, sent  int
	dropped, collide int
}

func (s *stepper) run(ticks int) {
	s.nodes = make([]stepNode, len(s.to))
	for i := range s.nodes {
		n := &s.nodes[i]
		n.lock, n.respond, n.cw = -1, -1, s.cwmin
		n.backoff = s.rng.IntN(s.cwmin + 1)
	}
	for t := 0; t < ticks; t = s.next(t) {
		s.tick(t)
	}
}

// next returns the next tick at which anything can happen: an end, a timeout, an
// ACK or a slot boundary. The ticks between are skipped for speed alone.
func (s *stepper) next(t int) int {
	next := math.MaxInt
	for i := range s.nodes {
		n := &s.nodes[i]
		switch {
		case n.onAir:
			next = min(next, n.end)
		case n.respond >= 0:
			next = min(next, n.respond)
		case n.waiting:
			next = min(next, max(n.deadline, t+1))
		case s.to[i] >= 0 && !s.deaf(i, t):
			boundary := n.base + s.difs
			if t >= boundary {
				boundary += ((t-boundary)/s.slot + 1) * s.slot
			}
			next = min(next, boundary)
		}
	}
	return next
}

// deaf: station i has detected that the medium is busy.
func (s *stepper) deaf(i, t int) bool {
	for k := range s.nodes {
		if s.hears[i][k] && s.nodes[k].onAir && s.nodes[k].start <= t-s.detect {
			return true
		}
	}
	return false
}

func (s *stepper) tick(t int) {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.onAir && n.end == t {
			s.ended(i, t)
		}
	}
	for i := range s.nodes {
		if n := &s.nodes[i]; n.waiting && t >= n.deadline && n.lock < 0 {
			s.failed(i, t)
		}
	}
	for i := range s.nodes {
		s.listen(i, t)
	}
	starts := s.starts[:0]
	for i := range s.nodes {
		if s.decides(i, t) {
			starts = append(starts, i)
		}
	}
	s.starts = starts
	for _, i := range starts {
		s.nodes[i].lock = -1
		s.nodes[i].onAir, s.nodes[i].wasBusy = true, true
		s.nodes[i].start = t
	}
	for j := range s.nodes {
		for _, i := range starts {
			if s.hears[j][i] && !s.nodes[j].onAir {
				s.locks(j, i)
			}
		}
	}
}

// ended: transmission i is over.
func (s *stepper) ended(i, t int) {
	tx := &s.nodes[i]
	tx.onAir = false
	switch {
	case s.noAck:
		tx.sent++
		tx.known = false
		tx.backoff = s.rng.IntN(s.cwmin + 1)
	case !tx.isAck:
		tx.waiting, tx.deadline = true, t+s.ackTimeout
	}
	for j := range s.nodes {
		n := &s.nodes[j]
		if n.lock != i {
			continue
		}
		n.lock = -1
		n.errored = !n.clean
		switch {
		case !n.clean:
			if n.waiting {
				s.failed(j, t)
			}
		case tx.isAck && tx.peer == j && n.waiting:
			n.waiting, n.known = false, false
			n.sent++
			n.fails, n.cw = 0, s.cwmin
			n.backoff = s.rng.IntN(n.cw + 1)
		default:
			if n.waiting {
				s.failed(j, t)
			}
			if tx.isAck {
				break
			}
			if tx.peer != j {
				if !s.noAck {
					n.nav = max(n.nav, t+s.sifs+s.ack)
				}
				break
			}
			if !s.noAck {
				n.respond, n.respTo = t+s.sifs, i
			}
			if s.noAck || !tx.known {
				tx.known = true
				n.delivered++
			}
		}
	}
}

func (s *stepper) failed(i, t int) {
	n := &s.nodes[i]
	n.waiting, n.hold = false, t
	n.collide++
	n.fails++
	if n.fails > s.retries {
		n.dropped++
		n.fails, n.cw, n.known = 0, s.cwmin, false
	} else {
		n.cw = min(2*n.cw+1, s.cwmax)
	}
	n.backoff = s.rng.IntN(n.cw + 1)
}

// listen follows the physical carrier sense of station j.
func (s *stepper) listen(j, t int) {
	n := &s.nodes[j]
	busy := n.onAir
	for i := range s.nodes {
		busy = busy || s.hears[j][i] && s.nodes[i].onAir
	}
	if n.wasBusy && !busy {
		n.idle = t
	}
	if !busy && (n.wasBusy || n.hold == t) {
		n.base = n.idle
		if n.errored {
			n.base += s.eifs - s.difs
		}
		n.base = max(n.base, n.nav, n.hold)
	}
	n.wasBusy = busy
}

// decides whether station i begins to transmit at tick t.
func (s *stepper) decides(i, t int) bool {
	n := &s.nodes[i]
	if n.onAir {
		return false
	}
	if n.respond == t {
		n.respond, n.isAck, n.peer, n.end = -1, true, n.respTo, t+s.ack
		n.errored = false
		return true
	}
	if n.respond >= 0 || n.waiting || s.to[i] < 0 || s.deaf(i, t) {
		return false
	}
	slots := t - n.base - s.difs
	if slots < 0 || slots%s.slot != 0 {
		return false
	}
	if n.backoff > 0 && (s.edca || slots > 0) {
		n.backoff--
		if s.edca || n.backoff > 0 {
			return false
		}
	}
	if n.backoff > 0 {
		return false
	}
	n.isAck, n.peer, n.end = false, s.to[i], t+s.data
	n.errored = false
	return true
}

// locks: transmission i begins within reach of the listening station j.
func (s *stepper) locks(j, i int) {
	n := &s.nodes[j]
	if n.lock >= 0 {
		n.clean = false
		return
	}
	if !n.wasBusy {
		n.errored = false
	}
	n.wasBusy = true
	n.lock, n.clean = i, true
	for k := range s.nodes {
		if k != i && s.hears[j][k] && s.nodes[k].onAir {
			n.clean = false
		}
	}
}

// stepped11b is the stepper with the timing of an 802.11b station at 11 Mb/s with
// frames of 1500 bytes. EIFS makes room for an ACK at the ACK's own rate.
func stepped11b(hears [][]bool, to []int, header int, edca bool, seed uint64) *stepper {
	const ack = 192 + 14*8/2
	return &stepper{
		hears: hears, to: slices.Clone(to), edca: edca, rng: rand.New(rand.NewPCG(seed, 1)),
		slot: 20, sifs: 10, difs: 50, eifs: 10 + ack + 50, data: 192 + ((1500+8+header+4)*8+10)/11, ack: ack,
		ackTimeout: 10 + 20 + 192, detect: 20, cwmin: 31, cwmax: 1023, retries: 7,
	}
}

// steppedBursts11g are senders of 30-frame bursts without ACK at 54 Mb/s.
func steppedBursts11g(n int, seed uint64) *stepper {
	const ack, frame = 34, 258
	return &stepper{
		hears: everyone(n + 1), to: senders(n), edca: true, noAck: true, rng: rand.New(rand.NewPCG(seed, 1)),
		slot: 9, sifs: 10, difs: 28, eifs: 10 + ack + 28, data: 30*frame + 29*10, detect: 9, cwmin: 15, cwmax: 15,
	}
}
