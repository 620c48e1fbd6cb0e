package dataset

import (
	"context"
	"math"
	"sort"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// PipeUse is what one direction of a wired link did for a series; means over
// repetitions.
type PipeUse struct {
	Pipe, Src, Dst   int
	From, To         string  // names of the nodes
	DeliveredBps     float64 // of IP packets
	Lost, Dropped    float64 // shares of the packets that entered: modelled loss, full queue
	Busy             float64 // share of the measured interval; NaN where it was not measured
	QueueMeanPackets float64
	QueueMaxPackets  float64 // the most of any repetition
}

// PipesOf reads what the wired links did in a series, in the order of the file;
// it is empty where there are none.
func (s *Set) PipesOf(ctx context.Context, ser *Series) ([]PipeUse, error) {
	f, seconds := ser.measured()
	if len(seconds) == 0 {
		return nil, nil
	}
	rows, err := s.st.Pipes(ctx, f)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	names, err := s.nodeNames(ctx, f)
	if err != nil {
		return nil, err
	}
	type key struct{ pipe, src int }
	index := map[key]int{}
	var out []PipeUse
	var n, entered, lost, dropped []float64
	for i := range rows {
		p := &rows[i]
		k := key{p.Pipe, p.Src}
		at, ok := index[k]
		if !ok {
			at = len(out)
			index[k] = at
			out = append(out, PipeUse{Pipe: p.Pipe, Src: p.Src, Dst: p.Dst, From: names[p.Src], To: names[p.Dst]})
			n, entered, lost, dropped = append(n, 0), append(entered, 0), append(lost, 0), append(dropped, 0)
		}
		u, t := &out[at], seconds[p.RunID]
		if t <= 0 {
			continue
		}
		n[at]++
		u.DeliveredBps += 8 * float64(p.DeliveredBytes.Or(0)) / t
		u.Busy += busyShare(p, t)
		u.QueueMeanPackets += p.QueueMeanPackets.Or(0)
		u.QueueMaxPackets = max(u.QueueMaxPackets, float64(p.QueueMaxPackets.Or(0)))
		entered[at] += float64(p.Entered.Or(0))
		lost[at] += float64(p.Lost.Or(0))
		dropped[at] += float64(p.DropsQueue.Or(0))
	}
	for i := range out {
		if n[i] == 0 {
			continue
		}
		u := &out[i]
		u.DeliveredBps /= n[i]
		u.Busy /= n[i]
		u.QueueMeanPackets /= n[i]
		if entered[i] > 0 {
			u.Lost, u.Dropped = lost[i]/entered[i], dropped[i]/entered[i]
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Pipe < out[j].Pipe })
	return out, nil
}

// busyShare is NaN for a link without such a count: a trace's opportunities have
// no length.
func busyShare(p *store.Pipe, seconds float64) float64 {
	if !p.BusyUs.OK {
		return math.NaN()
	}
	return float64(p.BusyUs.V) / 1e6 / seconds
}
