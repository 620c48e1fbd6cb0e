package simnet

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend/sim/simhop"
)

// hopFlow is one Hop flow with its source, its relays and its destination.
type hopFlow struct {
	net   *Net
	order *proto.Flow
	key   hop.FlowKey
	block vtime.Bytes

	ends    *ends
	dry     bool // the node was told that there is nothing now
	pattern *workload.Pattern
	opened  bool
	closed  bool

	from, to   vtime.Time // the measured interval
	meter      *workload.Meter
	high       vtime.Bytes // the most that the destination has reported
	blocks     int64
	corrupt    int64
	finishedAt [2]vtime.Time // at the source, at the destination
	err        *proto.Error
	last       []hop.FlowStats // along the path, as the nodes knew the flow last
	lives      []hop.FlowStats // what nodes of the path counted before they were switched off; nil: none was
}

func (n *Net) newHop(f *proto.Flow) (*hopFlow, error) {
	if err := n.startHop(); err != nil {
		return nil, err
	}
	h := &hopFlow{net: n, order: f, block: f.Options.BlockSize, pattern: workload.NewPattern(f.ID),
		key:        hop.FlowKey{Src: hop.NodeID(f.Src), Dst: hop.NodeID(f.Dst), Flow: hop.FlowID(f.ID)},
		finishedAt: [2]vtime.Time{vtime.Never, vtime.Never}, last: make([]hop.FlowStats, len(f.Path))}
	h.from, h.to = f.Measured(n.cfg.Warmup, n.cfg.End)
	h.meter = workload.NewMeter(h.from, h.to, f.Workload.Total())
	if h.block == 0 {
		h.block = n.cfg.Hop.BlockSize
	}
	if len(f.Path) < 2 {
		return nil, fmt.Errorf("the path has %d nodes: want those from source to destination", len(f.Path))
	}
	var err error
	if h.ends, err = n.newEnds(f, h); err == nil && h.ends.receipts != nil {
		h.ends.receipts.Blocks(h.block)
	}
	return h, err
}

func (h *hopFlow) begin(now vtime.Time) {
	h.opened = true
	if err := h.net.hop.Open(h.order.Src, h.key.Flow, h.order.Dst, h, hop.FlowOptions{BlockSize: h.block}); err != nil {
		h.fail(now, h.order.Src, proto.Source, proto.CodeFlow, err.Error())
	}
}

func (h *hopFlow) end(now vtime.Time) {
	h.progress(now - 1)
	h.remember()
	h.closed = true
	h.ends.rest()
	for _, node := range h.order.Path {
		h.net.hop.Node(node).CloseFlow(now, h.key, true)
		h.net.hop.Flush(node)
	}
}

// supply implements supplier.
func (h *hopFlow) supply(now vtime.Time) {
	if h.dry && h.opened && !h.closed {
		h.dry = false
		h.net.hop.Wake(h.order.Src, h.key.Flow, h.order.Dst)
	}
}

// Next implements hop.Source. A message begins a block of its own.
func (h *hopFlow) Next(now vtime.Time, buf []byte) (n int, last bool) {
	app := h.ends.app
	most := min(vtime.Bytes(len(buf)), app.Piece(now))
	for n < int(most) {
		k := copy(buf[n:most], h.pattern.At(int64(app.Taken()), min(int(most)-n, workload.MaxChunk)))
		app.Take(now, vtime.Bytes(k))
		n += k
	}
	last = h.ends.finished()
	if h.dry = n == 0 && !last; h.dry {
		h.ends.wait(now)
	}
	return n, last
}

