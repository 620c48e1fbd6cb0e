//go:build linux

package sock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Hop is the driver of the Hop protocol over UDP: "hop" and "hop/VARIANT". A
// node runs it when it has a Hop flow or a Hop configuration, since blocks and
// acknowledgements of others may come its way.
type Hop struct{}

// Family returns "hop".
func (Hop) Family() string { return "hop" }

// Wanted tells whether the node has a Hop configuration.
func (Hop) Wanted(n *transport.Node) bool { return n.Hop != nil }

// Check refuses unknown variants and the options of other transports.
func (Hop) Check(f *proto.Flow) error {
	if _, err := hop.Variant(f.Transport); err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Detail: err.Error()}
	}
	o := f.Options
	if o.BlockSize < 0 || o.BlockSize > hop.MaxBlockSize {
		return &proto.Error{Code: proto.CodeOrder, What: "option block_size", Got: o.BlockSize.String(), Wanted: "at most " + hop.MaxBlockSize.String()}
	}
	return refuseForeign("hop", []Foreign{{"mss", o.MSS != 0}, {"send_buffer", o.SendBuffer != 0}, {"receive_buffer", o.ReceiveBuffer != 0},
		{"not_sent_low_water", o.NotSentLow != 0}, {"nodelay", o.NoDelay}, {"dscp", o.DSCP != 0}, {"relay_buffer", o.RelayBuffer != 0},
		{"rate", o.Rate != 0}, {"packet_size", o.PacketSize != 0}, {"connect_within", o.ConnectWithin != 0},
		{"receive_window", o.ReceiveWindow != 0}, {"cwnd_cap", o.CwndCap != 0}})
}

// hopConfig joins the variant that the flows name and the fields that the
// order gives.
func hopConfig(n *transport.Node, flows []proto.Flow) (hop.Config, error) {
	cfg := hop.DefaultConfig()
	for i := range flows {
		if flows[i].Transport != flows[0].Transport {
			return cfg, &proto.Error{Code: proto.CodeOrder, What: "hop", Got: flows[0].Transport + " and " + flows[i].Transport, Detail: "a node runs one variant at a time"}
		}
		var err error
		if cfg, err = hop.Variant(flows[i].Transport); err != nil {
			return cfg, err
		}
	}
	if n.Hop != nil {
		d := json.NewDecoder(bytes.NewReader(n.Hop))
		d.DisallowUnknownFields()
		if err := d.Decode(&cfg); err != nil {
			return cfg, &proto.Error{Code: proto.CodeOrder, What: "configuration of hop", Got: string(n.Hop), Detail: err.Error()}
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return cfg, &proto.Error{Code: proto.CodeOrder, What: "configuration of hop", Got: string(n.Hop), Detail: "text after the JSON value"}
		}
	}
	cfg.ID = hop.NodeID(n.ID)
	if err := cfg.Validate(); err != nil {
		return cfg, &proto.Error{Code: proto.CodeOrder, What: "configuration of hop", Detail: err.Error()}
	}
	return cfg, nil
}

// hopEndpoint is one node's Hop. One goroutine, run, owns the node and the
// socket; mu lets the sampler look in while it waits.
type hopEndpoint struct {
	node  *transport.Node
	cfg   hop.Config
	sock  *udpSocket
	wait  *waiter
	event int // the board's eventfd, −1 without a board
	addr  map[hop.NodeID][4]byte
	ids   map[[4]byte]hop.NodeID

	mu      sync.Mutex
	hop     *hop.Node
	radio   radio
	sched   transport.Schedule
	flows   []*hopFlow
	halted  vtime.Time
	failure error
	facts   hopFacts
	off     bool // the node is switched off
	lives   hopLives

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	closed bool
}

// hopFacts counts what the state machine does not see.
type hopFacts struct {
	sendFull   int64 // datagrams that the kernel did not take (EAGAIN, ENOBUFS)
	sendErrors int64
	strangers  int64 // datagrams from unknown addresses
	refused    int64 // flows refused
	loops      int64 // wake-ups of the driver
}

// The socket's buffers. The receive buffer holds the bursts that arrive while
// another process has the processor; the send buffer is no queue of its own
// behind a TAP, which takes packets at once.
const (
	hopReceiveBuffer = 1 * vtime.MiB
	hopSendBuffer    = 256 * vtime.KiB
)

