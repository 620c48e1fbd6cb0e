package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// defaultDatagram is the payload of a datagram where the flow does not say;
// messageHeader is the least of one that carries a part of a message, as agents
// send it: their header lies within the message's bytes.
const (
	defaultDatagram vtime.Bytes = 1400
	messageHeader   vtime.Bytes = 28
)

// udpFlow sends datagrams at a constant rate, as fast as the queue of its node
// takes them, or when there are messages to send.
type udpFlow struct {
	net   *Net
	order *proto.Flow
	size  vtime.Bytes // of a datagram, the most of one with a part of a message
	ac    wifi.AC
	ends  *ends

	start   vtime.Time
	running bool
	sent    uint64
	phase   *des.Stream // of a constant rate

	from, to   vtime.Time // the measured interval
	meter      *workload.Meter
	received   int64
	reordered  int64
	duplicates int64
	seen       seen
	finished   vtime.Time // when the last message of a trace was there; vtime.Never: not yet
}

func (n *Net) newUDP(f *proto.Flow) (*udpFlow, error) {
	u := &udpFlow{net: n, order: f, finished: vtime.Never, size: f.Options.PacketSize, ac: wifi.CategoryOf(uint8(f.Options.DSCP))}
	u.from, u.to = f.Measured(n.cfg.Warmup, n.cfg.End)
	u.meter = workload.NewMeter(u.from, u.to, 0)
	u.phase = des.NewStream(n.cfg.Seed, fmt.Sprintf("flow/%d/phase", f.ID))
	if u.size == 0 {
		u.size = defaultDatagram
	}
	if u.size < 1 || u.size+udpHeaders > 1500 {
		return nil, fmt.Errorf("the datagram of %v does not fit a packet of 1500 B: at most %v", u.size, 1500-udpHeaders)
	}
	var err error
	if u.ends, err = n.newEnds(f, u); err != nil {
		return nil, err
	}
	switch messages := f.Workload.HasMessages(); {
	case f.Workload.Kind == workload.Sized || f.Workload.Kind == workload.Web:
		return nil, fmt.Errorf("the workload %s needs a transport that promises that all data arrives", f.Workload.Kind)
	case messages && f.Options.Rate > 0:
		return nil, fmt.Errorf("the workload %s says when datagrams are sent, and the flow has a rate besides", f.Workload.Kind)
	case messages && u.size < messageHeader:
		return nil, fmt.Errorf("the datagram of %v does not hold the %v that say which part of which message it is", u.size, messageHeader)
	case messages:
		return u, nil
	}
	if q := u.queue(); q.port != nil && f.Options.Rate == 0 {
		if err := q.port.fillable(); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *udpFlow) begin(now vtime.Time) {
	u.start, u.running = now, true
	if u.order.Options.Rate > 0 {
		u.next(now)
		return
	}
	u.queue().join(now, u)
}

func (u *udpFlow) end(vtime.Time) {
	u.running = false
	u.ends.rest()
}

// supply implements supplier: a message is ready.
func (u *udpFlow) supply(now vtime.Time) {
	if u.running {
		u.queue().fill(now)
	}
}

// wants reports whether there is something to send now.
func (u *udpFlow) wants(now vtime.Time) bool {
	return u.running && (u.ends.receipts == nil || u.ends.app.Ready(now) > 0)
}

// Fire implements des.Handler: the next datagram of a constant rate is due.
func (u *udpFlow) Fire(now vtime.Time, _ uint64) {
	if !u.running {
		return
	}
	u.send(now)
	u.next(now)
}

// next plans the next datagram of a constant rate: at a random moment of its
// interval. Flows of one rate would stay in phase otherwise, and one of them would
// meet every full queue (Floyd and Jacobson, On Traffic Phase Effects in
// Packet-Switched Gateways, 1992). Intervals count from the start: rounding does
// not add up.
func (u *udpFlow) next(now vtime.Time) {
	rate := u.order.Options.Rate
	at := u.start.Add(rate.TxTime(u.size * vtime.Bytes(u.sent)))
	if interval := rate.TxTime(u.size); interval > 0 {
		at = at.Add(vtime.Duration(float64(u.phase.Float64() * float64(interval))))
	}
	u.net.eng.Schedule(vtime.Max(at, now), u, uint64(u.order.ID))
}

// queue is the one that the flow's packets wait in at their source; that of the
// radio when there is no route.
func (u *udpFlow) queue() *saturation {
	if via, ok := u.net.cfg.Routes.NextHop(u.order.Src, u.order.Dst); ok {
		if w, _, _ := u.net.out(u.order.Src, via); w != nil {
			return &w.udp
		}
	}
	return &u.net.udp[u.order.Src]
}

// length is that of the next datagram's payload.
func (u *udpFlow) length(now vtime.Time) vtime.Bytes {
	if u.ends.receipts == nil {
		return u.size
	}
	return max(messageHeader, min(u.size, u.ends.app.Piece(now)))
}

// send puts a datagram on its way; false when it was lost at once.
func (u *udpFlow) send(now vtime.Time) bool {
	p := u.net.originate(u.order.Src)
	p.dst, p.ac = int32(u.order.Dst), u.ac
	p.len, p.udp, p.seq = u.length(now)+udpHeaders, u, u.sent
	if app := u.ends.app; u.ends.receipts != nil {
		k, _, _ := app.Message()
		n := min(u.size, app.Piece(now))
		p.message, p.part = int32(k), int32(n)
		app.Take(now, n)
	} else {
		app.Take(now, u.size)
	}
	u.sent++
	return u.net.deliver(u.order.Src, p)
}

func (u *udpFlow) receive(now vtime.Time, p *packet) {
	fresh, late := u.seen.add(p.seq)
	if !fresh {
		u.duplicates++
		return
	}
	if late {
		u.reordered++
	}
	u.received++
	if r := u.ends.receipts; r != nil {
		u.meter.Add(now, vtime.Bytes(p.part))
		r.AddPart(now, int(p.message), vtime.Bytes(p.part))
		if u.finished == vtime.Never && u.order.Workload.Ends() && r.Complete() {
			u.finished = now
			u.net.event(u.order.Dst, u.order.ID, proto.Destination, proto.Finished, now, nil)
		}
		return
	}
	u.meter.Add(now, u.size)
}

func (u *udpFlow) observe(now vtime.Time, to Observer) {
	u.sample(now, proto.Source)
	to(u.order.Src, &u.net.scratch)
	u.sample(now, proto.Destination)
	to(u.order.Dst, &u.net.scratch)
}

// sample fills the scratch sample for one side. That a queue refused a datagram is
// not its sender's to know.
func (u *udpFlow) sample(now vtime.Time, side proto.Side) {
	s := u.net.newSample(u.order.ID, side, now)
	if side == proto.Source {
		s.Sent, s.DatagramsSent = u.ends.app.Taken(), int64(u.sent)
		return
	}
	s.Delivered = u.meter.Total()
	s.Datagrams, s.Duplicates, s.Reordered = u.received, u.duplicates, u.reordered
	s.DatagramsLost = int64(u.seen.next) - u.received
}

func (u *udpFlow) account(now vtime.Time, to func(int, proto.FlowResult)) {
	u.running = false
	u.sample(now, proto.Source)
	last := u.net.scratch
	to(u.order.Src, proto.FlowResult{Flow: u.order.ID, Side: proto.Source, Total: last.Sent, DatagramsSent: int64(u.sent), Last: &last})
	u.sample(now, proto.Destination)
	end := u.net.scratch
	r := proto.FlowResult{Flow: u.order.ID, Side: proto.Destination, Bytes: u.meter.Measured(), Total: u.meter.Total(),
		MeasuredFrom: u.from, MeasuredTo: u.to, Datagrams: u.received, Reordered: u.reordered, Duplicates: u.duplicates, Last: &end}
	if u.finished != vtime.Never {
		r.Finished, r.FinishedAt = true, u.finished
	}
	to(u.order.Dst, r)
}
