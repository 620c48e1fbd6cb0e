package plan

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Warnings says what a careful colleague would say about a plan before it is
// started. They are no errors: the experiment means what it says.
func (p *Plan) Warnings() []string {
	var w []string
	c := p.Experiment.Base()
	if c.Repeat < 5 && !p.Experiment.Quick {
		w = append(w, fmt.Sprintf("repeat: %d: fewer than 5 repetitions give no interval that can be trusted", c.Repeat))
	}
	if p.Experiment.Quick {
		w = append(w, "quick variant: not for conclusions")
	}
	for _, pt := range p.Experiment.Points() {
		w = append(w, pointWarnings(pt.Config)...)
	}
	w = append(w, pipeWarnings(p.Experiment.Points())...)
	w = append(w, p.windowWarnings()...)
	w = append(w, p.loadWarnings()...)
	w = append(w, p.changeWarnings()...)
	if len(p.Runs) > 0 {
		if total := p.WallTime(0); total > 24*time.Hour {
			w = append(w, fmt.Sprintf("the plan needs %v of real time on netns: consider fewer repetitions, or --backend sim", total.Round(time.Hour)))
		}
	}
	return unique(w)
}

func pointWarnings(c *spec.Config) []string {
	var w []string
	flows := 0
	for _, g := range c.Flows {
		n := g.Count
		if !g.Pairs.Random() {
			n = len(g.Pairs.Listed)
		}
		flows += n
		switch g.Transport.Family() {
		case spec.FamilyHop:
			w = append(w, hopWarnings(c, &g, flows)...)
		case spec.FamilyBundle:
			w = append(w, bundleWarnings(c, &g, flows)...)
		}
	}
	w = append(w, flowWarnings(c)...)
	w = append(w, workloadWarnings(c)...)
	w = append(w, unlimited(c)...)
	w = append(w, surveyWarnings(c)...)
	if c.Warmup == 0 && c.Duration > 5*vtime.Second {
		w = append(w, "warmup: 0s: slow start and set-up are part of the measured interval")
	}
	if c.Sample > c.Duration/10 {
		w = append(w, fmt.Sprintf("sample: %v: fewer than 10 samples in the measured interval of %v", c.Sample, c.Duration))
	}
	return w
}

// bundleWarnings compares the size of a bundle with what a flow can hope to carry: it
// arrives whole or not at all.
func bundleWarnings(c *spec.Config, g *spec.Flow, flows int) []string {
	share := bottleneck(c) / vtime.BitRate(max(1, flows))
	if share <= 0 || g.Workload.Kind != spec.Continual {
		return nil
	}
	t := share.TxTime(c.Transports.Bundle.Bundle)
	if t <= c.Duration/4 {
		return nil
	}
	return []string{fmt.Sprintf("transports.bundle.bundle: %v takes %.0f s a hop at an equal share of %v, a large part of the measured %v, and only whole bundles are counted: use smaller bundles or a longer run for conclusions",
		c.Transports.Bundle.Bundle, t.Seconds(), share, c.Duration)}
}

// hopWarnings compares the block size with what a flow can hope to carry: a
// block that takes a large part of the run makes goodput a matter of luck.
func hopWarnings(c *spec.Config, g *spec.Flow, flows int) []string {
	var w []string
	share := bottleneck(c) / vtime.BitRate(max(1, flows))
	if share > 0 && (g.Workload.Kind == spec.Continual || g.Workload.Kind == spec.Sized) {
		if t := share.TxTime(c.Transports.Hop.Block); t > c.Duration/4 {
			w = append(w, fmt.Sprintf("transports.hop.block: %v takes %.0f s at an equal share of %v, a large part of the measured %v: partial blocks are counted, but use a smaller block or a longer run for conclusions",
				c.Transports.Hop.Block, t.Seconds(), share, c.Duration))
		}
	}
	w = append(w, hopOverWires(c)...)
	if len(c.Topology.AllNodes()) == wiredNodes(c) {
		return w // no radio, no medium access
	}
	if bk := c.MAC.Queues.BK; bk.Ack != spec.AckNone {
		w = append(w, "mac.queues.bk.ack: Hop's data is sent with link-layer acknowledgements: the paper's setting is none")
	} else if bk.TXOP == nil || *bk.TXOP == 0 {
		w = append(w, "mac.queues.bk.txop: Hop's data is sent without bursts: the paper's setting is 8160us")
	}
	return w
}

func wiredNodes(c *spec.Config) int {
	n := 0
	for _, k := range c.Topology.AllNodes() {
		if !k.Radio {
			n++
		}
	}
	return n
}

func unique(in []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
