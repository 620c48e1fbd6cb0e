package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

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
	fmt.Fprintf(w, "status %s, %s %s after %s, wall %s, started %s\n", r.Status, seconds(r.DurationS), measured, seconds(r.WarmupS), seconds(r.WallS), r.Started)
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
	if err := showPipes(c, w, st, r, name); err != nil {
		return err
	}
	showMade(w, r, nodes)
	if err := showArtifacts(c, w, st, id); err != nil {
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
				took = fmt.Sprintf("not in %s: %d of %d B", seconds(t), f.Bytes, f.Size.V)
			}
		default:
			good = rate(f.GoodputBps.V)
		}
		if f.SetupS.OK {
			setup = fmt.Sprintf("%.3f s", f.SetupS.V)
		}
		if f.SentBytes.OK && f.SentBytes.V > 0 && f.RetransBytes.OK {
			retr = fmt.Sprintf("%.1f %%", 100*float64(f.RetransBytes.V)/float64(f.SentBytes.V))
		}
		if f.Blocks.OK {
			blocks = strconv.FormatInt(f.Blocks.V, 10)
		}
		tp := f.Transport
		if f.CC != "" && !strings.HasSuffix(tp, "/"+f.CC) {
			tp += " (" + f.CC + ")"
		}
		if f.Role == store.RoleRequests {
			tp += fmt.Sprintf(", requests of flow %d", f.Peer.V)
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Flow, clean(tp), strings.Join(path, " "), f.Hops, good, took, setup, retr, blocks, strings.TrimSpace(string(f.Status)+" "+clean(f.Error)))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return showMessages(w, flows)
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

// showPipes shows both directions of the wired links: what they were told to be,
// and what they did in the measured interval.
func showPipes(c *cli.Context, w io.Writer, st *store.Store, r *store.Run, name func(int) string) error {
	pipes, err := st.Pipes(c.Context, store.Filter{RunIDs: []int64{r.ID}})
	if err != nil || len(pipes) == 0 {
		return err
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "wired link\tinterface\trate\tdelay\tqueue limit\tloss\tentered\tdelivered\tlost\tdropped: queue\tduplicated\theld back\tbusy\tqueue: mean\tmax\tsetting")
	for _, p := range pipes {
		rated, delay, loss, busy, mean := "no limit", "", "", "", ""
		switch {
		case p.RateBps.OK:
			rated = rate(float64(p.RateBps.V))
		case strings.Contains(p.Setting, "trace"):
			rated = "by trace"
		}
		if p.DelayUs.OK {
			delay = fmt.Sprintf("%g ms", float64(p.DelayUs.V)/1000)
		}
		if p.Loss.OK {
			loss = fmt.Sprintf("%.3g %%", 100*p.Loss.V)
		}
		if p.BusyUs.OK && r.DurationS > 0 {
			busy = fmt.Sprintf("%.1f %%", float64(p.BusyUs.V)/1e4/r.DurationS)
		}
		if p.QueueMeanPackets.OK {
			mean = fmt.Sprintf("%.1f", p.QueueMeanPackets.V)
		}
		fmt.Fprintf(tw, "%s → %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name(p.Src), name(p.Dst), clean(p.Interface),
			rated, delay, queueLimit(&p), loss, counted(p.Entered), counted(p.Delivered), counted(p.Lost), counted(p.DropsQueue),
			counted(p.Duplicates), counted(p.HeldBack), busy, mean, counted(p.QueueMaxPackets), clean(p.Setting))
	}
	return tw.Flush()
}

func queueLimit(p *store.Pipe) string {
	var limits []string
	if p.QueuePackets.OK {
		limits = append(limits, fmt.Sprintf("%d packets", p.QueuePackets.V))
	}
	if p.QueueBytes.OK {
		limits = append(limits, fmt.Sprintf("%d B", p.QueueBytes.V))
	}
	if len(limits) == 0 {
		return "none"
	}
	return strings.Join(limits, ", ")
}

// counted is a count, "" for one that is not known.
func counted(n store.Opt[int64]) string {
	if !n.OK {
		return ""
	}
	return strconv.FormatInt(n.V, 10)
}

// showArtifacts lists the files that belong to the run, such as captures.
func showArtifacts(c *cli.Context, w io.Writer, st *store.Store, id int64) error {
	files, err := st.Artifacts(c.Context, store.Filter{RunIDs: []int64{id}})
	if err != nil || len(files) == 0 {
		return err
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "file\tkind\tbytes\tsha256")
	for _, f := range files {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\n", clean(f.Path), clean(f.Kind), f.Bytes, clean(f.SHA256))
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
