package hop

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// poll takes the next packet of a node, by its message where radios carry those.
func (w *world) poll(x *testNode) (p Packet, m *Message, ok bool) {
	if !w.opt.messages {
		p, ok = x.n.Poll(w.now)
		return p, nil, ok
	}
	m = new(Message)
	if !x.n.PollMessage(w.now, m) {
		return p, nil, false
	}
	p = Packet{To: m.To, Port: m.Port, Class: m.Class, Buf: m.Bytes(nil)}
	if m.Len() != len(p.Buf) {
		w.t.Errorf("a message of %d bytes is laid out in %d", m.Len(), len(p.Buf))
	}
	if m.Port != RadioPort {
		m.Release()
		m = nil
	}
	return p, m, true
}

// byMessage is how a node receives the frame's message, which must then still say
// what it said when it was sent, whatever became of its block.
func (w *world) byMessage(from NodeID, f frame) func(n *Node) {
	m := new(Message)
	m.Clone(f.msg)
	return func(n *Node) {
		if !bytes.Equal(m.Bytes(nil), f.buf) {
			w.t.Errorf("%v: a message from %d to %d has changed on its way", w.now, from, f.to)
		}
		n.ReceiveMessage(w.now, from, m)
		m.Release()
	}
}

// TestMessagesAreBytes: random networks whose radios carry messages do what those
// do that carry bytes: the same packets at the same moments, with the same fate, and
// the same counters.
func TestMessagesAreBytes(t *testing.T) {
	shared := 0
	run := func(seed uint64, messages bool) string {
		r := rand.New(rand.NewPCG(seed, 78))
		cfg := randomConfig(r)
		k := 2 + r.IntN(6)
		opt := randomOptions(r, true)
		opt.messages = messages
		w := newWorld(t, seed, k, cfg, opt)
		worst := r.Float64() * 0.6
		for i := 1; i < k; i++ {
			w.link(i, r.IntN(i), r.Float64()*worst)
		}
		w.route()
		h := fnv.New64a()
		w.trace = func(from, to NodeID, pkt []byte, lost bool) {
			fmt.Fprintf(h, "%d %d %d %v ", w.now, from, to, lost)
			h.Write(pkt)
		}
		var flows []FlowKey
		for id := range 1 + r.IntN(5) {
			if src, dst := r.IntN(k), r.IntN(k); src != dst {
				flows = append(flows, w.open(src, dst, FlowID(id), vtime.Bytes(1+r.IntN(700_000)), FlowOptions{}))
			}
		}
		w.mayhem(r, cfg, flows, 40*vtime.Second)
		w.run(w.now.Add(10*vtime.Second), nil)
		if len(flows) > 1 { // buffers become free while their bytes are on the air
			w.nodes[flows[0].Src].n.CloseFlow(w.now, flows[0], true)
		}
		w.run(w.now.Add(40*vtime.Second), nil)
		for _, x := range w.nodes {
			fmt.Fprintf(h, "%+v", x.n.Stats())
			for _, f := range flows {
				s, _ := x.n.FlowStats(f)
				fmt.Fprintf(h, "%+v", s)
			}
			for _, f := range x.n.flows {
				for _, b := range f.blocks {
					if b.shared {
						shared++
					}
				}
			}
		}
		return fmt.Sprintf("%x at %v", h.Sum64(), w.now)
	}
	for seed := range uint64(*seeds) / 4 {
		if a, b := run(seed, false), run(seed, true); a != b {
			t.Errorf("network %d: bytes give %s, messages %s", seed, a, b)
		}
	}
	if shared == 0 {
		t.Error("no block shares its bytes")
	}
}

// TestLentBytesStay: a block's buffer is not used again before every message that
// refers to it is released.
func TestLentBytesStay(t *testing.T) {
	w := newWorld(t, 1, 2, DefaultConfig(), worldOptions{messages: true})
	w.chain(0)
	k := w.open(0, 1, 1, -1, FlowOptions{BlockSize: 64 * vtime.KiB})
	data := func(f frame) bool { return f.msg != nil && f.msg.typ == typeData }
	w.run(vtime.Time(vtime.Second), func() bool {
		q := w.nodes[0].queues[Data]
		return len(q) > 1 && data(q[1])
	})
	n := w.nodes[0].n
	f := w.nodes[0].queues[Data][1]
	n.CloseFlow(w.now, k, true)
	for id := FlowID(2); id < 6; id++ {
		w.open(0, 1, id, 64*vtime.KiB, FlowOptions{BlockSize: 64 * vtime.KiB})
	}
	if !bytes.Equal(f.msg.Bytes(nil), f.buf) {
		t.Error("the bytes of a packet in the queue were written over")
	}
	for _, free := range n.buffers {
		for _, x := range free {
			if x == f.msg.mem {
				t.Error("a buffer is free although its bytes are lent")
			}
		}
	}
	mem := f.msg.mem
	refs := mem.refs
	f.msg.Release()
	if mem.refs != refs-1 {
		t.Errorf("%d refer to the buffer, and after a release %d", refs, mem.refs)
	}
}
