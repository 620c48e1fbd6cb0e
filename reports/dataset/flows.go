package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// ComparedFlows sets the single flows of a point with several beside each
// other: sums may agree where the flows do not.
type ComparedFlows struct {
	Flows int // of a repetition
	N     int // repetitions
	// Same tells that every repetition has the same flows, so that what a flow
	// got can be averaged over them.
	Same bool
	// Each is the median over repetitions of the median over flows of the
	// paired ratio A/B.
	Each stats.Estimate
	// Furthest is the flow whose shares differ most; Repetition is 0 where it
	// stands for all.
	Furthest struct {
		Flow, Repetition int
		Ratio            float64
	}
	// Moved is the part of the goodput, or of the completion times, that other
	// flows have on the other side: half the sum of the differences between the
	// flows' shares (total variation distance), 0 to 1. Chance is what the
	// differences between repetitions make of it alone, NaN where that is not
	// known: with one repetition, or when each has other flows.
	Moved, Chance float64
	// Jain and Starved are means over the repetitions, of A and of B; Jain's
	// index is NaN for sized flows.
	Jain, Starved [2]float64
	// JainDifference and StarvedDifference are medians over repetitions.
	JainDifference, StarvedDifference stats.Estimate

	Verdict Verdict // Met or FlowsDiffer; NotJudged where no aims apply
	Sure    bool
	Why     string

	what     string // they are compared by
	oneSided string // which flows starve on one side only
}

// flowPair is one flow of a repetition on both sides.
type flowPair struct {
	a, b *store.Flow
	x, y float64 // what they are compared by
}

// pairFlows matches the flows of a repetition; nil when the sides do not have
// the same.
func pairFlows(a, b *Rep) []flowPair {
	if len(a.Flows) != len(b.Flows) {
		return nil
	}
	other := make(map[int]*store.Flow, len(b.Flows))
	for i := range b.Flows {
		other[b.Flows[i].Flow] = &b.Flows[i]
	}
	out := make([]flowPair, len(a.Flows))
	for i := range a.Flows {
		f := &a.Flows[i]
		g := other[f.Flow]
		if g == nil || g.Src != f.Src || g.Dst != f.Dst {
			return nil
		}
		out[i] = flowPair{f, g, a.value(f), b.value(g)}
	}
	return out
}

// compareFlows compares the flows of paired repetitions. It returns nil for
// points of one flow, and a warning where the sides have different flows.
func compareFlows(pairs *Pairs, seed uint64) (*ComparedFlows, string) {
	c := &ComparedFlows{Same: true, Chance: math.NaN()}
	var reps [][]flowPair
	var numbers []int
	var ra, rb []*Rep
	different := 0
	for i := range pairs.a {
		a, b := &pairs.a[i], &pairs.b[i]
		if c.what = "goodput"; a.Sized {
			c.what = "completion times"
		}
		if max(len(a.Flows), len(b.Flows)) < 2 {
			continue
		}
		p := pairFlows(a, b)
		if p == nil {
			different++
			continue
		}
		c.Same = c.Same && (len(reps) == 0 || sameFlows(reps[0], p))
		c.Flows = max(c.Flows, len(p))
		reps, numbers = append(reps, p), append(numbers, pairs.Repetitions[i])
		ra, rb = append(ra, a), append(rb, b)
	}
	warning := ""
	if different > 0 {
		warning = fmt.Sprintf("the sides have different flows in %s: those are compared by their sums alone", CountOf(different, "repetition"))
	}
	if c.N = len(reps); c.N == 0 {
		return nil, warning
	}
	c.ratios(reps, seed)
	c.shares(reps, numbers)
	c.spread(ra, rb, seed)
	c.starvedOnOneSide(reps)
	return c, warning
}

func sameFlows(p, q []flowPair) bool {
	return slices.EqualFunc(p, q, func(x, y flowPair) bool {
		return x.a.Flow == y.a.Flow && x.a.Src == y.a.Src && x.a.Dst == y.a.Dst
	})
}

func (c *ComparedFlows) ratios(reps [][]flowPair, seed uint64) {
	var a, one stats.Blocks
	for _, p := range reps {
		var x []float64
		for _, f := range p {
			x = append(x, flowRatio(f.x, f.y))
		}
		a, one = append(a, x), append(one, []float64{1})
	}
	c.Each = stats.MedianRatio(a, one, seed, stats.Median)
}

// flowRatio is x/y; two flows that got nothing do not differ.
func flowRatio(x, y float64) float64 {
	switch {
	case x == 0 && y == 0:
		return 1
	case y == 0:
		return math.Inf(1)
	}
	return x / y
}

// shares finds how much of the goodput is another flow's.
func (c *ComparedFlows) shares(reps [][]flowPair, numbers []int) {
	differences := make([][]float64, len(reps)) // of the shares: by repetition, then flow
	for r, p := range reps {
		var x, y []float64
		for _, f := range p {
			x, y = append(x, f.x), append(y, f.y)
		}
		sx, sy := stats.Sum(x), stats.Sum(y)
		differences[r] = make([]float64, len(p))
		if sx == 0 || sy == 0 {
			continue // nothing to share out on one side: the sums say it
		}
		for i := range p {
			differences[r][i] = x[i]/sx - y[i]/sy
		}
	}
	most := -1.0
	further := func(difference float64, flow, repetition int, x, y float64) {
		if d := math.Abs(difference); d > most {
			most = d
			c.Furthest.Flow, c.Furthest.Repetition, c.Furthest.Ratio = flow, repetition, flowRatio(x, y)
		}
	}
	if !c.Same {
		var moved []float64
		for r, p := range reps {
			moved = append(moved, half(differences[r]))
			for i, f := range p {
				further(differences[r][i], f.a.Flow, numbers[r], f.x, f.y)
			}
		}
		c.Moved = stats.Median(moved)
		return
	}
	var mean, chance []float64
	for i, f := range reps[0] {
		var d []float64
		var x, y float64
		for r := range reps {
			d = append(d, differences[r][i])
			x, y = x+reps[r][i].x, y+reps[r][i].y
		}
		mean = append(mean, stats.Mean(d))
		// The mean distance of a normal variable from its mean is √(2/π) of
		// its standard deviation.
		chance = append(chance, math.Sqrt(2/math.Pi)*standardError(d))
		further(stats.Mean(d), f.a.Flow, 0, x, y)
	}
	c.Moved = half(mean)
	if len(reps) > 1 {
		c.Chance = half(chance)
	}
}

