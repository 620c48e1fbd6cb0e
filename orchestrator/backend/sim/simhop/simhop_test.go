package simhop

import (
	"testing"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// airtimeBound is the goodput of an endless row of full txops of one station
// alone, in kb/s: AIFS and the mean backoff, then as many frames as fit, SIFS
// between them and no acknowledgement (802.11-2012 9.19.2).
func airtimeBound(t *testing.T, payload vtime.Bytes) float64 {
	t.Helper()
	const sifs, slot = 10 * vtime.Microsecond, 20 * vtime.Microsecond // 802.11b
	mac := hopMAC(wifi.DefaultMAC(wifi.StandardB), hop.DefaultConfig())
	frame, err := mac.FrameTime(Overhead + hop.HeaderLen + payload)
	if err != nil {
		t.Fatal(err)
	}
	bk := mac.Queues[wifi.BK]
	n := (bk.TXOP + sifs) / (frame + sifs)
	cycle := sifs + vtime.Duration(bk.AIFSN)*slot + vtime.Duration(bk.CWmin)*slot/2 + n*frame + (n-1)*sifs
	return float64(payload) * 8 * float64(n) / cycle.Seconds() / 1000
}

func TestCleanHopReachesTheAirtimeBound(t *testing.T) {
	bound := airtimeBound(t, 1400)
	for _, c := range []struct {
		block vtime.Bytes
		share float64
	}{{vtime.MiB, 0.98}, {256 * vtime.KiB, 0.95}} {
		b := newBed(t, 1, chainChannel(t, 2), hop.DefaultConfig(), 0.5)
		got := b.goodput(2*vtime.Second, 32*vtime.Second, b.flow(1, 0, 1, c.block))[0]
		t.Logf("blocks of %v: %.0f kb/s, bound %.0f (%.1f %%)", c.block, got, bound, 100*got/bound)
		if got < c.share*bound || got > bound*1.001 {
			t.Errorf("blocks of %v: %.0f kb/s, want %v of the bound of %.0f", c.block, got, c.share, bound)
		}
	}
}

// TestChains: stations that sense two hops away share the air with as many
// neighbours: C, C/2, C/3, and then about C/4 however long the chain.
func TestChains(t *testing.T) {
	var one float64
	for hops := 1; hops <= 7; hops++ {
		b := newBed(t, 1, chainChannel(t, hops+1), hop.DefaultConfig(), 0.5)
		got := b.goodput(20*vtime.Second, 80*vtime.Second, b.flow(1, 0, hops, 256*vtime.KiB))[0]
		if hops == 1 {
			one = got
		}
		t.Logf("%d hops: %.0f kb/s", hops, got)
		lo, hi := one/float64(hops)*0.97, one/float64(hops)*1.05
		if hops > 3 {
			lo, hi = one*0.22, one*0.28
		}
		if got < lo || got > hi {
			t.Errorf("%d hops: %.0f kb/s, want %.0f…%.0f", hops, got, lo, hi)
		}
	}
}

// TestLossSweep is the paper's figure 8b: a share of the incoming packets is
// dropped behind the MAC. Goodput falls about linearly and never stops.
func TestLossSweep(t *testing.T) {
	var x, y []float64
	for p := 0; p <= 8; p += 2 {
		b := newBed(t, 1, chainChannel(t, 2), hop.DefaultConfig(), 0.5)
		if err := b.med.SetLoss(0, 1, vtime.Fraction(p)/10); err != nil {
			t.Fatal(err)
		}
		got := b.goodput(20*vtime.Second, 120*vtime.Second, b.flow(1, 0, 1, vtime.MiB))[0]
		t.Logf("loss %d0 %%: %.0f kb/s", p, got)
		if len(y) > 0 && got >= y[len(y)-1] {
			t.Errorf("loss %d0 %%: %.0f kb/s, more than at less loss", p, got)
		}
		x, y = append(x, float64(p)), append(y, got)
	}
	if y[1] < 0.7*y[0] {
		t.Errorf("at 20 %% loss %.0f kb/s, want 70 %% of %.0f", y[1], y[0])
	}
	if y[4] < 0.02*y[0] {
		t.Errorf("at 80 %% loss %.0f kb/s of %.0f", y[4], y[0])
	}
	if r := rSquared(x, y); r < 0.95 {
		t.Errorf("R² = %.3f, want a line", r)
	}
}

// rSquared is the coefficient of determination of the linear fit.
func rSquared(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, sxx, syy, sxy float64
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
		sxx, syy, sxy = sxx+x[i]*x[i], syy+y[i]*y[i], sxy+x[i]*y[i]
	}
	c := n*sxy - sx*sy
	return c * c / ((n*sxx - sx*sx) * (n*syy - sy*sy))
}

