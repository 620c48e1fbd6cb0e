//go:build linux

package sock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// UDP is the driver of one-way datagram flows: "udp", at a constant rate, as
// fast as the radio's queue takes them, or message by message. What a variant
// ("udp/no-arq", "udp/txop") means is the MAC's business, who was told before the
// run; the sockets are the same.
type UDP struct{}

// The datagrams of a flow, in bytes of UDP payload.
const (
	defaultDatagram = 1400
	minDatagram     = messageHeader
	mostDatagram    = 1472 // Ethernet payload less IP and UDP headers
)

// Family returns "udp".
func (UDP) Family() string { return "udp" }

// Wanted is false: the kernel forwards.
func (UDP) Wanted(*transport.Node) bool { return false }

// Check refuses a variant, sizes out of range and the options of other
// transports.
func (UDP) Check(f *proto.Flow) error {
	o := f.Options
	if _, v := transport.Split(f.Transport); !knownVariant(v) {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Got: f.Transport, Wanted: "udp, or udp/VARIANT with no-arq, txop or both, joined by +"}
	}
	if f.Workload.Kind == workload.Web {
		return &proto.Error{Code: proto.CodeOrder, What: "workload web", Detail: "a page needs a transport that promises that all of it arrives; udp does not"}
	}
	if f.Workload.HasMessages() && o.Rate != 0 {
		return &proto.Error{Code: proto.CodeOrder, What: "option rate", Got: o.Rate.String(), Detail: fmt.Sprintf("a workload %s has its own moments", f.Workload.Kind), Remedy: "leave it out"}
	}
	if o.PacketSize != 0 && (o.PacketSize < minDatagram || o.PacketSize > mostDatagram) {
		return &proto.Error{Code: proto.CodeOrder, What: "option packet_size", Got: o.PacketSize.String(), Wanted: fmt.Sprintf("%d to %d bytes of UDP payload", minDatagram, mostDatagram)}
	}
	if o.Rate < 0 || o.DSCP < 0 || o.DSCP > 63 {
		return &proto.Error{Code: proto.CodeOrder, What: "option rate or dscp", Detail: "it is out of range"}
	}
	return refuseForeign("udp", []Foreign{{"mss", o.MSS != 0}, {"send_buffer", o.SendBuffer != 0}, {"receive_buffer", o.ReceiveBuffer != 0},
		{"not_sent_low_water", o.NotSentLow != 0}, {"nodelay", o.NoDelay}, {"relay_buffer", o.RelayBuffer != 0}, {"block_size", o.BlockSize != 0}, {"connect_within", o.ConnectWithin != 0},
		{"receive_window", o.ReceiveWindow != 0}, {"cwnd_cap", o.CwndCap != 0}})
}

// knownVariant tells whether the MAC has what the transport's name says: each
// word once.
func knownVariant(v string) bool {
	switch v {
	case "", "no-arq", "txop", "no-arq+txop", "txop+no-arq":
		return true
	}
	return false
}

func datagram(f *proto.Flow) int {
	if f.Options.PacketSize > 0 {
		return int(f.Options.PacketSize)
	}
	return defaultDatagram
}

// udpEndpoint is the node's part in all UDP flows.
type udpEndpoint struct {
	node    *transport.Node
	sources []*udpSource
	sinks   []*udpSink
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// Open binds a socket per flow.
func (UDP) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &udpEndpoint{node: n}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, f := range flows {
		if err := e.open(f); err != nil {
			return nil, inFlow(errors.Join(err, e.Close()), f.ID)
		}
	}
	return e, nil
}

func (e *udpEndpoint) open(f proto.Flow) error {
	port := uint16(transport.FlowPort + f.ID)
	switch side, _ := e.node.Side(&f); side {
	case proto.Source:
		app, err := workload.NewSource(f.Workload, f.Start, vtime.Never)
		if err != nil {
			return &proto.Error{Code: proto.CodeOrder, What: "workload", Detail: err.Error()}
		}
		s, err := openUDP(netip.AddrPortFrom(f.SrcAddr, port), 0, udpSendBuffer)
		if err != nil {
			return err
		}
		e.sources = append(e.sources, &udpSource{node: e.node, flow: f, app: app, sock: s, port: port,
			random: rand.New(rand.NewPCG(uint64(f.ID), 0)), phaseOf: -1})
	case proto.Destination:
		s, err := openUDP(netip.AddrPortFrom(f.DstAddr, port), hopReceiveBuffer, 0)
		if err != nil {
			return err
		}
		w, err := newWaiter(s.fd)
		if err != nil {
			return errors.Join(err, s.close())
		}
		e.sinks = append(e.sinks, &udpSink{node: e.node, flow: f, sock: s, waiter: w, pattern: workload.NewPattern(f.ID)})
	}
	return nil
}

// udpSendBuffer is small: behind a real radio's driver it is the queue that
// pushes back.
const udpSendBuffer = 128 * vtime.KiB

// Setups is empty: a datagram socket has no options worth a record.
func (e *udpEndpoint) Setups() []proto.FlowSetup { return nil }

// Start schedules the flows.
func (e *udpEndpoint) Start(sched transport.Schedule) error {
	for _, s := range e.sources {
		if err := s.begin(sched); err != nil {
			return err
		}
	}
	for _, s := range e.sinks {
		if err := s.begin(sched); err != nil {
			return err
		}
	}
	for _, s := range e.sinks {
		e.wg.Go(func() { s.run(e.ctx) })
	}
	for _, s := range e.sources {
		e.wg.Go(func() { s.run(e.ctx, sched) })
	}
	return nil
}

// Sample appends one sample per flow and side.
func (e *udpEndpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	for _, s := range e.sources {
		if now >= s.flow.Start {
			to = append(to, s.sample(now))
		}
	}
	for _, s := range e.sinks {
		if now >= s.flow.Start && s.meter != nil {
			to = append(to, s.sample(now))
		}
	}
	return to
}

// Messages appends what became of messages.
func (e *udpEndpoint) Messages(to []proto.Message, most int) []proto.Message {
	for _, s := range e.sinks {
		to = s.messages(to, most)
	}
	return to
}

// Stop ends the flows.
func (e *udpEndpoint) Stop() {
	e.cancel()
	for _, s := range e.sinks {
		s.waiter.wake()
	}
	e.wg.Wait()
}

// Results returns one result per flow.
func (e *udpEndpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, s := range e.sources {
		out = append(out, s.outcome())
	}
	for _, s := range e.sinks {
		out = append(out, s.outcome())
	}
	return out
}

// Facts adds nothing.
func (e *udpEndpoint) Facts(*proto.NodeFacts) {}

// Close stops the flows and frees the sockets.
func (e *udpEndpoint) Close() error {
	e.Stop()
	var errs []error
	for _, s := range e.sources {
		errs = append(errs, s.sock.close())
	}
	for _, s := range e.sinks {
		errs = append(errs, s.sock.close(), s.waiter.close())
	}
	return errors.Join(errs...)
}
