package wifi

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// saturated runs n stations that send to node 0 without pause and returns the
// goodput in Mb/s.
func saturated(t testing.TB, mac MAC, n int, d vtime.Duration) (*lab, float64) {
	l := newLab(t, 7, cell(t, n+1), mac)
	for i := 1; i <= n; i++ {
		l.saturate(i, 0, BE, 1500, 60)
	}
	l.run(sec)
	l.measure(d)
	return l, l.goodput(-1, 0, 1500, d)
}

func within(t testing.TB, what string, got, want, bound float64) {
	t.Helper()
	if math.Abs(got/want-1) > bound {
		t.Errorf("%s: %.4f, want %.4f within %.2f %% (off by %+.2f %%)", what, got, want, 100*bound, 100*(got/want-1))
	} else {
		t.Logf("%s: %.4f, reference %.4f (%+.2f %%)", what, got, want, 100*(got/want-1))
	}
}

// TestSaturationAgainstBianchi: saturation throughput of n stations. In Bianchi's
// model a busy slot counts down the backoff, as EDCA's rule has it; DCF's rule
// does not count it, so the model is exact for EDCA and an approximation for DCF.
func TestSaturationAgainstBianchi(t *testing.T) {
	for _, c := range []struct {
		std   Standard
		model func(n, header int) slotModel
		time  vtime.Duration
	}{
		{StandardB, bianchi11b, 60 * sec},
		{StandardG, bianchi11g, 20 * sec},
	} {
		for _, qos := range []bool{false, true} {
			header, bound := 24, 0.015
			if qos {
				header, bound = 26, 0.01
			}
			for _, n := range []int{1, 2, 5, 10, 20} {
				mac := DefaultMAC(c.std).LegacyDCF()
				mac.QoS, mac.EIFSRate = qos, mac.BasicRate
				_, got := saturated(t, mac, n, c.time)
				within(t, fmt.Sprintf("%v, QoS %v, n=%d", c.std, qos, n), got, c.model(n, header).throughput(), bound)
			}
		}
	}
}

// TestBianchiReferee checks the referee itself against published values of the
// same computation: UDP payload Mb/s for n = 1, 5, 10, 20.
func TestBianchiReferee(t *testing.T) {
	for i, n := range []int{1, 5, 10, 20} {
		within(t, fmt.Sprintf("11b n=%d", n), bianchi11b(n, 24).throughput(), []float64{6.108, 6.302, 5.938, 5.475}[i], 1e-4)
		within(t, fmt.Sprintf("11g n=%d", n), bianchi11g(n, 24).throughput(), []float64{29.93, 28.99, 26.93, 24.67}[i], 2e-4)
	}
	// Bianchi 2000, figure 6: without retry limit (m = 5, W = 32) the collision
	// probability of 10 stations solves p = 1−(1−τ)⁹ with
	// τ = 2(1−2p)/((1−2p)(W+1)+pW(1−(2p)^m)).
	s := slotModel{n: 10, window: 32, maxWindow: 1024, retries: 10000}
	p, tau := s.fixedPoint()
	want := 2 * (1 - 2*p) / ((1-2*p)*33 + p*32*(1-math.Pow(2*p, 5)))
	if math.Abs(tau-want) > 1e-9 || math.Abs(p-(1-math.Pow(1-tau, 9))) > 1e-9 {
		t.Errorf("τ %.6f, Bianchi's equation (7) %.6f at p %.6f", tau, want, p)
	}
}

// TestCollisionProbability compares the conditional collision probability, which
// throughput hides.
func TestCollisionProbability(t *testing.T) {
	for _, n := range []int{2, 10, 20} {
		mac := DefaultMAC(StandardB).LegacyDCF()
		mac.QoS, mac.EIFSRate = true, mac.BasicRate
		l, _ := saturated(t, mac, n, 100*sec)
		var attempts, collisions, drops, frames float64
		for i := 1; i <= n; i++ {
			s := l.m.Stats(i).AC[BE]
			attempts += float64(s.Attempts)
			collisions += float64(s.Collisions)
			drops += float64(s.Outcomes[RetryLimit])
			frames += float64(s.Outcomes[Acked] + s.Outcomes[RetryLimit])
		}
		p, _ := bianchi11b(n, 26).fixedPoint()
		within(t, fmt.Sprintf("p, n=%d", n), collisions/attempts, p, 0.03)
		if n == 20 {
			within(t, "drops by the retry limit, n=20", drops/frames, math.Pow(p, 8), 0.25)
		}
	}
}

