package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/hopbed/hopbed/experiments/reference"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
	"github.com/hopbed/hopbed/reports/dataset"
)

// figuresOf are the figures of "paper" or "paper/figure" that have experiments.
func figuresOf(name string) (*reference.Paper, []*reference.Experiment, error) {
	id, figure, one := strings.Cut(name, "/")
	p, err := reference.Find(id)
	if err != nil {
		return nil, nil, err
	}
	var out []*reference.Experiment
	var known []string
	for i := range p.Experiments {
		e := &p.Experiments[i]
		if len(e.Runs) == 0 {
			continue
		}
		known = append(known, e.ID)
		if !one || e.ID == figure {
			out = append(out, e)
		}
	}
	if len(out) == 0 && one {
		return nil, nil, fmt.Errorf("%s has no figure %q that can be reproduced; it has %s", p.ID, figure, strings.Join(known, ", "))
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("no experiment is shipped for %s yet: its published values are known, and nothing can be run", p.ID)
	}
	return p, out, nil
}

// length says in which form a pack is run.
type length int

const (
	full  length = iota
	quick        // the experiments' own shortened variants
	short        // the pack's fixed short form, which is the same at every change of hopbed
)

// job is one campaign of a pack: figures that want the same one share it.
type job struct {
	experiment *spec.Experiment
	name       string
	figures    []*reference.Experiment
}

// jobsOf are the campaigns of figures on a back end. changes are the command
// line's, which have the last word.
func jobsOf(figures []*reference.Experiment, backend string, l length, changes []spec.Assignment) ([]*job, error) {
	var out []*job
	for _, f := range figures {
		for i := range f.Runs {
			r := &f.Runs[i]
			if l == short && len(r.Short) == 0 {
				continue
			}
			if at := slices.IndexFunc(out, func(j *job) bool { return j.name == r.Experiment }); at >= 0 {
				out[at].figures = append(out[at].figures, f)
				continue
			}
			e, err := read(r.Experiment)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", f.Paper.ID, f.ID, err)
			}
			if err := shape(e, r, backend, l, changes); err != nil {
				return nil, fmt.Errorf("%s/%s: %s: %w", f.Paper.ID, f.ID, r.Experiment, err)
			}
			out = append(out, &job{e, r.Experiment, []*reference.Experiment{f}})
		}
	}
	return out, nil
}

// shape gives an experiment of a pack the length that is asked for.
func shape(e *spec.Experiment, r *reference.Run, backend string, l length, changes []spec.Assignment) error {
	var sets []spec.Assignment
	switch n, ok := r.Repeat[backend]; {
	case l == quick:
		if err := e.ApplyQuick(); err != nil {
			return err
		}
	case l == short:
		for _, key := range slices.Sorted(maps.Keys(r.Short)) {
			sets = append(sets, spec.Assignment{Key: key, Value: r.Short[key]})
		}
	case ok:
		sets = append(sets, spec.Assignment{Key: "repeat", Value: strconv.Itoa(n)})
	}
	if sets = append(sets, changes...); len(sets) == 0 {
		return nil
	}
	return e.Set(sets...)
}

// verdicts judges every question of the figures by the campaign of its experiment,
// the newest of its name.
func verdicts(ctx context.Context, p *reference.Paper, figures []*reference.Experiment, sets []*dataset.Set) (*claims.Pack, error) {
	pack := &claims.Pack{Paper: p.ID, Title: fmt.Sprintf("%s (%s)", p.Title, p.Venue)}
	asks := map[int]bool{}
	of := map[string]*dataset.Set{}
	for _, s := range sets {
		of[s.Campaign.Name] = s
	}
	var found []claims.Finding
	for _, f := range figures {
		for _, q := range asked(f) {
			asks[q.Statement] = true
			set := of[q.experiment]
			if set == nil {
				q.NotTestable = fmt.Sprintf("its experiment, %s, was not run", q.experiment)
				found = append(found, claims.Finding{Claim: q.Claim, Verdict: claims.NotTested, Indication: claims.NotTested, Why: q.NotTestable})
				continue
			}
			one, err := claims.Judge(ctx, set, []claims.Claim{q.on(conditionsOf(&set.Campaign))})
			if err != nil {
				return nil, err
			}
			found = append(found, one...)
		}
	}
	for _, s := range p.Statements {
		if asks[s.Number] {
			pack.Statements = append(pack.Statements, claims.Statement{Number: s.Number, Text: s.Text})
		}
	}
	pack.Add(found)
	return pack, nil
}

// setsOf reads campaigns.
func setsOf(ctx context.Context, st *store.Store, campaigns []int64) ([]*dataset.Set, error) {
	var out []*dataset.Set
	for _, id := range campaigns {
		s, err := dataset.Load(ctx, st, id)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// listPapers names the papers that hopbed reproduce takes.
func listPapers(w io.Writer) error {
	papers, err := reference.Papers()
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "paper\tstatements\tfigures\ttitle")
	for _, p := range papers {
		var ids []string
		for i := range p.Experiments {
			if e := &p.Experiments[i]; len(e.Runs) > 0 {
				ids = append(ids, e.ID)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(tw, "%s\t%d\t%d\t%s\n", p.ID, len(p.Statements), len(ids), p.Title)
		}
	}
	return tw.Flush()
}