// deliver verifies one block at the destination. What is still on its way when the
// flow ends meets nodes that know nothing of it any more, and does not count.
func (h *hopFlow) deliver(now vtime.Time, d hop.Delivery) {
	if h.closed {
		return
	}
	h.blocks++
	at, receipts := vtime.Bytes(d.Block)*h.block, h.ends.receipts
	message, known := 0, true
	if receipts != nil {
		var size vtime.Bytes
		message, at, size, known = receipts.Block(now, int(d.Block))
		known = known && size == vtime.Bytes(len(d.Data))
	}
	wrong := 0
	if known {
		wrong = h.pattern.Check(int64(at), d.Data)
	}
	if wrong >= 0 {
		h.corrupt++
		h.fail(now, h.order.Dst, proto.Destination, proto.CodeCorrupt, fmt.Sprintf("block %d differs from what the source sent at byte %d", d.Block, wrong))
		return
	}
	if receipts != nil {
		receipts.AddPart(now, message, vtime.Bytes(len(d.Data)))
		h.ends.received(now)
	}
}

func (h *hopFlow) fail(now vtime.Time, node int, side proto.Side, code proto.Code, detail string) {
	if h.err == nil {
		h.err = &proto.Error{Code: code, What: fmt.Sprintf("flow %d", h.order.ID), Detail: detail}
		h.net.event(node, h.order.ID, side, proto.Failed, now, h.err)
	}
}

// progress counts what has arrived at the destination up to now, since the last
// call. A partial block that was given up and comes again is not counted twice.
func (h *hopFlow) progress(now vtime.Time) {
	if h.closed {
		return
	}
	if d := h.net.hop.Node(h.order.Dst).Delivered(h.key); d > h.high {
		h.meter.Add(now, d-h.high)
		h.high = d
	}
}

// remember keeps the nodes' counters: they forget a flow that has ended.
func (h *hopFlow) remember() {
	for i := range h.order.Path {
		h.rememberAt(i)
	}
}

func (h *hopFlow) rememberAt(i int) {
	if s, ok := h.net.hop.Node(h.order.Path[i]).FlowStats(h.key); ok {
		h.last[i] = s
		if h.lives != nil {
			h.last[i].Add(&h.lives[i])
		}
	}
}

func (h *hopFlow) observe(now vtime.Time, to Observer) {
	for i, node := range h.order.Path {
		if h.side(i) == proto.Relay && !h.net.relayDue(now, h.order.ID, node) {
			continue
		}
		if !h.closed {
			h.rememberAt(i)
		}
		h.sample(now, i)
		to(node, &h.net.scratch)
	}
}

// sample fills the scratch sample for the i-th node of the path.
func (h *hopFlow) sample(now vtime.Time, i int) {
	s := &h.last[i]
	out := h.net.newSample(h.order.ID, h.side(i), now)
	out.SRTT, out.Sent = s.SRTT, s.BytesSent
	out.RetransPackets, out.Retrans = int64(s.Retransmitted), s.BytesAgain
	out.Held, out.MicroBlocks = s.HeldBytes, int64(s.MicroBlocks)
	out.BlocksHeld, out.BlocksInFlight, out.BlocksCached = int64(s.Held), int64(s.InFlight), int64(s.Cached)
	out.BlocksUnacked, out.Withheld = int64(s.Unacked), int64(s.Waiting)
	out.GrantsWithheld, out.Blocked, out.Tokens = int64(s.Withheld), int64(s.Blocked), int64(s.Tokens)
	out.DataFrames, out.ControlFrames = int64(s.PacketsSent), int64(s.BSYNs+s.BACKs+s.Tokens)
	switch out.Side {
	case proto.Source:
		out.BlocksDone = int64(s.BlocksAcked)
	case proto.Destination:
		out.Delivered, out.BlocksDone = h.meter.Total(), h.blocks
	case proto.Relay:
		out.BlocksDone = int64(s.BlocksSent)
	}
}

func (h *hopFlow) side(i int) proto.Side {
	switch i {
	case 0:
		return proto.Source
	case len(h.order.Path) - 1:
		return proto.Destination
	}
	return proto.Relay
}

