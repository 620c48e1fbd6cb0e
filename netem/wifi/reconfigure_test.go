package wifi

import (
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

func (l *lab) set(node int, mac MAC) {
	l.t.Helper()
	if err := l.m.SetMAC(node, mac); err != nil {
		l.t.Fatal(err)
	}
}

// TestAConfigurationThatIsSetIsTheConfiguration: a medium whose nodes are given
// another configuration before anything is sent does what one does that was made
// with it.
func TestAConfigurationThatIsSetIsTheConfiguration(t *testing.T) {
	for _, std := range []Standard{StandardB, StandardG} {
		before, after := DefaultMAC(std), DefaultMAC(std)
		after.Retries, after.RTSThreshold = 2, 700
		after.Queues[BK].TXOP, after.Queues[BK].Ack = 8160*us, AckNone
		after.Queues[BE].CWmin, after.Queues[BE].CWmax, after.Queues[BE].AIFSN = 7, 63, 2
		after.Queues[VO].Limit = 5
		after.Rate, after.BasicRate = 5500*vtime.KbitPerSecond, 1*vtime.MbitPerSecond
		if std != StandardB {
			after.Rate, after.BasicRate = 18*vtime.MbitPerSecond, 6*vtime.MbitPerSecond
		}
		r := DefaultRadio()
		r.Shadowing = 6
		// One channel for both: its thresholds are those of the configuration that it
		// was made from.
		ch := mustChannel(t, 5, r, before, scatter(12, 120))
		run := func(mac MAC, change bool) string {
			l := newLab(t, 5, ch, mac)
			rec := &landings{}
			l.m.SetMonitor(rec)
			l.run(sec) // long idle: no AIFS of the change is left
			for i := range 12 {
				if change {
					l.set(i, after)
				}
			}
			l.run(sec)
			for i := range 12 {
				l.saturate(i, (i+1)%12, AC(i%NumAC), 1000, 3)
			}
			l.run(2 * sec)
			return rec.String()
		}
		want, got := run(after, false), run(before, true)
		if n := strings.Count(want, "\n"); n < 500 {
			t.Fatalf("%v: only %d transmissions", std, n)
		}
		if got != want {
			t.Errorf("%v: the transmissions differ from those of a medium made with the configuration", std)
		}
		if run(before, false) == want {
			t.Errorf("%v: the configuration makes no difference: the test cannot fail", std)
		}
	}
}

// TestSetMACUnderLoad: two stations in one cell at 11 Mb/s; in mid-run one rate
// and then the other falls to 2 Mb/s. What follows is the throughput of a medium
// that was made so.
func TestSetMACUnderLoad(t *testing.T) {
	fast, slow := DefaultMAC(StandardB), DefaultMAC(StandardB)
	slow.Rate = 2 * vtime.MbitPerSecond
	goodput := func(macs []MAC, change func(l *lab)) float64 {
		l := newLab(t, 7, cell(t, 2), macs...)
		l.saturate(0, 1, BE, 1500, 3)
		l.saturate(1, 0, BE, 1500, 3)
		if change != nil {
			l.run(777*ms + 333*us) // in mid-frame as a rule
			change(l)
		}
		l.run(100 * ms)
		l.measure(20 * sec)
		return l.goodput(-1, -1, 1500, 20*sec)
	}
	for name, c := range map[string]struct {
		macs   []MAC
		change func(l *lab)
	}{
		"one": {[]MAC{slow, fast}, func(l *lab) { l.set(0, slow) }},
		"both": {[]MAC{slow, slow}, func(l *lab) {
			l.set(0, slow)
			l.set(1, fast) // overtaken by the next, perhaps while it waits
			l.set(1, slow)
		}},
	} {
		want, got := goodput(c.macs, nil), goodput([]MAC{fast, fast}, c.change)
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %.3f Mb/s, a medium made so carries %.3f", name, got, want)
		}
	}
	if was := goodput([]MAC{fast, fast}, nil); was < 1.3*goodput([]MAC{slow, fast}, nil) {
		t.Errorf("the rates make no difference: %.2f Mb/s", was)
	}
}

