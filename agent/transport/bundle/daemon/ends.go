//go:build linux

package daemon

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/agent/transport/bundle/cut"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// ends is the application at the end of a flow that is at this node. It implements
// bundle.App, with the flow's mu held.
type ends struct {
	f       *flow
	size    vtime.Bytes
	pattern *workload.Pattern

	app *workload.Source // at the source

	meter    *workload.Meter // at the destination, as what follows
	receipts *workload.Receipts
	sink     *cut.Sink
	from, to vtime.Time
	whole    vtime.Time // when everything was there; 0: not yet
}

// prepare checks what begin needs.
func (e *ends) prepare(order *proto.Flow) error {
	e.size = cut.OptionsOf(order).Size
	if err := order.Workload.Validate(); err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: "workload", Detail: err.Error()}
	}
	return nil
}

func (e *ends) begin(f *flow, sched transport.Schedule) (err error) {
	order := &f.order
	e.f, e.pattern = f, workload.NewPattern(order.ID)
	switch f.side {
	case proto.Source:
		e.app, err = workload.NewSource(order.Workload, order.Start, f.stop)
	case proto.Destination:
		e.from, e.to = order.Measured(sched.Warmup, sched.End)
		e.meter = workload.NewMeter(e.from, e.to, order.Workload.Total())
		if order.Workload.HasMessages() {
			e.receipts, err = workload.NewReceipts(order.Workload, order.Start, f.stop)
		}
		e.sink = cut.NewSink(order.Workload, e.size, e.meter, e.receipts)
	}
	if err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", order.ID), Detail: err.Error()}
	}
	return nil
}

// next is when more becomes ready.
func (e *ends) next(now vtime.Time) vtime.Time {
	if e.app == nil || e.app.Finished() {
		return vtime.Never
	}
	return e.app.Next(now)
}

// Next implements bundle.App.
func (e *ends) Next(now vtime.Time) bundle.Content {
	if now < e.f.order.Start || now >= e.f.stop {
		return nil
	}
	n := int(cut.Next(e.app, now, e.size))
	if n == 0 {
		return nil
	}
	data, at := make(bundle.Bytes, 0, n), int64(e.app.Taken())
	for len(data) < n {
		data = append(data, e.pattern.At(at+int64(len(data)), n-len(data))...)
	}
	e.app.Take(now, vtime.Bytes(n))
	return data
}

// Finished implements bundle.App.
func (e *ends) Finished() bool { return e.app.Finished() && e.f.order.Workload.Ends() }

// Deliver implements bundle.App: it verifies the bundle and counts it, now that it
// is complete.
func (e *ends) Deliver(now vtime.Time, b *bundle.Bundle) {
	f, seq := e.f, b.Created.Seq
	p, ok := e.sink.Part(now, seq)
	if !ok || int(p.N) != b.Payload.Len() {
		e.corrupt(now, b, fmt.Sprintf("bundle %d has %d bytes, want %d", seq, b.Payload.Len(), p.N))
		return
	}
	data, err := b.Payload.Append(nil, 0, b.Payload.Len())
	if err != nil {
		f.fail(now, proto.AsError(err, proto.CodeSystem))
		return
	}
	if wrong := e.pattern.Check(int64(p.At), data); wrong >= 0 {
		e.corrupt(now, b, fmt.Sprintf("bundle %d is not what the source sent from byte %d on", seq, wrong))
		return
	}
	if now >= f.stop || f.halted > 0 {
		return
	}
	e.sink.Add(now, p)
	if e.receipts != nil && f.peer != nil {
		f.peer.heard(now, e.receipts.Prefix())
	}
	if e.whole == 0 && e.sink.Whole() {
		e.whole = now
		f.e.node.Event(proto.Event{Flow: f.order.ID, Side: f.side, Kind: proto.Finished, T: now})
	}
}

func (e *ends) corrupt(now vtime.Time, b *bundle.Bundle, detail string) {
	e.f.result.Corrupt += int64(b.Payload.Len())
	e.f.fail(now, &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", e.f.order.ID), Detail: detail})
}

// heard tells the source of a flow that the other flow of its exchange brought
// something.
func (f *flow) heard(now vtime.Time, total vtime.Bytes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends.app.Heard(now, total)
	f.happened()
}
