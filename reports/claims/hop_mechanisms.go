package claims

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// mechanismMeasures are of what single mechanisms of Hop do.
var mechanismMeasures = []Measure{
	{
		Name: "blocks-held", Neutral: math.NaN(),
		About: "most blocks of one flow that a relay held at a sample, worst repetition",
		Take:  blocksHeld,
	},
	{
		Name: "data-sent-again", Neutral: math.NaN(), With: []string{"nodes"},
		About: "data packets that the named nodes sent again of blocks that had been passed on, most of any repetition",
		Take:  nodeFact("hop_data_again", slices.Max[[]float64]),
	},
	{
		Name: "tokens-sent", Neutral: math.NaN(), With: []string{"nodes"},
		About: "tokens that the named nodes sent, least of any repetition",
		Take:  nodeFact("hop_tokens", slices.Min[[]float64]),
	},
	{
		Name: "completed-share", Neutral: math.NaN(),
		About: "share of the sized flows that completed, least of any repetition",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			return perRep(r, slices.Min[[]float64], func(rep *dataset.Rep) (float64, error) {
				c := dataset.Completions([]dataset.Rep{*rep})
				if !rep.Sized {
					return 0, NotTestable("the flows have no size that they could complete")
				}
				return c.Share(), nil
			})
		},
	},
	{
		Name: "delivered-bytes", Neutral: math.NaN(),
		About: "bytes delivered, most of any repetition",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			return perRep(r, slices.Max[[]float64], func(rep *dataset.Rep) (float64, error) {
				var sum float64
				for i := range rep.Flows {
					sum += float64(rep.Flows[i].Bytes)
				}
				return sum, nil
			})
		},
	},
	{
		Name: "delay-ratio", Neutral: 1, With: []string{"workload"},
		About: "ratio of the median delays of messages, lost ones being infinitely late, median over repetitions",
		Take:  delayRatio,
	},
	{
		Name: "micro-share", Neutral: math.NaN(), With: []string{"workload"},
		About: "micro-blocks that were sent for each message, least of any repetition",
		Take:  microShare,
	},
	{
		Name: "r-factor-difference", With: []string{"transport"},
		About: "difference of the median R-factors of the calls, median over repetitions",
		Take:  rFactorDifference,
	},
}

// perRep is a measure of one value for each repetition; of resamples the worst
// counts.
func perRep(r *Request, worst func([]float64) float64, of func(*dataset.Rep) (float64, error)) (Sample, error) {
	s, err := r.One()
	if err != nil {
		return Sample{}, err
	}
	var each []float64
	for i := range s.Reps {
		v, err := of(&s.Reps[i])
		if err != nil {
			return Sample{}, err
		}
		each = append(each, v)
	}
	return statisticOf(each, worst), nil
}

func blocksHeld(ctx context.Context, r *Request) (Sample, error) {
	s, err := r.One()
	if err != nil {
		return Sample{}, err
	}
	most := make([]float64, len(s.Reps))
	seen := make([]bool, len(s.Reps))
	err = samplesOf(ctx, r, s, func(rep int, smp *store.Sample) {
		if smp.Side != store.SideRelay || !smp.BlocksHeld.OK {
			return
		}
		seen[rep] = true
		most[rep] = math.Max(most[rep], float64(smp.BlocksHeld.V))
	})
	if err != nil {
		return Sample{}, err
	}
	if slices.Contains(seen, false) {
		return Sample{}, NotTestable("there are no samples of what relays hold")
	}
	return statisticOf(most, slices.Max[[]float64]), nil
}

// nodeFact is a measure of a number in the facts of the nodes that the parameter
// nodes names, summed over them.
func nodeFact(fact string, worst func([]float64) float64) func(context.Context, *Request) (Sample, error) {
	return func(ctx context.Context, r *Request) (Sample, error) {
		names := strings.Fields(r.With.Text("nodes", ""))
		return perRep(r, worst, func(rep *dataset.Rep) (float64, error) {
			nodes, err := r.Set.Store().Nodes(ctx, store.Filter{RunIDs: []int64{rep.Run.ID}})
			if err != nil {
				return 0, err
			}
			sum, found := 0.0, 0
			for i := range nodes {
				if !slices.Contains(names, nodes[i].Name) || !countsHop(nodes[i].Facts) {
					continue
				}
				text, ok := nodes[i].Facts[fact]
				if !ok {
					text = "0" // counters that stayed 0 are left out
				}
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return 0, fmt.Errorf("run %d: %s of %s is %q", rep.Run.ID, fact, nodes[i].Name, text)
				}
				sum += v
				found++
			}
			if found < len(names) || found == 0 {
				return 0, NotTestable("%s is not known of all of %s", fact, strings.Join(names, ", "))
			}
			return sum, nil
		})
	}
}

// countsHop tells that a node's facts have counters of Hop.
func countsHop(facts store.Facts) bool {
	for name := range facts {
		if strings.HasPrefix(name, "hop_") {
			return true
		}
	}
	return false
}

