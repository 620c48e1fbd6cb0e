package wifi

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// captureBed has a receiver 0, a weak sender 1 (9.7 dB at the receiver) and a
// strong sender 2 that is stronger by gap dB; the senders do not notice each
// other. The steep exponent makes that geometry possible.
func captureBed(t testing.TB, gap float64, capture vtime.Decibel) *Channel {
	t.Helper()
	const exponent, at1m = 10, 15 - 40.05 + 95
	d := func(snr float64) vtime.Metres { return vtime.Metres(math.Pow(10, (at1m-snr)/(10*exponent))) }
	r := Radio{TxPower: 15, ReferenceLoss: 40.05, Exponent: exponent, Noise: -95, Sense: -7, Capture: capture}
	ch := mustChannel(t, 1, r, DefaultMAC(StandardB), []Position{{0, 0}, {-d(9.7), 0}, {d(9.7 + gap), 0}})
	if ch.Senses(1, 2) || ch.Senses(2, 1) || math.Abs(float64(ch.SNR(2, 0)-ch.SNR(1, 0))-gap) > 1e-6 {
		t.Fatalf("geometry: senders hear each other or the gap is %.2f", ch.SNR(2, 0)-ch.SNR(1, 0))
	}
	return ch
}

// TestCapture: two overlapping broadcasts at 11 Mb/s; which of them arrive?
func TestCapture(t *testing.T) {
	mac := fixedCW(func(m *MAC) { m.Queues[BE].Ack = AckNone })
	for _, c := range []struct {
		name         string
		gap          float64
		capture      vtime.Decibel
		weak, strong vtime.Duration // when each begins
		want         [2]bool        // weak, strong arrives
	}{
		{"alone", 20, 10, 0, 5 * ms, [2]bool{true, true}},
		{"strong during weak, above the threshold", 20, 10, 0, 500 * us, [2]bool{false, true}},
		{"strong during weak, capture off", 20, 0, 0, 500 * us, [2]bool{false, false}},
		{"strong during weak, below the threshold", 9, 10, 0, 500 * us, [2]bool{false, false}},
		{"weak during strong", 20, 10, 500 * us, 0, [2]bool{false, true}},
		{"weak during strong, capture off", 20, 0, 500 * us, 0, [2]bool{false, true}},
		{"equal", 0, 10, 0, 500 * us, [2]bool{false, false}},
		// While the receiver still acquires the preamble the stronger one wins,
		// whatever the threshold for a locked receiver.
		{"together", 12, 15, 0, 0, [2]bool{false, true}},
		{"strong within acquisition", 12, 15, 0, 19 * us, [2]bool{false, true}},
		{"strong after acquisition", 12, 15, 0, 20 * us, [2]bool{false, false}},
	} {
		const n = 50
		l := newLab(t, 2, captureBed(t, c.gap, c.capture), mac)
		for i := vtime.Duration(0); i < n; i++ {
			base := (10 + 20*i) * ms
			l.at(base+c.weak, func() { l.send(1, 0, BE, 1000) })
			l.at(base+c.strong, func() { l.send(2, 0, BE, 1000) })
		}
		l.run((30 + 20*n) * ms)
		for i, from := range []int{1, 2} {
			got := l.delivered[from][0]
			if c.want[i] && got < n*9/10 || !c.want[i] && got > n/10 {
				t.Errorf("%s: node %d delivers %d of %d", c.name, from, got, n)
			}
		}
		// Ground truth of the counters: all that is lost is a collision.
		for _, from := range []int{1, 2} {
			st := l.m.Stats(from).AC[BE]
			if lost := n - l.delivered[from][0]; c.name != "alone" && lost > n/2 && st.Collisions < lost*9/10 {
				t.Errorf("%s: node %d lost %d frames, %d counted as collisions, %d as noise", c.name, from, lost, st.Collisions, st.NoiseLoss)
			}
		}
	}
}

