package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

// fewMessages is the number of messages of a flow below which its 99 % quantile is
// that of a single one.
const fewMessages = 100

// workloadWarnings looks at what the flows of one point carry.
func workloadWarnings(c *spec.Config) []string {
	var w []string
	for i := range c.Flows {
		f := &c.Flows[i]
		at := fmt.Sprintf("flows[%d]", i)
		if !f.Workload.HasMessages() {
			continue
		}
		if n := measuredMessages(c, f); n < fewMessages {
			what := "messages"
			if f.Workload.Kind == spec.Web {
				what = "pages"
			}
			w = append(w, fmt.Sprintf("%s: about %.0f %s a flow in the measured interval: the 99 %% quantile of a flow's delays is that of a single one", at, n, what))
		}
		if f.Transport.Family() == spec.FamilyUDP && c.Transports.UDP.Rate > 0 {
			w = append(w, fmt.Sprintf("transports.udp.rate: says nothing of %s, whose workload %s says itself when it sends", at, f.Workload.Kind))
		}
		if t := f.Workload.Transfers; len(t) > 0 {
			if n := f.Messages(c.Warmup, c.Duration); int(n) < len(t) {
				w = append(w, fmt.Sprintf("%s.workload.file: %d of the %d messages come after the flow's end, and are not sent", at, len(t)-int(n), len(t)))
			}
		}
	}
	return append(w, queueWarnings(c)...)
}

// measuredMessages is how many messages of a flow are expected to become ready in
// the measured interval.
func measuredMessages(c *spec.Config, f *spec.Flow) float64 {
	before := f.Messages(0, max(c.Warmup, 1))
	if f.Begin(c.Warmup) >= c.Warmup {
		before = 0
	}
	return f.Messages(c.Warmup, c.Duration) - before
}

// queueWarnings tells of variants that are settings of a queue of the MAC and hold
// for other transports in it, or for nobody.
func queueWarnings(c *spec.Config) []string {
	var w []string
	for i := range c.Flows {
		f := &c.Flows[i]
		changed := f.Transport.Alters()
		if len(changed) == 0 {
			continue
		}
		if wiredNodes(c) == len(c.Topology.AllNodes()) {
			w = append(w, fmt.Sprintf("flows[%d].transport: %s is as without %s: no node has a radio, and so no queue of the MAC", i, f.Transport, strings.Join(changed, " and ")))
			continue
		}
		for j := range c.Flows {
			g := &c.Flows[j]
			if g.Transport.Family() == f.Transport.Family() {
				continue
			}
			if g.Transport.Family() == spec.FamilyHop && f.DataQueue() == "vo" {
				w = append(w, fmt.Sprintf("flows[%d].transport: %s changes the queue mac.queues.vo, in which the control frames and micro-blocks of %s of flows[%d] travel: what it says (%s) holds for both; another dscp keeps them apart",
					i, f.Transport, g.Transport, j, strings.Join(changed, ", ")))
				continue
			}
			if g.Transport.External() && !g.Transport.HasDSCP() || g.DataQueue() != f.DataQueue() {
				continue
			}
			w = append(w, fmt.Sprintf("flows[%d].transport: %s changes the queue mac.queues.%s, in which %s of flows[%d] travels too: what it says (%s) holds for both; a dscp keeps them apart",
				i, f.Transport, f.DataQueue(), g.Transport, j, strings.Join(changed, ", ")))
		}
	}
	return w
}

// loadWarnings compares what flows offer with the rates of the links that they
// pass, in all points; of each link the worst, and in how many points it is found.
func (p *Plan) loadWarnings() []string {
	type finding struct {
		overload
		points int
	}
	var found []*finding
	note := func(o overload) {
		i := slices.IndexFunc(found, func(f *finding) bool { return f.name == o.name })
		if i < 0 {
			i = len(found)
			found = append(found, &finding{})
		}
		f := found[i]
		f.points++
		if o.share > f.share {
			f.overload = o
		}
	}
	for _, r := range p.Runs {
		if r.Repetition > 1 || !offers(r.Config()) {
			continue
		}
		s, err := r.Scenario()
		if err != nil {
			continue // Scenario says it where it matters
		}
		for _, o := range s.overloads() {
			note(o)
		}
	}
	var out []string
	for i, f := range found {
		if i == 5 {
			out = append(out, fmt.Sprintf("%d more links are offered more than they carry", len(found)-i))
			break
		}
		if f.points > 1 {
			f.text += fmt.Sprintf(" (the worst of %d points)", f.points)
		}
		out = append(out, f.text)
	}
	return out
}

// offers tells that some flow's load is given by the file.
func offers(c *spec.Config) bool {
	for i := range c.Flows {
		if offered(c, &c.Flows[i]) > 0 {
			return true
		}
	}
	return false
}

// offered is the mean rate that one flow of a group offers; 0 where it takes what
// it gets.
func offered(c *spec.Config, f *spec.Flow) vtime.BitRate {
	switch family := f.Transport.Family(); {
	case f.Workload.Kind == spec.Continual && family == spec.FamilyUDP:
		return c.Transports.UDP.Rate
	case (family == spec.FamilyIperf3 || family == spec.FamilyIperf2) && f.Transport.Variant() == "udp":
		return c.Transports.Iperf.Rate
	}
	return f.Offered()
}

// overload is a link that is offered more than it carries.
type overload struct {
	name  string
	share float64 // of its rate that is offered
	text  string
}

// overloads lists the wires' directions, and the air, that are offered more than
// their rate. Headers are left out, and so is what the medium access costs: the
// truth is worse. What travels over several hops takes as much air for each.
func (s *Scenario) overloads() []overload {
	c := s.Config()
	load := map[direction]vtime.BitRate{}
	var order []direction
	for _, f := range s.Flows {
		rate := offered(c, &c.Flows[f.Group])
		if f.Role == spec.Requests || rate == 0 {
			continue
		}
		for _, e := range s.links(f.Path) {
			d := of(e)
			if load[d] == 0 {
				order = append(order, d)
			}
			load[d] += rate
		}
	}
	var out []overload
	for _, d := range order {
		name, carries := "the air", c.Radio.Rate
		if d.pipe != topology.RadioEgress {
			p := &s.Topology.Pipes[d.pipe]
			carries, _ = s.inForce(&p.Config[d.end])
			name = fmt.Sprintf("topology.pipes[%d], from %s to %s", d.pipe, s.Topology.Nodes[p.Ends[d.end]].Name, s.Topology.Nodes[p.Ends[1-d.end]].Name)
		}
		if carries == 0 || load[d] <= carries {
			continue
		}
		text := fmt.Sprintf("%s: the flows offer %s, %.3g %% of its rate of %v: its queue fills, and what is measured are losses and full queues", name, decimal(float64(load[d]), "b/s"), 100*float64(load[d])/float64(carries), carries)
		if d.pipe == topology.RadioEgress {
			text = fmt.Sprintf("flows: they offer %s over all hops, %.3g %% of radio.rate, %v: where all nodes hear each other, queues fill, and what is measured are losses and full queues", decimal(float64(load[d]), "b/s"), 100*float64(load[d])/float64(carries), carries)
		}
		out = append(out, overload{name, float64(load[d]) / float64(carries), text})
	}
	return out
}