// delayRatio compares the delays of messages of two transports.
func delayRatio(ctx context.Context, r *Request) (Sample, error) {
	g, err := r.Group()
	if err != nil {
		return Sample{}, err
	}
	var side [2]map[int]float64 // by repetition
	var name [2]string
	for i, t := range []string{r.Of, r.To} {
		s, err := r.Series(g, t)
		if err != nil {
			return Sample{}, err
		}
		d, err := delaysOf(ctx, r, s)
		if err != nil {
			return Sample{}, err
		}
		side[i], name[i] = map[int]float64{}, s.Transport
		for j := range d.Reps {
			x := slices.Clone(d.Reps[j].Delivered)
			for range d.Reps[j].Lost {
				x = append(x, math.Inf(1))
			}
			side[i][d.Reps[j].Repetition] = stats.Quantile(x, 0.5)
		}
	}
	a, b := common(side)
	if len(a) == 0 {
		return Sample{}, NotTestable("no repetition has messages of both")
	}
	each := make([]float64, len(a))
	for i := range a {
		each[i] = a[i] / b[i]
	}
	out := MedianOf(each)
	out.Details = append(out.Details, fmt.Sprintf("%s %.3g s, %s %.3g s", name[0], stats.Median(a), name[1], stats.Median(b)))
	return out, nil
}

// delaysOf are the messages of the parameter workload.
func delaysOf(ctx context.Context, r *Request, s *dataset.Series) (*dataset.Delays, error) {
	all, err := r.Set.DelaysOf(ctx, s)
	if err != nil {
		return nil, err
	}
	workload := r.With.Text("workload", "")
	for i := range all {
		if all[i].Workload == workload {
			return &all[i], nil
		}
	}
	return nil, NotTestable("%s has no messages of the workload %s", s.Transport, workload)
}

func microShare(ctx context.Context, r *Request) (Sample, error) {
	s, err := r.One()
	if err != nil {
		return Sample{}, err
	}
	sent := make([]map[int]float64, len(s.Reps)) // by flow, at its source
	for i := range sent {
		sent[i] = map[int]float64{}
	}
	err = samplesOf(ctx, r, s, func(rep int, smp *store.Sample) {
		if n, ok := smp.MicroBlocks.Get(); ok && smp.Side == store.SideSrc {
			sent[rep][smp.Flow] = math.Max(sent[rep][smp.Flow], float64(n))
		}
	})
	if err != nil {
		return Sample{}, err
	}
	i := -1
	return perRep(r, slices.Min[[]float64], func(rep *dataset.Rep) (float64, error) {
		i++
		of := map[int]bool{}
		for j := range rep.Flows {
			of[rep.Flows[j].Flow] = rep.Flows[j].Workload == r.With["workload"]
		}
		var messages, micro float64
		err := r.Set.Store().Messages(ctx, rep.Run.ID, func(m *store.Message) error {
			if of[m.Flow] {
				messages++
			}
			return nil
		})
		for flow, n := range sent[i] {
			if of[flow] {
				micro += n
			}
		}
		if err == nil && messages == 0 {
			err = NotTestable("there are no messages of the workload %s", r.With["workload"])
		}
		return micro / messages, err
	})
}

// rFactorDifference compares calls beside Of with calls beside To: the calls' own
// transport is the parameter transport.
func rFactorDifference(ctx context.Context, r *Request) (Sample, error) {
	var side [2]map[int]float64
	for i, t := range []string{r.Of, r.To} {
		g, err := r.oneGroupOf(t)
		if err != nil {
			return Sample{}, err
		}
		s, err := r.Series(g, r.With.Text("transport", "udp"))
		if err != nil {
			return Sample{}, err
		}
		side[i] = map[int]float64{}
		all, err := r.Set.DelaysOf(ctx, s)
		if err != nil {
			return Sample{}, err
		}
		for j := range all {
			for _, rep := range all[j].Reps {
				if rep.Speech != nil {
					side[i][rep.Repetition] = rep.Speech.RFactor
				}
			}
		}
	}
	a, b := common(side)
	if len(a) == 0 {
		return Sample{}, NotTestable("no repetition has rated calls beside both")
	}
	each := make([]float64, len(a))
	for i := range a {
		each[i] = a[i] - b[i]
	}
	s := MedianOf(each)
	s.Details = append(s.Details, fmt.Sprintf("R %.3g beside %s, %.3g beside %s", stats.Median(a), r.Of, stats.Median(b), r.To))
	return s, nil
}

// common are the values of the repetitions that both sides have, in their order.
func common(side [2]map[int]float64) (a, b []float64) {
	for _, rep := range slices.Sorted(maps.Keys(side[0])) {
		if y, ok := side[1][rep]; ok {
			a, b = append(a, side[0][rep]), append(b, y)
		}
	}
	return a, b
}
