package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

func dbFlag() cli.Flag {
	return &cli.StringFlag{Name: "db", Value: "results.db", Usage: "`FILE` of the database with the results"}
}

// openRead opens the database of the command line for reading.
func openRead(c *cli.Context) (*store.Store, error) {
	st, err := store.OpenRead(c.Context, c.String("db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database %s: hopbed run makes one, --db names another", c.String("db"))
	}
	return st, err
}

func resultsCommand() *cli.Command {
	return &cli.Command{
		Name:  "results",
		Usage: "list campaigns, or one campaign's points and runs",
		Flags: []cli.Flag{dbFlag(), &cli.Int64Flag{Name: "campaign", DefaultText: "all", Usage: "the campaign with this `ID`"}},
		Action: func(c *cli.Context) error {
			st, err := openRead(c)
			if err != nil {
				return err
			}
			defer st.Close()
			if c.IsSet("campaign") {
				if err := printPoints(c, st, c.Int64("campaign")); err != nil {
					return err
				}
				return printRuns(c, st, c.Int64("campaign"))
			}
			return printCampaigns(c, st)
		},
	}
}

func printCampaigns(c *cli.Context, st *store.Store) error {
	all, err := st.Campaigns(c.Context)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(c.App.Writer, "no campaign in %s yet\n", c.String("db"))
		return err
	}
	tw := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "campaign\tname\tback end\tcreated\tvalid runs\tattempts\tstatus\tnote")
	for _, k := range all {
		runs, err := st.Runs(c.Context, store.Filter{CampaignIDs: []int64{k.ID}})
		if err != nil {
			return err
		}
		valid := 0
		for _, r := range runs {
			if r.Valid {
				valid++
			}
		}
		note := clean(k.Note)
		if k.Status == store.CampaignKilled && note == "" {
			note = "go on with --resume"
		}
		if k.Quick {
			note = strings.TrimSpace("quick: not for conclusions. " + note)
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%d of %d\t%d\t%s\t%s\n", k.ID, clean(k.Name), k.Backend, k.Created, valid, k.Planned, len(runs), k.Status, note)
	}
	return tw.Flush()
}

// printPoints shows each point of a campaign over its valid runs, one row for
// each transport. Points whose flows are all sized have a table of their own:
// they are compared by completion time, since their goodput is their size over
// the measured interval however fast they were.
func printPoints(c *cli.Context, st *store.Store, campaign int64) error {
	set, err := dataset.Load(c.Context, st, campaign)
	if err != nil {
		return err
	}
	k, w := &set.Campaign, c.App.Writer
	title := k.Title
	if title == "" {
		title = k.Name
	}
	fmt.Fprintf(w, "campaign %d: %s, back end %s", k.ID, clean(title), dataset.BackendText(k.Backend))
	if k.Quick {
		fmt.Fprint(w, " — quick: not for conclusions")
	}
	fmt.Fprintln(w)
	var rates, times []pointRow
	var messages []messageRow
	mixed := false
	for i := range set.Groups {
		g := &set.Groups[i]
		mixed = mixed || g.Mixed
		for j := range g.Series {
			r := pointRow{name: pointName(g, &g.Series[j]), sum: g.Series[j].Summary(), attempts: g.Series[j].Attempts}
			if g.Sized {
				times = append(times, r)
			} else {
				rates = append(rates, r)
			}
			for _, m := range g.Series[j].Messages() {
				messages = append(messages, messageRow{r.name, m})
			}
		}
	}
	if err := printRates(w, rates); err != nil {
		return err
	}
	if len(rates) > 0 && len(times) > 0 {
		fmt.Fprintln(w)
	}
	if err := printTimes(w, times); err != nil {
		return err
	}
	if err := printMessages(w, messages); err != nil {
		return err
	}
	if mixed {
		fmt.Fprintln(w, "The transports of a point ran at once and shared the channel: no ratio between them.")
	}
	return nil
}

