//go:build linux

package sock

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// hopFlow is one Hop flow at this node.
type hopFlow struct {
	Flow  proto.Flow
	side  proto.Side
	key   hop.FlowKey
	block vtime.Bytes

	stop    vtime.Time
	opened  bool
	closed  bool
	dry     bool               // the node was told that there is nothing now
	app     *workload.Source   // source
	pattern *workload.Pattern  // source and destination
	meter   *workload.Meter    // every side, once begun; counts at the destination
	account *workload.Receipts // the same of messages
	peer    *hopFlow           // the other flow of an exchange, where it begins at this node
	high    vtime.Bytes        // the most that the node has reported as delivered
	last    hop.FlowStats      // as the node knew the flow last
	lives   hop.FlowStats      // what it counted before it was switched off
	result  proto.FlowResult
	failed  *proto.Error // to be reported
}

func newHopFlow(f proto.Flow, side proto.Side, cfg hop.Config) *hopFlow {
	h := &hopFlow{Flow: f, side: side, block: f.Options.BlockSize, result: proto.FlowResult{Flow: f.ID, Side: side}}
	h.key = hop.FlowKey{Src: hop.NodeID(f.Src), Dst: hop.NodeID(f.Dst), Flow: hop.FlowID(f.ID)}
	if h.block == 0 {
		h.block = cfg.BlockSize
	}
	if side != proto.Relay {
		h.pattern = workload.NewPattern(f.ID)
	}
	return h
}

func (f *hopFlow) begin(sched transport.Schedule) error {
	f.stop = sched.FlowStop(&f.Flow)
	from, to := f.Flow.Measured(sched.Warmup, sched.End)
	f.meter = workload.NewMeter(from, to, f.Flow.Workload.Total())
	f.result.MeasuredFrom, f.result.MeasuredTo = from, to
	account, err := workload.NewReceipts(f.Flow.Workload, f.Flow.Start, f.stop)
	if err == nil && f.side == proto.Source {
		f.app, err = workload.NewSource(f.Flow.Workload, f.Flow.Start, f.stop)
	}
	if err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", f.Flow.ID), Detail: err.Error()}
	}
	account.Blocks(f.block)
	f.account = account
	return nil
}

// turn opens the flow at its start and closes it at its stop; it returns when
// it has to be called again.
func (f *hopFlow) turn(now vtime.Time, n *hop.Node) vtime.Time {
	if f.side != proto.Source || f.closed {
		return vtime.Never
	}
	if !f.opened {
		if now < f.Flow.Start {
			return f.Flow.Start
		}
		f.opened = true
		if err := n.OpenFlow(now, f.key.Flow, f.key.Dst, f, hop.FlowOptions{BlockSize: f.block}); err != nil {
			f.closed = true
			f.failed = &proto.Error{Code: proto.CodeFlow, What: fmt.Sprintf("flow %d", f.Flow.ID), Detail: err.Error()}
			return vtime.Never
		}
	}
	if now >= f.stop {
		f.remember(n)
		f.closed = true
		n.CloseFlow(now, f.key, true)
		return vtime.Never
	}
	switch ready := f.app.Ready(now); {
	case f.app.Finished():
	case ready == 0:
		return vtime.Min(f.stop, f.app.Next(now))
	case f.dry:
		f.dry = false
		n.Wake(now, f.key.Flow, f.key.Dst)
	}
	return f.stop
}

// Next fills one block, with bytes of one message where there are messages;
// hop.Source.
func (f *hopFlow) Next(now vtime.Time, buf []byte) (n int, last bool) {
	size := int(min(f.app.Piece(now), vtime.Bytes(len(buf))))
	for n < size {
		k := copy(buf[n:size], f.pattern.At(int64(f.app.Taken()), size-n))
		f.app.Take(now, vtime.Bytes(k))
		n += k
	}
	last = f.Flow.Workload.Ends() && f.app.Finished()
	f.dry = n == 0 && !last
	return n, last
}

// deliver verifies one block and accounts for it. What relays still hold when the
// flow ends may come later; it does not count.
func (f *hopFlow) deliver(now vtime.Time, d hop.Delivery) *proto.Error {
	if now >= f.stop {
		return nil
	}
	f.result.Blocks++
	at := int64(d.Block) * int64(f.block)
	if f.Flow.Workload.HasMessages() {
		k, begin, n, ok := f.account.Block(now, int(d.Block))
		if !ok || n != vtime.Bytes(len(d.Data)) {
			f.result.Corrupt++
			return &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", f.Flow.ID),
				Detail: fmt.Sprintf("block %d has %d bytes, the workload's schedule says %v", d.Block, len(d.Data), n)}
		}
		at = int64(begin)
		defer func() {
			f.account.AddPart(now, k, n)
			if f.peer != nil {
				f.peer.app.Heard(now, f.account.Prefix())
			}
		}()
	}
	if wrong := f.pattern.Check(at, d.Data); wrong >= 0 {
		f.result.Corrupt++
		return &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", f.Flow.ID),
			Detail: fmt.Sprintf("block %d differs from what the source sent at byte %d", d.Block, wrong)}
	}
	return nil
}

