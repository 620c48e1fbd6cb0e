package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Network is a network whose radio links are to be measured before the first run.
type Network struct {
	// Key names it: what the links depend on, and nothing else.
	Key string
	// Run is the first that meets it, Runs how many do.
	Run  Run
	Runs int
}

// Measured tells that the run's routes go over measured links.
func (r Run) Measured() bool { return r.Config().Routing.Kind == spec.RoutingMeasured }

// Real tells that the run is one of real nodes, which have no radio model.
func (r Run) Real() bool { return r.real }

// Unmeasured tells that the run's links are still to be measured.
func (r Run) Unmeasured() bool { return r.Measured() && r.survey == nil }

// Surveyed returns what was measured of the run's network; nil before, and where
// nothing is.
func (r Run) Surveyed() *etx.Survey { return r.survey }

// Surveys returns the networks that the plan wants measured, in the order in which
// its runs meet them. Runs that differ in nothing that a link depends on share
// one: they are to be compared over the same routes.
func (p *Plan) Surveys() []Network {
	var out []Network
	for _, r := range p.Runs {
		if !r.Measured() {
			continue
		}
		key := r.NetworkKey()
		i := slices.IndexFunc(out, func(n Network) bool { return n.Key == key })
		if i < 0 {
			i = len(out)
			out = append(out, Network{Key: key, Run: r})
		}
		out[i].Runs++
	}
	return out
}

// NetworkKey names the network of a run by what its radio links depend on.
func (r Run) NetworkKey() string {
	c := r.Config()
	on := struct {
		Topology   spec.Topology
		Radio      spec.Radio
		Seed       uint64
		Repetition int
		Probes     int
		Period     vtime.Duration
		Size       vtime.Bytes
		Rate       vtime.BitRate
	}{c.Topology, c.Radio, c.Seed, 0, c.Routing.Probes, c.Routing.Period, c.Routing.Size, c.ProbeRate()}
	// Wires are not measured, and what happens in the course of a run comes later.
	on.Topology.Pipes, on.Topology.Changes = nil, nil
	on.Topology.Nodes = slices.Clone(on.Topology.Nodes)
	for i := range on.Topology.Nodes {
		n := &on.Topology.Nodes[i]
		n.Bridge, n.Queue, n.WindowRewriting = false, nil, nil
	}
	if g := c.Topology.Generate; g != nil && g.Vary == spec.VaryRepetition {
		on.Repetition = r.Repetition
	}
	if r.real {
		// What only the model looks at makes no other network of real nodes: neither
		// places nor repetitions, and a campaign goes over the same routes throughout.
		on.Topology.Generate, on.Topology.Nodes = nil, slices.Clone(c.Topology.AllNodes())
		for i, n := range on.Topology.Nodes {
			on.Topology.Nodes[i] = spec.Node{Name: n.Name, Radio: n.Radio}
		}
		on.Seed, on.Repetition = 0, 0
		on.Radio.Noise, on.Radio.Sense, on.Radio.Capture, on.Radio.PathLoss = nil, nil, nil, spec.PathLoss{}
	}
	b, err := json.Marshal(on)
	if err != nil {
		panic(fmt.Sprintf("plan: the network of %s: %v", r.Label(), err)) // plain data
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// WithLinks returns the plan with what was measured, by the networks' keys. Runs
// whose network is not there stay unmeasured.
func (p *Plan) WithLinks(surveys map[string]*etx.Survey) *Plan {
	return p.change(func(r *Run) {
		if r.Measured() {
			r.survey = surveys[r.NetworkKey()]
		}
	})
}

// Real returns the plan for nodes that have no radio model.
func (p *Plan) Real() *Plan { return p.change(func(r *Run) { r.real = true }) }

// Measure returns the plan with measured routing in place of any other.
func (p *Plan) Measure() *Plan {
	configs := map[*spec.Config]*spec.Config{}
	return p.change(func(r *Run) {
		from := r.Point.Config
		if configs[from] == nil {
			c := *from
			c.Routing.Kind = spec.RoutingMeasured
			configs[from] = &c
		}
		r.Point.Config = configs[from]
	})
}

func (p *Plan) change(f func(*Run)) *Plan {
	q := &Plan{Experiment: p.Experiment, Runs: slices.Clone(p.Runs)}
	for i := range q.Runs {
		f(&q.Runs[i])
	}
	return q
}

// Network lays out the nodes of a run without its flows: as much as can be known
// before the links are measured.
func (r Run) Network() (*Scenario, error) {
	on := r
	if r.Unmeasured() && r.real {
		on.survey = &etx.Survey{Nodes: len(r.Config().Topology.AllNodes()), Probes: 1} // nobody was heard yet
	}
	t, err := on.topology()
	if err != nil {
		return nil, fmt.Errorf("%s, repetition %d: %w", r.Label(), r.Repetition, err)
	}
	return &Scenario{Run: r, Topology: t}, nil
}

// Probing lays out the network in which the links of a run are measured. It has
// no flows, nothing is switched in it, and its basic rate, in the Config as well,
// is that of the probes.
func (r Run) Probing() (*Scenario, error) {
	s, err := r.Network()
	if err != nil {
		return nil, err
	}
	c := *r.Config()
	rate := c.ProbeRate()
	if s.Topology, err = s.Topology.Probing(&c, rate); err != nil {
		return nil, fmt.Errorf("%s, repetition %d: %w", r.Label(), r.Repetition, err)
	}
	c.Radio.BasicRate, c.Radio.Rate = rate, max(rate, c.Radio.Rate)
	c.Topology.Changes, c.Flows = nil, nil
	s.Run.Point.Config = &c
	return s, nil
}

func (r Run) topology() (*topology.Topology, error) {
	g := topology.Ground{Real: r.real}
	if r.survey != nil {
		pairs, err := Rate(r.Config(), r.survey)
		if err != nil {
			return nil, err
		}
		g.Measured, g.Pairs = true, pairs
	}
	return topology.BuildOn(g, r.Config(), r.Repetition-1)
}

// Rate turns what was measured into links as a Config wants them.
func Rate(c *spec.Config, s *etx.Survey) ([]etx.Pair, error) {
	o := etx.Rating{Window: c.Routing.Window}
	if h := c.Routing.Hysteresis; h != nil {
		o.Hysteresis = &etx.Hysteresis{Scaling: float64(h.Scaling), High: float64(h.High), Low: float64(h.Low)}
	}
	rated, err := s.Rate(o)
	if err != nil {
		return nil, fmt.Errorf("measured links: %w", err)
	}
	return etx.Pairs(rated, float64(c.Routing.MinDelivery)), nil
}
