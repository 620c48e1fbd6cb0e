package render

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/safetext"
	"github.com/hopbed/hopbed/reports/stats"
)

// fact is a name with its value.
type fact struct{ Name, Value string }

// Long tells a value that needs the room of two.
func (f fact) Long() bool { return len(f.Value) > 28 }

// minutes is enough for a reader; the database has milliseconds.
func minutes(s store.Stamp) string { return s.UTC().Format("2006-01-02 15:04 UTC") }

// facts say what was run, in the order in which a reader asks.
func (s *Section) facts() []fact {
	c := &s.Set.Campaign
	f := []fact{
		{"experiment", safetext.Line(c.Name, maxName)},
		{"campaign", fmt.Sprintf("%d, %s", c.ID, c.Status)},
		{"back end", safetext.Line(dataset.BackendText(c.Backend), 160)},
		{"seed", strconv.FormatUint(uint64(c.Seed), 10)},
	}
	if t := s.times(); t != "" {
		f = append(f, fact{"each run", t})
	}
	if t := s.routes(); t != "" {
		f = append(f, fact{"routes", t})
	}
	if c.Reference != "" {
		f = append(f, fact{"reference", safetext.Line(c.Reference, maxName)})
	}
	f = append(f, fact{"run by", "hopbed " + safetext.Line(c.Version, maxName)}, fact{"begun", minutes(c.Created)})
	if !c.Finished.IsZero() {
		f = append(f, fact{"ended", minutes(c.Finished)})
	}
	return append(f, fact{"file sha256", safetext.Line(c.FileSHA256, 64)})
}

// routes says where measured routes come from; "" for those that are not measured.
func (s *Section) routes() string {
	if len(s.Set.Surveys) == 0 {
		return ""
	}
	v := &s.Set.Surveys[0]
	networks := "the network"
	if n := len(s.Set.Surveys); n > 1 {
		networks = fmt.Sprintf("each of %d networks", n)
	}
	return fmt.Sprintf("over the links of %s as measured before the first run: %d probes of %d B at %s from each node, one every %g s",
		networks, v.Probes, v.Size, rate(float64(v.Rate)), v.PeriodS)
}

// times describes the runs' length when all have the same.
func (s *Section) times() string {
	var text string
	for i := range s.Set.Runs {
		r := &s.Set.Runs[i]
		t := fmt.Sprintf("%g s measured after %g s of warm-up", r.DurationS, r.WarmupS)
		if text != "" && t != text {
			return "of different lengths"
		}
		text = t
	}
	return text
}

// hostFacts are sorted by name.
func (s *Section) hostFacts() []fact {
	var f []fact
	for n, v := range s.Set.Campaign.HostFacts {
		f = append(f, fact{safetext.Line(n, maxName), safetext.Line(v, 200)})
	}
	sort.Slice(f, func(i, j int) bool { return f[i].Name < f[j].Name })
	return f
}

// repetitionSeeds lists the seed of each repetition.
func (s *Section) repetitionSeeds() string {
	seeds := map[int]map[string]bool{}
	var reps []int
	for i := range s.Set.Runs {
		r := &s.Set.Runs[i]
		if seeds[r.Repetition] == nil {
			seeds[r.Repetition] = map[string]bool{}
			reps = append(reps, r.Repetition)
		}
		seeds[r.Repetition][strconv.FormatUint(uint64(r.Seed), 10)] = true
	}
	sort.Ints(reps)
	var out []string
	for _, r := range reps {
		var all []string
		for s := range seeds[r] {
			all = append(all, s)
		}
		sort.Strings(all)
		out = append(out, fmt.Sprintf("%d: %s", r, strings.Join(all, ", ")))
	}
	return strings.Join(out, "; ")
}

// validity says how many runs of the plan count, and which attempts do not.
func (s *Section) validity() (text string, allValid bool) {
	c := s.Set.Counts()
	switch {
	case c.Valid == c.Planned && c.Planned > 0:
		text = fmt.Sprintf("All %s of the plan have a valid result.", dataset.CountOf(c.Planned, "run"))
		if c.Planned == 1 {
			text = "The one run of the plan has a valid result."
		}
	default:
		text = fmt.Sprintf("%d of the %s of the plan %s a valid result: statistics rest on %s.", c.Valid, dataset.CountOf(c.Planned, "run"), dataset.Verb(c.Valid, "has", "have"), dataset.Verb(c.Valid, "it", "those"))
		if c.Valid == 0 {
			text = fmt.Sprintf("None of the %s of the plan has a valid result.", dataset.CountOf(c.Planned, "run"))
		}
	}
	if bad := c.Attempts - c.Valid; bad > 0 {
		text += fmt.Sprintf(" Of %s, %d %s left out of every statistic (%s; reasons below).", dataset.CountOf(c.Attempts, "attempt"), bad, dataset.Verb(bad, "is", "are"), strings.Join(c.LeftOut(), ", "))
	}
	return text, c.Valid >= c.Planned && c.Valid > 0
}

