package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// bbr is BBR version 1 (Cardwell et al., "BBR: congestion-based congestion
// control", 2016; draft-cardwell-iccrg-bbr-congestion-control-00) as Linux's
// tcp_bbr.c, in its fixed point: bandwidths in segments per µs · 2^24, gains in
// 1/256. It sets the pacing rate to gain · bandwidth and the window to
// gain · bandwidth · minimal RTT, and ignores losses but for one round of
// packet conservation.
type bbr struct {
	NoHooks
	now vtime.Time
	us  int64
	rng uint64

	mode       bbrMode
	pacingGain int64
	cwndGain   int64

	// Bandwidth and rounds.
	bw           maxFilter // over ten rounds
	rounds       int64
	nextRound    uint64 // delivered at which the round ends
	roundStart   bool
	fullBW       int64
	fullCount    int
	fullReached  bool
	cycle        int
	cycleStamp   int64
	minRTT       int64 // µs
	minStamp     vtime.Time
	probeDone    vtime.Time // end of PROBE_RTT; 0 = not decided
	probeRound   bool
	idleRestart  bool
	priorCwnd    int
	prevState    CAState
	conservation bool
	sampled      bool // an RTT sample has set the pacing rate

	ack ackAggregation
	lt  longTerm
}

type bbrMode uint8

const (
	bbrStartup  bbrMode = iota // ramp up until the pipe is full
	bbrDrain                   // drain the queue that this built
	bbrProbeBW                 // cruise, probing for more now and then
	bbrProbeRTT                // cut the flight to measure the minimal RTT
)

const (
	bwUnit       = 1 << 24
	gainUnit     = 256
	highGain     = gainUnit*2885/1000 + 1
	drainGain    = gainUnit * 1000 / 2885
	bbrMinCwnd   = 4
	bbrRounds    = 10
	bbrMinRTTWin = 10 * vtime.Second
	bbrProbeTime = 200 * vtime.Millisecond
)

var bbrCycle = [8]int64{gainUnit * 5 / 4, gainUnit * 3 / 4, gainUnit, gainUnit, gainUnit, gainUnit, gainUnit, gainUnit}

func (b *bbr) Init(now vtime.Time, w *Window) {
	*b = bbr{mode: bbrStartup, pacingGain: highGain, cwndGain: highGain, rng: w.Seed, prevState: Open}
	b.at(now)
	b.minRTT = 1<<32 - 1
	if w.MinRTT > 0 {
		b.minRTT = int64(w.MinRTT) / 1000
	}
	b.minStamp = now
	b.ack.stamp = b.us
	b.lt.reset(b, w)
	w.Ssthresh = infinite
	w.Pacing = true
	b.initPacing(w)
}

func (b *bbr) at(now vtime.Time) { b.now, b.us = now, int64(now)/1000 }

// initPacing sets the first rate from the initial window and the RTT of the
// handshake, or 1 ms.
func (b *bbr) initPacing(w *Window) {
	rtt := int64(1000)
	if w.SRTT > 0 {
		rtt = max(int64(w.SRTT)/1000, 1)
		b.sampled = true
	}
	w.PacingRate = b.toRate(w, int64(w.Cwnd)*bwUnit/rtt, highGain)
}

// toRate converts a bandwidth with a gain to bytes/s, 1 % below, so that no
// queue builds up.
func (b *bbr) toRate(w *Window, bw, gain int64) uint64 {
	r := uint64(bw) * uint64(w.MSS) * uint64(gain) >> 8
	return r * (1_000_000 / 100 * 99) >> 24
}

func (b *bbr) setPacing(w *Window, bw, gain int64) {
	r := b.toRate(w, bw, gain)
	if !b.sampled && w.SRTT > 0 {
		b.initPacing(w)
	}
	if b.fullReached || r > w.PacingRate {
		w.PacingRate = r
	}
}

// estimate is the bandwidth in use: the long-term one while a policer is
// suspected.
func (b *bbr) estimate() int64 {
	if b.lt.use {
		return b.lt.bw
	}
	return b.bw.best()
}

// MinTSO: single segments below 1.2 Mb/s.
func (b *bbr) MinTSO(w *Window) int {
	if w.PacingRate < 1_200_000>>3 {
		return 1
	}
	return 2
}

func (b *bbr) tsoGoal(w *Window) int {
	n := int(min(w.PacingRate>>10, gsoMax))
	return min(max(n/w.MSS, b.MinTSO(w)), 127)
}

// bdp is gain · bandwidth · minimal RTT in segments, rounded up.
func (b *bbr) bdp(w *Window, bw, gain int64) int {
	if b.minRTT == 1<<32-1 {
		return w.InitialCwnd
	}
	v := uint64(bw) * uint64(b.minRTT)
	return int((v*uint64(gain)>>8 + bwUnit - 1) / bwUnit)
}

// budget adds room for three bursts, and one more probe at the high gain.
func (b *bbr) budget(w *Window, cwnd int) int {
	cwnd += 3 * b.tsoGoal(w)
	cwnd = (cwnd + 1) &^ 1
	if b.mode == bbrProbeBW && b.cycle == 0 {
		cwnd += 2
	}
	return cwnd
}