// pointRow is one transport of a point.
type pointRow struct {
	name     string
	sum      dataset.Summary
	attempts int
}

// runs says how many runs of the plan have a valid attempt, of those that were
// begun, and how many attempts that took.
func (r *pointRow) runs() string {
	return fmt.Sprintf("%d of %d\t%d", r.sum.Runs, r.sum.Runs+r.sum.LeftOut, r.attempts)
}

func pointName(g *dataset.Group, s *dataset.Series) string {
	if len(g.Condition) == 0 {
		return s.Transport
	}
	return g.Condition.String() + ", " + s.Transport
}

func printRates(w io.Writer, rows []pointRow) error {
	if len(rows) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "point\tvalid runs\tattempts\tflows\tQ1\tmedian\tQ3\taggregate\tbelow 10 kb/s")
	for _, r := range rows {
		if r.sum.Flows == 0 {
			fmt.Fprintf(tw, "%s\t%s\t0\t\t\t\t\t\n", clean(r.name), r.runs())
			continue
		}
		g, starved := r.sum.Goodput, ""
		if !math.IsNaN(r.sum.StarvedShare) { // of flows whose load is given it says nothing
			starved = fmt.Sprintf("%.0f %%", 100*r.sum.StarvedShare)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", clean(r.name), r.runs(), r.sum.Flows,
			rate(g.Q1), rate(g.Median), rate(g.Q3), rate(r.sum.AggregateBps), starved)
	}
	return tw.Flush()
}

func printTimes(w io.Writer, rows []pointRow) error {
	if len(rows) == 0 {
		return nil
	}
	open := 0
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "point\tvalid runs\tattempts\tflows\tcompleted\ttime Q1\tmedian\tQ3")
	for _, r := range rows {
		k := r.sum.Completion
		if k == nil {
			fmt.Fprintf(tw, "%s\t%s\t0\t\t\t\t\n", clean(r.name), r.runs())
			continue
		}
		open += k.Flows - k.Done
		cell := func(i int, s float64) string {
			if k.AtLeast[i] {
				return "≥ " + seconds(s)
			}
			return seconds(s)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d (%.0f %%)\t%s\t%s\t%s\n", clean(r.name), r.runs(), k.Flows, k.Done, 100*k.Share(),
			cell(0, k.Times.Q1), cell(1, k.Times.Median), cell(2, k.Times.Q3))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if open > 0 {
		fmt.Fprintln(w, "≥: rests on flows that had not completed; they count with the time until the end of their run.")
	}
	return nil
}

func seconds(s float64) string { return three(s) + " s" }

// pointOf names the point of a run: its parameters, and its transport when none
// of them does.
func pointOf(r *store.Run) string {
	if len(r.Params) == 0 {
		return r.Transport
	}
	for _, v := range r.Params {
		if v == r.Transport {
			return r.Params.String()
		}
	}
	return r.Params.String() + ", " + r.Transport
}

func printRuns(c *cli.Context, st *store.Store, campaign int64) error {
	runs, err := st.Runs(c.Context, store.Filter{CampaignIDs: []int64{campaign}})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer)
	tw := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "run\tpoint\trepetition\tattempt\tstatus\tlateness p99\treason")
	for _, r := range runs {
		late := ""
		if r.LatenessP99Us.OK {
			late = strconv.FormatFloat(r.LatenessP99Us.V, 'f', 0, 64) + " µs"
		}
		reason := strings.Join(append(append([]string(nil), r.InvalidReasons...), r.Error), "; ")
		fmt.Fprintf(tw, "%d\t%s\t%d\t%d\t%s\t%s\t%s\n", r.ID, clean(pointOf(&r)), r.Repetition, r.Attempt, r.Status, late, clean(strings.ReplaceAll(strings.Trim(reason, "; "), "\n", "; ")))
	}
	return tw.Flush()
}