func half(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Abs(v)
	}
	return sum / 2
}

// standardError is that of a mean, NaN for one value.
func standardError(x []float64) float64 {
	m, sum := stats.Mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	n := float64(len(x))
	return math.Sqrt(sum / (n - 1) / n)
}

// spread compares how evenly the flows got it.
func (c *ComparedFlows) spread(ra, rb []*Rep, seed uint64) {
	var jain, starved [2]stats.Blocks
	for side, reps := range [2][]*Rep{ra, rb} {
		for _, r := range reps {
			j := math.NaN()
			if !r.Sized {
				j = stats.Jain(r.Goodputs())
			}
			jain[side] = append(jain[side], []float64{j})
			starved[side] = append(starved[side], []float64{r.StarvedShare()})
		}
		c.Jain[side], c.Starved[side] = meanOf(jain[side]), meanOf(starved[side])
	}
	c.JainDifference = stats.MedianDifference(jain[0], jain[1], seed, stats.Sum)
	c.StarvedDifference = stats.MedianDifference(starved[0], starved[1], seed, stats.Sum)
}

func meanOf(b stats.Blocks) float64 {
	var x []float64
	for _, v := range b {
		x = append(x, v...)
	}
	return stats.Mean(x)
}

// starvedOnOneSide notes the flows that starve in all repetitions of one side,
// and have half of an equal share at least in all of the other.
func (c *ComparedFlows) starvedOnOneSide(reps [][]flowPair) {
	if !c.Same {
		return
	}
	half := make([][2]float64, len(reps))
	for r, p := range reps {
		var x, y []float64
		for _, f := range p {
			x, y = append(x, f.a.GoodputBps.V), append(y, f.b.GoodputBps.V)
		}
		half[r] = [2]float64{stats.Mean(x) / 2, stats.Mean(y) / 2}
	}
	var found []string
	for i := range reps[0] {
		var starved, served [2]int
		for r := range reps {
			for side, f := range [2]*store.Flow{reps[r][i].a, reps[r][i].b} {
				switch {
				case f.StarvedBelow(stats.StarvedBelowBps):
					starved[side]++
				case f.GoodputBps.V >= half[r][side]:
					served[side]++
				}
			}
		}
		if n := len(reps); starved[0] == n && served[1] == n || starved[1] == n && served[0] == n {
			found = append(found, fmt.Sprint(reps[0][i].a.Flow))
		}
	}
	if n := len(found); n > 0 {
		what := "flow " + found[0]
		if n > 1 {
			what = "flows " + strings.Join(found[:min(n, 5)], ", ")
		}
		if n > 5 {
			what += " …"
		}
		c.oneSided = what + " starved on one side in all repetitions, served on the other"
	}
}

// judge decides whether the flows are alike (FlowRule).
func (c *ComparedFlows) judge() {
	const enough = 5 // repetitions, as for an interval that can be trusted
	c.Verdict, c.Sure = Met, c.N >= enough
	var differ, doubts []string
	if c.oneSided != "" {
		differ = append(differ, c.oneSided)
	}
	if moved := fmt.Sprintf("%.0f %% of the %s is another flow's", 100*c.Moved, c.what); c.Moved > FlowAims.Moved {
		switch known := !math.IsNaN(c.Chance); {
		case known && c.Moved <= 2*c.Chance:
			doubts = append(doubts, fmt.Sprintf("%s, of which the differences between repetitions explain up to %.0f %%", moved, 200*c.Chance))
		default:
			differ = append(differ, moved)
			c.Sure = c.Sure && known
		}
	}
	for _, d := range []struct {
		what  string
		e     stats.Estimate
		limit float64
	}{{"Jain's index", c.JainDifference, FlowAims.Jain}, {"the share of starved flows", c.StarvedDifference, FlowAims.Starved}} {
		switch v := math.Abs(d.e.Value); {
		case v > d.limit && d.e.HasInterval && d.e.Lo <= d.limit && d.e.Hi >= -d.limit:
			doubts = append(doubts, fmt.Sprintf("%s differs by %.2g, but its interval reaches into the aim", d.what, v))
		case v > d.limit:
			differ = append(differ, fmt.Sprintf("%s differs by %.2g", d.what, v))
		}
	}
	switch {
	case len(differ) > 0:
		c.Verdict, c.Why = FlowsDiffer, strings.Join(differ, "; ")
	case len(doubts) > 0:
		c.Sure, c.Why = false, strings.Join(doubts, "; ")
	case !c.Sure:
		c.Why = fmt.Sprintf("%s are too few to be sure", CountOf(c.N, "repetition"))
	}
}

// qualify makes a verdict on the sum over the flows one on the flows: what is met
// by the sum alone is not met.
func (c *ComparedFlows) qualify(k *Compared) {
	if k.Verdict != Met {
		return
	}
	switch {
	case c.Verdict == FlowsDiffer:
		k.Verdict, k.Sure, k.Why = FlowsDiffer, c.Sure, c.Why
	case !c.Sure && k.Sure:
		k.Sure, k.Why = false, c.Why
	}
}
