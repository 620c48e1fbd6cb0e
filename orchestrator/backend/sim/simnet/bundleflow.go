package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/agent/transport/bundle/cut"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// bundleFlow is a flow of bundles: at each node of its path the machine that agents
// run, between each two nodes a model TCP. TCP carries lengths; the messages that
// they stand for go beside it, in the same order.
type bundleFlow struct {
	net   *Net
	order *proto.Flow
	stop  vtime.Time
	cc    string
	size  vtime.Bytes
	nodes []*bundleNode
	links []*bundleLink
	ends  *ends
	ended bool

	from, to   vtime.Time // the measured interval
	meter      *workload.Meter
	sink       *cut.Sink
	finishedAt vtime.Time // the first hop has acknowledged everything
	done       bool
	doneAt     vtime.Time
	err        *proto.Error
}

func (n *Net) newBundle(f *proto.Flow) (*bundleFlow, error) {
	_, cc := transport.Split(f.Transport)
	b := &bundleFlow{net: n, order: f, stop: n.stopOf(f), cc: cc, finishedAt: vtime.Never}
	if len(f.Path) < 2 {
		return nil, fmt.Errorf("the path has %d nodes: want those from source to destination", len(f.Path))
	}
	var err error
	if b.ends, err = n.newEnds(f, b); err != nil {
		return nil, err
	}
	o := cut.OptionsOf(f)
	b.size = o.Size
	b.from, b.to = f.Measured(n.cfg.Warmup, n.cfg.End)
	b.meter = workload.NewMeter(b.from, b.to, f.Workload.Total())
	b.sink = cut.NewSink(f.Workload, b.size, b.meter, b.ends.receipts)
	for i, node := range f.Path {
		x := &bundleNode{f: b, index: i, node: node, cfg: cut.NodeConfig(f, i), at: vtime.Never}
		if err := x.cfg.Validate(); err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, x)
	}
	return b, b.addLinks(cc)
}

// addLinks makes the connections' configurations. Every socket's buffers are the
// kernel's: the store is the bundle relay's buffer.
func (b *bundleFlow) addLinks(cc string) error {
	f, n := b.order, b.net
	seeds := des.NewStream(n.cfg.Seed, fmt.Sprintf("flow/%d/tcp", f.ID))
	for i := 1; i < len(f.Path); i++ {
		l := &bundleLink{f: b, first: vtime.Never, link: link{net: n, app: b, index: i - 1, flow: f.ID, from: f.Path[i-1], to: f.Path[i],
			ac: wifi.CategoryOf(uint8(f.Options.DSCP)), dscp: uint8(f.Options.DSCP), port: uint16(transport.FlowPort + f.ID),
			established: vtime.Never, accepted: vtime.Never}}
		var err error
		if l.maker, l.listener, err = n.connConfigs(f, cc, false, true, true); err != nil {
			return err
		}
		l.maker.Seed, l.listener.Seed = seeds.Uint64(), seeds.Uint64()
		from, to := b.nodes[i-1], b.nodes[i]
		l.a, l.b = bundleEnd{n: from, other: &l.b}, bundleEnd{n: to, other: &l.a}
		from.down, to.up = l, l
		b.links = append(b.links, l)
	}
	return nil
}

func (b *bundleFlow) begin(now vtime.Time) {
	for _, x := range b.nodes {
		x.start(now)
	}
	b.nodes[0].pump(now)
}

func (b *bundleFlow) end(now vtime.Time) {
	b.ended = true
	b.ends.rest()
	for _, l := range b.links {
		b.net.eng.Cancel(l.event)
		l.event = 0
		l.close(now, true)
	}
	for _, x := range b.nodes {
		b.net.eng.Cancel(x.event)
		x.event, x.at = 0, vtime.Never
	}
}

// serve implements app.
func (b *bundleFlow) serve(now vtime.Time, k *socket) {
	if b.ended {
		return
	}
	b.links[k.link.index].serve(now, k)
	if src := b.nodes[0].machine; b.finishedAt == vtime.Never && src != nil && src.Done() {
		b.finishedAt = now
	}
}

// lost implements app; bundleLink does not use link's own attempts.
func (b *bundleFlow) lost(*link) {}

// supply implements supplier.
func (b *bundleFlow) supply(now vtime.Time) {
	if src := b.nodes[0]; src.machine != nil {
		src.pump(now)
	}
}

// deliver counts a bundle at its destination.
func (b *bundleFlow) deliver(now vtime.Time, x *bundle.Bundle) {
	p, ok := b.sink.Part(now, x.Created.Seq)
	if !ok || int(p.N) != x.Payload.Len() {
		if b.err == nil {
			b.err = &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", b.order.ID),
				Detail: fmt.Sprintf("bundle %d has %d bytes, want %d", x.Created.Seq, x.Payload.Len(), p.N)}
			b.net.event(b.order.Dst, b.order.ID, proto.Destination, proto.Failed, now, b.err)
		}
		return
	}
	b.sink.Add(now, p)
	if b.ends.receipts != nil {
		b.ends.received(now)
	}
	if !b.done && b.sink.Whole() {
		b.done, b.doneAt = true, now
		b.net.event(b.order.Dst, b.order.ID, proto.Destination, proto.Finished, now, nil)
	}
}

func (b *bundleFlow) observe(now vtime.Time, to Observer) {
	for _, x := range b.nodes {
		relay := x.side() == proto.Relay
		if relay && !b.net.relayDue(now, b.order.ID, x.node) || b.ended && x.side() != proto.Destination {
			continue
		}
		to(x.node, x.sample(now))
	}
}

func (b *bundleFlow) account(now vtime.Time, to func(int, proto.FlowResult)) {
	for _, x := range b.nodes {
		to(x.node, x.account(now))
	}
	for _, l := range b.links {
		l.close(now, false)
	}
}

// nodeDown implements restarter: a relay's memory and its connections are gone; its
// disk stays.
func (b *bundleFlow) nodeDown(now vtime.Time, node int) {
	for _, x := range b.nodes {
		if x.node != node || x.side() != proto.Relay {
			continue
		}
		x.stop()
		x.up.server.kill(now, false)
		x.up.accepted = vtime.Never
		x.up.b = bundleEnd{n: x, other: &x.up.a}
		x.down.switchedOff(now)
	}
}

// nodeUp implements restarter: the relay begins afresh with what is on its disk.
func (b *bundleFlow) nodeUp(now vtime.Time, node int) {
	for _, x := range b.nodes {
		if x.node != node || x.side() != proto.Relay || x.machine != nil {
			continue
		}
		x.start(now)
		x.up.listenAgain()
		x.pump(now)
	}
}

// switchedOff forgets the connection at the node that has made it.
func (l *bundleLink) switchedOff(now vtime.Time) {
	l.net.eng.Cancel(l.event)
	l.event, l.waiting, l.pause = 0, false, retryFirst
	if l.up() && l.established != vtime.Never {
		l.ended.add(l.client.conn)
	}
	l.client.kill(now, false)
	l.established = vtime.Never
	l.a = bundleEnd{n: l.a.n, other: &l.b}
}
