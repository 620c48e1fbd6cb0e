package simnet

import (
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// bundleOf is a flow of bundles along the nodes 0 … last.
func bundleOf(last int, edit func(*proto.Flow)) proto.Flow {
	f := proto.Flow{Transport: "bundle/cubic", Src: 0, Dst: last}
	for i := range last + 1 {
		f.Path = append(f.Path, i)
	}
	if edit != nil {
		edit(&f)
	}
	return f
}

// count returns one of a side's counters.
func count(r proto.FlowResult, name string) int64 {
	for _, c := range r.Counters {
		if c.Name == name {
			return c.Delta
		}
	}
	return 0
}

// TestBundleChain: a file over two relays arrives whole and once, everybody says
// so, and the sessions end.
func TestBundleChain(t *testing.T) {
	const size = 1_000_000
	l := newLab(t, positions(0, 200, 400, 600), testMAC(), nil, bundleOf(3, func(f *proto.Flow) {
		f.Workload = workload.Spec{Kind: workload.Sized, Size: size}
		f.Options.Bundle = &proto.Bundle{Size: 64 * vtime.KiB}
	}))
	l.finish()
	src, dst := l.src(0), l.dst(0)
	if !dst.Finished || !src.Finished || dst.Total != size || dst.Blocks != 16 || dst.Error != nil || src.Error != nil {
		t.Fatalf("source %+v\ndestination %+v", src, dst)
	}
	if src.FinishedAt > dst.FinishedAt {
		t.Errorf("the source's next hop had everything at %v, after the destination, at %v", src.FinishedAt, dst.FinishedAt)
	}
	for _, node := range []int{1, 2} {
		r := l.side(0, proto.Relay, node)
		if r.Blocks != 16 || r.Error != nil || r.MaxHeld < 64*vtime.KiB || r.MaxHeld > size+20_000 || count(r, "bundle_sessions") != 2 || r.Last.Held != 0 {
			t.Errorf("relay %d: %+v, last %+v", node, r, *r.Last)
		}
	}
	if n := count(src, "bundle_sessions"); n != 1 || src.CC != "cubic" || src.SetupTime <= 0 {
		t.Errorf("source %+v", src)
	}
	// 16 bundles of 64 KiB, each with a header of about 120 bytes, in one segment
	// or two, and the session's set-up: TCP carried that and no more.
	octets := src.Last.Sent - src.Last.Retrans
	if over := octets - size; over < 16*100 || over > 16*200 {
		t.Errorf("%v on the first hop for %v of payload", octets, vtime.Bytes(size))
	}
	for _, link := range l.net.flows[0].(*bundleFlow).links {
		if link.a.s != nil || link.b.s != nil {
			t.Errorf("the session of hop %d has not ended", link.index)
		}
	}
}

// TestBundleMessages: every message is one bundle, and its delay is known.
func TestBundleMessages(t *testing.T) {
	l := newLab(t, positions(0, 200, 400), testMAC(), nil, bundleOf(2, func(f *proto.Flow) {
		f.Workload = workload.Spec{Kind: workload.VoIP, Codec: "g729"}
		f.Options.NoDelay = true
	}))
	l.finish()
	n := 0
	l.net.Messages(func(node int, m *proto.Message) {
		if n++; m.Lost || m.Delay <= 0 || m.Delay > 100*vtime.Millisecond || node != 2 {
			t.Errorf("message %d: %+v at node %d", m.Message, m.Receipt, node)
		}
	})
	if dst := l.dst(0); n < 540 || dst.Blocks < int64(n)-2 || dst.Error != nil {
		t.Errorf("%d messages, %+v", n, dst)
	}
}

// TestBundleRelayRestarts: what a relay without a disk had acknowledged is lost when
// it is switched off, and nothing else; with a disk nothing is.
func TestBundleRelayRestarts(t *testing.T) {
	for _, disk := range []bool{false, true} {
		const size = 2_000_000
		slow := wired(0, 3, []Pipe{
			wire(0, 1, pipe.Config{Rate: 10 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 50}}),
			wire(1, 2, pipe.Config{Rate: 1 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 50}}),
		})
		l := newLab(t, nil, testMAC(), both(slow, func(c *Config) { c.End = 40 * sec }), bundleOf(2, func(f *proto.Flow) {
			f.Workload = workload.Spec{Kind: workload.Sized, Size: size}
			f.Options.Bundle = &proto.Bundle{Size: 100_000, Disk: disk}
		}))
		l.runTo(2 * sec)
		held, _, _ := l.net.flows[0].(*bundleFlow).nodes[1].machine.Held()
		if held < 5 {
			t.Fatalf("the relay holds %d bundles", held)
		}
		l.net.SetNodeUp(2*sec, 1, false)
		l.runTo(4 * sec)
		l.net.SetNodeUp(4*sec, 1, true)
		l.finish()
		src, dst, relay := l.src(0), l.dst(0), l.side(0, proto.Relay, 1)
		if src.Error != nil || dst.Error != nil || relay.Error != nil || !src.Finished {
			t.Fatalf("disk %v: source %+v\nrelay %+v\ndestination %+v", disk, src, relay, dst)
		}
		if disk && (!dst.Finished || dst.Blocks != 20 || count(relay, "bundle_restored") != int64(held)) {
			t.Errorf("with a disk: relay %+v\ndestination %+v", relay, dst)
		}
		if lost := 20 - int(dst.Blocks); !disk && (dst.Finished || lost < 1 || lost > held) {
			t.Errorf("without a disk: %d bundles lost of %d held\ndestination %+v", lost, held, dst)
		}
	}
}

// TestBundleRelayFlaps: what is left of a relay's connection after it was switched off
// and on says nothing, and above all not to a node that is off again.
func TestBundleRelayFlaps(t *testing.T) {
	wires := wired(0, 3, []Pipe{
		wire(0, 1, pipe.Config{Rate: 10 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 50}}),
		wire(1, 2, pipe.Config{Rate: 1 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 50}}),
	})
	l := newLab(t, nil, testMAC(), wires, bundleOf(2, func(f *proto.Flow) { f.Options.Bundle = &proto.Bundle{Size: 50_000} }))
	for at, up := sec/20, false; at < 2*sec; at, up = at+sec/100, !up {
		l.runTo(at)
		l.net.SetNodeUp(at, 1, up)
	}
	l.net.SetNodeUp(2*sec, 1, true)
	l.finish()
	if dst := l.dst(0); dst.Error != nil || dst.Blocks < 10 {
		t.Errorf("%+v", dst)
	}
}

// TestBundleReproducible: equal seeds give equal runs, others do not.
func TestBundleReproducible(t *testing.T) {
	run := func(seed uint64) uint64 {
		l := newLab(t, positions(0, 200, 400), testMAC(), func(c *Config) { c.Seed = seed }, bundleOf(2, nil), bundleOf(1, nil))
		l.finish()
		return l.eng.TraceHash()
	}
	if first, again, other := run(1), run(1), run(2); first != again || first == other {
		t.Error("a run is not a function of its seed")
	}
}
