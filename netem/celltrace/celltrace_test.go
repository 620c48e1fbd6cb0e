package celltrace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

const tenMinutes = 10 * vtime.Minute

func downlink(t *testing.T, c HSDPA, seed uint64, d vtime.Duration) []int64 {
	t.Helper()
	ms, err := Downlink(c, seed, d)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func uplink(t *testing.T, c EDCH, seed uint64, d vtime.Duration) []int64 {
	t.Helper()
	ms, err := Uplink(c, seed, d)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func mbit(ms []int64, d vtime.Duration) float64 {
	return float64(len(ms)) * opportunityBits / d.Seconds() / 1e6
}

// still is a channel on which nothing varies.
func still(sinr vtime.Decibel) HSDPA { return HSDPA{SINR: sinr} }

// TestTheSameOnEveryMachine pins both directions: other numbers here are another
// model, and results of earlier versions are no longer reproducible.
func TestTheSameOnEveryMachine(t *testing.T) {
	sum := func(ms []int64) string {
		h := sha256.New()
		for _, m := range ms {
			if err := binary.Write(h, binary.LittleEndian, m); err != nil {
				t.Fatal(err)
			}
		}
		return hex.EncodeToString(h.Sum(nil)[:8])
	}
	down, up := downlink(t, DefaultHSDPA(), 1, vtime.Minute), uplink(t, DefaultEDCH(), 1, vtime.Minute)
	if got, want := sum(down), "0d76ce30c9614843"; got != want {
		t.Errorf("downlink: %s, %d opportunities, want %s", got, len(down), want)
	}
	if got, want := sum(up), "ec8fa6c22e76ce9f"; got != want {
		t.Errorf("uplink: %s, %d opportunities, want %s", got, len(up), want)
	}
	if slices.Equal(down, downlink(t, DefaultHSDPA(), 2, vtime.Minute)) {
		t.Error("another seed makes the same opportunities")
	}
	longer := downlink(t, DefaultHSDPA(), 1, 2*vtime.Minute)
	if !slices.Equal(down, longer[:len(down)]) {
		t.Error("a longer stretch begins otherwise")
	}
}

// A still channel has the rate of its transport block, less what is sent twice.
func TestRateOfAStillChannel(t *testing.T) {
	for _, c := range []struct {
		sinr vtime.Decibel
		bits float64 // TS 25.214, table 7B
	}{
		{-5, 1483}, // CQI 11
		{0, 3565},  // CQI 16
		{3, 5287},  // CQI 19
		{12, 14411},
	} {
		q := cqi(float64(c.sinr))
		e := errorRate(float64(c.sinr), q)
		// A second transmission has twice the energy and hardly ever fails.
		want := c.bits / tti.Seconds() / 1e6 / (1 + e)
		got := mbit(downlink(t, still(c.sinr), 7, vtime.Minute), vtime.Minute)
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("%v (CQI %d, errors %.3g): %.4f Mb/s, want %.4f", c.sinr, q, e, got, want)
		}
	}
	if ms := downlink(t, still(-17), 7, vtime.Minute); len(ms) != 0 {
		t.Errorf("out of range: %d opportunities", len(ms))
	}
}

// The error rate at the SINR at which a CQI is first reported is about 10 %
// (Brouwer et al.), and falls with the SINR.
func TestErrorRates(t *testing.T) {
	for c := 1; c <= 29; c++ {
		at := 1.02 * (float64(c) - 16.62)
		if got := cqi(at + 1e-9); got != c {
			t.Errorf("cqi(%v) = %d, want %d", at, got, c)
		}
		if e := errorRate(at, c); e < 0.03 || e > 0.25 {
			t.Errorf("CQI %d: error rate %.3f at its edge", c, e)
		}
		if a, b, far := errorRate(at, c), errorRate(at+1, c), errorRate(at-5, c); !(far > a && a > b) || far < 0.9 {
			t.Errorf("CQI %d: error rates %v, %v, %v", c, far, a, b)
		}
	}
}

// Others share the cell in turn: with none all of the rate, and on average
// (1 − e^−m)/m of it with m others of a Poisson distribution.
func TestShareOfTheCell(t *testing.T) {
	alone := mbit(downlink(t, still(5), 1, vtime.Minute), vtime.Minute)
	for _, m := range []float64{0.5, 1, 3} {
		c := still(5)
		c.Others, c.Stay = m, vtime.Second
		sum := 0.0
		const seeds = 5
		for seed := range uint64(seeds) {
			sum += mbit(downlink(t, c, seed, 2*vtime.Minute), 2*vtime.Minute)
		}
		want := (1 - math.Exp(-m)) / m
		if got := sum / seeds / alone; math.Abs(got/want-1) > 0.06 {
			t.Errorf("%v others: a share of %.3f, want %.3f", m, got, want)
		}
	}
}

func TestUsersAreAPoissonProcess(t *testing.T) {
	sum, n := 0.0, 0
	for seed := range uint64(20) {
		u := newUsers(2, vtime.Second, seed)
		for range 10_000 {
			u.step()
			if u.n < 0 {
				t.Fatal("fewer than nobody")
			}
			sum += float64(u.n)
			n++
		}
	}
	if mean := sum / float64(n); math.Abs(mean-2) > 0.25 {
		t.Errorf("mean %.3f, want 2", mean)
	}
}

// Shadowing: variance 1 and a correlation that falls to 1/e in its time.
func TestShadowing(t *testing.T) {
	const in = vtime.Second
	lag := int(in / tti)
	var square, product, n float64
	g := newGaussMarkov(decay(tti, in), des.NewStream(3, "test"))
	x := make([]float64, 600*lag)
	for i := range x {
		x[i] = g.next()
	}
	for i := range x[:len(x)-lag] {
		square += x[i] * x[i]
		product += x[i] * x[i+lag]
		n++
	}
	if v, c := square/n, product/square; math.Abs(v-1) > 0.15 || math.Abs(c-math.Exp(-1)) > 0.1 {
		t.Errorf("variance %.3f, correlation after its time %.3f", v, c)
	}
}

// Fast fading: the mean gain is 1, and with two branches the gain's variance is
// 1/2 (a gamma distribution of shape 2).
func TestFading(t *testing.T) {
	f := newFading(50, 4)
	var sum, square float64
	const n = 1_000_000
	for range n {
		x := f.next()
		sum += x
		square += x * x
	}
	mean := sum / n
	if v := square/n - mean*mean; math.Abs(mean-1) > 0.02 || math.Abs(v-0.5) > 0.03 {
		t.Errorf("mean %.3f, variance %.3f", mean, v)
	}
	for x, want := range map[float64]float64{0: 1, 0.5: 0.938469807240813, 1: 0.765197686557967, math.Pi / 2: 0.472001215768235} {
		if got := bessel0(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("J0(%v) = %v, want %v", x, got, want)
		}
	}
}

// Outages are those of the seed, in both directions, with the right share.
func TestOutages(t *testing.T) {
	o := newOutages(Outages{Every: 10 * vtime.Second, Mean: vtime.Second}, 5)
	down := 0
	const n = 5_000_000 // 10,000 s
	for i := range n {
		if o.now(vtime.Duration(i) * tti) {
			down++
		}
	}
	if share := float64(down) / n; math.Abs(share-1.0/11) > 0.012 {
		t.Errorf("share %.4f, want %.4f", share, 1.0/11)
	}

	cut := Outages{Every: 5 * vtime.Second, Mean: 2 * vtime.Second}
	d, u := still(5), DefaultEDCH()
	d.Outages, u.Outages = cut, cut
	inDown, inUp := downlink(t, d, 9, vtime.Minute), uplink(t, u, 9, vtime.Minute)
	o = newOutages(cut, 9)
	found := false
	for s := int64(1); s < 59; s++ {
		// A second that is cut all over, and 60 ms before it, is without opportunities.
		all := true
		for at := s*1000 - 60; at < s*1000+1000; at += 2 {
			all = o.now(vtime.Duration(at)*vtime.Millisecond) && all
		}
		if !all {
			continue
		}
		found = true
		for name, ms := range map[string][]int64{"downlink": inDown, "uplink": inUp} {
			if i, _ := slices.BinarySearch(ms, s*1000+1); i < len(ms) && ms[i] < s*1000+1000 {
				t.Errorf("%s: delivers at %d ms, in an outage", name, ms[i])
			}
		}
	}
	if !found {
		t.Error("no outage of a whole second in a minute of outages: choose another seed")
	}
}

// The defaults are what they are meant to be: about 1.2 to 2 Mb/s down and
// 0.9 Mb/s up, with times of plenty and of want.
func TestDefaults(t *testing.T) {
	var down, up []float64
	for seed := uint64(1); seed <= 12; seed++ {
		ms := downlink(t, DefaultHSDPA(), seed, tenMinutes)
		down = append(down, mbit(ms, tenMinutes))
		up = append(up, mbit(uplink(t, DefaultEDCH(), seed, tenMinutes), tenMinutes))
		if !slices.IsSorted(ms) || ms[0] <= 0 || ms[len(ms)-1] > int64(tenMinutes/vtime.Millisecond) {
			t.Fatalf("seed %d: not ascending within its length", seed)
		}
		perSecond := make([]float64, 600)
		for _, m := range ms {
			perSecond[min(599, m/1000)]++
		}
		slices.Sort(perSecond)
		if low, high := perSecond[60], perSecond[540]; high < 3*low {
			t.Errorf("seed %d: the tenth and the ninetieth percentile of a second are %v and %v packets: no times of want", seed, low, high)
		}
	}
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	if m := mean(down); m < 1.2 || m > 2 {
		t.Errorf("downlink: %.3f Mb/s on average: %.3v", m, down)
	}
	if m := mean(up); math.Abs(m-0.9) > 0.04 {
		t.Errorf("uplink: %.3f Mb/s on average: %.3v", m, up)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for want, change := range map[string]func(*HSDPA){
		"SINR":        func(c *HSDPA) { c.SINR = vtime.Decibel(math.NaN()) },
		"shadowing":   func(c *HSDPA) { c.Shadowing = -1 },
		"correlation": func(c *HSDPA) { c.ShadowingTime = 0 },
		"Doppler":     func(c *HSDPA) { c.Doppler = 500 },
		"other users": func(c *HSDPA) { c.Others = -1 },
		"stay":        func(c *HSDPA) { c.Stay = 0 },
		"outages":     func(c *HSDPA) { c.Outages.Mean = 0 },
	} {
		c := DefaultHSDPA()
		change(&c)
		if _, err := Downlink(c, 1, vtime.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, change := range map[string]func(*EDCH){
		"grant":       func(c *EDCH) { c.Grant = 0 },
		"spread":      func(c *EDCH) { c.Spread = 2 },
		"correlation": func(c *EDCH) { c.GrantTime = 0 },
		"outages":     func(c *EDCH) { c.Outages.Every = -1 },
	} {
		c := DefaultEDCH()
		change(&c)
		if _, err := Uplink(c, 1, vtime.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, d := range []vtime.Duration{0, -1, vtime.Hour} {
		if _, err := Downlink(DefaultHSDPA(), 1, d); err == nil || !strings.Contains(err.Error(), "length") {
			t.Errorf("length %v: %v", d, err)
		}
	}
}

func BenchmarkDownlink(b *testing.B) {
	for b.Loop() {
		if _, err := Downlink(DefaultHSDPA(), 1, tenMinutes); err != nil {
			b.Fatal(err)
		}
	}
}