// TestHiddenSenders: two senders that do not hear each other and one receiver.
// Withholding keeps their bursts apart.
func TestHiddenSenders(t *testing.T) {
	run := func(no bool) (total, least float64) {
		yes := [][]float64{{0, 1, 0}, {1, 0, 1}, {0, 1, 0}} // 0 and 2 reach 1 only
		ch, err := wifi.NewMatrixChannel(yes, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := hop.DefaultConfig()
		cfg.NoWithholding = no
		b := newBed(t, 3, ch, cfg, 0.5)
		g := b.goodput(10*vtime.Second, 70*vtime.Second, b.flow(1, 0, 1, 256*vtime.KiB), b.flow(2, 2, 1, 256*vtime.KiB))
		return g[0] + g[1], min(g[0], g[1])
	}
	with, least := run(false)
	without, _ := run(true)
	t.Logf("two hidden senders: %.0f kb/s with withholding (the lesser %.0f), %.0f without", with, least, without)
	if with < without {
		t.Errorf("withholding lowers the total from %.0f to %.0f kb/s", without, with)
	}
	// The BSYN of the one that waits is lost in the other's bursts most of the
	// time, so that the shares are uneven; but neither starves.
	if least < 0.1*with {
		t.Errorf("shares are %.0f of %.0f kb/s", least, with)
	}
}

// TestNodeDown: a relay is off for a while, with its memory, then again
// without. The flow goes on, intact (app checks every block).
func TestNodeDown(t *testing.T) {
	cfg := hop.DefaultConfig()
	cfg.E2EInitial = 5 * vtime.Second
	b := newBed(t, 1, chainChannel(t, 4), cfg, 0.5)
	k := b.flow(1, 0, 3, 64*vtime.KiB)
	at := func(s int) vtime.Time { return vtime.Time(0).Add(vtime.Duration(s) * vtime.Second) }
	delivered := func() vtime.Bytes { return b.net.Node(3).Delivered(k) }
	b.eng.RunUntil(at(5))
	before := delivered()
	b.med.SetNodeUp(2, false)
	b.eng.RunUntil(at(6))
	gone := delivered()
	b.eng.RunUntil(at(15))
	if delivered() != gone || before == 0 {
		t.Fatalf("delivered %v, then %v through a node that is down", gone, delivered())
	}
	b.med.SetNodeUp(2, true)
	b.eng.RunUntil(at(25))
	back := delivered()
	if back-gone < before/2 {
		t.Errorf("delivered %v in 10 s after the relay came back, %v in 5 s before", back-gone, before)
	}
	if err := b.net.Add(2, cfg, router{b, 2}, b.apps[2]); err != nil { // a new life
		t.Fatal(err)
	}
	b.eng.RunUntil(at(45))
	if delivered()-back < before {
		t.Errorf("delivered %v in 20 s after the relay lost its memory", delivered()-back)
	}
}

func TestDeterministic(t *testing.T) {
	run := func(seed uint64) uint64 {
		b := newBed(t, seed, chainChannel(t, 5), hop.DefaultConfig(), 0.5)
		b.flow(1, 0, 4, 64*vtime.KiB)
		b.flow(2, 4, 1, 64*vtime.KiB)
		b.eng.RunUntil(vtime.Time(10 * vtime.Second))
		if b.net.Refused() != 0 {
			t.Errorf("%d packets sent into full queues", b.net.Refused())
		}
		return b.eng.TraceHash()
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("equal seeds, traces %x and %x", a, b)
	}
	if run(1) == run(2) {
		t.Error("different seeds have one trace")
	}
	// Golden: what Hop puts on the air, and when. Whoever means to change it, or
	// the medium, writes the new hash here.
	if got, want := run(1), uint64(0x10e29fbc60e50728); got != want {
		t.Errorf("trace %#x, golden %#x", got, want)
	}
}
