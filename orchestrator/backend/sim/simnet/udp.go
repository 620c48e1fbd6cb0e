package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// defaultDatagram is the payload of a datagram where the flow does not say.
const defaultDatagram vtime.Bytes = 1400

// udpFlow sends datagrams at a constant rate, or as fast as the queue of its
// node takes them.
type udpFlow struct {
	net   *Net
	order *proto.Flow
	size  vtime.Bytes
	ac    wifi.AC

	start   vtime.Time
	running bool
	sent    uint64

	meter     *workload.Meter
	received  int64
	reordered int64
	next      uint64 // lowest sequence number above all received
}

func (n *Net) newUDP(f *proto.Flow) (*udpFlow, error) {
	u := &udpFlow{net: n, order: f, size: f.Options.PacketSize, ac: wifi.AC(transport.ACOf(f.Options.DSCP)),
		meter: workload.NewMeter(n.cfg.Warmup, n.cfg.End, 0)}
	if u.size == 0 {
		u.size = defaultDatagram
	}
	if u.size < 1 || u.size+udpHeaders > 1500 {
		return nil, fmt.Errorf("the datagram of %v does not fit a packet of 1500 B: at most %v", u.size, 1500-udpHeaders)
	}
	if f.Workload.Kind != workload.Continual {
		return nil, fmt.Errorf("the workload %s needs a transport that promises that all data arrives", f.Workload.Kind)
	}
	return u, nil
}

func (u *udpFlow) begin(now vtime.Time) {
	u.start, u.running = now, true
	if u.order.Options.Rate > 0 {
		u.Fire(now, 0)
		return
	}
	s := &u.net.udp[u.order.Src]
	s.flows = append(s.flows, u)
	s.fill(u.net, u.order.Src)
}

func (u *udpFlow) end(vtime.Time) { u.running = false }

// Fire implements des.Handler: the next datagram of a constant rate is due.
func (u *udpFlow) Fire(now vtime.Time, _ uint64) {
	if !u.running {
		return
	}
	u.send()
	// From the start, not from the last one: rounding does not add up.
	at := u.start.Add(u.order.Options.Rate.TxTime(u.size * vtime.Bytes(u.sent)))
	u.net.eng.Schedule(vtime.Max(at, now), u, uint64(u.order.ID))
}

func (u *udpFlow) send() {
	p := u.net.newPacket()
	p.src, p.dst, p.ttl, p.ac = int32(u.order.Src), int32(u.order.Dst), defaultTTL, u.ac
	p.len, p.udp, p.seq = u.size+udpHeaders, u, u.sent
	u.sent++
	u.net.deliver(u.order.Src, p)
}

func (u *udpFlow) receive(now vtime.Time, p *packet) {
	u.received++
	if p.seq < u.next {
		u.reordered++
	} else {
		u.next = p.seq + 1
	}
	u.meter.Add(now, u.size)
}

func (u *udpFlow) observe(now vtime.Time, to Observer) {
	s := &u.net.scratch
	*s = proto.Sample{Flow: u.order.ID, Side: proto.Source, T: now, Sent: u.size * vtime.Bytes(u.sent)}
	to(u.order.Src, s)
	*s = proto.Sample{Flow: u.order.ID, Side: proto.Destination, T: now, Delivered: u.meter.Total()}
	to(u.order.Dst, s)
}

func (u *udpFlow) account(now vtime.Time, to func(int, proto.FlowResult)) {
	u.running = false
	total := u.size * vtime.Bytes(u.sent)
	to(u.order.Src, proto.FlowResult{Flow: u.order.ID, Side: proto.Source, Total: total, DatagramsSent: int64(u.sent),
		Last: &proto.Sample{Flow: u.order.ID, Side: proto.Source, T: now, Sent: total}})
	to(u.order.Dst, proto.FlowResult{Flow: u.order.ID, Side: proto.Destination, Bytes: u.meter.Measured(), Total: u.meter.Total(),
		MeasuredFrom: u.net.cfg.Warmup, MeasuredTo: u.net.cfg.End, Datagrams: u.received, Reordered: u.reordered,
		Last: &proto.Sample{Flow: u.order.ID, Side: proto.Destination, T: now, Delivered: u.meter.Total()}})
}

// saturation holds the UDP flows of a node that keep its queue full. They take
// turns, else the first one would have the queue for itself.
type saturation struct {
	flows []*udpFlow
	turn  int
}

func (s *saturation) fill(n *Net, node int) {
	for idle := 0; idle < len(s.flows); {
		u := s.flows[s.turn]
		s.turn = (s.turn + 1) % len(s.flows)
		if !u.running || n.med.Queue(node, u.ac).FreePackets <= 0 {
			idle++
			continue
		}
		idle = 0
		u.send()
	}
}
