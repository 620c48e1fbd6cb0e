package simhop

import (
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// MAC returns a node's MAC with the queues that Hop asks for (Hop paper §4):
// data in the background queue with the 8160 µs txop and without
// acknowledgements, control in the voice queue with them. The variants arq and
// no-txop change the data queue.
func MAC(m wifi.MAC, cfg hop.Config) wifi.MAC {
	bk := &m.Queues[wifi.BK]
	bk.TXOP, bk.Ack = hop.DataTxop, wifi.AckNone
	if cfg.NoTxop {
		bk.TXOP = 0
	}
	if cfg.DataARQ {
		bk.Ack = wifi.AckNormal
	}
	return m
}

// queues is the access category of each class.
var queues = [hop.NumClasses]wifi.AC{hop.Data: wifi.BK, hop.Control: wifi.VO}

// AC returns the access category that carries a class (Hop paper §4).
func AC(c hop.Class) wifi.AC { return queues[c] }

// ClassOf returns the class that an access category carries.
func ClassOf(ac wifi.AC) hop.Class {
	if ac == queues[hop.Control] {
		return hop.Control
	}
	return hop.Data
}

// Attach lets the medium carry the packets: the nodes have a radio only, and
// the medium has nothing else to carry. The Net is its wifi.Sink.
func (x *Net) Attach(m *wifi.Medium) { x.SetCarrier(medium{m}) }

// medium is the Carrier of Attach.
type medium struct{ med *wifi.Medium }

// Port implements Carrier.
func (m medium) Port(int, int) hop.Port { return hop.RadioPort }

// Free implements Carrier.
func (m medium) Free(from int, _ hop.Port, c hop.Class) int {
	return m.med.Queue(from, queues[c]).FreePackets
}

// Send implements Carrier.
func (m medium) Send(from, to int, _ hop.Port, c hop.Class, buf []byte) bool {
	f := m.med.NewFrame()
	f.Src, f.Dst, f.AC = from, to, queues[c]
	f.Len = Overhead + vtime.Bytes(len(buf))
	f.Data = append(f.Data[:0], buf...)
	return m.med.Enqueue(f)
}

// Deliver implements wifi.Sink.
func (x *Net) Deliver(now vtime.Time, i int, f *wifi.Frame) { x.Receive(now, i, f.Src, f.Data) }

// Done implements wifi.Sink.
func (x *Net) Done(now vtime.Time, f *wifi.Frame, _ wifi.Outcome) {
	x.TxDone(now, f.Src, hop.RadioPort, ClassOf(f.AC), 1)
}
