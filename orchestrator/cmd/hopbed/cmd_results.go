package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

func dbFlag() cli.Flag {
	return &cli.StringFlag{Name: "db", Value: "results.db", Usage: "database with the results, `FILE`"}
}

// openRead opens the database of the command line for reading.
func openRead(c *cli.Context) (*store.Store, error) {
	st, err := store.OpenRead(c.Context, c.String("db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database %s: hopbed run makes one, --db names another", c.String("db"))
	}
	return st, err
}

// summarise prints a campaign's result after its last run.
func summarise(c *cli.Context, st *store.Store, sum run.Summary) error {
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(map[string]any{
			"campaign": sum.CampaignID, "interrupted": sum.Interrupted, "complete": sum.Complete, "invalid": sum.Invalid, "failed": sum.Failed, "wall_s": sum.Wall.Seconds(),
		})
	}
	return printPoints(c, st, sum.CampaignID)
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
		g := r.sum.Goodput
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%.0f %%\n", clean(r.name), r.runs(), r.sum.Flows,
			rate(g.Q1), rate(g.Median), rate(g.Q3), rate(r.sum.AggregateBps), 100*r.sum.StarvedShare)
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

func seconds(s float64) string { return fmt.Sprintf("%.3g s", s) }

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

func showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show one run: its flows, nodes and what happened",
		ArgsUsage: "RUN",
		Flags:     []cli.Flag{dbFlag()},
		Action: func(c *cli.Context) error {
			id, err := strconv.ParseInt(c.Args().First(), 10, 64)
			if err != nil || c.Args().Len() != 1 {
				return usagef("which run? Give its number: hopbed results --campaign ID lists them")
			}
			st, err := openRead(c)
			if err != nil {
				return err
			}
			defer st.Close()
			return showRun(c, st, id)
		},
	}
}

func showRun(c *cli.Context, st *store.Store, id int64) error {
	r, err := st.Run(c.Context, id)
	if err != nil {
		return err
	}
	w := c.App.Writer
	fmt.Fprintf(w, "run %d of campaign %d: %s, repetition %d, attempt %d, back end %s, seed %d\n", r.ID, r.CampaignID, clean(r.Transport), r.Repetition, r.Attempt, dataset.BackendText(r.Backend), r.Seed)
	measured := "measured"
	if r.Status == store.RunFailed {
		measured = "planned"
	}
	fmt.Fprintf(w, "status %s, %.3g s %s after %.3g s, wall %.3g s, started %s\n", r.Status, r.DurationS, measured, r.WarmupS, r.WallS, r.Started)
	if r.LatenessP99Us.OK {
		fmt.Fprintf(w, "medium: lateness p50 %.0f µs, p99 %.0f µs, max %.0f µs, priority %s, CPU %.1f s; agents' CPU %.1f s\n",
			r.LatenessP50Us.V, r.LatenessP99Us.V, r.LatenessMaxUs.V, r.Priority, r.CPUS.V, r.AgentS.V)
	}
	if len(r.Params) > 0 {
		fmt.Fprintf(w, "parameters: %s\n", clean(r.Params.String()))
	}
	if r.TraceHash != "" {
		fmt.Fprintf(w, "trace hash %s\n", r.TraceHash)
	}
	for _, t := range r.InvalidReasons {
		fmt.Fprintf(w, "invalid because: %s\n", clean(t))
	}
	if r.Error != "" {
		fmt.Fprintf(w, "failed: %s\n", clean2(r.Error))
	}
	for _, t := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", clean(t))
	}
	nodes, err := st.Nodes(c.Context, store.Filter{RunIDs: []int64{id}})
	if err != nil {
		return err
	}
	name := func(i int) string {
		if i >= 0 && i < len(nodes) {
			return clean(nodes[i].Name)
		}
		return strconv.Itoa(i)
	}
	if err := showFlows(c, w, st, r, name); err != nil {
		return err
	}
	if err := showNodes(c, w, st, id, name); err != nil {
		return err
	}
	return showEvents(c, w, st, id, name)
}

func showFlows(c *cli.Context, w io.Writer, st *store.Store, r *store.Run, name func(int) string) error {
	flows, err := st.Flows(c.Context, store.Filter{RunIDs: []int64{r.ID}})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "flow\ttransport\tpath\thops\tgoodput\tcompleted after\tset-up\tretransmitted\tblocks\tstatus")
	for _, f := range flows {
		var path []string
		for _, n := range f.Path {
			path = append(path, name(n))
		}
		good, took, setup, retr, blocks := "", "", "", "", ""
		switch {
		case !f.GoodputBps.OK:
		case f.Size.OK: // its goodput is its size over the interval, and says nothing
			if t, done := dataset.CompletionTime(r, &f); done {
				took = seconds(t)
			} else {
				took = fmt.Sprintf("not in %.3g s: %d of %d B", t, f.Bytes, f.Size.V)
			}
		default:
			good = rate(f.GoodputBps.V)
		}
		if f.SetupS.OK {
			setup = fmt.Sprintf("%.3f s", f.SetupS.V)
		}
		if f.SentBytes.OK && f.SentBytes.V > 0 {
			retr = fmt.Sprintf("%.1f %%", 100*float64(f.RetransBytes.V)/float64(f.SentBytes.V))
		}
		if f.Blocks.OK {
			blocks = strconv.FormatInt(f.Blocks.V, 10)
		}
		tp := f.Transport
		if f.CC != "" && !strings.HasSuffix(tp, "/"+f.CC) {
			tp += " (" + f.CC + ")"
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Flow, clean(tp), strings.Join(path, " "), f.Hops, good, took, setup, retr, blocks, strings.TrimSpace(string(f.Status)+" "+clean(f.Error)))
	}
	return tw.Flush()
}

func showNodes(c *cli.Context, w io.Writer, st *store.Store, id int64, name func(int) string) error {
	stats, err := st.NodeStats(c.Context, store.Filter{RunIDs: []int64{id}})
	if err != nil || len(stats) == 0 {
		return err
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "node\tairtime sent\tattempts\tretries\tcollisions\tdropped: queue\tretry limit\tmean queue")
	for _, s := range stats {
		if s.AC != store.ACAll {
			continue
		}
		fmt.Fprintf(tw, "%s\t%.2f s\t%d\t%d\t%d\t%d\t%d\t%.1f\n", name(s.Node), float64(s.AirtimeTxUs.V)/1e6,
			s.Attempts.V, s.Retries.V, s.Collisions.V, s.DropsQueue.V, s.DropsRetry.V, s.QueueMeanPackets.V)
	}
	return tw.Flush()
}

func showEvents(c *cli.Context, w io.Writer, st *store.Store, id int64, name func(int) string) error {
	events, err := st.Events(c.Context, store.Filter{RunIDs: []int64{id}})
	if err != nil || len(events) == 0 {
		return err
	}
	fmt.Fprintln(w)
	const most = 40
	for i, e := range events {
		if i == most {
			fmt.Fprintf(w, "… %d more events: hopbed export --table events\n", len(events)-most)
			break
		}
		at, where := "", ""
		if e.TUs.OK {
			at = fmt.Sprintf("%.3f s ", float64(e.TUs.V)/1e6)
		}
		if e.Node.OK {
			where = name(int(e.Node.V)) + " "
		}
		if e.Flow.OK {
			where += fmt.Sprintf("flow %d ", e.Flow.V)
		}
		fmt.Fprintf(w, "%s%s%s %s\n", at, where, e.Kind, clean(e.Text))
	}
	return nil
}