func (b *bbr) inflight(w *Window, bw, gain int64) int { return b.budget(w, b.bdp(w, bw, gain)) }

// inNetAtDeparture estimates what will be in the network when the next burst
// leaves.
func (b *bbr) inNetAtDeparture(w *Window) int {
	wait := max(int64(w.NextSend.Sub(b.now)), 0) / 1000
	delivered := int(b.estimate() * wait >> 24)
	n := w.InFlight
	if b.pacingGain > gainUnit {
		n += b.tsoGoal(w)
	}
	return max(n-delivered, 0)
}

// Main is called for every ACK (bbr_main).
func (b *bbr) Main(now vtime.Time, w *Window, rs *RateSample) {
	b.at(now)
	b.updateBW(w, rs)
	b.ack.update(b, w, rs)
	b.updateCycle(w, rs)
	b.checkFull(rs)
	b.checkDrain(w)
	b.updateMinRTT(w, rs)
	b.updateGains()
	bw := b.estimate()
	b.setPacing(w, bw, b.pacingGain)
	b.setCwnd(w, rs, rs.AckedSacked, bw, b.cwndGain)
}

func (b *bbr) setCwnd(w *Window, rs *RateSample, acked int, bw, gain int64) {
	if acked > 0 {
		if b.recoveryCwnd(w, rs, acked) {
			b.clampCwnd(w, w.Cwnd)
			return
		}
		target := b.inflightTarget(w, bw, gain)
		switch {
		case b.fullReached:
			w.Cwnd = min(w.Cwnd+acked, target)
		case w.Cwnd < target || w.Delivered < uint64(w.InitialCwnd):
			w.Cwnd += acked
		}
		w.Cwnd = max(w.Cwnd, bbrMinCwnd)
	}
	b.clampCwnd(w, w.Cwnd)
}

func (b *bbr) inflightTarget(w *Window, bw, gain int64) int {
	return b.budget(w, b.bdp(w, bw, gain)+b.ack.room(b, bw))
}

func (b *bbr) clampCwnd(w *Window, cwnd int) {
	w.Cwnd = min(cwnd, w.Clamp)
	if b.mode == bbrProbeRTT {
		w.Cwnd = min(w.Cwnd, bbrMinCwnd)
	}
}

// recoveryCwnd handles losses: one round of packet conservation on entering
// recovery, and the old window back at its end.
func (b *bbr) recoveryCwnd(w *Window, rs *RateSample, acked int) bool {
	cwnd := w.Cwnd
	if rs.Losses > 0 {
		cwnd = max(cwnd-rs.Losses, 1)
	}
	switch {
	case w.State == Recovery && b.prevState != Recovery:
		b.conservation = true
		b.nextRound = w.Delivered
		cwnd = w.InFlight + acked
	case b.prevState >= Recovery && w.State < Recovery:
		cwnd = max(cwnd, b.priorCwnd)
		b.conservation = false
	}
	b.prevState = w.State
	if b.conservation {
		w.Cwnd = max(cwnd, w.InFlight+acked)
		return true
	}
	w.Cwnd = cwnd
	return false
}

func (b *bbr) saveCwnd(w *Window) {
	if b.prevState < Recovery && b.mode != bbrProbeRTT {
		b.priorCwnd = w.Cwnd
	} else {
		b.priorCwnd = max(b.priorCwnd, w.Cwnd)
	}
}

// Ssthresh: losses do not change it.
func (b *bbr) Ssthresh(w *Window) int {
	b.saveCwnd(w)
	return w.Ssthresh
}

// Undo: a spurious loss may have ended startup.
func (b *bbr) Undo(w *Window) int {
	b.fullBW, b.fullCount = 0, 0
	b.lt.reset(b, w)
	return w.Cwnd
}

// Avoid is not used: Main sets the window.
func (b *bbr) Avoid(vtime.Time, *Window, int) {}

// State: a timeout starts a new round.
func (b *bbr) State(now vtime.Time, w *Window, s CAState) {
	if s == Loss {
		b.at(now)
		b.prevState = Loss
		b.fullBW = 0
		b.roundStart = true
		b.lt.sample(b, w, &RateSample{Losses: 1})
	}
}

// Event: after idleness the pipe is refilled at the estimated rate.
func (b *bbr) Event(now vtime.Time, w *Window, e CAEvent) {
	if e != TxStart || !w.AppLimited {
		return
	}
	b.at(now)
	b.idleRestart = true
	b.ack.stamp, b.ack.acked = b.us, 0
	switch b.mode {
	case bbrProbeBW:
		b.setPacing(w, b.estimate(), gainUnit)
	case bbrProbeRTT:
		b.checkProbeDone(w)
	}
}

// random is the phase of the probing cycle, from the connection's seed.
func (b *bbr) random(n uint64) uint64 {
	b.rng += 0x9e3779b97f4a7c15
	z := b.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}
