package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// bic is BIC (Xu, Harfoush, Rhee, INFOCOM 2004) as Linux's tcp_bic.c:
// additive, then binary increase toward the window at the last loss, slow
// probing beyond it; β = 819/1024 above 14 segments, Reno below.
type bic struct {
	cnt      int
	lastMax  int
	lastCwnd int
	lastTime int64
	epoch    int64 // 0 = none
	jiffy    vtime.Duration
	hz       int64
	ackRatio int // delayed-ACK ratio, 1/16
}

const (
	bicBeta      = 819 // of 1024
	bicLow       = 14
	bicMaxStep   = 16 // S_max
	bicSmooth    = 20
	bicB         = 4 // binary search factor
	bicAckRatio1 = 16
)

func (b *bic) Init(_ vtime.Time, w *Window) {
	b.jiffy = w.Tick
	b.hz = int64(vtime.Second) / int64(w.Tick)
	b.reset()
}

func (b *bic) reset() {
	*b = bic{jiffy: b.jiffy, hz: b.hz, ackRatio: 2 * bicAckRatio1}
}

func (b *bic) Avoid(now vtime.Time, w *Window, acked int) {
	if !w.Limited() {
		return
	}
	if w.InSlowStart() {
		if acked = w.SlowStart(acked); acked == 0 {
			return
		}
	}
	b.update(now, w.Cwnd)
	w.Increase(b.cnt, acked)
}

func (b *bic) update(now vtime.Time, cwnd int) {
	t := ticksAt(now, b.jiffy)
	if b.lastCwnd == cwnd && t-b.lastTime <= b.hz/32 {
		return
	}
	b.lastCwnd, b.lastTime = cwnd, t
	if b.epoch == 0 {
		b.epoch = t
	}
	if cwnd <= bicLow {
		b.cnt = cwnd
		return
	}
	if cwnd < b.lastMax { // toward the last maximum
		switch dist := (b.lastMax - cwnd) / bicB; {
		case dist > bicMaxStep:
			b.cnt = cwnd / bicMaxStep // linear
		case dist <= 1:
			b.cnt = cwnd * bicSmooth / bicB // the last stretch is smoothed
		default:
			b.cnt = cwnd / dist // binary search
		}
	} else { // beyond it: slow, then linear
		switch {
		case cwnd < b.lastMax+bicB:
			b.cnt = cwnd * bicSmooth / bicB
		case cwnd < b.lastMax+bicMaxStep*(bicB-1):
			b.cnt = cwnd * (bicB - 1) / (cwnd - b.lastMax)
		default:
			b.cnt = cwnd / bicMaxStep
		}
	}
	if b.lastMax == 0 {
		b.cnt = min(b.cnt, 20) // nothing known of the path yet
	}
	b.cnt = max(b.cnt<<4/b.ackRatio, 1)
}

func (b *bic) Ssthresh(w *Window) int {
	b.epoch = 0
	if w.Cwnd < b.lastMax {
		b.lastMax = w.Cwnd * (1024 + bicBeta) / 2048 // fast convergence
	} else {
		b.lastMax = w.Cwnd
	}
	if w.Cwnd <= bicLow {
		return max(w.Cwnd>>1, 2)
	}
	return max(w.Cwnd*bicBeta/1024, 2)
}

func (b *bic) Undo(w *Window) int { return max(w.Cwnd, w.PriorCwnd) }

func (b *bic) State(_ vtime.Time, _ *Window, s CAState) {
	if s == Loss {
		b.reset()
	}
}

// Acked tracks how many segments an ACK covers.
func (b *bic) Acked(_ vtime.Time, w *Window, pkts int, _ vtime.Duration) {
	if w.State == Open {
		b.ackRatio = max(b.ackRatio+pkts-b.ackRatio>>4, 1)
	}
}

func (b *bic) Event(vtime.Time, *Window, CAEvent) {}
