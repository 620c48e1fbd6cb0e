package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/run"
)

// measureETX measures the links of an experiment's network, or of a lab's.
func measureETX(c *cli.Context, stderr *os.File) (err error) {
	e, err := toMeasure(c)
	if err != nil {
		return err
	}
	name := c.String("backend")
	switch {
	case name != "":
	case c.IsSet("inventory") || e.Base().Topology.Inventory != "":
		name = site.Name
	default:
		name = defaultBackend
	}
	r, err := measuredRun(c, planOn(name, plan.Build(e)))
	if err != nil {
		return err
	}
	survivePipes()
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	endOrderly(ctx)
	obs := newObserver(c.Bool("quiet"), false, stderr, &progressWriter{stderr, stop})
	o := &opening{warn: obs.Warn}
	if name == site.Name {
		if o.lab, err = openLab(c, e, obs.Warn); err != nil {
			return err
		}
	}
	on, shut, err := openBackends(ctx, []string{name}, o)
	defer func() { err = errors.Join(err, shut()) }()
	if err != nil {
		return err
	}
	if len(on) == 0 {
		return usagef("--backend %s: there is no such back end", name)
	}
	one := &plan.Plan{Experiment: e, Runs: []plan.Run{*r}}
	if err := on[0].Preflight(ctx, one); err != nil {
		return err
	}
	s, survey, err := measureOnce(ctx, on[0], r, obs)
	if err != nil {
		return err
	}
	return printSurvey(c.App.Writer, r, s, survey)
}

// toMeasure is the experiment whose network is measured: that of the command line,
// or one of nothing but an inventory.
func toMeasure(c *cli.Context) (*spec.Experiment, error) {
	measured := spec.Assignment{Key: "routing.kind", Value: string(spec.RoutingMeasured)}
	if c.Args().Len() > 0 || !c.IsSet("inventory") {
		return load(c, measured)
	}
	path, err := filepath.Abs(c.String("inventory"))
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("hopbed: 1\nname: links\ntopology: {inventory: %q}\nrouting: {kind: measured}\nflows: [{count: 1, pairs: random, transport: hop}]\nduration: 1s\n", path)
	e, err := spec.ParseFiles("--inventory "+c.String("inventory"), []byte(text), spec.Beside("."))
	if err != nil {
		return nil, err
	}
	var sets []spec.Assignment
	for _, s := range c.StringSlice("set") {
		a, err := spec.ParseAssignment(s)
		if err != nil {
			return nil, &exit{exitUsage, err}
		}
		sets = append(sets, a)
	}
	return e, e.Set(sets...)
}

// measuredRun is the first run of the repetition that was asked for.
func measuredRun(c *cli.Context, p *plan.Plan) (*plan.Run, error) {
	for i := range p.Runs {
		if r := &p.Runs[i]; r.Repetition == c.Int("repetition") {
			return r, nil
		}
	}
	return nil, usagef("--repetition %d: the experiment has the repetitions 1 to %d", c.Int("repetition"), p.Experiment.Base().Repeat)
}

// measureOnce measures a run's network, again where the host spoiled it.
func measureOnce(ctx context.Context, b backend.Backend, r *plan.Run, obs run.Observer) (*plan.Scenario, *etx.Survey, error) {
	prober, ok := b.(backend.Prober)
	if !ok {
		return nil, nil, &backend.ErrUnsupported{Backend: b.Name(), What: "--measure", Because: "it cannot measure links", Do: "use another one"}
	}
	s, err := r.Probing()
	if err != nil {
		return nil, nil, err
	}
	follow, _ := obs.(run.SurveyObserver)
	info := run.DescribeSurvey(plan.Network{Key: r.NetworkKey(), Run: *r, Runs: 1}, 1, 1)
	tell := backend.Quiet
	if follow != nil {
		tell = follow.SurveyProgress
	}
	for {
		if follow != nil {
			follow.SurveyStarted(info)
		}
		survey, err := prober.Probe(ctx, s, tell)
		if err == nil {
			out, err := run.SumUp(*r, survey)
			if err == nil && follow != nil {
				follow.SurveyDone(info, out)
			}
			return s, survey, err
		}
		var spoiled *backend.Spoiled
		if !errors.As(err, &spoiled) || ctx.Err() != nil || info.Attempt > r.Config().Limits.Reruns {
			return nil, nil, err
		}
		obs.Warn(fmt.Sprintf("the links are measured again: %v", err))
		info.Attempt++
	}
}

