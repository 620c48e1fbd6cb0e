package render

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/stats"
)

// SeriesDelays are the messages of one series, by workload.
type SeriesDelays struct {
	Transport string
	Delays    []dataset.Delays
}

// readDelays fills in the messages of a group.
func readDelays(ctx context.Context, set *dataset.Set, g *Group) error {
	for i := range g.Data.Series {
		s := &g.Data.Series[i]
		d, err := set.DelaysOf(ctx, s)
		if err != nil {
			return err
		}
		g.Delays = append(g.Delays, SeriesDelays{s.Transport, d})
	}
	return nil
}

// workloads lists those with messages, in the order of their names.
func (g *Group) workloads() []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range g.Delays {
		for i := range s.Delays {
			if w := s.Delays[i].Workload; !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	return out
}

func (s *SeriesDelays) of(workload string) *dataset.Delays {
	for i := range s.Delays {
		if s.Delays[i].Workload == workload {
			return &s.Delays[i]
		}
	}
	return nil
}

// messageNoun is what a message of a workload is.
func messageNoun(workload string) string {
	switch workload {
	case "web":
		return "page"
	case "voip":
		return "packet"
	}
	return "message"
}

// delayTables are those of messages and of speech.
func delayTables(g *Group) []Table {
	var out []Table
	for _, w := range g.workloads() {
		out = append(out, delayTable(g, w))
		if t := speechTable(g, w); len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// quantilesShown are the quantiles of delays in tables.
var quantilesShown = []struct {
	p     float64
	label string
}{{0.5, "median"}, {0.95, "95\u00a0%"}, {0.99, "99\u00a0%"}}

func delayTable(g *Group, workload string) Table {
	noun := messageNoun(workload)
	t := Table{Title: "Delay of " + noun + "s (" + name(workload) + ")", Head: []string{"", noun + "s (n)", "lost"}}
	for _, q := range quantilesShown {
		t.Head = append(t.Head, q.label)
	}
	var notes noteList
	anyLost := false
	for i := range g.Delays {
		s := &g.Delays[i]
		d := s.of(workload)
		if d == nil {
			t.add("", name(s.Transport), nothing, nothing, nothing, nothing, nothing)
			continue
		}
		n, lost := d.Messages()
		anyLost = anyLost || lost > 0
		share := d.LostShare(BootstrapSeed)
		cells := []string{name(s.Transport), strconv.Itoa(n), estimated(share, percent)}
		for _, q := range quantilesShown {
			e := d.Quantile(q.p, BootstrapSeed)
			cells = append(cells, estimated(e, delay))
			noteRepetitions(&notes, e)
		}
		t.add("", cells...)
	}
	t.Notes = append(t.Notes, "Quantiles of all "+noun+"s of a repetition; shown is the median over repetitions, in brackets its 95\u00a0% interval. "+delayMeaning(workload))
	if anyLost {
		t.Notes = append(t.Notes, "Quantiles are of the "+noun+"s that were delivered: read them together with the lost.")
	}
	t.Notes = append(t.Notes, notes.lines()...)
	return t
}

// delayMeaning says what the delay of a workload's messages is.
func delayMeaning(workload string) string {
	switch workload {
	case "web":
		return "Delay: from when the user asks for a page until the last byte of its last object is there, requests included."
	case "voip":
		return "Delay: from when a packet is handed to the transport until all of it has arrived, on one clock; the codec and the playout buffer come on top."
	}
	return "Delay: from when a message is ready to be sent until all of it has arrived, on one clock, the wait behind earlier messages included."
}

func noteRepetitions(n *noteList, e stats.Estimate) {
	for _, w := range e.Warnings {
		if e.N < 5 {
			n.add(w, "", "")
			return
		}
	}
}

// delay writes a time that may be infinite: nothing arrived.
func delay(s float64) string {
	if math.IsInf(s, 1) {
		return "∞"
	}
	return figure.Seconds(s)
}

// estimated is a value with its interval, where it has one that can be trusted.
func estimated(e stats.Estimate, format func(float64) string) string {
	text := format(e.Value)
	if e.N == 0 || math.IsNaN(e.Value) {
		return nothing
	}
	if e.HasInterval {
		text += " (" + format(e.Lo) + " – " + format(e.Hi) + ")"
	}
	return text
}

// speechTable is how a listener would judge the calls.
func speechTable(g *Group, workload string) Table {
	t := Table{Title: "Speech", Head: []string{"", "calls", "lost", "late", "mouth to ear", "R", "MOS"}}
	for i := range g.Delays {
		s := &g.Delays[i]
		d := s.of(workload)
		if d == nil || !d.HasSpeech() {
			continue
		}
		calls := 0
		for _, r := range d.Reps {
			if r.Speech != nil {
				calls += r.Speech.Flows
			}
		}
		of := func(f func(*dataset.Speech) float64, format func(float64) string) string {
			return estimated(d.OfSpeech(BootstrapSeed, f), format)
		}
		t.add("", name(s.Transport), strconv.Itoa(calls),
			of(lostShare, percent),
			of(lateShare, percent),
			of(mouthToEar, delay),
			of(rFactor, func(v float64) string { return decimals(v, 1) }),
			of(mos, func(v float64) string { return decimals(v, 2) }))
	}
	if len(t.Rows) > 0 {
		t.Notes = []string{speechMeaning}
	}
	return t
}

const speechMeaning = "R and MOS by the E-model of ITU-T G.107 with its default values, medians over the calls of a repetition and then over repetitions. " +
	"The playout buffer is adaptive: each second the 99\u00a0% quantile of the delays of the last five seconds’ packets, 20 to 500\u00a0ms above the least; a packet that comes later is late, and counts as lost. " +
	"R above 80 is good, 70 to 80 fair, below 60 hardly acceptable (G.109)."

// shortDelays sums the messages up in a sentence for each transport and workload.
func (g *Group) shortDelays() []string {
	var out []string
	for i := range g.Delays {
		for k := range g.Delays[i].Delays {
			d := &g.Delays[i].Delays[k]
			text := fmt.Sprintf("%s, %ss (%s): %s lost, median delay %s, 95 %% within %s", name(g.Delays[i].Transport), messageNoun(d.Workload), name(d.Workload),
				percent(d.LostShare(BootstrapSeed).Value), delay(d.Quantile(0.5, BootstrapSeed).Value), delay(d.Quantile(0.95, BootstrapSeed).Value))
			if d.HasSpeech() {
				text += fmt.Sprintf("; R %s, MOS %s", decimals(d.OfSpeech(BootstrapSeed, rFactor).Value, 1), decimals(d.OfSpeech(BootstrapSeed, mos).Value, 2))
			}
			out = append(out, text+".")
		}
	}
	return out
}

// What is shown of speech.
func rFactor(s *dataset.Speech) float64    { return s.RFactor }
func mos(s *dataset.Speech) float64        { return s.MOS }
func mouthToEar(s *dataset.Speech) float64 { return s.MouthToEarS }
func lateShare(s *dataset.Speech) float64  { return s.LateShare }
func lostShare(s *dataset.Speech) float64  { return s.LostShare }

// maxDelayPoints bounds the steps of a line in the figure of delays.
const maxDelayPoints = 600

// delayFigures draw the distributions, one figure for each workload.
func delayFigures(g *Group) []*figure.Figure {
	var out []*figure.Figure
	for _, w := range g.workloads() {
		var lines []figure.Series
		for i := range g.Delays {
			l := figure.Series{Label: g.Delays[i].Transport}
			if d := g.Delays[i].of(w); d != nil {
				l.Values, l.Open = thinned(d)
			}
			lines = append(lines, l)
		}
		f := figure.CDF(fmt.Sprintf("%s-delay-%s", g.ID, w), figure.Delay, lines)
		noun := messageNoun(w)
		f.Title = "Distribution of the delay of " + noun + "s (" + name(w) + ")"
		f.Caption = fmt.Sprintf("Share of all %ss, of all repetitions together, that were delivered within the time on the axis. A line that ends below 1 leaves %ss that were not delivered by the end of the run. Markers stand at the quartiles that were reached. %s At most %d steps a line; the database has every %s.",
			noun, noun, delayMeaning(w), maxDelayPoints, noun)
		out = append(out, f)
	}
	return out
}

// thinned are the delays of all repetitions, or so many of their quantiles; open
// stands for the lost, in proportion.
func thinned(d *dataset.Delays) (values, open []float64) {
	var all []float64
	lost := 0
	for i := range d.Reps {
		all = append(all, d.Reps[i].Delivered...)
		lost += d.Reps[i].Lost
	}
	all = stats.Sorted(all)
	values = all
	if n := len(all); n > maxDelayPoints {
		values = make([]float64, maxDelayPoints)
		for i := range values {
			values[i] = all[(i+1)*n/maxDelayPoints-1]
		}
		lost = int(math.Round(float64(lost) * maxDelayPoints / float64(n)))
	}
	for range lost {
		at := 1.0
		if len(all) > 0 {
			at = all[len(all)-1]
		}
		open = append(open, at)
	}
	return values, open
}

// jsonDelays describes the messages of one transport and workload.
type jsonDelays struct {
	Transport string       `json:"transport"`
	Workload  string       `json:"workload"`
	Flows     int          `json:"flows"`
	Messages  int          `json:"messages"`
	Lost      int          `json:"lost"`
	LostShare jsonEstimate `json:"lost_share"`
	// Quantiles of the delivered messages' delays, medians over repetitions, in s.
	P50    jsonEstimate `json:"delay_p50_s"`
	P95    jsonEstimate `json:"delay_p95_s"`
	P99    jsonEstimate `json:"delay_p99_s"`
	Speech *jsonSpeech  `json:"speech"` // null where the messages are none
}

type jsonSpeech struct {
	RFactor    jsonEstimate `json:"r_factor"`
	MOS        jsonEstimate `json:"mos"`
	MouthToEar jsonEstimate `json:"mouth_to_ear_s"`
	LostShare  jsonEstimate `json:"lost_share"`
	LateShare  jsonEstimate `json:"late_share"`
}

// delaysJSON adds the messages of a group.
func (g *Group) delaysJSON(out *jsonGroup) {
	for i := range g.Delays {
		for k := range g.Delays[i].Delays {
			d := &g.Delays[i].Delays[k]
			j := jsonDelays{Transport: g.Delays[i].Transport, Workload: d.Workload, Flows: d.Flows, LostShare: estimate(d.LostShare(BootstrapSeed)),
				P50: estimate(d.Quantile(0.5, BootstrapSeed)), P95: estimate(d.Quantile(0.95, BootstrapSeed)), P99: estimate(d.Quantile(0.99, BootstrapSeed))}
			j.Messages, j.Lost = d.Messages()
			if d.HasSpeech() {
				of := func(f func(*dataset.Speech) float64) jsonEstimate { return estimate(d.OfSpeech(BootstrapSeed, f)) }
				j.Speech = &jsonSpeech{of(rFactor), of(mos),
					of(mouthToEar), of(lostShare), of(lateShare)}
			}
			out.Delays = append(out.Delays, j)
		}
	}
}
