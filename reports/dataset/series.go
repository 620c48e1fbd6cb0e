package dataset

import (
	"context"

	"github.com/hopbed/hopbed/reports/stats"
)

// BandQuantiles are the quantiles over flows that a Band holds, ascending.
var BandQuantiles = [5]float64{0.1, 0.25, 0.5, 0.75, 0.9}

// Band is the goodput of many flows over time: at each bin the quantiles over
// the flows that have samples there.
type Band struct {
	Transport string
	BinS      float64
	WarmupS   float64
	Bins      []Bin
}

// Bin is one step of a Band.
type Bin struct {
	StartS float64
	Flows  int // with samples at both ends of the bin
	// QBps are BandQuantiles of the goodput in b/s. They are missing, OK being
	// false, when less than half of the flows that were meant to run have samples.
	QBps [5]float64
	OK   bool
}

// maxBins keeps a bin long enough for a slow flow to move in it: a transport
// that delivers whole blocks, or one that waits for time-outs of seconds,
// otherwise shows as nothing most of the time.
const maxBins = 20

// GoodputOverTime reads the destination samples of a series. Bins are at least
// as wide as five samples and one second. Where samples are missing the bin has
// no value: nothing is interpolated over a gap.
func (s *Set) GoodputOverTime(ctx context.Context, ser *Series) (*Band, error) {
	b := &Band{Transport: ser.Transport}
	var interval, end float64
	for i := range ser.Reps {
		r := &ser.Reps[i].Run
		interval = max(interval, r.SampleS.Or(0))
		end = max(end, r.WarmupS+r.DurationS)
		b.WarmupS = max(b.WarmupS, r.WarmupS)
	}
	if interval == 0 || end == 0 {
		return b, nil
	}
	b.BinS = max(1, 5*interval)
	for _, s := range []float64{2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if end/b.BinS > maxBins {
			b.BinS = max(b.BinS, s)
		}
	}
	n := int(end / b.BinS)
	values := make([][]float64, n)
	meant := make([]int, n) // flows that were meant to run in the whole bin
	for i := range ser.Reps {
		rep := &ser.Reps[i]
		wanted := map[int]bool{}
		for _, f := range rep.Flows {
			wanted[f.Flow] = true
			for j := range meant {
				if from := float64(j) * b.BinS; f.StartS <= from && (f.StopS == 0 || f.StopS >= from+b.BinS) {
					meant[j]++
				}
			}
		}
		c := edges{binUs: b.BinS * 1e6, toleranceUs: 1.5 * interval * 1e6, values: values}
		err := s.st.Delivered(ctx, rep.Run.ID, func(flow int, tUs, bytes int64) {
			if wanted[flow] {
				c.add(flow, tUs, bytes)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for i, v := range values {
		bin := Bin{StartS: float64(i) * b.BinS, Flows: len(v), OK: 2*len(v) >= meant[i] && len(v) > 0}
		if bin.OK {
			v = stats.Sorted(v)
			for j, q := range BandQuantiles {
				bin.QBps[j] = stats.Quantile(v, q)
			}
		}
		b.Bins = append(b.Bins, bin)
	}
	return b, nil
}

// edges turns the cumulative counts of one flow after another into goodputs of
// bins. The first sample of a bin, when it is near the bin's edge, ends the bin
// before and begins its own. The goodput is taken between two such samples,
// over the time between them; a bin without both has none.
type edges struct {
	binUs, toleranceUs float64
	values             [][]float64 // by bin, over all flows

	begun  bool
	flow   int
	bin    int  // of the last sample
	start  bool // the bin began with a sample near its edge: startT, startB
	startT int64
	startB int64
}

func (e *edges) add(flow int, t, bytes int64) {
	now := int(float64(t) / e.binUs)
	if !e.begun || flow != e.flow {
		e.begun, e.flow, e.bin, e.start = true, flow, now-1, false
	}
	if now == e.bin {
		return
	}
	near := float64(t)-float64(now)*e.binUs <= e.toleranceUs
	if near && e.start && now == e.bin+1 && e.bin < len(e.values) {
		e.values[e.bin] = append(e.values[e.bin], 8e6*float64(bytes-e.startB)/float64(t-e.startT))
	}
	e.bin, e.start, e.startT, e.startB = now, near, t, bytes
}
