package claims

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// windowEvent is what a station said of a flow's window: the text of an event of the
// kind "window".
type windowEvent struct {
	atS      float64
	flow     int
	state    string
	stations int
	cap      int     // segments
	minRTTS  float64 // seconds
}

// windowEvents reads those of a run in the order of time, and when its connections
// stood.
func windowEvents(ctx context.Context, r *Request, run int64) (all []windowEvent, connected map[int]float64, err error) {
	events, err := r.Set.Store().Events(ctx, store.Filter{RunIDs: []int64{run}})
	if err != nil {
		return nil, nil, err
	}
	connected = map[int]float64{}
	for _, e := range events {
		flow, at := int(e.Flow.Or(-1)), float64(e.TUs.Or(0))/1e6
		switch e.Kind {
		case "connected":
			connected[flow] = at
		case "window":
			w := windowEvent{atS: at, flow: flow}
			var rtt, least int64
			if _, err := fmt.Sscanf(e.Text, "state=%s stations=%d cap=%d rtt_us=%d min_rtt_us=%d", &w.state, &w.stations, &w.cap, &rtt, &least); err != nil {
				return nil, nil, fmt.Errorf("run %d: the event %q of a window: %w", run, e.Text, err)
			}
			w.minRTTS = float64(least) / 1e6
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b windowEvent) int { return cmp.Compare(a.atS, b.atS) })
	return all, connected, nil
}

// idealCwnd is the paper's formula by its own constants: BWmax = 1,900 kB/s, a
// segment of 1.5 kB.
func idealCwnd(rttS float64, n int) float64 {
	return 1900 * math.Pow(float64(n), -0.15) * rttS / (1.5 * float64(n))
}

// capped calls f for every valid run of Of at the chosen points.
func (r *Request) eachRun(f func(rep *dataset.Rep) error) error {
	for _, g := range r.Groups() {
		s, err := r.Series(g, r.Of)
		if err != nil {
			continue // a case of other transports
		}
		for i := range s.Reps {
			if err := f(&s.Reps[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func capError(ctx context.Context, r *Request) (Sample, error) {
	var worst []float64
	caps := map[int]map[int]int{} // by stations and cap
	err := r.eachRun(func(rep *dataset.Rep) error {
		events, _, err := windowEvents(ctx, r, rep.Run.ID)
		if err != nil {
			return err
		}
		most, any := 0.0, false
		for _, e := range events {
			if e.state != "capped" || e.cap == 0 {
				continue
			}
			// What is told between ticks is the new number of stations beside the cap
			// that still holds; only at a tick do they belong together.
			if !newCap(events, e) {
				continue
			}
			any = true
			most = math.Max(most, math.Abs(float64(e.cap)-math.Max(1, math.Round(idealCwnd(e.minRTTS, e.stations)))))
			if caps[e.stations] == nil {
				caps[e.stations] = map[int]int{}
			}
			caps[e.stations][e.cap]++
		}
		if any {
			worst = append(worst, most)
		}
		return nil
	})
	if err != nil {
		return Sample{}, err
	}
	if len(worst) == 0 {
		return Sample{}, NotTestable("no window was capped in this campaign")
	}
	s := statisticOf(worst, slices.Max[[]float64])
	for _, n := range []int{4, 7, 10} {
		if len(caps[n]) > 0 {
			s.Details = append(s.Details, fmt.Sprintf("%d stations: caps %v (segments: times)", n, caps[n]))
		}
	}
	return s, nil
}

// newCap tells that an event changed its flow's cap.
func newCap(events []windowEvent, e windowEvent) bool {
	before := 0
	for _, x := range events {
		if x.flow != e.flow {
			continue
		}
		if x == e {
			return before != e.cap
		}
		before = x.cap
	}
	return false
}

// countLag looks at every moment at which a station begins or ends and that is the
// last one for a second.
func countLag(ctx context.Context, r *Request) (Sample, error) {
	const patience = 1.0 // seconds after which a station should know
	var worst []float64
	changes := 0
	err := r.eachRun(func(rep *dataset.Rep) error {
		events, connected, err := windowEvents(ctx, r, rep.Run.ID)
		if err != nil {
			return err
		}
		end := rep.Run.WarmupS + rep.Run.DurationS
		type span struct{ from, to float64 }
		on := map[int]span{}
		var moments []float64
		for _, f := range rep.Flows {
			from, ok := connected[f.Flow]
			if !ok {
				continue
			}
			on[f.Flow] = span{from, f.StopS}
			moments = append(moments, from)
			if f.StopS < end {
				moments = append(moments, f.StopS)
			}
		}
		slices.Sort(moments)
		most := 0.0
		for i, t := range moments {
			last := i+1 == len(moments) || moments[i+1]-t > patience
			if !last || t+patience >= end {
				continue
			}
			changes++
			n := 0
			for _, s := range on {
				if s.from <= t && t < s.to {
					n++
				}
			}
			for flow, s := range on {
				if s.from <= t && t < s.to {
					most = math.Max(most, lag(events, flow, t, n))
				}
			}
		}
		worst = append(worst, most)
		return nil
	})
	if err != nil {
		return Sample{}, err
	}
	if changes == 0 {
		return Sample{}, NotTestable("no station begins or ends by itself in this campaign")
	}
	s := statisticOf(worst, slices.Max[[]float64])
	s.Details = []string{fmt.Sprintf("%d changes; median of the repetitions' longest %.3g s", changes, stats.Median(worst))}
	return s, nil
}

// lag is the time from t until a flow's station knows that n transmit; infinite when
// it never does.
func lag(events []windowEvent, flow int, t float64, n int) float64 {
	known := 1 // itself
	for _, e := range events {
		if e.flow != flow {
			continue
		}
		if e.atS > t && known == n {
			return 0
		}
		known = e.stations
		if e.atS > t && known == n {
			return e.atS - t
		}
	}
	if known == n {
		return 0
	}
	return math.Inf(1)
}
