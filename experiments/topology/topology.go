package topology

import (
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

// DataFrame and AckFrame are the sizes for which links are rated: a full data
// frame (an IP packet) and the answer to it.
const (
	DataFrame vtime.Bytes = 1500
	AckFrame  vtime.Bytes = 14
)

// Topology is the network of one repetition.
type Topology struct {
	Nodes  []Node
	Links  []Link     // every directed pair that can decode or sense, by From then To
	Routes *etx.Table // static routes by the metric of the experiment
	Seed   uint64     // of the placement and the shadowing
	Tries  int        // placements drawn until one fitted (1 for fixed shapes)
}

// Node is a node with its place.
type Node struct {
	ID       int
	Name     string
	Position Position
}

// Position is a place in the plane.
type Position struct{ X, Y vtime.Metres }

// Link is the directed link of two nodes as the radio model rates it.
type Link struct {
	From, To int
	Delivery float64       // of a DataFrame at the data rate
	Reverse  float64       // of an AckFrame from To to From at the basic rate
	SNR      vtime.Decibel // at To; 0 where the delivery is listed in the file
	ETX      float64
	Usable   bool // may carry a route
	Senses   bool // To defers to From
}

// Flow is one flow between two nodes.
type Flow struct {
	ID    int // in the order of the file
	Group int // index in Config.Flows
	Src   int
	Dst   int
	Path  []int // Src … Dst
}

// Hops returns the length of the flow's route.
func (f Flow) Hops() int { return len(f.Path) - 1 }

// Build returns the topology of one repetition (counted from 0) of a point.
// The error says what could not be met and what to change.
func Build(c *spec.Config, repetition int) (*Topology, error) { return nil, errUnwritten }

// Flows draws the pairs of all flow groups of a point from a stream of their
// own, equal for all points that share topology, counts and hop rules.
func (t *Topology) Flows(c *spec.Config, repetition int) ([]Flow, error) { return nil, errUnwritten }

// Summary describes the mesh in a few lines: nodes, links, degree, mean ETX
// and how many pairs have how many hops.
func (t *Topology) Summary() string { return "" }
