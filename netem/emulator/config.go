package emulator

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// Config is the whole of a medium, its nodes and the wires between them.
type Config struct {
	Seed uint64 `json:"seed"`
	// MACs has one entry per node, or one for all. It and what describes the
	// channel may be left out when no node has a radio.
	MACs []wifi.MAC `json:"macs,omitempty"`
	// Radio and Positions describe the channel, unless Matrix does. ChannelSeed
	// draws the shadowing: it is a seed of its own, since the same placement is
	// used by many runs.
	Radio       wifi.Radio      `json:"radio"`
	Positions   []wifi.Position `json:"positions,omitempty"`
	ChannelSeed uint64          `json:"channel_seed"`
	Matrix      *Matrix         `json:"matrix,omitempty"`
	// Nodes, in the order of their indices.
	Nodes []Node `json:"nodes"`
	// Pipes are the wired links. A pipe's number in this list names its random
	// streams ("pipe/NUMBER/END" with Seed) and its cells on the queue board.
	Pipes []Pipe `json:"pipes,omitempty"`
	// Losses are injected after the receiver's MAC, from the start.
	Losses []Loss `json:"losses,omitempty"`
	// Changes switch radio links and nodes in the course of the run, in the order of
	// time; their times count from the run's time 0, which comes with Begin.
	Changes []Change `json:"changes,omitempty"`
	// DeviceQueue is the length of the ring between a node's kernel and the
	// emulator in frames; 0 = tap.DefaultQueueLength.
	DeviceQueue int `json:"device_queue,omitempty"`
	// NormalPriority leaves the process at its priority; for measurements of what
	// priority is worth.
	NormalPriority bool `json:"normal_priority,omitempty"`
	// IPv6 lets IPv6 frames pass beside IPv4 and ARP, and leaves it on in the nodes'
	// namespaces: their kernels then send of their own accord (multicast reports,
	// neighbour discovery), which an experiment does not want on its air.
	IPv6 bool `json:"ipv6,omitempty"`
	// Capture, if set, is what to record.
	Capture *Capture `json:"capture,omitempty"`
}

// Node is a node's place in the kernel.
type Node struct {
	Name string `json:"name"`
	PID  int    `json:"pid"` // a process in the node's network namespace
	// NoRadio: the node is wired only. It keeps its index in the medium, has no
	// radio interface and neither hears nor is heard.
	NoRadio bool `json:"no_radio,omitempty"`
	// Via names the radio that takes what this node's radio sends to the hardware
	// addresses of node v, where that is another node: a bridge before v.
	Via map[int]int `json:"via,omitempty"`
	// Rewriting, if set, is how the node rewrites the windows in the TCP segments that
	// its radio sends and receives.
	Rewriting *winrewrite.Config `json:"rewriting,omitempty"`
}

// HasRadio reports whether any node has a radio; without one there is no medium.
func (c *Config) HasRadio() bool {
	return slices.ContainsFunc(c.Nodes, func(n Node) bool { return !n.NoRadio })
}

// Matrix gives a channel by explicit matrices; see wifi.NewMatrixChannel.
type Matrix struct {
	Delivery  [][]float64 `json:"delivery"`
	Sense     [][]bool    `json:"sense,omitempty"`
	Interfere [][]bool    `json:"interfere,omitempty"`
}

// Loss is a share of frames dropped after the receiver's MAC.
type Loss struct {
	From int            `json:"from"`
	To   int            `json:"to"`
	P    vtime.Fraction `json:"p"`
}

// Channel builds the channel of the configuration; nodes without a radio are
// mute in it.
func (c *Config) Channel() (*wifi.Channel, error) {
	if c.Matrix != nil {
		return wifi.NewMatrixChannel(c.Matrix.Delivery, c.Matrix.Sense, c.Matrix.Interfere)
	}
	if len(c.MACs) == 0 {
		return nil, fmt.Errorf("emulator: no MAC configuration")
	}
	var mute []int
	for i, n := range c.Nodes {
		if n.NoRadio {
			mute = append(mute, i)
		}
	}
	return wifi.NewChannel(c.ChannelSeed, c.Radio, c.MACs[0], c.Positions, mute...)
}

