package topology

import (
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// DataFrame is the size for which links are rated: a full IP packet. The
// answer, an acknowledgement of the MAC at the basic rate, is rated as an empty
// data frame, which is 24 bytes longer: the safe side.
const DataFrame vtime.Bytes = 1500

// Topology is the network of one repetition.
type Topology struct {
	Nodes  []Node
	Links  []Link     // every directed pair that can decode or sense, by From, then To
	Routes *etx.Table // static routes by the metric of the experiment; bridges are transparent in them
	Graph  *etx.Graph // the usable links of the radio
	Pipes  []Pipe     // wired links
	layer  *layer     // where there are pipes or bridges

	Changes   []Change // what happens to radio links and nodes in a run, in the order of time
	switched  []int    // nodes that are switched off in its course
	described []string // the same changes as the file has them

	// What a medium is made from: wifi.NewChannel(ChannelSeed, Radio, MAC,
	// Positions(), Mute()...), or wifi.NewMatrixChannel(Delivery, nil, nil) where the
	// links are listed.
	Channel     *wifi.Channel
	ChannelSeed uint64
	Radio       wifi.Radio
	MAC         wifi.MAC
	Delivery    [][]float64

	Seed  uint64 // of this repetition's placement
	Tries int    // placements drawn until one fitted; 1 for fixed shapes
}

// Node is a node with its place.
type Node struct {
	ID       int
	Name     string
	Position wifi.Position
	Radio    bool // it has a radio; without it the medium knows it as a node that hears nothing
	Bridge   bool // it joins its interfaces as a bridge does, instead of routing
	// Queue is the length of its radio's queues in packets; 0 = as MAC says.
	Queue int
	// Rewriting is how it rewrites the windows of TCP connections, without the buffer that
	// Topology.Rewriting adds; nil: it does not.
	Rewriting *winrewrite.Config
}

// Link is a directed link as the radio model rates it, or as it was measured or
// listed where the routes are made from that.
type Link struct {
	From, To int
	Delivery float64       // of a DataFrame at the data rate
	Reverse  float64       // of the acknowledgement, from To to From
	SNR      vtime.Decibel // at To without interference; for disks and listed links the margin above decoding
	Distance vtime.Metres
	ETX      float64 // 1/(Delivery·Reverse), +Inf when nothing arrives
	Usable   bool    // may carry a route
	Senses   bool    // To defers to From
	// Measured is what was heard of From's probes at To; nil where the link was not
	// measured. Delivery and Reverse are then the measured ones.
	Measured *etx.Rated
}

// Flow is one flow between two nodes.
type Flow struct {
	ID    int // from 0, in the order of the file's groups
	Group int // index in Config.Flows
	Src   int
	Dst   int
	Path  []int // Src … Dst
	// Role says which half of an exchange this is, "" for a flow that is none; Peer
	// is the other half's ID.
	Role spec.Role
	Peer int
}

// Hops returns the length of the flow's route.
func (f Flow) Hops() int { return len(f.Path) - 1 }

// Positions returns the places of the nodes in their order.
func (t *Topology) Positions() []wifi.Position {
	out := make([]wifi.Position, len(t.Nodes))
	for i, n := range t.Nodes {
		out[i] = n.Position
	}
	return out
}

// Mute returns the nodes without a radio.
func (t *Topology) Mute() []int {
	var out []int
	for i := range t.Nodes {
		if !t.Nodes[i].Radio {
			out = append(out, i)
		}
	}
	return out
}

// index returns the id of the node with a name, -1 when there is none.
func (t *Topology) index(name string) int {
	for i := range t.Nodes {
		if t.Nodes[i].Name == name {
			return i
		}
	}
	return -1
}
