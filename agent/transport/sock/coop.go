//go:build linux

package sock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/hopbed/hopbed/agent/broadcast"
	"github.com/hopbed/hopbed/agent/coop"
	"github.com/hopbed/hopbed/agent/coop/clamp"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

const coopFamily = "coop-tcp"

// Coop is the driver of "coop-tcp/CC": flows as those of TCP, whose windows the
// node's station bounds (package coop).
type Coop struct{}

// Family returns "coop-tcp".
func (Coop) Family() string { return coopFamily }

// Wanted is false: a node that sends nothing needs to hear no beacons.
func (Coop) Wanted(*transport.Node) bool { return false }

// Check refuses what TCP refuses, and a fixed cap beside the station's.
func (Coop) Check(f *proto.Flow) error {
	if err := (TCP{}).Check(f); err != nil {
		return err
	}
	if f.Options.CwndCap > 0 {
		return refuseForeign(coopFamily, []Foreign{{"cwnd_cap", true}})
	}
	if o := f.Options.Coop; o != nil {
		if o.Bandwidth < 0 {
			return &proto.Error{Code: proto.CodeOrder, What: "option coop.bandwidth_bps", Got: fmt.Sprint(int64(o.Bandwidth)), Wanted: "0 or more"}
		}
		if known := []proto.CoopLimit{"", proto.LimitAuto, proto.LimitBPF, proto.LimitQueue}; !slices.Contains(known, o.Limit) {
			return &proto.Error{Code: proto.CodeOrder, What: "option coop.limit", Got: string(o.Limit), Wanted: "auto, bpf or queue"}
		}
	}
	return nil
}

// coopEndpoint is the node's station, and its flows.
type coopEndpoint struct {
	*tcpEndpoint
	clamp *clamp.Clamp // nil: windows are bounded by the sockets' queues
	limit string       // which it is, and why
	conn  *net.UDPConn // of the beacons; nil where no flow begins here
	kick  chan struct{}
	clock transport.Clock
	once  sync.Once // for Close

	mu      sync.Mutex // guards what follows
	station *coop.Station
	live    []*coopWindow // of connections that stand
}

// Open opens the flows as TCP does, and the station of a node at which some begin.
func (Coop) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &coopEndpoint{tcpEndpoint: &tcpEndpoint{node: n}, kick: make(chan struct{}, 1)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.prepare = e.bound
	for _, f := range flows {
		err := e.join(&f)
		if err == nil {
			err = e.open(f)
		}
		if err != nil {
			return nil, errors.Join(inFlow(err, f.ID), e.Close())
		}
	}
	for i := range e.setups {
		if e.setups[i].Side == proto.Source {
			e.setups[i].Limit = e.limit
		}
	}
	return e, nil
}

// join makes the station with the first flow that begins here.
func (e *coopEndpoint) join(f *proto.Flow) error {
	if f.Src != e.node.ID || e.station != nil {
		return nil
	}
	c, way := coop.Config{Addr: f.SrcAddr, Seed: uint64(e.node.ID)}, proto.LimitAuto
	if o := f.Options.Coop; o != nil {
		c.Bandwidth, c.Always = o.Bandwidth, o.Always
		if o.Limit != "" {
			way = o.Limit
		}
	}
	e.station = coop.New(c)
	if err := e.choose(way); err != nil {
		return err
	}
	iface, err := towards(f.DstAddr)
	if err == nil {
		e.conn, err = broadcast.Listen(iface, coop.Port, coop.DSCP)
	}
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: fmt.Sprintf("beacons at UDP port %d", coop.Port), Detail: err.Error()}
	}
	return nil
}

// choose decides how windows are bounded.
func (e *coopEndpoint) choose(way proto.CoopLimit) (err error) {
	e.limit = string(proto.LimitQueue) + ": as ordered"
	if way == proto.LimitQueue {
		return nil
	}
	e.clamp, err = clamp.New()
	if err == nil {
		e.limit = string(proto.LimitBPF)
		return nil
	}
	e.clamp = nil
	why, ok := errors.AsType[*proto.Error](err)
	if !ok || why.Code != proto.CodeUnavailable || way == proto.LimitBPF {
		return err
	}
	e.limit = string(proto.LimitQueue) + ": " + why.Detail
	e.node.Log("warn", "windows of coop-tcp are bounded by the sockets' queues (SIOCOUTQ), not by the kernel: "+why.Error())
	return nil
}

