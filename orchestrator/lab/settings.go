package lab

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Settings are what a standing network's links and radios are set to. It is a
// value without I/O: an order is checked against it, and becomes part of it when
// the network has taken it.
type Settings struct {
	cfg   *spec.Config
	topo  *topology.Topology
	nodes []nodeSettings
	wires [][2]wireSettings
	links map[[2]int]airSettings // by direction; only those that differ from the beginning
}

type nodeSettings struct {
	up    bool
	radio spec.Radio
	mac   spec.MAC
	iface wifi.MAC
}

type wireSettings struct {
	up        bool
	direction spec.Direction
	config    pipe.Config
}

type airSettings struct {
	down     bool
	loss     vtime.Fraction
	delivery vtime.Fraction // of listed links
}

// NewSettings returns those of a scenario's network as it comes up.
func NewSettings(s *plan.Scenario) (*Settings, error) {
	c, t := s.Config(), s.Topology
	out := &Settings{cfg: c, topo: t, links: map[[2]int]airSettings{}}
	for i := range t.Nodes {
		out.nodes = append(out.nodes, nodeSettings{up: true, radio: c.Radio, mac: c.MAC, iface: t.Own(i, t.MAC)})
	}
	if len(t.Pipes) != len(c.Topology.Pipes) {
		return nil, fmt.Errorf("a network of %d wires by a file of %d", len(t.Pipes), len(c.Topology.Pipes))
	}
	for i := range t.Pipes {
		p := &c.Topology.Pipes[i]
		w := [2]wireSettings{{up: true, direction: p.Direction}, {up: true, direction: *p.Backward()}}
		for e := range w {
			var err error
			w[e].direction.Schedule = nil // nothing happens by itself
			if w[e].config, err = topology.Wire(&w[e].direction); err != nil {
				return nil, fmt.Errorf("topology.pipes[%d]: %w", i, err)
			}
		}
		out.wires = append(out.wires, w)
	}
	return out, nil
}

// Order is what a hand wants set.
type Order struct {
	Targets []string          `json:"targets"`
	Medium  Medium            `json:"medium,omitempty"`
	Set     []spec.Assignment `json:"set"`
}

// Changed is one setting that an order has changed; of one that was so before Was
// and Is are the same.
type Changed struct {
	Target string `json:"target"`
	Key    string `json:"key"`
	Was    string `json:"was"`
	Is     string `json:"is"`
}

// Plan checks an order. It returns what the network has to be told, what that
// changes, and the settings that result. An error means that nothing of the order
// is to be done.
func (s *Settings) Plan(o Order) (emulator.Set, []Changed, *Settings, error) {
	var set emulator.Set
	if len(o.Targets) == 0 || len(o.Set) == 0 {
		return set, nil, nil, errors.New("nothing to set: want a node or a link, and KEY=VALUE")
	}
	next := s.clone()
	var changed []Changed
	for _, name := range o.Targets {
		t, err := find(s.topo, name, o.Medium)
		if err != nil {
			return emulator.Set{}, nil, nil, err
		}
		var some []Changed
		switch {
		case t.isAir:
			some, err = next.setAir(t, o.Set, &set)
		case t.wire >= 0:
			some, err = next.setWire(t, o.Set, &set)
		default:
			some, err = next.setNodes(t, o.Set, &set)
		}
		if err != nil {
			return emulator.Set{}, nil, nil, err
		}
		changed = append(changed, some...)
	}
	return set, changed, next, nil
}

func (s *Settings) clone() *Settings {
	c := *s
	c.nodes, c.wires = slices.Clone(s.nodes), slices.Clone(s.wires)
	c.links = map[[2]int]airSettings{}
	for k, v := range s.links {
		c.links[k] = v
	}
	return &c
}

func (s *Settings) setWire(t *target, as []spec.Assignment, set *emulator.Set) ([]Changed, error) {
	var changed []Changed
	for _, e := range t.ends {
		w := &s.wires[t.wire][e]
		p := &s.topo.Pipes[t.wire]
		where := s.topo.Nodes[p.Ends[e]].Name + ":" + s.topo.Nodes[p.Ends[1-e]].Name
		to, err := w.direction.Live(where, as)
		if err != nil {
			return nil, err
		}
		is := wireSettings{up: w.up, direction: to.Direction}
		if to.Up != nil {
			is.up = *to.Up
		}
		if is.config, err = topology.Wire(&is.direction); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		c := is.config
		set.Pipes = append(set.Pipes, emulator.SetPipe{Pipe: t.wire, End: e, Change: pipe.Change{
			Up: &is.up, Rate: rateOf(&c), Delay: &c.Delay, Loss: &c.Loss, Queue: &c.Queue, Jitter: &c.Jitter, Reorder: &c.Reorder, Duplicate: &c.Duplicate,
		}})
		changed = append(changed, differences(where, w.text(), is.text(), as)...)
		*w = is
	}
	return changed, nil
}

