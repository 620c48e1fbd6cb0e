package hopnet

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Config are a Node's parameters. The zero value makes a node with a random id
// at a free port that knows nobody; Open fills in what is 0.
type Config struct {
	// ID is this node's id. 0 takes the address in Listen if that is an IPv4
	// address, else a random id from 240.0.0.0/4, which no host has.
	ID NodeID
	// Listen is the UDP address to bind, "HOST:PORT"; HOST may be missing (every
	// address), and the port 0 (a free one). "" is ":0" over IPv4.
	Listen string
	// Peers are the neighbours: nodes that packets are sent to directly.
	Peers []Peer
	// Routes gives the neighbour that leads to a destination; neighbours need
	// none. Gateway leads to all others; 0 is none.
	Routes  map[NodeID]NodeID
	Gateway NodeID

	// Open takes neighbours that are not among Peers, when they introduce
	// themselves and answer at their address. Otherwise what comes from other
	// addresses is dropped.
	Open bool
	// NoLearning takes no route from what arrives. Otherwise a source whose blocks
	// come through a neighbour is answered through it, where no route says
	// another way.
	NoLearning bool
	// Allow, if set, tells which sources may send to this node; nil allows all. It
	// is called with the Node locked: it must not call the Node nor wait.
	Allow func(source NodeID) bool

	// ReadBuffer is what a stream holds for its reader in bytes before its sender
	// has to wait, one block more at most (2 MiB). WriteBuffer is what a writer may
	// be ahead (2 MiB): a block takes what is there when its turn comes.
	ReadBuffer, WriteBuffer int
	// UnreadLimit bounds the bytes of all streams and blocks that nobody has read
	// (64 MiB); beyond it new streams have to wait.
	UnreadLimit int
	// Streams bounds the streams and blocks under way towards this node (1,024).
	Streams int
	// Custody is how long a relay keeps blocks of a flow that nothing is heard of
	// (1 h). Their source still has them.
	Custody time.Duration

	// SocketBuffer is the UDP socket's receive buffer in bytes (4 MiB). One block
	// should fit: what does not is lost and sent again. Without privileges Linux
	// grants net.core.rmem_max at most, 208 KiB unless it was raised.
	SocketBuffer int
	// NoOffload sends and receives every datagram by itself (see datagram.Options).
	NoOffload bool

	// Tune, if set, changes the parameters of the protocol; they begin as Defaults
	// returns them.
	Tune func(*hop.Config)
	// Log, if set, is told what an operator may want to know: peers that come and
	// go, messages that make no sense. It is called with the Node locked: it must
	// not call the Node nor wait.
	Log func(text string)
}

// Peer is a neighbour.
type Peer struct {
	// ID is the neighbour's id; 0 asks it, and takes what it says.
	ID NodeID
	// Addr is its UDP address, "HOST" or "HOST:PORT". It is looked up once, by Open.
	Addr string
	// Radio says that the neighbour is reached through a wireless interface: bulk
	// data are marked for the background queue and control for the voice queue
	// (DSCP 8 and 48), and control waits for the data before it, as the paper has it.
	Radio bool
}

// Defaults returns the parameters of the protocol that a Node has unless
// Config.Tune changes them. They are the paper's, except for what follows from
// wires with millisecond round trips (hop/DESIGN.md §9):
//
//   - H is 2, so that a relay receives a block while it sends another;
//   - timers begin at 10 ms instead of 50 ms, and still grow with what is measured;
//   - a source that has no end-to-end acknowledgement asks after 2 s, not 60 s;
//   - end-to-end acknowledgements that were lost are said again (e2e-again);
//   - a flow's turn is 32 packets, about what the kernel takes at once;
//   - 16 blocks of a flow are under way at most.
//
// Withholding stays: that one block is granted at a time bounds what the
// receiver's socket has to hold, and costs one round trip per block.
func Defaults() hop.Config {
	c := hop.DefaultConfig()
	c.H = 2
	c.Window = 16
	c.TxopPackets = 32
	c.BSYNQuick = 10 * vtime.Millisecond
	c.PollFloor = 10 * vtime.Millisecond
	c.E2EInitial = 2 * vtime.Second
	c.E2EStall = hop.E2EStall
	c.MaxFlows = 8192
	return c
}

// The defaults of Config.
const (
	defaultBuffer       = 2 << 20
	defaultUnread       = 64 << 20
	defaultStreams      = 1024
	defaultCustody      = time.Hour
	defaultSocketBuffer = 4 << 20
	// sendBuffer is the queue in front of the link: what the kernel holds. 256 KiB
	// are 2 ms at 1 Gb/s, and the driver looks again every millisecond.
	sendBuffer = 256 << 10
)

// complete fills in what is 0 and checks the rest.
func (c *Config) complete() (netip.AddrPort, error) {
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if c.Listen != "" {
		var err error
		if at, err = resolve(c.Listen); err != nil {
			return at, err
		}
	}
	if c.ID == 0 {
		if a := at.Addr(); a.Is4() && !a.IsUnspecified() && !a.IsLoopback() {
			c.ID = IDOf(a)
		} else {
			c.ID = RandomID()
		}
	}
	if !c.ID.Valid() {
		return at, fmt.Errorf("hopnet: node id %d: want 1 to %d", c.ID, noNode-1)
	}
	for _, f := range []struct {
		name    string
		v       *int
		def, hi int
	}{
		{"ReadBuffer", &c.ReadBuffer, defaultBuffer, 1 << 30},
		{"WriteBuffer", &c.WriteBuffer, defaultBuffer, 1 << 30},
		{"UnreadLimit", &c.UnreadLimit, defaultUnread, 1 << 30},
		{"Streams", &c.Streams, defaultStreams, 1 << 18},
		{"SocketBuffer", &c.SocketBuffer, defaultSocketBuffer, 1 << 30},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < 1 || *f.v > f.hi {
			return at, fmt.Errorf("hopnet: %s = %d is outside 1…%d", f.name, *f.v, f.hi)
		}
	}
	if c.Custody == 0 {
		c.Custody = defaultCustody
	}
	if c.Custody < time.Second {
		return at, fmt.Errorf("hopnet: Custody = %v is shorter than a second", c.Custody)
	}
	for dst, via := range c.Routes {
		if !dst.Valid() || !via.Valid() {
			return at, fmt.Errorf("hopnet: route to %v via %v: want node ids", dst, via)
		}
	}
	return at, nil
}

// RandomID returns an id from 240.0.0.0/4, which is no host's address. Two of a
// thousand such nodes share one with a probability of 0.2 %.
func RandomID() NodeID {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it does not fail
	id := NodeID(binary.BigEndian.Uint32(b[:])) | 0xf0000000
	if !id.Valid() {
		return 0xf0000001
	}
	return id
}

// HostID returns the id that is this host's first IPv4 address which others may
// know it by; ok is false if it has none.
func HostID() (id NodeID, ok bool) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0, false
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return IDOf(p.Addr()), true
		}
	}
	return 0, false
}