// mac is the configuration of one node's interface.
func (c *Config) mac(node int) *wifi.MAC {
	if len(c.MACs) == 1 {
		return &c.MACs[0]
	}
	return &c.MACs[node]
}

// Validate reports the first mistake that can be found without building the
// medium.
func (c *Config) Validate() error {
	n := len(c.Nodes)
	radio := c.HasRadio()
	switch {
	case n == 0:
		return fmt.Errorf("emulator: no nodes")
	case n > tap.MaxNodes:
		return fmt.Errorf("emulator: %d nodes: the address plan has room for %d", n, tap.MaxNodes)
	case radio && len(c.MACs) != 1 && len(c.MACs) != n:
		return fmt.Errorf("emulator: %d MAC configurations for %d nodes: want one, or one per node", len(c.MACs), n)
	case radio && c.Matrix == nil && len(c.Positions) != n:
		return fmt.Errorf("emulator: %d positions for %d nodes", len(c.Positions), n)
	case radio && c.Matrix != nil && len(c.Matrix.Delivery) != n:
		return fmt.Errorf("emulator: a delivery matrix of %d rows for %d nodes", len(c.Matrix.Delivery), n)
	case c.DeviceQueue < 0:
		return fmt.Errorf("emulator: device queue of %d frames: want 1 or more, 0 for the default", c.DeviceQueue)
	}
	for i := range c.Nodes {
		if !radio || c.Matrix == nil || !c.Nodes[i].NoRadio {
			continue
		}
		for j, row := range c.Matrix.Delivery {
			if len(row) == n && (row[i] != 0 || c.Matrix.Delivery[i][j] != 0) {
				return fmt.Errorf("emulator: the delivery matrix joins nodes %d and %d, but node %d (%s) has no radio", i, j, i, c.Nodes[i].Name)
			}
		}
	}
	for i, nd := range c.Nodes {
		if nd.PID <= 0 {
			return fmt.Errorf("emulator: node %d (%s): process id %d: want a process in the node's namespace", i, nd.Name, nd.PID)
		}
		if w := nd.Rewriting; w != nil {
			if nd.NoRadio {
				return fmt.Errorf("emulator: node %d (%s) has no radio whose segments it could rewrite", i, nd.Name)
			}
			if err := w.Validate(); err != nil {
				return fmt.Errorf("emulator: node %d (%s): %w", i, nd.Name, err)
			}
		}
		if err := c.validateVia(i); err != nil {
			return err
		}
	}
	if err := c.validateChanges(); err != nil {
		return err
	}
	return c.validatePipes()
}

func (c *Config) validateVia(i int) error {
	for _, v := range slices.Sorted(maps.Keys(c.Nodes[i].Via)) {
		to := c.Nodes[i].Via[v]
		switch {
		case v < 0 || v >= len(c.Nodes) || to < 0 || to >= len(c.Nodes):
			return fmt.Errorf("emulator: node %d reaches node %d via node %d: one of them does not exist (there are %d)", i, v, to, len(c.Nodes))
		case c.Nodes[i].NoRadio || c.Nodes[to].NoRadio || to == i:
			return fmt.Errorf("emulator: node %d reaches node %d via the radio of node %d: want two different nodes with a radio", i, v, to)
		}
	}
	return nil
}

// build makes the medium on an engine; nil if no node has a radio.
func (c *Config) build(eng *des.Engine, sink wifi.Sink) (*wifi.Medium, error) {
	if !c.HasRadio() {
		if len(c.Losses) > 0 {
			return nil, fmt.Errorf("emulator: a loss between nodes %d and %d on the radio, but no node has one", c.Losses[0].From, c.Losses[0].To)
		}
		return nil, nil
	}
	ch, err := c.Channel()
	if err != nil {
		return nil, err
	}
	if ch.N() != len(c.Nodes) {
		return nil, fmt.Errorf("emulator: a channel of %d nodes for %d nodes", ch.N(), len(c.Nodes))
	}
	m, err := wifi.NewMedium(eng, c.Seed, ch, c.MACs, sink)
	if err != nil {
		return nil, err
	}
	for _, l := range c.Losses {
		if err := m.SetLoss(l.From, l.To, l.P); err != nil {
			return nil, err
		}
	}
	return m, nil
}