// printSurvey shows every pair of nodes of which one heard the other, with what the
// radio model, where there is one, says of the same pair.
func printSurvey(w io.Writer, r *plan.Run, s *plan.Scenario, survey *etx.Survey) error {
	pairs, err := plan.Rate(r.Config(), survey)
	if err != nil {
		return err
	}
	names := func(i int) string { return clean(s.Topology.Nodes[i].Name) }
	model, err := modelOf(r)
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	head := "from\tto\tthere\t95 %\tback\t95 %\tETX\tat least 90 %"
	if model != nil {
		head += "\tmodel there\tback\tETX"
	}
	fmt.Fprintln(tw, head+"\t")
	for i := range pairs {
		p := &pairs[i]
		fmt.Fprintf(tw, "%s\t%s\t%.3f\t%s\t%.3f\t%s\t%s\t%s", names(p.There.From), names(p.There.To), p.There.Delivery, interval(&p.There),
			p.Back.Delivery, interval(&p.Back), etxText(p.ETX), etxText(p.Low)+"–"+etxText(p.High))
		if model != nil {
			m := model[[2]int{p.There.From, p.There.To}]
			back := model[[2]int{p.There.To, p.There.From}]
			fmt.Fprintf(tw, "\t%.3f\t%.3f\t%s", m.Delivery, back.Delivery, etxText(m.ETX))
		}
		fmt.Fprintf(tw, "\t%s\n", remark(p))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	c := r.Config()
	fmt.Fprintf(w, "\n%d probes of %v at %v from each node, one every %v\n", survey.Probes, c.Routing.Size, c.ProbeRate(), c.Routing.Period)
	if model != nil {
		compare(w, s, survey, pairs, model)
	}
	return nil
}

// modelOf are the links of the radio model, nil where there is none.
func modelOf(r *plan.Run) (map[[2]int]topology.Link, error) {
	n, err := r.Network()
	if err != nil {
		return nil, err
	}
	if n.Topology.Channel == nil {
		return nil, nil
	}
	out := map[[2]int]topology.Link{}
	for _, l := range n.Topology.Links {
		out[[2]int{l.From, l.To}] = l
	}
	return out, nil
}

func interval(r *etx.Rated) string { return fmt.Sprintf("%.2f–%.2f", r.Low, r.High) }

func etxText(x float64) string {
	if math.IsInf(x, 1) {
		return "∞"
	}
	if x == 0 {
		return "–" // no such link
	}
	if x >= 100 {
		return ">99"
	}
	return fmt.Sprintf("%.2f", x)
}

func remark(p *etx.Pair) string {
	switch {
	case p.OneWay():
		return "one-way"
	case !p.There.Established || !p.Back.Established:
		return "comes and goes"
	case !p.Usable:
		return "too weak"
	case p.Asymmetric():
		return "asymmetric"
	}
	return ""
}

// compare sets what was measured beside the model, in numbers: of the probes
// themselves, which tells collisions and errors of measuring, and of data frames,
// which are longer and faster.
func compare(w io.Writer, s *plan.Scenario, survey *etx.Survey, pairs []etx.Pair, model map[[2]int]topology.Link) {
	t, c := s.Topology, s.Config()
	directions, inside, bias := 0, 0, 0.0
	links, measured, modelled := 0, 0.0, 0.0
	for i := range pairs {
		p := &pairs[i]
		for _, d := range []*etx.Rated{&p.There, &p.Back} {
			want := t.Channel.Delivery(d.From, d.To, c.Routing.Size, t.MAC.BasicRate) * (1 - float64(c.Radio.Drop))
			directions++
			bias += d.Delivery - want
			if want >= d.Low && want <= d.High {
				inside++
			}
		}
		if m := model[[2]int{p.There.From, p.There.To}]; p.Usable && m.Usable {
			links++
			measured += p.ETX
			modelled += m.ETX
		}
	}
	if directions > 0 {
		fmt.Fprintf(w, "the model's delivery of such probes lies within the interval of %d of %d directions; measured less model, on average: %+.3f\n", inside, directions, bias/float64(directions))
	}
	if links > 0 {
		fmt.Fprintf(w, "mean ETX of the %d links that both take: %.3f measured, %.3f of the model, which is of data frames of %v at %v\n",
			links, measured/float64(links), modelled/float64(links), topology.DataFrame, c.Radio.Rate)
	}
}
