package dataset

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// QuickNotice marks every result of a shortened campaign.
const QuickNotice = "quick: not for conclusions"

// Set is one campaign, ready to be reported.
type Set struct {
	Campaign store.Campaign
	// Surveys are what was measured of the links before the first run; none where
	// the routes come from the radio model or the file.
	Surveys  []store.Survey
	Runs     []store.Run // all, valid or not, in the order in which they were saved
	Groups   []Group     // in the order of the plan
	Warnings []string    // about the whole campaign
	// From names the database where campaigns of several are spoken of, else "".
	From string

	st *store.Store
}

// Group holds the runs that met the same conditions on the same back end and
// differ in their transport only.
type Group struct {
	Backend   string
	Condition store.Params // the point without the parameter that names the transport
	Series    []Series     // in the order of the plan
	// Sized tells that every flow has a fixed amount of data to deliver: they
	// are compared by completion time (seconds, less is better), not goodput.
	Sized bool
	// Mixed tells that several transports ran at once, on one channel. They met
	// each other and not the same conditions, so there is no ratio between them.
	Mixed bool
}

// Series are the valid repetitions of one transport in a group.
type Series struct {
	Transport string
	Reps      []Rep // by repetition
	// LeftOut counts this transport's runs that are not valid and for which no
	// later attempt is.
	LeftOut int
	// Attempts counts this transport's runs, valid or not.
	Attempts int
}

// Rep is one valid repetition of one transport.
type Rep struct {
	Run   store.Run
	Flows []store.Flow // of this transport, measured ones only
	// Unmeasured counts flows of a valid run that have no goodput. They are
	// missing from every statistic.
	Unmeasured int
	// Sized is that of the group.
	Sized bool
}

// Title names the group: its conditions and back end, "" conditions being one
// group only.
func (g *Group) Title() string {
	if len(g.Condition) == 0 {
		return g.Backend
	}
	return g.Condition.String() + " (" + g.Backend + ")"
}

// Find returns the series of a transport, or nil.
func (g *Group) Find(transport string) *Series {
	for i := range g.Series {
		if g.Series[i].Transport == transport {
			return &g.Series[i]
		}
	}
	return nil
}

// Baseline returns the series that the others are compared with: the one
// named, else the first end-to-end TCP of the plan, else nil. It does not
// depend on results. Transports that shared the channel have no baseline.
func (g *Group) Baseline(named string) *Series {
	if g.Mixed {
		return nil
	}
	if named != "" {
		return g.Find(named)
	}
	for i := range g.Series {
		if strings.HasPrefix(g.Series[i].Transport, "tcp/") || g.Series[i].Transport == "tcp" {
			return &g.Series[i]
		}
	}
	return nil
}