// rateOf is nil beside a trace, which a change of the rate may not meet.
func rateOf(c *pipe.Config) *vtime.BitRate {
	if c.Trace != nil {
		return nil
	}
	return &c.Rate
}

func (s *Settings) setAir(t *target, as []spec.Assignment, set *emulator.Set) ([]Changed, error) {
	a, err := spec.LiveAir(t.name, as)
	if err != nil {
		return nil, err
	}
	if a.Up != nil && !t.both {
		return nil, &spec.Fixed{Where: t.name, Key: "up", Because: "a radio link is up or down in both directions", Do: "name it FROM-TO, or set loss=100% in the one direction"}
	}
	ways := [][2]int{t.air}
	if t.both {
		ways = append(ways, [2]int{t.air[1], t.air[0]})
	}
	var changed []Changed
	for i, w := range ways {
		where := s.topo.Nodes[w[0]].Name + ":" + s.topo.Nodes[w[1]].Name
		was := s.air(w)
		is := was
		l := emulator.SetLink{From: w[0], To: w[1], Loss: a.Loss}
		if a.Loss != nil {
			is.loss = *a.Loss
		}
		if a.Delivery != nil {
			if was.delivery == 0 {
				because := "it follows from the radio model"
				if s.topo.Delivery != nil {
					because = "the file lists no link in this direction"
				}
				return nil, &spec.Fixed{Where: where, Key: "delivery", Because: because, Do: "set loss, which the receiver adds after its MAC"}
			}
			is.delivery, l.Delivery = *a.Delivery, a.Delivery
		}
		if a.Up != nil {
			is.down = !*a.Up
			if i == 0 {
				l.Up = a.Up
			}
		}
		if l.Loss != nil || l.Delivery != nil || l.Up != nil {
			set.Radio = append(set.Radio, l)
		}
		changed = append(changed, differences(where, was.text(), is.text(), as)...)
		s.links[w] = is
	}
	return changed, nil
}

// air is what a direction of a radio link is set to.
func (s *Settings) air(w [2]int) airSettings {
	if a, ok := s.links[w]; ok {
		return a
	}
	a := airSettings{loss: s.cfg.Radio.Drop}
	if s.topo.Delivery != nil {
		a.delivery = vtime.Fraction(s.topo.Delivery[w[0]][w[1]])
	}
	return a
}

func (s *Settings) setNodes(t *target, as []spec.Assignment, set *emulator.Set) ([]Changed, error) {
	var changed []Changed
	for _, i := range t.nodes {
		n := &s.nodes[i]
		name := s.topo.Nodes[i].Name
		to, err := spec.LiveNode(name, n.radio, n.mac, as)
		if err != nil {
			return nil, err
		}
		is := nodeSettings{up: n.up, radio: to.Radio, mac: to.MAC, iface: n.iface}
		if to.Interface || to.Drop {
			if !s.topo.Nodes[i].Radio {
				if t.name == Everything && to.Up == nil {
					continue // of all, those that have one
				}
				return nil, fmt.Errorf("%s: the node has no radio", name)
			}
		}
		if to.Interface {
			c := *s.cfg
			c.Radio, c.MAC, c.Flows = to.Radio, to.MAC, nil
			if is.iface, err = topology.MAC(&c); err == nil {
				is.iface = s.topo.Own(i, is.iface)
				err = n.iface.Replaceable(&is.iface)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			set.MACs = append(set.MACs, emulator.SetMAC{Node: i, MAC: is.iface})
		}
		if to.Drop {
			s.drop(i, to.Radio.Drop, set)
		}
		if to.Up != nil {
			is.up = *to.Up
			set.Nodes = append(set.Nodes, emulator.SetNode{Node: i, Up: is.up})
		}
		changed = append(changed, differences(name, n.text(), is.text(), as)...)
		*n = is
	}
	if len(changed) == 0 {
		return nil, fmt.Errorf("%s: no node has a radio", t.name)
	}
	return changed, nil
}

// drop sets what a node discards of all that its radio receives.
func (s *Settings) drop(node int, p vtime.Fraction, set *emulator.Set) {
	for j := range s.topo.Nodes {
		if j == node || !s.topo.Nodes[j].Radio {
			continue
		}
		set.Radio = append(set.Radio, emulator.SetLink{From: j, To: node, Loss: &p})
		a := s.air([2]int{j, node})
		a.loss = p
		s.links[[2]int{j, node}] = a
	}
}