// TestSetMACAtAnyMoment: configurations change at random moments of a busy mesh,
// with links cut and nodes off; every frame still has exactly one outcome, no
// bound of NextVisible is missed, and the medium does not stand still.
func TestSetMACAtAnyMoment(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		l := meshLab(t, seed, StandardB, nil)
		s := des.NewStream(seed, "settings")
		l.onDeliver = func(now vtime.Time, _ int, _ *Frame) {
			if now < l.bound {
				t.Fatalf("seed %d: delivered at %v, before the bound %v", seed, now, l.bound)
			}
		}
		rates := []vtime.BitRate{1000, 2000, 5500, 11000}
		var change func()
		change = func() {
			mac := DefaultMAC(StandardB)
			mac.Rate = rates[s.IntN(len(rates))] * vtime.KbitPerSecond
			mac.BasicRate = 0
			mac.Retries = s.IntN(4)
			mac.RTSThreshold = vtime.Bytes(s.IntN(2) * 600)
			for ac := range mac.Queues {
				q := &mac.Queues[ac]
				q.Limit, q.AIFSN, q.TXOP = 1+s.IntN(30), 1+s.IntN(7), vtime.Duration(s.IntN(2))*4096*us
				q.CWmin = 1<<s.IntN(6) - 1
				q.CWmax = 16*(q.CWmin+1) - 1
				if s.IntN(2) == 0 {
					q.Ack = AckNone
				}
			}
			l.bound = 0
			l.set(s.IntN(20), mac)
			if err := l.m.SetLinkUp(s.IntN(10), 10+s.IntN(10), s.IntN(2) == 0); err != nil {
				t.Fatal(err)
			}
			l.eng.Schedule(l.eng.Now().Add(vtime.Duration(s.Exp()*1e6)), at(func(vtime.Time) { change() }), 2)
		}
		change()
		last := uint64(0)
		for range 20 {
			l.run(100 * ms)
			l.bound = l.m.NextVisible()
			l.run(1)
			total := uint64(0)
			for i := range 20 {
				for ac := range l.m.Stats(i).AC {
					st := &l.m.Stats(i).AC[ac]
					gone := st.Outcomes[Acked] + st.Outcomes[Sent] + st.Outcomes[RetryLimit]
					total += gone
					if left := st.Enqueued - gone; left < uint64(l.m.Queue(i, AC(ac)).Packets) {
						t.Fatalf("seed %d: node %d, queue %v: %d frames entered, %d left, yet %d wait", seed, i, AC(ac), st.Enqueued, gone, l.m.Queue(i, AC(ac)).Packets)
					}
				}
			}
			if total == last {
				t.Fatalf("seed %d: the medium stands still", seed)
			}
			last = total
		}
	}
}

func TestSetMACRefuses(t *testing.T) {
	l := newLab(t, 1, cell(t, 2), DefaultMAC(StandardB))
	odd := DefaultMAC(StandardB)
	odd.Queues[BE].CWmin = 6
	for want, c := range map[string]struct {
		node int
		mac  MAC
	}{
		"does not exist": {2, DefaultMAC(StandardB)},
		"standard":       {0, DefaultMAC(StandardG)},
		"power of two":   {0, odd},
		"QoS":            {0, DefaultMAC(StandardB).LegacyDCF()},
	} {
		if err := l.m.SetMAC(c.node, c.mac); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// TestSetDelivery: the share of frames that arrive follows, in one direction, and
// nobody else's channel changes.
func TestSetDelivery(t *testing.T) {
	ch, err := NewMatrixChannel([][]float64{{0, 1}, {1, 0}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mac := DefaultMAC(StandardB)
	mac.Queues[BE].Ack = AckNone
	l := newLab(t, 3, ch, mac)
	if err := l.m.SetDelivery(0, 1, 0.7); err != nil {
		t.Fatal(err)
	}
	const n = 4000
	for range n {
		l.send(0, 1, BE, 500)
		l.run(5 * ms)
	}
	if got := float64(l.delivered[0][1]) / n; math.Abs(got-0.7) > 0.03 {
		t.Errorf("%.3f of the frames arrived, want 0.7", got)
	}
	if p, ok := l.m.Delivery(1, 0); p != 1 || !ok {
		t.Errorf("the other direction delivers %v, %v", p, ok)
	}
	if _, other := ch.find(0, 1); other.prob != 1 {
		t.Errorf("the channel that others may share delivers %v", other.prob)
	}
	for _, p := range []vtime.Fraction{0, -1, 1.1, vtime.Fraction(math.NaN())} {
		if l.m.SetDelivery(0, 1, p) == nil {
			t.Errorf("delivery %v was taken", float64(p))
		}
	}
	if disk := newLab(t, 3, cell(t, 2), mac); disk.m.SetDelivery(0, 1, 0.5) == nil {
		t.Error("a disk took a delivery")
	}
}
