package workload

import (
	"math"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// messagesOf lists the first most messages of a schedule.
func messagesOf(t *testing.T, spec Spec, start, stop vtime.Time, most int) []message {
	t.Helper()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	var ms []message
	for s := newSchedule(spec, start, stop); len(ms) < most; {
		m, ok := s.next()
		if !ok {
			break
		}
		ms = append(ms, m)
	}
	return ms
}

// meanWithin checks a mean against its expectation with the given standard
// deviation of one draw: 4 standard errors are passed by chance once in 15,000
// tries, and the seeds are fixed.
func meanWithin(t *testing.T, what string, xs []float64, want, deviation float64) {
	t.Helper()
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	mean := sum / float64(len(xs))
	if slack := 4 * deviation / math.Sqrt(float64(len(xs))); math.Abs(mean-want) > slack {
		t.Errorf("%s: the mean of %d draws is %v, want %v ± %v", what, len(xs), mean, want, slack)
	}
}

func TestPoissonMoments(t *testing.T) {
	const start, rate = 5 * vtime.Time(vtime.Second), 40 * vtime.Millisecond
	stop := start.Add(2000 * vtime.Second)
	spec := Spec{Kind: Poisson, Size: 4000, Interval: rate, Seed: 7}
	ms := messagesOf(t, spec, start, stop, math.MaxInt)
	// The count is Poisson's with the mean 50,000, the distances exponential.
	if d := float64(len(ms)) - 50_000; math.Abs(d) > 4*math.Sqrt(50_000) {
		t.Errorf("%d messages in 2000 s at one each 40 ms", len(ms))
	}
	var gaps, squares, repeats []float64
	last := start
	for i, m := range ms {
		if m.size != 4000 || m.ready < last || m.ready >= stop {
			t.Fatalf("message %d: %+v after %v", i, m, last)
		}
		x := float64(m.ready-last) / float64(rate)
		gaps, squares = append(gaps, x), append(squares, x*x)
		if i > 0 {
			repeats = append(repeats, x*gaps[i-1])
		}
		last = m.ready
	}
	meanWithin(t, "distance", gaps, 1, 1)
	meanWithin(t, "square of the distance", squares, 2, math.Sqrt(20))    // E x⁴ − (E x²)² = 24 − 4
	meanWithin(t, "product of neighbours", repeats, 1, math.Sqrt(3)*1.42) // neighbouring products are correlated
}

func TestSizesHaveTheirMean(t *testing.T) {
	const mean = 100_000
	for _, c := range []struct {
		sizes     Sizes
		deviation float64 // of one draw, in means
	}{
		{SizesFixed, 0}, {"", 0}, {SizesExponential, 1},
		{SizesPareto, 13.9}, // √(E x² − 1), E x² = l^a·a/(2−a)·(h^(2−a) − l^(2−a))/(1−(l/h)^a)
	} {
		spec := Spec{Kind: Poisson, Size: mean, Interval: vtime.Second, Sizes: c.sizes, Seed: 3}
		var xs []float64
		for _, m := range messagesOf(t, spec, 0, vtime.Never, 200_000) {
			if m.size < 1 || m.size > paretoMost*mean {
				t.Fatalf("%s: a size of %v", c.sizes, m.size)
			}
			xs = append(xs, float64(m.size)/mean)
		}
		meanWithin(t, string(c.sizes), xs, 1, c.deviation+1e-9)
		slices.Sort(xs)
		if want := 1.0; c.sizes == SizesPareto {
			// The median of the bounded distribution.
			want = paretoLeast / math.Pow(1-0.5*(1-math.Pow(paretoLeast/paretoMost, paretoShape)), 1/paretoShape)
			if got := xs[len(xs)/2]; math.Abs(got/want-1) > 0.01 {
				t.Errorf("the median of the Pareto sizes is %v, want %v", got, want)
			}
		}
	}
}

func TestVoIPSendsAPacketEachInterval(t *testing.T) {
	phases := map[vtime.Time]bool{}
	for seed := range uint64(20) {
		for _, c := range []struct {
			codec string
			size  vtime.Bytes
		}{{"g729", 32}, {"g711", 172}} {
			const start, stop = 1000, vtime.Time(10 * vtime.Second)
			ms := messagesOf(t, Spec{Kind: VoIP, Codec: c.codec, Seed: seed}, start, stop, math.MaxInt)
			if len(ms) != 500 && len(ms) != 499 {
				t.Errorf("%s: %d packets in 10 s", c.codec, len(ms))
			}
			phases[ms[0].ready] = true
			for i, m := range ms {
				if want := ms[0].ready.Add(vtime.Duration(i) * 20 * vtime.Millisecond); m.ready != want || m.size != c.size {
					t.Fatalf("%s packet %d: %+v, want %v at %v", c.codec, i, m, c.size, want)
				}
			}
			if ms[0].ready < start || ms[0].ready >= vtime.Time(start+20*vtime.Millisecond) {
				t.Errorf("the first packet is at %v", ms[0].ready)
			}
		}
	}
	if len(phases) != 20 {
		t.Errorf("20 calls have %d phases", len(phases))
	}
}

func TestTraceIsTheList(t *testing.T) {
	spec := Spec{Kind: Trace, Transfers: []Transfer{{0, 1}, {vtime.Second, 20}, {vtime.Second, 30}, {3 * vtime.Second, 40}}}
	got := messagesOf(t, spec, 10, vtime.Time(3*vtime.Second), math.MaxInt)
	want := []message{{10, 1}, {vtime.Time(10 + vtime.Second), 20}, {vtime.Time(10 + vtime.Second), 30}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v: the last one is beyond the stop", got, want)
	}
	if len(spec.Transfers) != 4 {
		t.Error("the schedule consumed the spec's list")
	}
}

// The popularity by rank is Zipf's: χ² over the twenty first ranks and the rest.
func TestZipf(t *testing.T) {
	for _, c := range []struct {
		n int
		s float64
	}{{1, 1}, {2, 0}, {30, 0}, {1000, 0.5}, {1000, 1}, {1000, 1.00001}, {100_000, 0.8}, {5000, 2}, {10_000_000, 1}, {10_000_000, 3}} {
		total := 0.0
		for k := 1; k <= c.n; k++ {
			total += math.Pow(float64(k), -c.s)
		}
		const draws = 100_000
		bins := min(c.n, 21)
		seen := make([]float64, bins)
		from := des.NewStream(1, "zipf")
		z := newZipf(c.n, c.s)
		for range draws {
			k := z.rank(from)
			if k < 1 || k > c.n {
				t.Fatalf("rank %d of %d", k, c.n)
			}
			seen[min(k, bins)-1]++
		}
		chi, rest, cells := 0.0, 1.0, 0
		for i := range seen {
			p := math.Pow(float64(i+1), -c.s) / total
			if i == bins-1 {
				p = rest
			}
			rest -= p
			if want := p * draws; want > 5 {
				chi += (seen[i] - want) * (seen[i] - want) / want
				cells++
			}
		}
		// The 99.99th percentile for 20 degrees of freedom is 54.
		if chi > 54 {
			t.Errorf("n=%d s=%v: χ² = %.1f over %d cells: %v", c.n, c.s, chi, cells, seen)
		}
	}
}

func TestCatalogHasItsMeanAndItsTail(t *testing.T) {
	for _, c := range []struct{ mean, most vtime.Bytes }{
		{20_000, 1_000_000}, {1000, 1_000_000}, {20_000, 20_000}, {20_000, 25_000}, {64, 2000}, {50_000, 20_000_000},
	} {
		k := newCatalog(9, c.mean, c.most)
		const objects = 100_000
		sum, tail, atMost := 0.0, 0, 0
		for rank := 1; rank <= objects; rank++ {
			n := k.size(rank)
			if n < 1 || n > c.most {
				t.Fatalf("%+v: object %d has %v", c, rank, n)
			}
			sum += float64(n)
			if float64(n) > tailFrom*k.median {
				tail++
			}
			if n == c.most {
				atMost++
			}
		}
		// The tail is heavy: within a few percent for so many objects.
		if mean := sum / objects; math.Abs(mean/float64(c.mean)-1) > 0.1 {
			t.Errorf("%+v: the mean is %.0f", c, mean)
		}
		if k.median*tailFrom < float64(c.most)/2 && c.mean > 100 {
			if share := float64(tail) / objects; math.Abs(share-0.07) > 0.004 {
				t.Errorf("%+v: %v of the objects are in the tail, want 7 %%", c, share)
			}
		}
	}
	if a, b := newCatalog(9, 20_000, 1_000_000), newCatalog(9, 20_000, 1_000_000); a.size(5) != b.size(5) {
		t.Error("an object's size changes")
	}
	if a, b := newCatalog(9, 20_000, 1_000_000), newCatalog(10, 20_000, 1_000_000); a.size(5) == b.size(5) {
		t.Error("objects of two servers have one size")
	}
}

func TestPagesHaveTheirMeanNumberOfObjects(t *testing.T) {
	for _, mean := range []float64{1, 1.5, 2.7, 20} {
		p := newPages(webSpec(Responses, func(w *WebSpec) { w.PageObjects = mean }))
		var counts []float64
		for len(counts) < 20_000 {
			o := p.next()
			if o.index == 0 {
				counts = append(counts, float64(o.of))
			} else if o.of != int(counts[len(counts)-1]) {
				t.Fatalf("an object of a page of %d in one of %v", o.of, counts[len(counts)-1])
			}
		}
		meanWithin(t, "objects of a page", counts, mean, math.Sqrt(mean*(mean-1))+1e-9) // geometric
	}
}

// Both ends draw the same, and the bits are pinned: another architecture or
// another build must not make another schedule.
func TestSchedulesAreEqualEverywhere(t *testing.T) {
	for _, c := range []struct {
		name string
		spec Spec
		want uint64
	}{
		{"poisson", Spec{Kind: Poisson, Size: 5000, Interval: vtime.Second, Sizes: SizesExponential, Seed: 1}, 0x28392dde5949a70f},
		{"pareto", Spec{Kind: Poisson, Size: 5000, Interval: vtime.Second, Sizes: SizesPareto, Seed: 1}, 0x13f3436de9c50eb5},
		{"voip", Spec{Kind: VoIP, Codec: "g711", Seed: 1}, 0x979a715d4bdcf9d0},
		{"web", webSpec(Responses, nil), 0x8126318bb3982e14},
		{"zipf 0.7", webSpec(Responses, func(w *WebSpec) { w.Zipf = 0.7 }), 0xbdc579de7a23a3da},
	} {
		sum := func() (h uint64) {
			for _, m := range messagesOf(t, c.spec, 100, vtime.Never, 2000) {
				h = (h^uint64(m.ready))*0x100000001b3 ^ uint64(m.size)*0x9e3779b97f4a7c15
			}
			return h
		}
		a, b := sum(), sum()
		if a != b {
			t.Errorf("%s: two ends have two schedules", c.name)
		}
		if a != c.want {
			t.Errorf("%s: the schedule's hash is %#x, it was %#x", c.name, a, c.want)
		}
		if other := c.spec; c.name != "" {
			other.Seed++
			if slices.Equal(messagesOf(t, c.spec, 0, vtime.Never, 50), messagesOf(t, other, 0, vtime.Never, 50)) {
				t.Errorf("%s: the seed does not matter", c.name)
			}
		}
	}
}
