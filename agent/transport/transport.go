package transport

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Node is what a driver may know of the node that it runs on. It does not
// change after Open.
type Node struct {
	ID   int
	Name string
	Addr netip.Addr
	// Addrs maps node ids to addresses and NextHop destination ids to the
	// neighbour that packets go to; both cover every node of the flows.
	Addrs   map[int]netip.Addr
	NextHop map[int]int
	// Ports maps neighbours to the port through which packets to them leave: 0
	// is the radio, 1+s the pipe interface with slot s. A neighbour that is not
	// in it is reached through the radio.
	Ports map[int]int
	Board Board           // queues of emulated links, or nil
	Hop   json.RawMessage // hop.Config fields, or nil
	// SampleInterval is the time between two calls of Sample; 0 = 100 ms.
	SampleInterval vtime.Duration
	// Event reports a change in a flow's life; it does not block.
	Event func(proto.Event)
	// Log writes a line into the run's log; it does not block.
	Log func(level, message string)
}

// Board is what a driver sees of the queues of its node's emulated links
// (*board.View), by the numbers that Queue returns. Only one driver may read
// Event and use Watch: Hop's.
type Board interface {
	State(q int) board.State
	Watch(q, low int) bool
	Event() *os.File
}

// Queue returns the board's number of a port's queue for an access category; a
// pipe has one queue for all.
func Queue(port, ac int) int {
	if port == 0 {
		return ac
	}
	return board.PipeQueue(port - 1)
}

// The access categories in the order of the board (802.11-2020 §10.23.2.1).
const (
	Background = iota
	BestEffort
	Video
	Voice
)

// ACOf returns the access category of a DSCP: the WMM map of the precedence
// bits (802.11-2020 §10.2.4.2), and voice for EF (RFC 8325 §4.2.1).
func ACOf(dscp int) int {
	if dscp == 46 {
		return Voice
	}
	return [8]int{BestEffort, Background, Background, BestEffort, Video, Video, Voice, Voice}[dscp>>3&7]
}

// NodeAt returns the id of the node with the address.
func (n *Node) NodeAt(addr netip.Addr) (int, bool) {
	for id, a := range n.Addrs {
		if a == addr {
			return id, true
		}
	}
	return 0, false
}

// Side returns the part that the node plays in the flow; ok is false when it
// plays none.
func (n *Node) Side(f *proto.Flow) (side proto.Side, ok bool) {
	switch n.ID {
	case f.Src:
		return proto.Source, true
	case f.Dst:
		return proto.Destination, true
	}
	for _, id := range f.Path {
		if id == n.ID {
			return proto.Relay, true
		}
	}
	return "", false
}

// Clock reads the run's time.
type Clock interface{ Now() vtime.Time }

// Schedule is the run's common schedule.
type Schedule struct {
	Clock       Clock
	Warmup, End vtime.Time
}

// FlowStop returns when the flow ends on this schedule.
func (s Schedule) FlowStop(f *proto.Flow) vtime.Time {
	if f.Stop > 0 {
		return vtime.Min(f.Stop, s.End)
	}
	return s.End
}

// Driver opens one family of transports on a node.
type Driver interface {
	// Family is the part of the transport's name before the slash.
	Family() string
	// Check reports what is wrong with a flow of this family: an unknown
	// variant, an option that the transport does not know. It touches nothing.
	Check(f *proto.Flow) error
	// Wanted tells whether the node runs this transport even when it plays no
	// part in a flow, because packets of others may come its way.
	Wanted(n *Node) bool
	// Open prepares every flow of this family on the node: sockets listen, and
	// the options were read back. Flows in which the node plays no part are
	// not among them. An error leaves nothing open.
	Open(n *Node, flows []proto.Flow) (Endpoint, error)
}

// Endpoint is a driver's open state on one node. Its methods are called by one
// goroutine at a time, in the order Setups, Start, Sample…, Stop, Results,
// Close; Close may come at any point.
type Endpoint interface {
	// Setups returns what the kernel took.
	Setups() []proto.FlowSetup
	// Start schedules the flows and returns at once.
	Start(s Schedule) error
	// Sample appends one sample per flow and side.
	Sample(now vtime.Time, to []proto.Sample) []proto.Sample
	// Stop aborts what still runs and returns when nothing does; it takes no
	// longer than a second, whatever the network does.
	Stop()
	// Results returns one result per flow and side, after Stop.
	Results() []proto.FlowResult
	// Facts adds the node's counters of this transport.
	Facts(to *proto.NodeFacts)
	// Close frees every socket. It may be called twice.
	Close() error
}

// Recorder is implemented by endpoints that know of some moments only
// afterwards: an external program that reports at its end.
type Recorder interface {
	// Recorded appends the samples of moments that Sample was not asked about or
	// could not answer, at most one for each of its calls. It is called once, after
	// Stop.
	Recorded(to []proto.Sample) []proto.Sample
}

// Reporter is an Endpoint of a transport that carries messages.
type Reporter interface {
	// Messages appends what became of messages since the last call, until to has
	// the length most: what is left comes with the next call. It is called while
	// the flows run and after Stop, when it yields those that were not delivered
	// as well.
	Messages(to []proto.Message, most int) []proto.Message
}

// Split separates "tcp/cubic" into the family "tcp" and the variant "cubic".
func Split(transport string) (family, variant string) {
	family, variant, _ = strings.Cut(transport, "/")
	return family, variant
}