// towards names the interface by which packets to an address leave.
func towards(dst netip.Addr) (string, error) {
	routes, err := netlink.RouteGet(dst.AsSlice())
	if err != nil || len(routes) == 0 {
		return "", fmt.Errorf("the route to %v: %w", dst, err)
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", fmt.Errorf("the interface towards %v: %w", dst, err)
	}
	return link.Attrs().Name, nil
}

// notSent keeps what the kernel has of a flow and has not sent short, in bytes, where
// the queue is what is bounded: what is in it cannot be taken back.
const notSent = 16 * vtime.KiB

// bound gives a source its window.
func (e *coopEndpoint) bound(f *proto.Flow, opt *Options) *coopWindow {
	w := &coopWindow{flow: f.ID, station: e, clamp: e.clamp}
	if e.clamp != nil {
		opt.created = w.created
	} else if opt.NotSentLow == 0 {
		opt.NotSentLow = notSent
	}
	return w
}

// Start schedules the flows and lets the station listen.
func (e *coopEndpoint) Start(sched transport.Schedule) error {
	e.clock = sched.Clock
	if e.station != nil {
		e.wg.Go(e.listen)
		e.wg.Go(e.run)
	}
	return e.tcpEndpoint.Start(sched)
}

func (e *coopEndpoint) begin(w *coopWindow, conn *net.TCPConn, mss int) {
	e.mu.Lock()
	w.conn, w.mss = conn, mss
	e.live = append(e.live, w)
	e.station.Begin(e.clock.Now(), w.flow)
	e.mu.Unlock()
	e.wake()
}

func (e *coopEndpoint) end(w *coopWindow) {
	e.mu.Lock()
	if i := slices.Index(e.live, w); i >= 0 {
		e.live = slices.Delete(e.live, i, i+1)
		e.station.End(w.flow)
	}
	e.mu.Unlock()
	e.wake()
}

// wake lets run look at the station's deadline again.
func (e *coopEndpoint) wake() {
	select {
	case e.kick <- struct{}{}:
	default: // it has not looked yet
	}
}

// listen hears beacons until the socket is closed.
func (e *coopEndpoint) listen() {
	buf := make([]byte, 256)
	for {
		n, from, err := e.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				e.node.Log("warn", "beacons: receiving: "+err.Error())
			}
			return
		}
		if coop.IsBeacon(buf[:n]) {
			e.mu.Lock()
			e.station.Receive(e.clock.Now(), from.Addr().Unmap())
			e.mu.Unlock()
			e.wake()
		}
	}
}

// run serves the station's deadlines until the stop.
func (e *coopEndpoint) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.kick:
		case <-e.ctx.Done():
			return
		}
		e.serve()
		e.mu.Lock()
		at := e.station.Deadline()
		e.mu.Unlock()
		if at == vtime.Never {
			timer.Stop()
			continue
		}
		timer.Reset(at.Sub(e.clock.Now()).Std())
	}
}

// serve measures, and does what the station wants done.
func (e *coopEndpoint) serve() {
	now := e.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.station.Deadline() <= now {
		for _, w := range e.live {
			var s proto.Sample
			// Of a connection that is just ending nothing is known.
			if OnConn(w.conn, func(fd int) error { return probe.TCPInfo(fd, &s) }) == nil {
				e.station.Measure(w.flow, s.SRTT)
			}
		}
		e.station.Expire(now)
	}
	for {
		b, ok := e.station.Poll(now)
		if !ok {
			break
		}
		if _, err := e.conn.WriteToUDPAddrPort(b, broadcast.To(coop.Port)); err != nil && !errors.Is(err, net.ErrClosed) {
			e.node.Log("warn", "beacons: sending: "+err.Error())
		}
	}
	for _, c := range e.station.Changes() {
		for _, w := range e.live {
			if w.flow != c.Flow {
				continue
			}
			if err := w.set(c.Cap); err != nil {
				e.node.Log("warn", fmt.Sprintf("flow %d: %v", c.Flow, err))
			}
		}
		e.node.Event(proto.Event{Flow: c.Flow, Side: proto.Source, Kind: proto.Window, T: c.T, Text: c.String()})
	}
}

// Stop ends the flows and the station.
func (e *coopEndpoint) Stop() {
	e.cancel()
	if e.conn != nil {
		_ = e.conn.Close() // nothing is buffered in a UDP socket; it may be closed already
	}
	e.tcpEndpoint.Stop()
}

// Close stops and frees everything.
func (e *coopEndpoint) Close() (err error) {
	e.Stop()
	e.once.Do(func() {
		if e.clamp != nil {
			err = e.clamp.Close()
		}
	})
	return err
}
