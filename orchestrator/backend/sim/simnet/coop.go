package simnet

import (
	"net/netip"

	"github.com/hopbed/hopbed/agent/coop"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// station drives a node's part in cooperative TCP: its beacons travel over the
// medium, and the windows that it bounds are those of the model TCP.
type station struct {
	net   *Net
	node  int
	coop  *coop.Station
	flows []*stream // those that transmit

	event des.EventID
	at    vtime.Time // when event fires; vtime.Never: none
}

// station returns the station of a flow's source, and makes it.
func (n *Net) station(f *proto.Flow) *station {
	if n.stations == nil {
		n.stations = make([]*station, n.cfg.Nodes)
	}
	if n.stations[f.Src] == nil {
		c := coop.Config{Addr: f.SrcAddr, Seed: n.cfg.Seed}
		if o := f.Options.Coop; o != nil {
			c.Bandwidth, c.Always = o.Bandwidth, o.Always
		}
		n.stations[f.Src] = &station{net: n, node: f.Src, coop: coop.New(c), at: vtime.Never}
	}
	return n.stations[f.Src]
}

// newCoop makes a flow of cooperative TCP.
func (n *Net) newCoop(f *proto.Flow) (*stream, error) {
	s, err := n.newStream(f, false)
	if err == nil {
		s.station = n.station(f)
	}
	return s, err
}

// begin says that a flow's connection stands; it may be said again.
func (k *station) begin(now vtime.Time, s *stream) {
	for _, have := range k.flows {
		if have == s {
			return
		}
	}
	k.flows = append(k.flows, s)
	k.coop.Begin(now, s.order.ID)
	k.serve(now)
}

// end says that a flow's connection transmits no more.
func (k *station) end(now vtime.Time, s *stream) {
	for i, have := range k.flows {
		if have == s {
			k.flows = append(k.flows[:i], k.flows[i+1:]...)
			k.coop.End(s.order.ID)
			k.serve(now)
			return
		}
	}
}

// hear takes a beacon of another node.
func (k *station) hear(now vtime.Time, from netip.Addr) {
	k.coop.Receive(now, from)
	k.serve(now)
}

// Fire implements des.Handler: a deadline of the station has come.
func (k *station) Fire(now vtime.Time, _ uint64) {
	k.at, k.event = vtime.Never, 0
	for _, s := range k.flows {
		k.coop.Measure(s.order.ID, s.links[0].client.conn.Info().SRTT)
	}
	k.coop.Expire(now)
	k.serve(now)
}

// serve does what the station wants done, and keeps an event at its deadline.
func (k *station) serve(now vtime.Time) {
	for {
		if _, ok := k.coop.Poll(now); !ok {
			break
		}
		k.net.beacon(k.node)
	}
	for _, c := range k.coop.Changes() {
		for _, s := range k.flows {
			if s.order.ID == c.Flow {
				s.links[0].client.conn.LimitCwnd(c.Cap)
			}
		}
		k.net.record(proto.Event{Node: k.node, Flow: c.Flow, Side: proto.Source, Kind: proto.Window, T: c.T, Text: c.String()})
	}
	if d := k.coop.Deadline(); d != k.at {
		k.net.eng.Cancel(k.event)
		k.event, k.at = 0, d
		if d != vtime.Never {
			k.event = k.net.eng.Schedule(vtime.Max(d, now), k, uint64(k.node))
		}
	}
}

// beacon broadcasts a node's beacon, if it has a radio.
func (n *Net) beacon(node int) {
	if n.med == nil {
		return
	}
	p := n.originate(node)
	p.beacon, p.ac, p.len = true, wifi.CategoryOf(coop.DSCP), coop.BeaconLen
	f := n.med.NewFrame()
	f.Src, f.Dst, f.AC, f.Len, f.Payload = node, wifi.Broadcast, p.ac, p.len, p
	if !n.med.Enqueue(f) {
		n.hosts[node].refused++
		n.freePacket(p)
	}
}

// heard gives a beacon to the station at a node, if there is one.
func (n *Net) heard(now vtime.Time, node, from int) {
	if k := n.stations[node]; k != nil {
		k.hear(now, n.stations[from].coop.Addr())
	}
}
