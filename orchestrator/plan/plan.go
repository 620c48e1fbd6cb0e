package plan

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Plan is an experiment's runs in the order in which they are carried out.
type Plan struct {
	Experiment *spec.Experiment
	Runs       []Run
}

// Run is one point of the matrix in one repetition.
type Run struct {
	Index      int // in the plan
	Point      spec.Point
	Repetition int    // from 1
	Seed       uint64 // of the repetition: the same for every point

	survey *etx.Survey // of the run's network, once it was measured
	real   bool        // the nodes are real ones: there is no radio model
}

// Scenario is a run with its network laid out.
type Scenario struct {
	Run
	Topology *topology.Topology
	Flows    []topology.Flow
}

// Build orders the runs of an experiment. All points of a repetition come
// before the next repetition: they meet the same placement and pairs (a paired
// comparison), close to each other in time, and a campaign that is cut short
// keeps whole repetitions.
func Build(e *spec.Experiment) *Plan {
	p := &Plan{Experiment: e}
	c := e.Base()
	for rep := 1; rep <= c.Repeat; rep++ {
		for _, pt := range e.Points() {
			p.Runs = append(p.Runs, Run{
				Index:      len(p.Runs),
				Point:      pt,
				Repetition: rep,
				Seed:       spec.RepetitionSeed(pt.Config.Seed, rep-1),
			})
		}
	}
	return p
}

// Config is the run's configuration.
func (r Run) Config() *spec.Config { return r.Point.Config }

// Length is the virtual time that the run lasts: warm-up and measured interval.
func (r Run) Length() vtime.Duration {
	c := r.Config()
	return c.Warmup + c.Duration
}

// Label names the run's point for people; a point without variables is named
// by its transport.
func (r Run) Label() string {
	if l := r.Point.Label(); l != "" {
		return l
	}
	return "transport=" + r.Transport()
}

// Transport is the transport of the run's flows, or "mixed" where they differ.
func (r Run) Transport() string {
	t := ""
	for _, f := range r.Config().Flows {
		switch {
		case t == "":
			t = string(f.Transport)
		case t != string(f.Transport):
			return "mixed"
		}
	}
	return t
}

// Scenario lays out the network of a run. The error names the run and what
// could not be met. Where the links are still to be measured (Unmeasured), the
// routes and with them the flows are those of the radio model.
func (r Run) Scenario() (*Scenario, error) {
	t, err := r.topology()
	if err != nil {
		return nil, fmt.Errorf("%s, repetition %d: %w", r.Label(), r.Repetition, err)
	}
	flows, err := t.Flows(r.Config(), r.Repetition-1)
	if err != nil {
		return nil, fmt.Errorf("%s, repetition %d: %w", r.Label(), r.Repetition, err)
	}
	s := &Scenario{Run: r, Topology: t, Flows: flows}
	if err := s.fillable(); err != nil {
		return nil, fmt.Errorf("%s, repetition %d: %w", r.Label(), r.Repetition, err)
	}
	return s, nil
}

// fillable refuses a flow that is to keep the queue before a wire full which has
// no rate, and so no queue: it would send as fast as the host can, which says
// nothing of the network.
func (s *Scenario) fillable() error {
	c := s.Config()
	for _, f := range s.Flows {
		g := &c.Flows[f.Group]
		if g.Transport.Family() != spec.FamilyUDP || g.Workload.Kind != spec.Continual || c.Transports.UDP.Rate > 0 || f.Hops() < 1 {
			continue
		}
		out, ok := s.Topology.Egress(f.Src, f.Path[1])
		if !ok || out.Pipe == topology.RadioEgress {
			continue
		}
		p := &s.Topology.Pipes[out.Pipe]
		if d := &p.Config[out.End]; d.Rate == 0 && d.Trace == nil {
			return fmt.Errorf("flows[%d]: udp without a rate keeps the queue at %s full, but topology.pipes[%d], from there to %s, has no rate and so no queue: set transports.udp.rate, or the rate and the queue of the pipe",
				f.Group, s.Topology.Nodes[f.Src].Name, p.ID, s.Topology.Nodes[p.Ends[1-out.End]].Name)
		}
	}
	return nil
}

// Length is the virtual time of all runs together.
func (p *Plan) Length() vtime.Duration {
	var d vtime.Duration
	for _, r := range p.Runs {
		d += r.Length()
	}
	return d
}

// WallTime estimates how long the plan takes where virtual time is real time:
// its length, measuring the links before it, and, for each run, bringing the nodes
// up and down.
func (p *Plan) WallTime(perRun time.Duration) time.Duration {
	networks, measuring := p.SurveyTime()
	return p.Length().Std() + measuring.Std() + time.Duration(len(p.Runs)+networks)*perRun
}
