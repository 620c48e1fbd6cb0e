package hop

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// BenchmarkTransfer measures the state machines alone: one operation is one
// packet given by one node and taken by the other.
func BenchmarkTransfer(b *testing.B) {
	var radio free
	var nodes [2]*Node
	for i := range nodes {
		cfg := DefaultConfig()
		cfg.ID = NodeID(i)
		n, err := NewNode(cfg, &radio, direct{}, Sink{})
		if err != nil {
			b.Fatal(err)
		}
		nodes[i] = n
	}
	if err := nodes[0].OpenFlow(0, 1, 1, Continual(1), FlowOptions{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	now := vtime.Time(0)
	for k := 0; k < b.N; {
		now = now.Add(vtime.Microsecond)
		for i, n := range nodes {
			n.Expire(now)
			for p, ok := n.Poll(now); ok && k < b.N; p, ok = n.Poll(now) {
				nodes[1-i].Receive(now, NodeID(i), p.Buf)
				n.TxDone(now, p.Port, p.Class, 1)
				k++
			}
		}
	}
	b.SetBytes(int64(nodes[1].Delivered(FlowKey{Src: 0, Dst: 1, Flow: 1})) / int64(b.N))
}
