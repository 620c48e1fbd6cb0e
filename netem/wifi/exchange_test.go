package wifi

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// fixedCW is an 802.11b MAC whose backoffs are all zero, so that exchanges can be
// computed by hand.
func fixedCW(change func(m *MAC)) MAC {
	m := DefaultMAC(StandardB).LegacyDCF()
	m.QoS = true
	for i := range m.Queues {
		m.Queues[i].CWmin, m.Queues[i].CWmax = 0, 0
	}
	if change != nil {
		change(&m)
	}
	return m
}

func (r *recorder) String() string {
	var b strings.Builder
	for _, x := range r.air {
		fmt.Fprintf(&b, "%d..%d %v %d>%d nav %d", int64(x.Start)/1000, int64(x.End)/1000, x.Kind, x.Src, x.Dst, int64(x.Nav)/1000)
		if x.Retry {
			b.WriteString(" retry")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func expectAir(t *testing.T, what string, r *recorder, want string) {
	t.Helper()
	if got := strings.TrimSpace(r.String()); got != strings.TrimSpace(want) {
		t.Errorf("%s: on the air (µs)\n%s\nwant\n%s", what, got, want)
	}
}

// record runs a script on a channel and returns what was on the air until end.
func record(t *testing.T, ch *Channel, end vtime.Duration, script func(l *lab), macs ...MAC) (*lab, *recorder) {
	t.Helper()
	l := newLab(t, 1, ch, macs...)
	rec := &recorder{}
	l.m.SetMonitor(rec)
	script(l)
	l.run(end)
	return l, rec
}

// at runs f at a moment of the script.
type at func(now vtime.Time)

func (f at) Fire(now vtime.Time, arg uint64) { f(now) }

func (l *lab) at(when vtime.Duration, f func()) {
	l.eng.Schedule(vtime.Time(when), at(func(vtime.Time) { f() }), 0)
}

// Durations of fixedCW in µs: packet of 1000 bytes → MPDU 1038 bytes, 192+755 = 947;
// ACK and CTS 248, RTS 272, SIFS 10, DIFS 50, slot 20.

func TestImmediateAccess(t *testing.T) {
	// 802.11-2012 9.19.2.3: idle for AIFS and no backoff: at once, on no slot
	// boundary. The second frame waits for AIFS after the post-transmission backoff.
	_, rec := record(t, cell(t, 2), 5*ms, func(l *lab) {
		l.at(1003*us, func() { l.send(0, 1, BE, 1000); l.send(0, 1, BE, 1000) })
	}, fixedCW(nil))
	expectAir(t, "two frames", rec, `
1003..1950 data 0>1 nav 258
1960..2208 ack 1>0 nav 0
2258..3205 data 0>1 nav 258
3215..3463 ack 1>0 nav 0`)
}

func TestBusyMediumMeansBackoff(t *testing.T) {
	for _, qos := range []bool{true, false} {
		mac := fixedCW(func(m *MAC) { m.QoS = qos; m.Queues[BE].CWmin, m.Queues[BE].CWmax = 1023, 1023 })
		_, rec := record(t, cell(t, 3), 50*ms, func(l *lab) {
			l.at(1000*us, func() { l.send(0, 1, BE, 1000) })
			l.at(1500*us, func() { l.send(2, 1, BE, 1000) }) // busy
		}, mac)
		second := rec.air[2]
		wait := second.Start.Sub(rec.air[1].End) - 50*us
		if second.Src != 2 || wait <= 0 || wait%(20*us) != 0 || wait > 1023*20*us {
			t.Errorf("QoS %v: node 2 transmits %v after DIFS: want a backoff in slots", qos, wait)
		}
	}
	// The medium idle, but not yet for DIFS.
	for _, qos := range []bool{true, false} {
		mac := fixedCW(func(m *MAC) { m.QoS = qos; m.Queues[BE].CWmin, m.Queues[BE].CWmax = 1023, 1023 })
		end := 1000*us + 947*us + 258*us
		if !qos {
			end -= 1 * us // 24-byte header: 1036 bytes, 754 µs
		}
		_, rec := record(t, cell(t, 3), 50*ms, func(l *lab) {
			l.at(1000*us, func() { l.send(0, 1, BE, 1000) })
			l.at(end+20*us, func() { l.send(2, 1, BE, 1000) })
		}, mac)
		if wait := rec.air[2].Start.Sub(rec.air[1].End) - 50*us; wait <= 0 || wait%(20*us) != 0 {
			t.Errorf("QoS %v: arrival within DIFS transmits %v after it: want a backoff", qos, wait)
		}
	}
}

func TestBurstTimeline(t *testing.T) {
	// Three frames in a txop that has room for two; no-ACK and ACK. The Duration
	// field of each frame covers the next exchange.
	mac := fixedCW(func(m *MAC) { m.Queues[VI].TXOP = 2600 * us; m.Queues[BK].TXOP, m.Queues[BK].Ack = 2000*us, AckNone })
	three := func(ac AC) func(l *lab) {
		return func(l *lab) {
			for i := 0; i < 3; i++ {
				l.send(0, 1, ac, 1000)
			}
		}
	}
	_, rec := record(t, cell(t, 2), 6*ms, three(VI), mac)
	expectAir(t, "burst with ACK", rec, `
50..997 data 0>1 nav 1473
1007..1255 ack 1>0 nav 1215
1265..2212 data 0>1 nav 258
2222..2470 ack 1>0 nav 0
2520..3467 data 0>1 nav 258
3477..3725 ack 1>0 nav 0`)
	_, rec = record(t, cell(t, 2), 6*ms, three(BK), mac)
	expectAir(t, "burst without ACK", rec, `
50..997 data 0>1 nav 957
1007..1954 data 0>1 nav 0
2004..2951 data 0>1 nav 0`)
}

func TestLostAckEndsTheTxop(t *testing.T) {
	// 0→1 is heard, 1→0 is not: no ACK ever arrives.
	ch, err := NewMatrixChannel([][]float64{{0, 1}, {0, 0}}, [][]bool{{false, true}, {false, false}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mac := fixedCW(func(m *MAC) { m.Retries = 1; m.Queues[BE].TXOP = 8160 * us })
	l, rec := record(t, ch, 20*ms, func(l *lab) { l.send(0, 1, BE, 1000); l.send(0, 1, BE, 1000) }, mac)
	// ACKTimeout 222 µs after the frame, then AIFS: 9.19.2.3 c.
	expectAir(t, "no ACK", rec, `
50..997 data 0>1 nav 1473
1007..1255 ack 1>0 nav 1215
1269..2216 data 0>1 nav 1473 retry
2226..2474 ack 1>0 nav 1215
2488..3435 data 0>1 nav 258
3445..3693 ack 1>0 nav 0
3707..4654 data 0>1 nav 258 retry
4664..4912 ack 1>0 nav 0`)
	st := l.m.Stats(0).AC[BE]
	if st.Outcomes[RetryLimit] != 2 || st.Attempts != 4 || st.Retries != 2 || st.Failures != 4 || st.AckLost != 4 || st.Collisions+st.NoiseLoss != 0 {
		t.Errorf("counters %+v", st)
	}
	if up := l.m.Stats(1); up.Delivered != 2 || up.Duplicates != 2 {
		t.Errorf("receiver delivered %d, duplicates %d, want 2, 2", up.Delivered, up.Duplicates)
	}
}

func TestRetryLimit(t *testing.T) {
	ch, err := NewMatrixChannel([][]float64{{0, 0}, {0, 0}}, nil, nil) // nobody hears anybody
	if err != nil {
		t.Fatal(err)
	}
	for _, retries := range []int{0, 3, 7} {
		mac := DefaultMAC(StandardB)
		mac.Retries = retries
		l := newLab(t, 1, ch, mac)
		var cw []int
		l.onDone = func(now vtime.Time, f *Frame, o Outcome) {
			if o != RetryLimit || f.Attempts != retries+1 {
				t.Errorf("retries %d: %v after %d attempts", retries, o, f.Attempts)
			}
		}
		l.m.SetMonitor(airFunc(func(x *Transmission) { cw = append(cw, l.m.stations[0].queues[BE].cw) }))
		for i := 0; i < 50; i++ {
			l.send(0, 1, BE, 100)
		}
		l.run(20 * sec)
		if n := l.outcomes[0][RetryLimit]; n != 50 {
			t.Errorf("retries %d: %d drops, want 50", retries, n)
		}
		for i, w := range cw { // the window of attempt k is min(32·2^k, 1024)−1
			if want := min(32<<(i%(retries+1)), 1024) - 1; w != want {
				t.Fatalf("retries %d: window %d at transmission %d, want %d", retries, w, i, want)
			}
		}
	}
}

type airFunc func(t *Transmission)

func (f airFunc) Air(t *Transmission) { f(t) }

func TestAckAndTimeoutOnOneNanosecond(t *testing.T) {
	// 802.11g, ACK at 24 Mb/s: SIFS + ACK = 44 µs = ACKTimeout.
	mac := DefaultMAC(StandardG)
	p := phyOf(t, func(m *MAC) { *m = mac })
	if p.sifs+p.ack != p.ackTimeout {
		t.Fatalf("ACK ends %v after data, ACKTimeout %v: the case under test is gone", p.sifs+p.ack, p.ackTimeout)
	}
	l := newLab(t, 1, cell(t, 2), mac)
	l.saturate(0, 1, BE, 1000, 5)
	l.run(sec)
	if st := l.m.Stats(0).AC[BE]; st.Failures != 0 || st.Retries != 0 || st.Outcomes[Acked] < 1000 {
		t.Errorf("lone sender: %d acknowledged, %d failures, %d retries", st.Outcomes[Acked], st.Failures, st.Retries)
	}
}

func TestBroadcast(t *testing.T) {
	// Basic rate (2 Mb/s: 192 + 1038·8/2 = 4344 µs), no ACK, to all in range, no
	// retry, window unchanged.
	l, rec := record(t, cell(t, 4), 20*ms, func(l *lab) { l.send(0, Broadcast, BE, 1000); l.send(0, Broadcast, BE, 1000) }, fixedCW(nil))
	expectAir(t, "broadcast", rec, `
50..4394 data 0>-1 nav 0
4444..8788 data 0>-1 nav 0`)
	for i := 1; i < 4; i++ {
		if l.delivered[0][i] != 2 {
			t.Errorf("node %d received %d broadcasts, want 2", i, l.delivered[0][i])
		}
	}
	if l.outcomes[0][Sent] != 2 || l.delivered[0][0] != 0 {
		t.Errorf("outcomes %v, own copies %d", l.outcomes[0], l.delivered[0][0])
	}
}

func TestRtsCtsTimeline(t *testing.T) {
	mac := fixedCW(func(m *MAC) { m.RTSThreshold = 500 })
	_, rec := record(t, cell(t, 2), 5*ms, func(l *lab) {
		l.send(0, 1, BE, 1000)
		l.send(0, 1, BE, 400) // 438 bytes: below the threshold; 192+319 = 511 µs
	}, mac)
	expectAir(t, "RTS/CTS", rec, `
50..322 rts 0>1 nav 1473
332..580 cts 1>0 nav 1215
590..1537 data 0>1 nav 258
1547..1795 ack 1>0 nav 0
1845..2356 data 0>1 nav 258
2366..2614 ack 1>0 nav 0`)
}

func TestNavHoldsHiddenStation(t *testing.T) {
	// 1 in the middle, 0 and 2 hidden from each other: 2 hears only the CTS, whose
	// NAV holds it until the ACK ends.
	ch, _ := hearing(t, 3, [2]int{0, 1}, [2]int{1, 2})
	mac := fixedCW(func(m *MAC) { m.RTSThreshold = 500 })
	_, rec := record(t, ch, 6*ms, func(l *lab) {
		l.send(0, 1, BE, 1000)
		l.at(600*us, func() { l.send(2, 1, BE, 400) })
	}, mac)
	expectAir(t, "NAV", rec, `
50..322 rts 0>1 nav 1473
332..580 cts 1>0 nav 1215
590..1537 data 0>1 nav 258
1547..1795 ack 1>0 nav 0
1845..2356 data 2>1 nav 258
2366..2614 ack 1>2 nav 0`)
}

func TestUnansweredRtsReleasesItsNav(t *testing.T) {
	// 2 hears the RTS of 0 to a node that is not there. Its NAV of 1473 µs is void
	// when neither CTS nor data has begun 2·SIFS + CTS + 192 + 2·slot = 500 µs after
	// the RTS (9.3.2.4); it then waits DIFS.
	ch, _ := hearing(t, 3, [2]int{0, 2})
	mac := fixedCW(func(m *MAC) { m.RTSThreshold = 500; m.Retries = 0 })
	_, rec := record(t, ch, 3*ms, func(l *lab) {
		l.send(0, 1, BE, 1000)
		l.at(400*us, func() { l.send(2, 0, BE, 400) })
	}, mac)
	expectAir(t, "NAV reset", rec, `
50..322 rts 0>1 nav 1473
872..1383 data 2>0 nav 258
1393..1641 ack 0>2 nav 0`)
}

func TestCtsIsWithheldUnderNav(t *testing.T) {
	// 3 asks 1 for a CTS while 1 holds a NAV from 0's exchange with 2 (9.3.2.6).
	ch, _ := hearing(t, 4, [2]int{0, 1}, [2]int{0, 2}, [2]int{1, 3})
	mac := fixedCW(func(m *MAC) { m.RTSThreshold = 500; m.Retries = 0 })
	fast := mac
	fast.BasicRate = 11 * mbit
	// 0 sends its RTS at 50; 2 answers, which 1 does not hear; 1 has a NAV until 1795.
	// 3 sends its RTS (at 11 Mb/s: 207 µs) to 1 between that RTS and the data of 0.
	l, rec := record(t, ch, 4*ms, func(l *lab) {
		l.send(0, 2, BE, 1000)
		l.at(325*us, func() { l.send(3, 1, BE, 1000) })
	}, mac, mac, mac, fast)
	expectAir(t, "RTS under NAV", rec, `
50..322 rts 0>2 nav 1473
325..532 rts 3>1 nav 1383
332..580 cts 2>0 nav 1215
590..1537 data 0>2 nav 258
1547..1795 ack 2>0 nav 0`)
	if l.outcomes[3][RetryLimit] != 1 || l.outcomes[0][Acked] != 1 {
		t.Errorf("outcomes: node 3 %v, node 0 %v", l.outcomes[3], l.outcomes[0])
	}
}

func TestAnotherFrameInPlaceOfTheAck(t *testing.T) {
	// 0 waits for an ACK that 1 cannot make heard; the frame of 2 begins in time. Its
	// end is the end of the wait (9.3.2.8), and the retry follows AIFS after the ACK
	// of that frame, for which 0 has a NAV.
	d := [][]float64{{0, 1, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 1}, {0, 0, 1, 0}}
	ch, err := NewMatrixChannel(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, rec := record(t, ch, 3400*us, func(l *lab) {
		l.send(0, 1, BE, 1000)
		l.at(1000*us, func() { l.send(2, 3, BE, 1000) })
	}, fixedCW(nil))
	expectAir(t, "another frame", rec, `
50..997 data 0>1 nav 258
1000..1947 data 2>3 nav 258
1007..1255 ack 1>0 nav 0
1957..2205 ack 3>2 nav 0
2255..3202 data 0>1 nav 258 retry
3212..3460 ack 1>0 nav 0`)
}

func TestProtection(t *testing.T) {
	// 802.11g beside 802.11b: CTS-to-self at 2 Mb/s (248 µs), SIFS, then OFDM.
	// 1000 bytes → 1038-byte MPDU at 54 Mb/s: 20 + 39·4 + 6 = 182 µs; ACK 34.
	mac := DefaultMAC(StandardG).LegacyDCF()
	mac.QoS, mac.Protection, mac.ProtectionRate = true, true, 2*mbit
	mac.Queues[BE].CWmin, mac.Queues[BE].CWmax = 0, 0
	_, rec := record(t, cell(t, 2), 2*ms, func(l *lab) { l.send(0, 1, BE, 1000) }, mac)
	expectAir(t, "CTS-to-self", rec, `
28..276 cts-self 0>0 nav 236
286..468 data 0>1 nav 44
478..512 ack 1>0 nav 0`)
	mac.RTSThreshold = 500
	_, rec = record(t, cell(t, 2), 2*ms, func(l *lab) { l.send(0, 1, BE, 1000) }, mac)
	expectAir(t, "RTS at the protection rate", rec, `
28..300 rts 0>1 nav 494
310..558 cts 1>0 nav 236
568..750 data 0>1 nav 44
760..794 ack 1>0 nav 0`)
}

func TestEifs(t *testing.T) {
	// 2 senses both ends of 0→1 but decodes neither: after the ACK it waits EIFS =
	// SIFS + ACK at 1 Mb/s (304) + DIFS = 364 µs. A station that decodes waits DIFS.
	pos := []Position{{0, 0}, {-50, 0}, {140, 0}}
	for _, c := range []struct {
		rng   vtime.Metres
		start int64
	}{{100, 1255 + 364}, {200, 1255 + 50}} {
		ch := mustChannel(t, 1, DiskRadio(c.rng, 200), DefaultMAC(StandardB), pos)
		_, rec := record(t, ch, 4*ms, func(l *lab) {
			l.send(0, 1, BE, 1000)
			l.at(500*us, func() { l.send(2, Broadcast, BE, 1000) })
		}, fixedCW(nil))
		if last := rec.air[len(rec.air)-1]; last.Src != 2 || int64(last.Start) != c.start*1000 {
			t.Errorf("decoding range %v: node 2 transmits at %v, want %d µs", c.rng, last.Start, c.start)
		}
	}
	// A correct frame after the wrong one ends EIFS: 2 decodes the ACK of 1 only.
	pos = []Position{{0, 0}, {90, 0}, {150, 0}}
	ch := mustChannel(t, 1, DiskRadio(100, 200), DefaultMAC(StandardB), pos)
	_, rec := record(t, ch, 4*ms, func(l *lab) {
		l.send(0, 1, BE, 1000)
		l.at(500*us, func() { l.send(2, Broadcast, BE, 1000) })
	}, fixedCW(nil))
	if last := rec.air[len(rec.air)-1]; last.Src != 2 || int64(last.Start) != (1255+50)*1000 {
		t.Errorf("after a correct ACK node 2 transmits at %v, want %d µs", last.Start, 1255+50)
	}
}

func TestEifsEndsWithTheNextBusyPeriod(t *testing.T) {
	// Node 0 has a frame in error from 1 (5 dB: its header decodes, its payload does
	// not); later it senses 2, too weak to synchronise to. What it sends then waits
	// DIFS, not EIFS.
	at := func(snr float64) vtime.Metres { return vtime.Metres(math.Pow(10, (15-40.05+95-snr)/33)) }
	r := DefaultRadio()
	r.Sense = -20
	mac := fixedCW(func(m *MAC) { m.Queues[BE].Ack = AckNone })
	ch := mustChannel(t, 1, r, mac, []Position{{0, 0}, {at(5), 0}, {-at(-9), 0}})
	if !ch.Senses(0, 2) || ch.Delivery(1, 0, 1000, 11*mbit) > 1e-3 {
		t.Fatal("geometry")
	}
	for _, c := range []struct {
		from  int
		extra vtime.Duration
	}{{1, 314 * us}, {2, 0}} {
		l, rec := record(t, ch, 20*ms, func(l *lab) {
			l.at(1*ms, func() { l.send(1, 0, BE, 1000) })
			l.at(5*ms, func() { l.send(c.from, 0, BE, 1000) })
			l.at(5500*us, func() { l.send(0, 1, BE, 1000) })
		}, mac)
		if len(rec.air) != 3 || rec.air[2].Start != rec.air[1].End.Add(50*us+c.extra) || l.m.Stats(0).RxErrors == 0 {
			t.Errorf("after a frame of node %d, %d receptions in error:\n%v", c.from, l.m.Stats(0).RxErrors, rec)
		}
	}
}
