package sim

import (
	"context"

	"github.com/hopbed/hopbed/agent/linkprobe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

var _ backend.Prober = (*Backend)(nil)

// Probe implements backend.Prober: the probers that real nodes run, over the
// medium in virtual time. Equal scenarios give equal surveys.
func (b *Backend) Probe(ctx context.Context, s *plan.Scenario, tell backend.Progress) (*etx.Survey, error) {
	w := &world{s: s, eng: des.New()}
	p, err := newProbing(w)
	if err == nil {
		err = w.addMediumOf(p)
	}
	if err != nil {
		return nil, &backend.Permanent{Err: err}
	}
	end := vtime.Time(linkprobe.Span(p.order.Count, p.order.Period) + backend.ProbeTail)
	p.start()
	for now := vtime.Time(0); now < end; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tell("probe the links", vtime.Duration(now), vtime.Duration(end))
		now = min(end, now.Add(tick))
		w.eng.RunUntil(now)
	}
	heard := make([]*proto.Heard, len(p.nodes))
	for i, n := range p.nodes {
		if n != nil {
			heard[i] = n.Heard()
		}
	}
	return backend.Surveyed(s.Topology, p.order.Count, heard)
}

// probing is a measurement of links: a prober at every node with a radio, and the
// medium's sink.
type probing struct {
	w     *world
	order proto.Probe
	nodes []*linkprobe.Prober // nil: no radio
}

func newProbing(w *world) (*probing, error) {
	t := w.s.Topology
	p := &probing{w: w, order: backend.ProbeOrder(w.s, w.s.Seed), nodes: make([]*linkprobe.Prober, len(t.Nodes))}
	for i := range t.Nodes {
		if !t.Nodes[i].Radio {
			continue
		}
		var err error
		if p.nodes[i], err = linkprobe.New(i, p.order); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *probing) start() {
	for i, n := range p.nodes {
		if n != nil && n.Deadline() != vtime.Never {
			p.w.eng.Schedule(n.Deadline(), p, uint64(i))
		}
	}
}

// Fire implements des.Handler: a node's next probe is due.
func (p *probing) Fire(now vtime.Time, node uint64) {
	n := p.nodes[node]
	n.Expire(now)
	for {
		b, ok := n.Poll(now)
		if !ok {
			break
		}
		f := p.w.med.NewFrame()
		f.Src, f.Dst, f.AC, f.Len = int(node), wifi.Broadcast, wifi.BE, p.order.Size
		f.Data = append(f.Data[:0], b...)
		p.w.med.Enqueue(f) // what a full queue refuses was sent and got lost, as at a TAP
	}
	if at := n.Deadline(); at != vtime.Never {
		p.w.eng.Schedule(at, p, node)
	}
}

// Deliver implements wifi.Sink.
func (p *probing) Deliver(now vtime.Time, node int, f *wifi.Frame) {
	p.nodes[node].Receive(now, f.Data)
}

// Done implements wifi.Sink.
func (p *probing) Done(vtime.Time, *wifi.Frame, wifi.Outcome) {}