// shortSized sums one transport of a group of sized flows up.
func (g *Group) shortSized(s *dataset.Summary) string {
	c := s.Completion
	text := fmt.Sprintf("%s: %d of %d flows completed, median time %s", name(s.Transport), c.Done, c.Flows, completionTime(c, 1))
	for _, r := range g.Ratios {
		if r.Transport == s.Transport && r.PerRepetition.N > 0 {
			text += fmt.Sprintf("; speed-up over %s %s", name(r.Baseline), bounded(phrase(r.PerRepetition), r.PerRepetitionBound))
		}
	}
	return text + "."
}

// short sums a group up in sentences.
func (g *Group) short() []string {
	var out []string
	for _, s := range g.Summary {
		if s.Flows == 0 {
			out = append(out, fmt.Sprintf("%s: no valid run.", name(s.Transport)))
			continue
		}
		if s.Completion != nil {
			out = append(out, g.shortSized(&s))
			continue
		}
		text := fmt.Sprintf("%s: median %s, aggregate %s", name(s.Transport), rate(s.Goodput.Median), rate(s.AggregateBps))
		if !math.IsNaN(s.StarvedShare) { // flows with a load of their own do not starve
			text += fmt.Sprintf(", %s of the flows starved", percent(s.StarvedShare))
		}
		for _, r := range g.Ratios {
			if r.Transport != s.Transport || r.PerRepetition.N == 0 {
				continue
			}
			text += fmt.Sprintf("; over %s %s", name(r.Baseline), phrase(r.PerRepetition))
		}
		out = append(out, text+".")
	}
	out = append(out, g.shortDelays()...)
	if g.Data.Mixed {
		out = append(out, "These transports ran at once and shared the channel: each met the other, not the same conditions, so there is no ratio between them, and airtime is that of a node, not of a transport.")
	}
	if !g.Data.Sized && g.someSized() {
		out = append(out, "Some flows have a fixed amount of data: their goodput is what of it arrived in the measured interval, over the part of that from their start to their stop, however fast they were. Completion times are in the table flows of the database.")
	}
	if !g.Data.Sized && !g.throughout() {
		out = append(out, "Some flows ran in a part of the measured interval only, and a goodput is over the flow’s part. The aggregate is over the whole interval; Jain’s index compares flows that may not have met.")
	}
	return out
}

// throughout tells that every flow was meant to run in the whole of the measured
// interval.
func (g *Group) throughout() bool {
	for i := range g.Data.Series {
		for j := range g.Data.Series[i].Reps {
			if !g.Data.Series[i].Reps[j].Throughout() {
				return false
			}
		}
	}
	return true
}

// someSized tells that some flow has a fixed amount of data.
func (g *Group) someSized() bool {
	for i := range g.Data.Series {
		for _, f := range g.Data.Series[i].Flows() {
			if f.Size.OK {
				return true
			}
		}
	}
	return false
}

func phrase(e stats.Estimate) string {
	text := factor(e.Value) + " in the median repetition"
	if e.N == 1 {
		text = factor(e.Value) + " in the only repetition"
	}
	switch {
	case e.Trusted():
		text += " (95 %: " + interval(e) + ")"
	case e.N > 1:
		// An interval of so few would be taken at its word here.
		text += fmt.Sprintf(" of %d", e.N)
	}
	return text
}

// definition says how a number was obtained.
type definition struct{ Term, Text string }

// ofComparisons are the terms that a report of a comparison alone needs.
var ofComparisons = []string{"delay of messages", "R, MOS", "goodput", "completion time", "95 % interval", "comparison", "back end", "pooling"}

// definitions are those of the terms that the report uses.
func (r *Report) definitions() []definition {
	messages := false
	for i := range r.Sections {
		messages = messages || r.Sections[i].hasMessages()
	}
	for i := range r.Comparisons {
		c := r.Comparisons[i].Data
		messages = messages || c != nil && c.Has(dataset.QuantityMessagesLost)
	}
	all := definitionsWith(messages)
	if len(r.Sections) > 0 {
		return all
	}
	return slices.DeleteFunc(all, func(d definition) bool { return !slices.Contains(ofComparisons, d.Term) })
}

// hasMessages tells that some point has a workload of messages.
func (s *Section) hasMessages() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return len(g.workloads()) > 0 })
}

// definitionsWith are all definitions, those of messages only where there are
// messages.
func definitionsWith(messages bool) []definition {
	return slices.DeleteFunc(definitions(), func(d definition) bool { return !messages && slices.Contains(ofMessages, d.Term) })
}

var ofMessages = []string{"delay of messages", "R, MOS"}

