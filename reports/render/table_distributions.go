package render

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/reports/stats"
)

// pMeaning says what a p is, and what it is not.
const pMeaning = "p: if which transport is which were decided by chance in each repetition, the share of the decisions that give a difference as large at least. " +
	"Whole repetitions are exchanged, never single flows, since the flows of one share its channel. p is not the probability that the transports are alike, and a small one says nothing about how large the difference is: that is in the ratios."

// distributionTable tests whether two transports' flows have one distribution.
func distributionTable(g *Group) Table {
	t := Table{Title: "Distributions beside that of " + name(g.Baseline), Head: []string{"", "n", "D", "p", "P(more)", "p"}, Narrow: true}
	if g.Data.Sized {
		t.Head[4] = "P(longer)"
	}
	var notes noteList
	for _, r := range g.Ratios {
		d := &r.Distributions
		ks, mw := &d.KolmogorovSmirnov, &d.MannWhitney
		if math.IsNaN(ks.P) {
			continue
		}
		t.add("", name(r.Transport), strconv.Itoa(ks.A), decimals(ks.Statistic, 2), pText(ks), decimals(mw.Statistic, 2), pText(mw))
		for _, w := range ks.Warnings {
			notes.add(w, name(r.Transport), "p")
		}
	}
	if len(t.Rows) == 0 {
		return t
	}
	what := "more than a flow of " + name(g.Baseline)
	if g.Data.Sized {
		what = "a longer time than a flow of " + name(g.Baseline) + " (flows that had not completed count with the time until their run ended)"
	}
	t.Notes = append([]string{"n: paired repetitions. D: the largest distance between the two distribution functions (Kolmogorov and Smirnov). " + t.Head[4] +
		": the probability that a flow has " + what + ", 0.5 for no difference (Mann and Whitney). " + pMeaning}, notes.lines()...)
	return t
}

// pText writes a p.
func pText(t *stats.Test) string {
	if t.P < 0.001 {
		return fmt.Sprintf("%.1g", t.P)
	}
	return decimals(t.P, 3)
}

// jsonDistributions are both tests of the distributions of two transports.
type jsonDistributions struct {
	KolmogorovSmirnov jsonTest `json:"kolmogorov_smirnov"` // the statistic is D
	MannWhitney       jsonTest `json:"mann_whitney"`       // the probability that a flow's value exceeds one of the baseline's
}

type jsonTest struct {
	Statistic number   `json:"statistic"`
	P         number   `json:"p"` // over exchanges of whole paired repetitions
	Least     number   `json:"least_p"`
	Exact     bool     `json:"exact"` // every exchange was gone through
	N         int      `json:"repetitions"`
	Warnings  []string `json:"warnings"`
}

func distributionsJSON(d *stats.Distributions) jsonDistributions {
	of := func(t *stats.Test) jsonTest {
		return jsonTest{number(t.Statistic), number(t.P), number(t.Least), t.Exact, t.A, list(t.Warnings)}
	}
	return jsonDistributions{of(&d.KolmogorovSmirnov), of(&d.MannWhitney)}
}
