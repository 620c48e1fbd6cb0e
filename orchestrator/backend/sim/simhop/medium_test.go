package simhop

import (
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// hopMAC returns a node's MAC with the queues that Hop asks for (Hop paper §4):
// data in the background queue with the 8160 µs txop and without
// acknowledgements, control in the voice queue with them. The variants arq and
// no-txop change the data queue.
func hopMAC(m wifi.MAC, cfg hop.Config) wifi.MAC {
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

// attach lets a medium carry the packets, which has nothing else to carry.
func attach(x *Net, m *wifi.Medium) { x.SetCarrier(medium{x, m}) }

// medium is the Carrier of nodes that have a radio only.
type medium struct {
	net *Net
	med *wifi.Medium
}

// Port implements Carrier.
func (m medium) Port(int, int) hop.Port { return hop.RadioPort }

// Free implements Carrier.
func (m medium) Free(from int, _ hop.Port, c hop.Class) int {
	return m.med.Queue(from, queues[c]).FreePackets
}

// Send implements Carrier.
func (m medium) Send(from int, p *hop.Message) bool {
	f := m.med.NewFrame()
	f.Src, f.Dst, f.AC = from, int(p.To), queues[p.Class]
	f.Len = Overhead + vtime.Bytes(p.Len())
	f.Payload = p
	if !m.med.Enqueue(f) {
		m.net.Free(p)
		return false
	}
	return true
}

// sink takes what the medium delivers to a Net.
type sink struct{ *Net }

// Deliver implements wifi.Sink.
func (x sink) Deliver(now vtime.Time, i int, f *wifi.Frame) {
	x.Receive(now, i, f.Src, f.Payload.(*hop.Message))
}

// Done implements wifi.Sink.
func (x sink) Done(now vtime.Time, f *wifi.Frame, _ wifi.Outcome) {
	x.TxDone(now, f.Src, hop.RadioPort, ClassOf(f.AC), 1)
	x.Free(f.Payload.(*hop.Message))
}
