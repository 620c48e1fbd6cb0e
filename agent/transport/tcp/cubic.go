package tcp

import (
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// cubic is CUBIC (RFC 9438) with HyStart, in Linux's fixed-point arithmetic:
// times in 1/1024 s, C = 0.4 (41/1024 per 10 RTTs of 100 ms), β = 717/1024,
// the cube root of 0.2 % accuracy. It differs from the RFC as Linux does:
// C·(t−K)³ is computed for the time one minimal RTT ahead, the target is not
// limited to 1.5 cwnd but growth is to half a segment per ACK, and the
// Reno-friendly window is raised in steps of whole segments.
type cubic struct {
	cnt      int // ACKs per segment of growth
	lastMax  int // window at the last reduction (W_max)
	lastCwnd int
	lastTime int64 // tick of the last update
	origin   int
	k        uint64 // 1/1024 s
	delayMin int64  // µs; 0 = none
	epoch    int64  // tick when the epoch began; 0 = none
	acks     int
	renoCwnd int // the Reno-friendly estimate (W_est)
	hz       int64
	jiffy    vtime.Duration
	hystart  hystart
}

const (
	cubicBeta  = 717 // of 1024
	cubicScale = 41  // C·1024
)

func ticksAt(now vtime.Time, tick vtime.Duration) int64 { return int64(now)/int64(tick) + 1 }

func (c *cubic) Init(now vtime.Time, w *Window) {
	c.jiffy = w.Tick
	c.hz = int64(vtime.Second) / int64(w.Tick)
	c.reset()

	c.hystart.round(now, w)
}

func (c *cubic) reset() {
	*c = cubic{hz: c.hz, jiffy: c.jiffy, hystart: c.hystart}
	c.hystart.found = false
}

func (c *cubic) Avoid(now vtime.Time, w *Window, acked int) {
	if !w.Limited() {
		return
	}
	if w.InSlowStart() {
		if acked = w.SlowStart(acked); acked == 0 {
			return
		}
	}
	c.update(now, w.Cwnd, acked)
	w.Increase(c.cnt, acked)
}

// update computes cnt (RFC 9438 §4.2–4.4).
func (c *cubic) update(now vtime.Time, cwnd, acked int) {
	t := ticksAt(now, c.jiffy)
	c.acks += acked
	if c.lastCwnd == cwnd && t-c.lastTime <= c.hz/32 {
		return
	}
	if c.epoch == 0 || t != c.lastTime {
		c.lastCwnd, c.lastTime = cwnd, t
		if c.epoch == 0 {
			c.epoch = t
			c.acks = acked
			c.renoCwnd = cwnd
			if c.lastMax <= cwnd {
				c.k, c.origin = 0, cwnd
			} else {
				c.k = cubeRoot(cubeFactor * uint64(c.lastMax-cwnd))
				c.origin = c.lastMax
			}
		}
		c.cubicCount(t, cwnd)
	}
	c.friendly(cwnd)
	c.cnt = max(c.cnt, 2) // at most half a segment per ACK
}

// cubicCount follows W(t) = C(t−K)³ + W_max.
func (c *cubic) cubicCount(t int64, cwnd int) {
	tick := int64(c.jiffy) / 1000
	e := uint64(t-c.epoch+(c.delayMin+tick-1)/tick) << 10 / uint64(c.hz)
	offs := e - c.k
	if e < c.k {
		offs = c.k - e
	}
	offs = min(offs, 1<<18) // 256 s; beyond, Linux's product overflows
	d := int(cubicScale * 10 * offs * offs * offs >> 40)
	target := c.origin + d
	if e < c.k {
		target = c.origin - d
	}
	if target > cwnd {
		c.cnt = cwnd / (target - cwnd)
	} else {
		c.cnt = 100 * cwnd
	}
	if c.lastMax == 0 && c.cnt > 20 {
		c.cnt = 20 // nothing known of the path yet: 5 % a round trip at least
	}
}

// friendly is the Reno-friendly region (§4.3): never slower than AIMD with
// the same mean.
func (c *cubic) friendly(cwnd int) {
	// One segment per cwnd·(1+β)/3(1−β) ACKs; 15 = 8·(1024+717)/3/(1024−717).
	d := cwnd * 15 >> 3
	for d > 0 && c.acks > d {
		c.acks -= d
		c.renoCwnd++
	}
	if c.renoCwnd > cwnd {
		c.cnt = min(c.cnt, cwnd/(c.renoCwnd-cwnd))
	}
}

// Ssthresh: W_max with fast convergence (§4.7), then β·cwnd.
func (c *cubic) Ssthresh(w *Window) int {
	c.epoch = 0
	if w.Cwnd < c.lastMax {
		c.lastMax = w.Cwnd * (1024 + cubicBeta) / 2048
	} else {
		c.lastMax = w.Cwnd
	}
	return max(w.Cwnd*cubicBeta/1024, 2)
}

func (c *cubic) Undo(w *Window) int { return max(w.Cwnd, w.PriorCwnd) }

func (c *cubic) State(now vtime.Time, w *Window, s CAState) {
	if s == Loss {
		c.reset()
		c.hystart.round(now, w)
	}
}

// Event: time without data in flight does not count (§4.2, application-limited
// flows): the epoch moves on by it.
func (c *cubic) Event(now vtime.Time, w *Window, e CAEvent) {
	if e != TxStart || c.epoch == 0 {
		return
	}
	t := ticksAt(now, c.jiffy)
	if d := t - ticksAt(w.LastSend, c.jiffy); d > 0 {
		c.epoch = min(c.epoch+d, t)
	}
}

func (c *cubic) Acked(now vtime.Time, w *Window, _ int, rtt vtime.Duration) {
	if rtt < 0 {
		return
	}
	if c.epoch != 0 && ticksAt(now, c.jiffy)-c.epoch < c.hz {
		return // delays right after a reduction say nothing of the path
	}
	us := max(int64(rtt)/1000, 1)
	if c.delayMin == 0 || us < c.delayMin {
		c.delayMin = us
	}
	if !c.hystart.found && w.InSlowStart() {
		c.hystart.update(now, w, us, c.delayMin)
	}
}

// cubeFactor is 2^40/(C·10) with C in 1/1024: K in 1/1024 s is the cube root
// of cubeFactor·(W_max − cwnd).
const cubeFactor = 1 << 40 / (cubicScale * 10)

// cubeRoot is the integer cube root by a first guess of the magnitude and
// Newton's steps. Linux uses a table and one step (0.2 % mean error); K
// differs by at most that.
func cubeRoot(a uint64) uint64 {
	if a == 0 {
		return 0
	}
	x := uint64(1) << ((bits.Len64(a) + 2) / 3) // ≥ the root
	for {
		y := (2*x + a/(x*x)) / 3
		if y >= x {
			return x
		}
		x = y
	}
}
