package simnet

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/agent/transport/bundle/cut"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// bundleNode is a node of a bundle flow's path: the machine that agents run, with
// its connections and its disk, which takes no time.
type bundleNode struct {
	f       *bundleFlow
	index   int // along the path
	node    int
	cfg     bundle.Config
	machine *bundle.Node // nil while the node is switched off
	up      *bundleLink  // from the node before; nil: the source
	down    *bundleLink  // to the next node; nil: the destination
	disk    []filed
	lives   bundle.Stats // before the node was switched off
	most    vtime.Bytes

	event   des.EventID
	at      vtime.Time // when event fires; vtime.Never: none
	pumping bool
}

// filed is a bundle on disk.
type filed struct {
	seq uint64
	b   *bundle.Bundle
}

func (b *bundleNode) side() proto.Side {
	switch {
	case b.up == nil:
		return proto.Source
	case b.down == nil:
		return proto.Destination
	}
	return proto.Relay
}

// start gives the node a machine without memory, and what is on its disk.
func (b *bundleNode) start(now vtime.Time) {
	m, err := bundle.New(b.cfg, b)
	if err != nil {
		panic(fmt.Sprintf("simnet: flow %d: a configuration that was valid before: %v", b.f.order.ID, err))
	}
	b.machine = m
	for _, x := range b.disk {
		c := *x.b
		m.Restore(now, &c, c.Encode().Len())
	}
}

// Next implements bundle.App: the source's next payload.
func (b *bundleNode) Next(now vtime.Time) bundle.Content {
	e := b.f.ends
	n := cut.Next(e.app, now, b.f.size)
	if n == 0 {
		e.wait(now)
		return nil
	}
	e.app.Take(now, n)
	return bundle.Zeros(n)
}

// Finished implements bundle.App.
func (b *bundleNode) Finished() bool { return b.f.ends.finished() }

// Deliver implements bundle.App: a bundle has come to its destination.
func (b *bundleNode) Deliver(now vtime.Time, x *bundle.Bundle) { b.f.deliver(now, x) }

// Fire implements des.Handler: a deadline of the machine may have come.
func (b *bundleNode) Fire(now vtime.Time, _ uint64) {
	b.event, b.at = 0, vtime.Never
	b.pump(now)
}

// pump does all that can be done at the node now.
func (b *bundleNode) pump(now vtime.Time) {
	if b.machine == nil || b.f.ended || b.pumping {
		return
	}
	b.pumping = true
	if b.machine.Deadline() <= now {
		b.machine.Expire(now)
	}
	for b.step(now) {
	}
	b.pumping = false
	if b.up != nil && b.up.server != nil {
		b.up.server.flush(now)
	}
	if b.down != nil {
		if b.machine.Dial() {
			b.down.connect(now)
		}
		if b.down.client != nil {
			b.down.client.flush(now)
		}
	}
	b.plan(now)
}

// step moves what can be moved once; false when nothing could.
func (b *bundleNode) step(now vtime.Time) (moved bool) {
	for {
		op, ok := b.machine.Op()
		if !ok {
			break
		}
		b.file(now, op)
		moved = true
	}
	if b.up != nil && b.up.b.s != nil {
		moved = b.up.b.move(now, b.up.server) || moved
		moved = b.up.b.settle(now, b.up.server) || moved
	}
	if b.down != nil && b.down.a.s != nil {
		moved = b.down.a.move(now, b.down.client) || moved
		moved = b.down.a.settle(now, b.down.client) || moved
	}
	return moved
}

// file does what the machine asks of its disk.
func (b *bundleNode) file(now vtime.Time, op bundle.Op) {
	if op.Kind == bundle.Save {
		b.disk = append(b.disk, filed{op.Seq, op.Encoded.Bundle()})
		b.machine.Saved(now, op.Seq, nil, nil)
		return
	}
	if i := slices.IndexFunc(b.disk, func(x filed) bool { return x.seq == op.Seq }); i >= 0 {
		b.disk = slices.Delete(b.disk, i, i+1)
	}
}

// plan keeps one event at the machine's deadline.
func (b *bundleNode) plan(now vtime.Time) {
	d := b.machine.Deadline()
	if d == b.at {
		return
	}
	eng := b.f.net.eng
	eng.Cancel(b.event)
	if b.event, b.at = 0, d; d < vtime.Never {
		b.at = vtime.Max(d, now)
		b.event = eng.Schedule(b.at, b, uint64(b.node))
	}
}

// stop forgets the machine; what it has counted is kept.
func (b *bundleNode) stop() {
	b.f.net.eng.Cancel(b.event)
	b.event, b.at = 0, vtime.Never
	if b.machine != nil {
		b.lives, b.most = b.stats(), b.held()
	}
	b.machine = nil
}

// stats are the counters of all of the node's lives.
func (b *bundleNode) stats() bundle.Stats {
	s := b.lives
	if b.machine != nil {
		s.Add(b.machine.Stats())
	}
	return s
}

// held is the most that the node has ever stored.
func (b *bundleNode) held() vtime.Bytes {
	if b.machine == nil {
		return b.most
	}
	_, _, most := b.machine.Held()
	return max(b.most, most)
}

// sample fills the scratch sample.
func (b *bundleNode) sample(now vtime.Time) *proto.Sample {
	s := b.f.net.newSample(b.f.order.ID, b.side(), now)
	stats := b.stats()
	if b.machine != nil && b.side() != proto.Destination {
		bundles, bytes, _ := b.machine.Held()
		s.BlocksHeld, s.Held = int64(bundles), bytes
	}
	if b.down != nil {
		s.BlocksDone = int64(stats.Forwarded)
		b.down.sample(s)
	} else {
		s.BlocksDone, s.Delivered = int64(stats.Delivered), b.f.meter.Total()
	}
	return s
}

// account is the node's part in the flow's results.
func (b *bundleNode) account(now vtime.Time) proto.FlowResult {
	stats, f := b.stats(), b.f
	last := *b.sample(now)
	r := proto.FlowResult{Flow: f.order.ID, Side: b.side(), Last: &last}
	stats.Each(func(name string, v uint64) {
		if v > 0 {
			r.Counters = append(r.Counters, proto.Counter{Name: name, Delta: int64(v)})
		}
	})
	if l := b.down; l != nil {
		r.Blocks, r.Attempts, r.Error = int64(stats.Forwarded), l.attempts, l.outcome()
		if l.first != vtime.Never {
			r.Established, r.SetupTime, r.CC = l.first, l.setup, f.cc
		}
	}
	switch r.Side {
	case proto.Source:
		r.Total = f.ends.app.Taken()
		if f.finishedAt != vtime.Never {
			r.Finished, r.FinishedAt = true, f.finishedAt
		}
	case proto.Relay:
		r.MaxHeld = b.held()
	case proto.Destination:
		r.Blocks, r.Attempts = int64(stats.Delivered), b.up.attempts
		r.Bytes, r.Total, r.MeasuredFrom, r.MeasuredTo = f.meter.Measured(), f.meter.Total(), f.from, f.to
		r.Finished, r.FinishedAt, r.Error = f.done, f.doneAt, f.err
		if b.up.first != vtime.Never {
			r.Established, r.CC = b.up.first, f.cc
		}
	}
	return r
}
