package pace

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func TestBucketsCoverEveryValueOnce(t *testing.T) {
	last := -1
	for _, v := range []vtime.Duration{0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 1000, 1023, 1024, 499_999, 1_000_000, 1 << 36, 1<<37 - 1, 1 << 37, math.MaxInt64} {
		i := bucket(v)
		if i < last || i >= nBuckets {
			t.Errorf("value %d is in bucket %d after %d of %d", v, i, last, nBuckets)
		}
		last = i
		if i == nBuckets-1 {
			continue
		}
		if u := upper(i); u < v || float64(u) > float64(v)*(1+1.0/sub) {
			t.Errorf("value %d is in a bucket up to %d: more than 1/%d above it", v, u, sub)
		}
		if bucket(upper(i)) != i || bucket(upper(i)+1) != i+1 {
			t.Errorf("bucket %d does not end at %d", i, upper(i))
		}
	}
	if bucket(-5) != 0 {
		t.Error("a negative value is not zero")
	}
}

// The quantiles of a random sample agree with sorting it, to the promised 1/32.
func TestQuantilesAgreeWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []vtime.Duration
	for range 20_000 {
		v := vtime.Duration(math.Exp(r.NormFloat64()*2 + 10))
		all = append(all, v)
		h.Add(v)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[min(int(q*float64(len(all))), len(all)-1)]
		got := h.Quantile(q)
		if got < want || float64(got) > float64(want)*(1+1.0/sub)+1 {
			t.Errorf("quantile %v = %d, sorted %d", q, got, want)
		}
	}
	if h.Max() != all[len(all)-1] || h.Count() != uint64(len(all)) {
		t.Errorf("max %d, count %d; sorted: %d, %d", h.Max(), h.Count(), all[len(all)-1], len(all))
	}
	bound := 3 * vtime.Duration(math.Exp(10))
	over := 0
	for _, v := range all {
		if v > bound {
			over++
		}
	}
	got := h.Above(bound) * float64(len(all))
	near := 0
	for _, v := range all {
		if v > bound && float64(v) <= float64(bound)*(1+1.0/sub) {
			near++
		}
	}
	if got > float64(over) || got < float64(over-near) {
		t.Errorf("%v values above the bound, sorted: %d of which %d are within 1/32", got, over, near)
	}
}

func TestHistogramTravelsAsJSON(t *testing.T) {
	var h, back Histogram
	for _, v := range []vtime.Duration{0, 5, 5, 1000, 1 << 38} {
		h.Add(v)
	}
	b, err := json.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &back); err != nil || back != h {
		t.Errorf("%s came back different: %v", b, err)
	}
	back.Merge(&h)
	if back.Count() != 10 || back.Max() != 1<<38 || back.Quantile(0.5) != h.Quantile(0.5) {
		t.Errorf("merged: %d values, max %d", back.Count(), back.Max())
	}
	for _, bad := range []string{
		`{"layout":"log2/32","count":2,"max_ns":1,"buckets":[[1,1]]}`,
		`{"layout":"log2/32","count":1,"max_ns":1,"buckets":[[99999,1]]}`,
		`{"layout":"log2/64","count":0,"max_ns":0,"buckets":[]}`,
	} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h Histogram
	if h.Quantile(0.99) != 0 || h.Above(0) != 0 || h.Max() != 0 {
		t.Error("an empty histogram has values")
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	for b.Loop() {
		h.Add(123_456)
	}
}
