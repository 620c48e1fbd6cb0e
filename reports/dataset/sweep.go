package dataset

import (
	"slices"
	"sort"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// Sweep is how the flows fare with one variable of the matrix, all others being
// fixed.
type Sweep struct {
	Backend  string
	Variable string
	Fixed    store.Params // the other variables that the campaign varies
	Sized    bool         // completion times in s, less is better; else goodputs in b/s
	Values   []string     // of the variable, in the order of the plan
	Lines    []SweepLine  // one for each transport
}

// SweepLine is one transport of a Sweep.
type SweepLine struct {
	Transport string
	At        []PointSummary // by value; N is 0 where there is no valid repetition
}

// PointSummary describes one transport at one point, over its repetitions.
type PointSummary struct {
	N int // valid repetitions
	// Flow is of the median flow of each repetition: its goodput in b/s, or its
	// completion time in s. Aggregate is of the sum over flows, in b/s; it is
	// empty for sized flows.
	Flow, Aggregate stats.Summary
	// AtLeast tells that some repetition's median flow had not completed.
	AtLeast bool
}

// SummariseReps describes a series over its repetitions.
func (s *Series) SummariseReps() PointSummary {
	p := PointSummary{N: len(s.Reps)}
	var flow, aggregate []float64
	for i := range s.Reps {
		r := &s.Reps[i]
		flow = append(flow, stats.Median(chosen(r, func(*store.Flow) bool { return true })))
		if r.Sized {
			p.AtLeast = p.AtLeast || Completions(s.Reps[i : i+1]).AtLeast[1]
		} else {
			aggregate = append(aggregate, stats.Sum(r.Aggregates()))
		}
	}
	p.Flow, p.Aggregate = stats.Summarise(flow), stats.Summarise(aggregate)
	return p
}

// Varied names the variables that differ between the points of the campaign on a
// back end, beside the one that names the transport, in alphabetical order.
func (s *Set) Varied(backend string) []string {
	seen := map[string]map[string]bool{}
	groups := 0
	for i := range s.Groups {
		if s.Groups[i].Backend != backend {
			continue
		}
		groups++
		for name, value := range s.Groups[i].Condition {
			if seen[name] == nil {
				seen[name] = map[string]bool{}
			}
			seen[name][value] = true
		}
	}
	var out []string
	for name, values := range seen {
		if len(values) > 1 {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// Sweeps returns for each varied variable one sweep for each setting of the
// others that has at least two of its values, in the order of the plan.
func (s *Set) Sweeps(backend string) []Sweep {
	var out []Sweep
	varied := s.Varied(backend)
	for _, v := range varied {
		type key struct {
			fixed string
			sized bool
		}
		index := map[key]int{}
		var of []Sweep
		for i := range s.Groups {
			g := &s.Groups[i]
			value, has := g.Condition[v]
			if g.Backend != backend || !has {
				continue
			}
			fixed := store.Params{}
			for _, other := range varied {
				if w, ok := g.Condition[other]; ok && other != v {
					fixed[other] = w
				}
			}
			k := key{fixed.Key(), g.Sized}
			at, ok := index[k]
			if !ok {
				at = len(of)
				index[k] = at
				of = append(of, Sweep{Backend: backend, Variable: v, Fixed: fixed, Sized: g.Sized})
			}
			of[at].add(value, g)
		}
		for _, w := range of {
			if len(w.Values) > 1 {
				w.complete()
				out = append(out, w)
			}
		}
	}
	return out
}

// add puts a point's transports into the sweep.
func (w *Sweep) add(value string, g *Group) {
	at := len(w.Values)
	w.Values = append(w.Values, value)
	for i := range g.Series {
		s := &g.Series[i]
		l := slices.IndexFunc(w.Lines, func(l SweepLine) bool { return l.Transport == s.Transport })
		if l < 0 {
			l = len(w.Lines)
			w.Lines = append(w.Lines, SweepLine{Transport: s.Transport})
		}
		w.Lines[l].extend(at)
		w.Lines[l].At[at] = s.SummariseReps()
	}
}

// complete gives every line an entry for every value.
func (w *Sweep) complete() {
	for i := range w.Lines {
		w.Lines[i].extend(len(w.Values) - 1)
	}
}

func (l *SweepLine) extend(at int) {
	for len(l.At) <= at {
		l.At = append(l.At, PointSummary{})
	}
}
