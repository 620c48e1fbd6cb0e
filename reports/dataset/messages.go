package dataset

import (
	"math"
	"slices"

	"github.com/hopbed/hopbed/reports/stats"
)

// MessageSummary describes the flows of a series that have one workload of
// messages, over the messages that became ready in the measured intervals.
type MessageSummary struct {
	Workload  string
	Flows     int // with messages, over all repetitions
	Messages  int64
	Delivered int64
	// Delay holds the 50, 95 and 99 % quantiles of a flow's delays in seconds,
	// each the median over the flows of which anything was delivered; NaN when
	// nothing was.
	Delay [3]float64
	// RFactor and MOS are medians over the flows of speech, NaN without any.
	RFactor, MOS float64
}

// LostShare is the share of the messages that were not delivered; NaN without
// messages.
func (m *MessageSummary) LostShare() float64 {
	return 1 - float64(m.Delivered)/float64(m.Messages)
}

// Messages describes the flows of the series by their workload, in the order of
// its name; none for a series without messages.
func (s *Series) Messages() []MessageSummary {
	type columns struct {
		sum    MessageSummary
		delays [3][]float64
		r, mos []float64
	}
	by := map[string]*columns{}
	var names []string
	for i := range s.Reps {
		for _, f := range s.Reps[i].Flows {
			if !f.Messages.OK {
				continue
			}
			c := by[f.Workload]
			if c == nil {
				c = &columns{sum: MessageSummary{Workload: f.Workload}}
				by[f.Workload] = c
				names = append(names, f.Workload)
			}
			c.sum.Flows++
			c.sum.Messages += f.Messages.V
			c.sum.Delivered += f.MessagesDelivered.V
			if f.DelayP50Us.OK {
				for q, us := range []int64{f.DelayP50Us.V, f.DelayP95Us.V, f.DelayP99Us.V} {
					c.delays[q] = append(c.delays[q], float64(us)/1e6)
				}
			}
			if f.RFactor.OK {
				c.r, c.mos = append(c.r, f.RFactor.V), append(c.mos, f.MOS.V)
			}
		}
	}
	slices.Sort(names)
	var out []MessageSummary
	for _, name := range names {
		c := by[name]
		for q := range c.delays {
			c.sum.Delay[q] = stats.Median(c.delays[q])
		}
		c.sum.RFactor, c.sum.MOS = math.NaN(), math.NaN()
		if len(c.r) > 0 {
			c.sum.RFactor, c.sum.MOS = stats.Median(c.r), stats.Median(c.mos)
		}
		out = append(out, c.sum)
	}
	return out
}
