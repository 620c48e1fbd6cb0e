package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// conclude writes what the campaigns gave, the report first: standard output may
// be closed. The exit status is that of the worst of them. failure is what went
// wrong beside the runs.
func conclude(c *cli.Context, st *store.Store, sums []run.Summary, failure error, stderr *os.File) error {
	// What is finished is worth its summary even when the user stopped the rest.
	c.Context = context.WithoutCancel(c.Context)
	total := addUp(sums)
	if total.Interrupted {
		err := errors.Join(errors.New("interrupted: what is finished is stored; go on with the same command and --resume"), failure)
		if c.Bool("json") {
			err = errors.Join(err, summarise(c, st, sums))
		}
		return &exit{exitInterrupted, err}
	}
	if failure != nil && len(sums) < 2 {
		return failure
	}
	errs := []error{failure}
	if r := c.String("report"); r != "" {
		if err := writeReport(c.Context, st, campaigns(sums), r); err != nil {
			errs = append(errs, err)
		} else if c.Bool("json") {
			newJSON(stderr).emit("report", r)
		} else if !c.Bool("quiet") {
			fmt.Fprintln(stderr, "report:", r)
		}
	}
	errs = append(errs, summarise(c, st, sums), unkept(total.Unkept))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !total.OK() {
		return &exit{exitNotValid, errors.New(shortfalls(sums))}
	}
	return nil
}

// addUp sums the campaigns of one command up.
func addUp(sums []run.Summary) run.Summary {
	var total run.Summary
	for _, s := range sums {
		total.Complete += s.Complete
		total.Invalid += s.Invalid
		total.Failed += s.Failed
		total.Unkept += s.Unkept
		total.Wall += s.Wall
		total.Interrupted = total.Interrupted || s.Interrupted
	}
	return total
}

func campaigns(sums []run.Summary) []int64 {
	var ids []int64
	for _, s := range sums {
		ids = append(ids, s.CampaignID)
	}
	return ids
}

// summarise prints the campaigns' results after the last run.
func summarise(c *cli.Context, st *store.Store, sums []run.Summary) error {
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(summaryJSON(sums))
	}
	for i, s := range sums {
		if i > 0 {
			fmt.Fprintln(c.App.Writer)
		}
		if err := printPoints(c, st, s.CampaignID); err != nil {
			return err
		}
	}
	return printAims(c, st, campaigns(sums))
}

// summaryJSON is one object for any number of campaigns: the totals, and each
// campaign with its back end. The campaign and back end of a single one stand
// beside the totals as well.
func summaryJSON(sums []run.Summary) map[string]any {
	one := func(s run.Summary) map[string]any {
		return map[string]any{"interrupted": s.Interrupted, "complete": s.Complete, "invalid": s.Invalid, "failed": s.Failed, "files_incomplete": s.Unkept, "wall_s": s.Wall.Seconds()}
	}
	out := one(addUp(sums))
	each := []map[string]any{}
	for _, s := range sums {
		m := one(s)
		m["campaign"], m["backend"] = s.CampaignID, s.Backend
		each = append(each, m)
	}
	out["campaigns"] = each
	if len(sums) == 1 {
		out["campaign"], out["backend"] = sums[0].CampaignID, sums[0].Backend
	}
	return out
}

// shortfalls says which campaigns lack valid results.
func shortfalls(sums []run.Summary) string {
	var out []string
	for _, s := range sums {
		if s.OK() {
			continue
		}
		text := fmt.Sprintf("%s: hopbed results --campaign %d and the report say why", shortfall(s), s.CampaignID)
		if len(sums) > 1 {
			text = s.Backend + ": " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// shortfall says how many runs gave no valid result.
func shortfall(sum run.Summary) string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 run " + what
		}
		return fmt.Sprintf("%d runs %s", n, what)
	}
	switch {
	case sum.Failed == 0:
		return count(sum.Invalid, "invalid")
	case sum.Invalid == 0:
		return count(sum.Failed, "failed")
	}
	return count(sum.Invalid, "invalid") + ", " + count(sum.Failed, "failed")
}