// progress counts what has arrived at the destination since the last call. A
// partial block that was given up and comes again is not counted twice; nothing
// is counted after the flow's end.
func (f *hopFlow) progress(now vtime.Time, n *hop.Node) {
	if f.side != proto.Destination || now >= f.stop {
		return
	}
	if d := n.Delivered(f.key); d > f.high {
		f.meter.Add(now, d-f.high)
		f.high = d
	}
}

// remember keeps the node's counters: it forgets a flow that has ended.
func (f *hopFlow) remember(n *hop.Node) {
	if s, ok := n.FlowStats(f.key); ok {
		f.last = s
		f.last.Add(&f.lives)
	}
}

func (f *hopFlow) sample(now vtime.Time, n *hop.Node) proto.Sample {
	f.remember(n)
	s := &f.last
	out := proto.Sample{
		Flow: f.Flow.ID, Side: f.side, T: now, SRTT: s.SRTT,
		Sent: s.BytesSent, RetransPackets: int64(s.Retransmitted), Retrans: s.BytesAgain,
		Held: s.HeldBytes, BlocksHeld: int64(s.Held), BlocksInFlight: int64(s.InFlight), BlocksCached: int64(s.Cached), BlocksUnacked: int64(s.Unacked),
		Withheld: int64(s.Waiting), MicroBlocks: int64(s.MicroBlocks), GrantsWithheld: int64(s.Withheld), Blocked: int64(s.Blocked),
		Tokens: int64(s.Tokens), DataFrames: int64(s.PacketsSent), ControlFrames: int64(s.BSYNs + s.BACKs + s.Tokens),
	}
	switch f.side {
	case proto.Source:
		out.BlocksDone = int64(s.BlocksAcked)
	case proto.Destination:
		out.Delivered, out.BlocksDone = f.meter.Total(), f.result.Blocks
	case proto.Relay:
		out.BlocksDone = int64(s.BlocksSent)
	}
	return out
}

// outcome is the flow's account after the loop has ended at halted.
func (f *hopFlow) outcome(halted vtime.Time, n *hop.Node) proto.FlowResult {
	r := f.result
	if f.meter == nil {
		return r
	}
	r.MeasuredTo = vtime.Max(r.MeasuredFrom, vtime.Min(r.MeasuredTo, halted))
	last := f.sample(halted, n)
	r.Last = &last
	r.Counters = repeats(&f.last)
	switch f.side {
	case proto.Source:
		r.Blocks = int64(f.last.BlocksAcked)
		if f.app != nil {
			r.Total = f.app.Taken()
		}
	case proto.Destination:
		r.Bytes, r.Total = f.meter.Measured(), f.meter.Total()
	}
	return r
}

// find returns the flow with the key and side.
func (e *hopEndpoint) find(key hop.FlowKey, side proto.Side) *hopFlow {
	for _, f := range e.flows {
		if f.key == key && f.side == side {
			return f
		}
	}
	return nil
}

// report puts a flow's error into its result and tells the controller, once.
func (e *hopEndpoint) report(f *hopFlow, now vtime.Time) {
	if f.result.Error == nil {
		f.result.Error = f.failed
		e.node.Event(proto.Event{Flow: f.Flow.ID, Side: f.side, Kind: proto.Failed, T: now, Error: f.failed})
	}
	f.failed = nil
}

// Accept takes the flows that were configured to end here; hop.App.
func (e *hopEndpoint) Accept(_ vtime.Time, key hop.FlowKey) bool {
	if e.find(key, proto.Destination) != nil {
		return true
	}
	e.facts.refused++
	return false
}

// Deliver verifies a block; hop.App.
func (e *hopEndpoint) Deliver(now vtime.Time, d hop.Delivery) {
	if f := e.find(d.Flow, proto.Destination); f != nil {
		if err := f.deliver(now, d); err != nil {
			f.failed = err
			e.report(f, now)
		}
	}
}

// Finished notes the end of a sized flow; hop.App.
func (e *hopEndpoint) Finished(now vtime.Time, key hop.FlowKey) {
	for _, side := range []proto.Side{proto.Source, proto.Destination} {
		f := e.find(key, side)
		if f == nil {
			continue
		}
		// turn counts the last bytes, at this very moment.
		f.result.Finished, f.result.FinishedAt = true, now
		e.node.Event(proto.Event{Flow: f.Flow.ID, Side: side, Kind: proto.Finished, T: now})
	}
}

// Failed notes a block whose hash did not match: the network handed over what
// nobody sent; hop.App.
func (e *hopEndpoint) Failed(now vtime.Time, key hop.FlowKey, err error) {
	f := e.find(key, proto.Destination)
	if f == nil {
		f = e.find(key, proto.Source)
	}
	if f == nil {
		e.node.Log("warn", err.Error())
		return
	}
	code := proto.CodeFlow
	if _, ok := errors.AsType[*hop.CorruptError](err); ok {
		code = proto.CodeCorrupt
		f.result.Corrupt++
	}
	f.failed = &proto.Error{Code: code, What: fmt.Sprintf("flow %d", f.Flow.ID), Detail: err.Error()}
	e.report(f, now)
}