func definitions() []definition {
	return []definition{
		{"goodput", "Application bytes that arrived at the destination within the measured interval, times 8, over its length; of a flow with a start or stop of its own, over the part of the interval in which it was meant to run. Headers, repetitions, connection set-up and the warm-up do not count. A flow that got nothing through has a goodput of 0 and stays in every statistic."},
		{"completion time", "Of flows with a fixed amount of data: from a flow’s start until its last byte arrived. Such flows are compared by it and not by goodput, which would be the same however fast they were. A flow that had not completed counts with the time until its run ended; a quantile that rests on such a flow is marked ≥. The speed-up is the baseline’s time over the transport’s; ≥ and ≤ mark one that rests on such flows of one side, and it is not known when both sides do. Its interval does not cover that."},
		{"delay of messages", "Of workloads of messages: those that became ready in the measured interval while their flow was meant to run. A message’s delay counts from when it is ready to be sent, not from when the transport takes it, until its last byte has arrived; of a page, from the first request until the last byte of its last object. A message that had not arrived when the run ended is lost, and has no delay. Quantiles are taken over the delivered messages of a repetition, all flows together; their median over repetitions is shown, with an interval by the bootstrap over repetitions."},
		{"R, MOS", speechMeaning},
		{"quartiles, median, mean", "Over all flows of all valid repetitions together. Quantiles interpolate linearly between order statistics at (n − 1)p (definition 7 of Hyndman and Fan)."},
		{"aggregate, Jain’s index, starved", "Taken within each repetition, then averaged. Aggregate: what all flows delivered, over the measured interval; the sum of their goodputs where all run throughout. Jain’s index: (Σx)² / (n Σx²), 1 when all flows get the same, 1/n when one gets everything. Starved: share of flows below " + rate(stats.StarvedBelowBps) + ", transfers that completed aside."},
		{"sent again", "Retransmitted over sent bytes, as far as the transport reports both."},
		{"set-up", "Median time from a flow’s start until its connection stood, of the flows that have one. It is no part of the goodput."},
		{"corrupt", "Blocks or bytes whose content was not what the source sent, of the transports that check."},
		{"ratio", "Of the same statistic of two transports, over repetitions that both have: the same number and the same seed, so the same topology, pairs of nodes and losses. A ratio to 0 is shown as ×∞."},
		{"ratio, median of repetitions", "The ratio of medians is taken within each repetition; the median of these is shown. One extreme placement moves it little."},
		{"95 % interval", fmt.Sprintf("Bootstrap, bias-corrected and accelerated (BCa). Whole repetitions are resampled, since the flows of one repetition share its channel and are not independent. Up to 8 repetitions every possible resample is used, beyond that %d drawn with seed %d. With one repetition there is no interval; with fewer than five it is not to be trusted.", stats.Resamples, uint64(BootstrapSeed))},
		{"lateness", "How much later than due the emulated medium handled an event of its clock. A run in which it exceeds its bound is invalid: the channel was not what the experiment says. In virtual time there is no lateness."},
		{"airtime", "Within the measured interval, by the medium’s own account."},
		{"verdict", "matches: our value fulfils the threshold that was fixed before. same direction: it does not, or there is none, but it is on the same side of “no difference” as the source. differs: it is on the other side. not testable: the reason is given. A shortened campaign tests nothing."},
		{"back end", "netns: " + dataset.BackendMeaning("netns") + ". sim: " + dataset.BackendMeaning("sim") + ". ssh: " + dataset.BackendMeaning("ssh") + "."},
		{"comparison", "Of the same points, repetitions and seeds. Goodput is the aggregate, counts are sums over the flows of a repetition, the round-trip time is the mean of the sources’ smoothed one over the samples of the measured interval, the share sent again and the time-outs are of the whole run. Model over kernel, where these are the sides. " + dataset.CountRule + " " + dataset.FlowRule},
		{"pooling", "Results of different back ends or campaigns are never pooled, and invalid runs never counted."},
	}
}

// banners are what a reader must see before any number.
func (s *Section) banners() []Row {
	var out []Row
	for _, w := range s.Set.Warnings {
		mark := "weak"
		if w == dataset.QuickNotice {
			mark = "quick"
		}
		out = append(out, Row{Mark: mark, Cells: []string{safetext.Line(w, 400)}})
	}
	if n := len(s.Groups); n > maxDrawn {
		out = append(out, Row{Mark: "weak", Cells: []string{fmt.Sprintf("%d points are too many for figures of each: their numbers are in the tables; hopbed export has every sample.", n)}})
	}
	text, ok := s.validity()
	mark := "bad"
	if ok {
		mark = "good"
	}
	if e := s.Set.Ending(); e != "" { // one banner, since the one explains the other
		text, mark = safetext.Line(e, 400)+". "+text, "bad"
	}
	return append(out, Row{Mark: mark, Cells: []string{text}})
}