// Open binds the node's socket and makes its state machine.
func (Hop) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	cfg, err := hopConfig(n, flows)
	if err != nil {
		return nil, err
	}
	e := &hopEndpoint{node: n, cfg: cfg, event: -1, addr: make(map[hop.NodeID][4]byte), ids: make(map[[4]byte]hop.NodeID)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for id, a := range n.Addrs {
		e.addr[hop.NodeID(id)], e.ids[a.As4()] = a.As4(), hop.NodeID(id)
	}
	for dst, via := range n.NextHop {
		if _, ok := n.Addrs[via]; !ok {
			return nil, &proto.Error{Code: proto.CodeOrder, What: "hop", Detail: fmt.Sprintf("the next hop %d towards %d has no address", via, dst)}
		}
	}
	for _, f := range flows {
		side, _ := n.Side(&f)
		e.flows = append(e.flows, newHopFlow(f, side, cfg))
	}
	if e.sock, err = openUDP(netip.AddrPortFrom(n.Addr, transport.HopPort), hopReceiveBuffer, hopSendBuffer); err != nil {
		return nil, err
	}
	if n.Board != nil {
		// Not File.Fd, which would make the file blocking.
		raw, err := n.Board.Event().SyscallConn()
		if err == nil {
			err = onFD(raw, func(fd int) error { e.event = fd; return nil })
		}
		if err != nil {
			return nil, errors.Join(&proto.Error{Code: proto.CodeSystem, What: "queue board", Detail: err.Error()}, e.Close())
		}
		e.wait, err = newWaiter(e.sock.fd, e.event)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
	} else {
		if e.wait, err = newWaiter(e.sock.fd); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	e.radio = e.newRadio()
	if err := e.renew(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// NextHop looks in the configured table; hop.Routes.
func (e *hopEndpoint) NextHop(dst hop.NodeID) (hop.NodeID, bool) {
	via, ok := e.node.NextHop[int(dst)]
	return hop.NodeID(via), ok
}

// Setups reads the socket's buffers back; Hop's sockets belong to no flow.
func (e *hopEndpoint) Setups() []proto.FlowSetup { return nil }

// Start runs the node from the run's moment 0 to its end.
func (e *hopEndpoint) Start(sched transport.Schedule) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sched = sched
	for _, f := range e.flows {
		if err := f.begin(sched); err != nil {
			return err
		}
		if f.Flow.Peer != nil && f.side == proto.Destination {
			f.peer = e.find(hop.FlowKey{Src: f.key.Dst, Dst: f.key.Src, Flow: hop.FlowID(*f.Flow.Peer)}, proto.Source)
		}
	}
	e.wg.Go(e.run)
	return nil
}

// Sample appends one sample per flow.
func (e *hopEndpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.flows {
		if now >= f.Flow.Start && f.meter != nil {
			to = append(to, f.sample(now, e.hop))
		}
	}
	return to
}

// Messages appends what became of messages.
func (e *hopEndpoint) Messages(to []proto.Message, most int) []proto.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.flows {
		to = f.messages(to, most)
	}
	return to
}

// Stop ends the loop.
func (e *hopEndpoint) Stop() {
	e.cancel()
	if e.wait != nil {
		e.wait.wake()
	}
	e.wg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.flows {
		f.settle(e.halted)
	}
}

// Results returns one result per flow.
func (e *hopEndpoint) Results() []proto.FlowResult {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []proto.FlowResult
	for _, f := range e.flows {
		r := f.outcome(e.halted, e.hop)
		if e.failure != nil && r.Error == nil {
			r.Error = &proto.Error{Code: proto.CodeSystem, What: fmt.Sprintf("flow %d", f.Flow.ID), Detail: e.failure.Error()}
		}
		out = append(out, r)
	}
	return out
}

// Facts adds Hop's counters of the node.
func (e *hopEndpoint) Facts(to *proto.NodeFacts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.hop.Stats()
	s.Add(&e.lives.node)
	for _, c := range []proto.Counter{
		{Name: "hop_data_sent", Delta: int64(s.DataSent)},
		{Name: "hop_control_sent", Delta: int64(s.ControlSent)},
		{Name: "hop_received", Delta: int64(s.Received)},
		{Name: "hop_bad_packets", Delta: int64(s.BadPackets)},
		{Name: "hop_unexpected", Delta: int64(s.Unexpected)},
		{Name: "hop_drains_timed_out", Delta: int64(s.DrainsTimedOut)},
		{Name: "hop_no_route", Delta: int64(s.NoRoute)},
		{Name: "hop_memory_peak_bytes", Delta: int64(s.MemoryPeak)},
		{Name: "hop_tokens", Delta: int64(s.Tokens)},
		{Name: "hop_data_again", Delta: int64(s.DataAgain)},
		{Name: "hop_data_redundant", Delta: int64(s.Redundant)},
		{Name: "hop_send_full", Delta: e.facts.sendFull},
		{Name: "hop_send_errors", Delta: e.facts.sendErrors},
		{Name: "hop_never_queued", Delta: int64(e.radio.lost() + e.lives.neverQueued)},
		{Name: "hop_strangers", Delta: e.facts.strangers},
		{Name: "hop_refused_flows", Delta: e.facts.refused},
		{Name: "hop_wakeups", Delta: e.facts.loops},
	} {
		if c.Delta != 0 {
			to.Hop = append(to.Hop, c)
		}
	}
}

// Close stops the loop and frees the socket.
func (e *hopEndpoint) Close() error {
	e.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	if e.sock != nil {
		errs = append(errs, e.sock.close())
	}
	if e.wait != nil {
		errs = append(errs, e.wait.close())
	}
	return errors.Join(errs...)
}