func (h *hopFlow) account(now vtime.Time, to func(int, proto.FlowResult)) {
	if !h.closed {
		h.remember()
	}
	for i, node := range h.order.Path {
		h.sample(now, i)
		last := h.net.scratch
		r := proto.FlowResult{Flow: h.order.ID, Side: h.side(i), Last: &last, MeasuredFrom: h.from, MeasuredTo: h.to, Counters: repeats(&h.last[i])}
		at := vtime.Never
		switch r.Side {
		case proto.Source:
			at, r.Blocks, r.Total, r.Error = h.finishedAt[0], int64(h.last[i].BlocksAcked), h.ends.app.Taken(), h.err
		case proto.Destination:
			at, r.Blocks, r.Corrupt = h.finishedAt[1], h.blocks, h.corrupt
			r.Bytes, r.Total = h.meter.Measured(), h.meter.Total()
			if r.Total > h.ends.app.Taken() && h.err == nil {
				r.Error = &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", h.order.ID),
					Detail: fmt.Sprintf("%v arrived of %v that were sent", r.Total, h.ends.app.Taken())}
			}
		}
		if at != vtime.Never {
			r.Finished, r.FinishedAt = true, at
		}
		to(node, r)
	}
}

// repeats are the counters of a flow at a node that say what end-to-end repetition
// costs there, under the agent's names.
func repeats(s *hop.FlowStats) []proto.Counter {
	return nonZero([]proto.Counter{
		{Name: "hop_tokens", Delta: int64(s.Tokens)},
		{Name: "hop_data_again", Delta: int64(s.DataAgain)},
		{Name: "hop_data_redundant", Delta: int64(s.Redundant)},
	})
}

// startHop runs Hop on every node, once: any node may be a relay.
func (n *Net) startHop() error {
	if n.hop != nil {
		return nil
	}
	n.hop = simhop.New(n.eng, n.cfg.Nodes)
	n.hop.SetCarrier(carrier{n})
	for i := range n.cfg.Nodes {
		if err := n.hop.Add(i, n.cfg.Hop, hopRoutes{n, i}, hopApp{n, i}); err != nil {
			return err
		}
	}
	return nil
}

// hopRoutes is one node's routing table.
type hopRoutes struct {
	net  *Net
	node int
}

// NextHop implements hop.Routes.
func (r hopRoutes) NextHop(dst hop.NodeID) (hop.NodeID, bool) {
	via, ok := r.net.cfg.Routes.NextHop(r.node, int(dst))
	return hop.NodeID(via), ok
}

// hopApp is told what happens to the flows that begin or end at a node.
type hopApp struct {
	net  *Net
	node int
}

func (a hopApp) find(k hop.FlowKey) *hopFlow {
	for _, h := range a.net.hops {
		if h.key == k {
			return h
		}
	}
	return nil
}

// Accept implements hop.App.
func (a hopApp) Accept(_ vtime.Time, k hop.FlowKey) bool { return a.find(k) != nil }

// Deliver implements hop.App.
func (a hopApp) Deliver(now vtime.Time, d hop.Delivery) {
	if h := a.find(d.Flow); h != nil {
		h.deliver(now, d)
	}
}

// Finished implements hop.App.
func (a hopApp) Finished(now vtime.Time, k hop.FlowKey) {
	h := a.find(k)
	switch {
	case h == nil:
	case a.node == h.order.Src:
		h.finishedAt[0] = now
	default:
		h.finishedAt[1] = now
		a.net.event(a.node, h.order.ID, proto.Destination, proto.Finished, now, nil)
	}
}

// Failed implements hop.App.
func (a hopApp) Failed(now vtime.Time, k hop.FlowKey, err error) {
	h := a.find(k)
	if h == nil {
		return
	}
	code := proto.CodeFlow
	if _, ok := errors.AsType[*hop.CorruptError](err); ok {
		code = proto.CodeCorrupt
		h.corrupt++
	}
	side := proto.Destination
	if a.node == h.order.Src {
		side = proto.Source
	}
	h.fail(now, a.node, side, code, err.Error())
}