// TestInterferenceAccumulates: three interferers, each below what breaks the
// frame, break it together; and only the overlapped part counts.
func TestInterferenceAccumulates(t *testing.T) {
	const exponent, at1m = 10, 15 - 40.05 + 95
	place := func(snr, angle float64) Position {
		d := math.Pow(10, (at1m-snr)/(10*exponent))
		return Position{vtime.Metres(d * math.Cos(angle)), vtime.Metres(d * math.Sin(angle))}
	}
	r := Radio{TxPower: 15, ReferenceLoss: 40.05, Exponent: exponent, Noise: -95, Sense: 12, Capture: 0}
	// Sender at 25 dB; interferers at 15 dB each (10 dB below). One: SINR 10 dB, fine;
	// three: 5.2 dB, nothing of 1000 bytes survives at 11 Mb/s.
	pos := []Position{{0, 0}, place(25, 0), place(15, math.Pi/2), place(15, math.Pi), place(15, 3*math.Pi/2)}
	ch := mustChannel(t, 1, r, DefaultMAC(StandardB), pos)
	mac := fixedCW(func(m *MAC) { m.Queues[BE].Ack = AckNone; m.Queues[BK].Ack = AckNone })
	run := func(interferers int, offset vtime.Duration) float64 {
		const n = 60
		l := newLab(t, 2, ch, mac)
		for i := vtime.Duration(0); i < n; i++ {
			base := (10 + 20*i) * ms
			l.at(base, func() { l.send(1, 0, BE, 1000) })
			for k := 0; k < interferers; k++ {
				l.at(base+offset, func() { l.send(2+k, Broadcast, BK, 1000) })
			}
		}
		l.run((30 + 20*n) * ms)
		return float64(l.delivered[1][0]) / n
	}
	one, three, tail := run(1, 100*us), run(3, 100*us), run(3, 947*us-1)
	if one < 0.95 || three > 0.05 || tail < 0.95 {
		t.Errorf("delivered with one interferer %.2f, with three %.2f, with three over the last ns %.2f; want 1, 0, 1", one, three, tail)
	}
	if ch.Senses(2, 3) || ch.Senses(1, 2) {
		t.Fatal("geometry: the senders hear each other")
	}
}

func TestDiskCapture(t *testing.T) {
	// Receiver 0, sender 1 at 100 m, hidden interferer 2 on the other side. With
	// exponent 4 and 10 dB it must be 1.78 times as far as the sender.
	for _, c := range []struct {
		at      vtime.Metres
		capture vtime.Decibel
		want    bool
	}{{170, 10, false}, {185, 10, true}, {185, 0, false}, {199, 0, false}} {
		r := DiskRadio(110, 200)
		r.Capture = c.capture
		ch := mustChannel(t, 1, r, DefaultMAC(StandardB), []Position{{0, 0}, {-100, 0}, {c.at, 0}})
		l := newLab(t, 1, ch, fixedCW(func(m *MAC) { m.Queues[BE].Ack = AckNone }))
		l.at(1*ms, func() { l.send(1, 0, BE, 1000) })
		l.at(1200*us, func() { l.send(2, Broadcast, BE, 1000) })
		l.run(20 * ms)
		if got := l.delivered[1][0] == 1; got != c.want {
			t.Errorf("interferer at %v, capture %v: delivered %v, want %v", c.at, c.capture, got, c.want)
		}
	}
}

func TestHalfDuplex(t *testing.T) {
	// Both ends of a link begin in one slot: neither hears the other.
	ch, _ := hearing(t, 2, [2]int{0, 1})
	l := newLab(t, 1, ch, fixedCW(func(m *MAC) { m.Queues[BE].Ack = AckNone }))
	l.at(1*ms, func() { l.send(0, 1, BE, 1000) })
	l.at(1*ms, func() { l.send(1, 0, BE, 500) })
	l.run(10 * ms)
	if l.delivered[0][1]+l.delivered[1][0] != 0 {
		t.Errorf("delivered %v: a transmitting node cannot receive", l.delivered)
	}
	for i := range 2 {
		if st := l.m.Stats(i); st.AC[BE].Collisions != 1 || st.AC[BE].NoiseLoss != 0 {
			t.Errorf("node %d: %+v", i, st.AC[BE])
		}
	}
}