// TestBurstsAndAckPolicy is the table of one sender with and without ACK and with
// txops of 8160 µs. The first row is a legacy station (24-byte header), the others
// QoS stations (26 bytes).
func TestBurstsAndAckPolicy(t *testing.T) {
	const limit = 8160 * us
	for _, c := range []struct {
		std    Standard
		qos    bool
		ack    AckPolicy
		txop   vtime.Duration
		frames int
		want   float64
	}{
		{StandardB, false, AckNormal, 0, 1, 6.11},
		{StandardB, true, AckNone, 0, 1, 7.05},
		{StandardB, true, AckNormal, limit, 5, 7.13},
		{StandardB, true, AckNone, limit, 6, 8.53},
		{StandardG, false, AckNormal, 0, 1, 29.9},
		{StandardG, true, AckNone, 0, 1, 33.3},
		{StandardG, true, AckNormal, limit, 26, 37.3},
		{StandardG, true, AckNone, limit, 30, 43.5},
	} {
		mac := DefaultMAC(c.std).LegacyDCF()
		mac.QoS = c.qos
		mac.Queues[BE].Ack, mac.Queues[BE].TXOP = c.ack, c.txop
		name := fmt.Sprintf("%v, ack %v, txop %v", c.std, c.ack, c.txop)
		l, got := saturated(t, mac, 1, 60*sec)
		within(t, name, got, c.want, 0.005)

		// The same in closed form, exact but for the mean backoff.
		p := phyOf(t, func(m *MAC) { *m = mac })
		exchange := p.txTime(p.data, p.mpdu(1500))
		if c.ack == AckNormal {
			exchange += p.sifs + p.ack
		}
		k := vtime.Duration(c.frames)
		cycle := p.aifs(2).Seconds() + float64(mac.Queues[BE].CWmin)/2*p.slot.Seconds() + (k*exchange + (k-1)*p.sifs).Seconds()
		within(t, name+", closed form", got, float64(c.frames)*1472*8/cycle/1e6, 0.002)
		if n := burstLength(l); n != c.frames {
			t.Errorf("%s: bursts of %d frames, want %d", name, n, c.frames)
		}
	}
}

// burstLength counts the data frames of node 1 that follow each other without
// contention.
func burstLength(l *lab) int {
	rec := &recorder{}
	l.m.SetMonitor(rec)
	l.run(100 * ms)
	l.m.SetMonitor(nil)
	longest, n := 0, 0
	last := vtime.Time(-1 << 60)
	sifs := l.m.stations[1].phy.sifs
	for _, x := range rec.air {
		if x.Kind == KindData {
			if x.Start.Sub(last) > sifs {
				n = 0
			}
			n++
			longest = max(longest, n)
		}
		last = x.End
	}
	return longest
}

// TestNoAckHasNoCollisionFeedback: without ACKs the window stays at its minimum
// and whole bursts collide; with ACKs only first frames do.
func TestNoAckHasNoCollisionFeedback(t *testing.T) {
	share := func(ack AckPolicy) (goodput, lost float64) {
		mac := DefaultMAC(StandardG).LegacyDCF()
		mac.QoS, mac.EIFSRate = true, mac.BasicRate
		mac.Queues[BE].Ack, mac.Queues[BE].TXOP = ack, 8160*us
		l, g := saturated(t, mac, 10, 100*sec)
		var attempts, collisions uint64
		for i := 1; i <= 10; i++ {
			s := &l.m.Stats(i).AC[BE]
			attempts += s.Attempts
			collisions += s.Collisions
			if cw := l.m.stations[i].queues[BE].cw; ack == AckNone && cw != mac.Queues[BE].CWmin {
				t.Errorf("no ACK: window of node %d is %d, want CWmin", i, cw)
			}
			if ack == AckNone && s.Retries+s.Failures != 0 {
				t.Errorf("no ACK: node %d counts %d retries, %d failures", i, s.Retries, s.Failures)
			}
		}
		return g, float64(collisions) / float64(attempts)
	}
	withAck, lost := share(AckNormal)
	within(t, "10 stations with ACK", withAck, 37.1, 0.01)
	if lost > 0.05 {
		t.Errorf("with ACK %.3f of the frames collide: only first frames of bursts should", lost)
	}
	without, lost := share(AckNone)
	if without > 0.75*withAck || lost < 0.55 {
		t.Errorf("without ACK %.1f Mb/s, %.2f lost: want a collapse against %.1f", without, lost, withAck)
	}
	// The time-stepped referee sends whole bursts; its stations, too, wait EIFS
	// after a collision that they hear and only AIFS after their own.
	const ticks = 100_000_000
	s := steppedBursts11g(10, 3)
	s.run(ticks)
	sent := 0
	for i := range s.nodes {
		sent += s.nodes[i].sent
	}
	within(t, "10 stations without ACK", without, float64(s.nodes[0].delivered)*30*1472*8/ticks, 0.02)
	within(t, "share lost without ACK", lost, 1-float64(s.nodes[0].delivered)/float64(sent), 0.02)
}

// TestCountdownRules compares both countdown rules with the time-stepped referee.
// They differ by more than the bound, so each is told from the other.
func TestCountdownRules(t *testing.T) {
	const n, ticks = 3, 100_000_000
	var got [2]float64
	for i, edca := range []bool{false, true} {
		header := 24
		if edca {
			header = 26
		}
		s := stepped11b(everyone(n+1), senders(n), header, edca, 11)
		s.run(ticks)
		want := float64(s.nodes[0].delivered) * 1472 * 8 / ticks
		mac := DefaultMAC(StandardB).LegacyDCF()
		mac.QoS, mac.EIFSRate = edca, mac.BasicRate
		_, got[i] = saturated(t, mac, n, 150*sec)
		within(t, fmt.Sprintf("QoS %v", edca), got[i], want, 0.0035)
	}
	if got[1] < 1.005*got[0] {
		t.Errorf("the rules give %.4f and %.4f Mb/s: too near for the bound to tell them apart", got[0], got[1])
	}
}

// everyone hears everyone.
func everyone(n int) [][]bool {
	h := make([][]bool, n)
	for i := range h {
		h[i] = make([]bool, n)
		for j := range h[i] {
			h[i][j] = i != j
		}
	}
	return h
}

// senders: nodes 1…n send to node 0.
func senders(n int) []int {
	to := make([]int, n+1)
	to[0] = -1
	return to
}