// Transports names the transports of the campaign in the order of the plan.
func (s *Set) Transports() []string {
	var out []string
	for i := range s.Groups {
		for j := range s.Groups[i].Series {
			if t := s.Groups[i].Series[j].Transport; !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// Load reads one campaign.
func Load(ctx context.Context, st *store.Store, campaignID int64) (*Set, error) {
	c, err := st.Campaign(ctx, campaignID)
	if err != nil {
		return nil, err
	}
	f := store.Filter{CampaignIDs: []int64{campaignID}}
	runs, err := st.Runs(ctx, f)
	if err != nil {
		return nil, err
	}
	flows, err := st.Flows(ctx, f)
	if err != nil {
		return nil, err
	}
	byRun := make(map[int64][]store.Flow)
	for _, fl := range flows {
		byRun[fl.RunID] = append(byRun[fl.RunID], fl)
	}
	surveys, err := st.Surveys(ctx, campaignID)
	if err != nil {
		return nil, err
	}
	s := &Set{Campaign: *c, Runs: runs, Surveys: surveys, st: st}
	s.group(byRun)
	s.warn()
	return s, nil
}

// Store returns the database that the campaign was read from, for what a Set does
// not hold: samples, facts of nodes.
func (s *Set) Store() *store.Store { return s.st }

// Point returns the run's parameters without the one that only names its
// transport.
func Point(r *store.Run) store.Params {
	p := store.Params{}
	for k, v := range r.Params {
		if v != r.Transport {
			p[k] = v
		}
	}
	return p
}

func (s *Set) group(byRun map[int64][]store.Flow) {
	type key struct{ backend, condition string }
	groups := map[key]int{}
	done := map[store.RunKey]bool{}
	for i := range s.Runs {
		if s.Runs[i].Valid {
			done[s.Runs[i].Key()] = true
		}
	}
	leftOut := map[store.RunKey]bool{}
	for i := range s.Runs {
		r := &s.Runs[i]
		cond := Point(r)
		k := key{r.Backend, cond.Key()}
		g, ok := groups[k]
		if !ok {
			g = len(s.Groups)
			groups[k] = g
			s.Groups = append(s.Groups, Group{Backend: r.Backend, Condition: cond})
		}
		grp := &s.Groups[g]
		byTransport := map[string]*Rep{}
		var order []string
		for _, fl := range byRun[r.ID] {
			if fl.Role == store.RoleRequests {
				continue // no flow of the file, and small by its nature
			}
			if byTransport[fl.Transport] == nil {
				byTransport[fl.Transport] = &Rep{Run: *r}
				order = append(order, fl.Transport)
			}
			rep := byTransport[fl.Transport]
			if fl.GoodputBps.OK {
				rep.Flows = append(rep.Flows, fl)
			} else {
				rep.Unmeasured++
			}
		}
		grp.Mixed = grp.Mixed || len(order) > 1
		if len(order) == 0 { // a run that failed before it had flows
			order = []string{r.Transport}
		}
		for _, t := range order {
			ser := grp.series(t)
			ser.Attempts++
			switch {
			case r.Valid && byTransport[t] != nil:
				ser.Reps = append(ser.Reps, *byTransport[t])
			case !r.Valid && !done[r.Key()] && !leftOut[r.Key()]:
				ser.LeftOut++
			}
		}
		leftOut[r.Key()] = true
	}
	for g := range s.Groups {
		var all []store.Flow
		for i := range s.Groups[g].Series {
			all = append(all, s.Groups[g].Series[i].Flows()...)
		}
		s.Groups[g].Sized = sized(all)
		for i := range s.Groups[g].Series {
			for j := range s.Groups[g].Series[i].Reps {
				s.Groups[g].Series[i].Reps[j].Sized = s.Groups[g].Sized
			}
			reps := s.Groups[g].Series[i].Reps
			sort.SliceStable(reps, func(a, b int) bool {
				if reps[a].Run.Repetition != reps[b].Run.Repetition {
					return reps[a].Run.Repetition < reps[b].Run.Repetition
				}
				return reps[a].Run.Seed < reps[b].Run.Seed
			})
		}
	}
}

func (g *Group) series(transport string) *Series {
	if s := g.Find(transport); s != nil {
		return s
	}
	g.Series = append(g.Series, Series{Transport: transport})
	return &g.Series[len(g.Series)-1]
}

// Goodputs returns the goodput of every flow in b/s.
func (r *Rep) Goodputs() []float64 {
	x := make([]float64, len(r.Flows))
	for i, f := range r.Flows {
		x[i] = f.GoodputBps.V
	}
	return x
}

// Aggregates returns what each flow adds to the aggregate, in b/s.
func (r *Rep) Aggregates() []float64 {
	x := make([]float64, len(r.Flows))
	for i := range r.Flows {
		x[i] = r.Flows[i].AggregateBps(&r.Run)
	}
	return x
}

// Throughout tells that every flow was meant to run in the whole of the measured
// interval.
func (r *Rep) Throughout() bool {
	for i := range r.Flows {
		if !r.Flows[i].Throughout(&r.Run) {
			return false
		}
	}
	return true
}

// StarvedShare is the share of the flows that starved: their goodput is below
// stats.StarvedBelowBps, and they are no transfers that completed. NaN without
// flows; those whose load is given do not count.
func (r *Rep) StarvedShare() float64 {
	n, bulk := 0, 0
	for i := range r.Flows {
		if r.Flows[i].StarvedBelow(stats.StarvedBelowBps) {
			n++
		}
		if !r.Flows[i].LoadGiven() {
			bulk++
		}
	}
	return float64(n) / float64(bulk)
}

// value is what flows are compared by: the completion time in seconds of sized
// flows, the goodput in b/s of others.
func (r *Rep) value(f *store.Flow) float64 {
	if r.Sized {
		t, _ := CompletionTime(&r.Run, f)
		return t
	}
	return f.GoodputBps.V
}

// Blocks returns what flows are compared by, one block for each repetition:
// goodputs in b/s, or completion times in seconds when the group is sized.
func (s *Series) Blocks() stats.Blocks {
	b := make(stats.Blocks, len(s.Reps))
	for i := range s.Reps {
		b[i] = chosen(&s.Reps[i], func(*store.Flow) bool { return true })
	}
	return b
}

// Flows returns the measured flows of all repetitions.
func (s *Series) Flows() []store.Flow {
	var out []store.Flow
	for i := range s.Reps {
		out = append(out, s.Reps[i].Flows...)
	}
	return out
}

// Summary describes a series.
type Summary struct {
	Transport string
	Runs      int // valid repetitions
	LeftOut   int
	Flows     int // measured, over all repetitions
	Goodput   stats.Summary
	// Completion describes sized flows; it is nil unless the group is sized.
	Completion *Completion
	// AggregateBps is what all flows of a repetition delivered over its measured
	// interval, Jain the index of their goodputs
	// and StarvedShare its share of flows that starved; each is the mean over
	// repetitions, NaN when there is none.
	AggregateBps float64
	Jain         float64
	StarvedShare float64
	// RetransShare is retransmitted over sent bytes, of the flows that report
	// both; NaN when none does.
	RetransShare float64
	// SetupS is the median time that setting a connection up took, in seconds,
	// of the flows that report it; NaN when none does. It is no part of the
	// goodput.
	SetupS float64
	// CorruptBlocks counts blocks or bytes that arrived other than they were
	// sent; missing when no flow checks.
	CorruptBlocks store.Opt[int64]
}

// Summary describes the series.
func (s *Series) Summary() Summary {
	sum := Summary{Transport: s.Transport, Runs: len(s.Reps), LeftOut: s.LeftOut}
	var all, aggregate, jain, starved, setup []float64
	var sent, retrans float64
	for i := range s.Reps {
		x := s.Reps[i].Goodputs()
		all = append(all, x...)
		aggregate = append(aggregate, stats.Sum(s.Reps[i].Aggregates()))
		jain = append(jain, stats.Jain(x))
		starved = append(starved, s.Reps[i].StarvedShare())
		for _, f := range s.Reps[i].Flows {
			if f.SentBytes.OK && f.RetransBytes.OK {
				sent += float64(f.SentBytes.V)
				retrans += float64(f.RetransBytes.V)
			}
			if f.SetupS.OK {
				setup = append(setup, f.SetupS.V)
			}
			if f.CorruptBlocks.OK {
				sum.CorruptBlocks = store.Some(sum.CorruptBlocks.V + f.CorruptBlocks.V)
			}
		}
	}
	sum.Flows = len(all)
	if len(s.Reps) > 0 && s.Reps[0].Sized {
		c := Completions(s.Reps)
		sum.Completion = &c
	}
	sum.Goodput = stats.Summarise(all)
	sum.AggregateBps, sum.Jain, sum.StarvedShare = stats.Mean(aggregate), stats.Mean(jain), stats.Mean(starved)
	sum.SetupS = stats.Median(setup)
	sum.RetransShare = retrans / sent
	if sent == 0 {
		sum.RetransShare = stats.Mean(nil)
	}
	return sum
}
