package pace

import (
	"encoding/json"
	"fmt"
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// A bucket is exact below 2^subBits ns; above, each power of two is split into
// 2^subBits buckets, so that a value is known to 1/32 of itself.
const (
	subBits  = 5
	sub      = 1 << subBits
	topBits  = 37 // values of 2^37 ns (137 s) and more share the last bucket
	nBuckets = (topBits-subBits)*sub + sub + 1
)

// Histogram counts durations in log-linear buckets: a relative error of at most
// 1/32 from 0 to 137 s, fixed size, no allocation. The zero value is empty. It
// is not safe for concurrent use.
type Histogram struct {
	n      uint64
	max    vtime.Duration
	counts [nBuckets]uint64
}

func bucket(d vtime.Duration) int {
	if d < 0 {
		d = 0
	}
	v := uint64(d)
	if v < sub {
		return int(v)
	}
	e := bits.Len64(v) - 1 // 2^e ≤ v
	if e >= topBits {
		return nBuckets - 1
	}
	return (e-subBits)*sub + int(v>>(e-subBits))
}

// upper is the largest value of a bucket.
func upper(i int) vtime.Duration {
	if i < sub {
		return vtime.Duration(i)
	}
	shift := i/sub - 1
	return vtime.Duration((uint64(i%sub+sub)+1)<<shift - 1)
}

// Add counts one value; negative ones count as zero.
func (h *Histogram) Add(d vtime.Duration) {
	h.n++
	h.counts[bucket(d)]++
	if d > h.max {
		h.max = d
	}
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	h.n += o.n
	h.max = max(h.max, o.max)
	for i, c := range o.counts {
		h.counts[i] += c
	}
}

// Count is the number of values.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the largest value, exact.
func (h *Histogram) Max() vtime.Duration { return h.max }

// Quantile returns an upper bound of the q-quantile (0 ≤ q ≤ 1), at most 1/32
// above it and never above Max; 0 when there are no values.
func (h *Histogram) Quantile(q float64) vtime.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q * float64(h.n))
	if rank >= h.n {
		return h.max
	}
	var seen uint64
	for i, c := range h.counts {
		if seen += c; seen > rank {
			if i == nBuckets-1 {
				break
			}
			return min(upper(i), h.max)
		}
	}
	return h.max
}

// Above returns the share of values greater than d, to the resolution of the
// buckets: values within 1/32 above d may be left out. 0 when there are none.
func (h *Histogram) Above(d vtime.Duration) float64 {
	if h.n == 0 {
		return 0
	}
	var over uint64
	for _, c := range h.counts[bucket(d)+1:] {
		over += c
	}
	return float64(over) / float64(h.n)
}

// Reset empties the histogram.
func (h *Histogram) Reset() { *h = Histogram{} }

// wireHistogram is the JSON form: only the buckets that are not empty, as pairs
// of index and count. Layout names the bucket scheme, so that a reader of
// another build does not misplace them.
type wireHistogram struct {
	Layout string         `json:"layout"`
	Count  uint64         `json:"count"`
	MaxNS  vtime.Duration `json:"max_ns"`
	Bucket [][2]uint64    `json:"buckets"`
}

const layout = "log2/32"

// MarshalJSON writes the buckets that are not empty.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	w := wireHistogram{Layout: layout, Count: h.n, MaxNS: h.max, Bucket: [][2]uint64{}}
	for i, c := range h.counts {
		if c > 0 {
			w.Bucket = append(w.Bucket, [2]uint64{uint64(i), c})
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote and refuses what is inconsistent.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var w wireHistogram
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.Layout != layout {
		return fmt.Errorf("histogram layout %q, want %q", w.Layout, layout)
	}
	*h = Histogram{n: w.Count, max: w.MaxNS}
	var sum uint64
	for _, p := range w.Bucket {
		if p[0] >= nBuckets {
			return fmt.Errorf("histogram bucket %d does not exist (there are %d)", p[0], nBuckets)
		}
		h.counts[p[0]] += p[1]
		sum += p[1]
	}
	if sum != w.Count {
		return fmt.Errorf("histogram of %d values has %d in its buckets", w.Count, sum)
	}
	return nil
}
