package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// stream is a flow of bytes over TCP: over one connection end to end, or over
// one per hop with a relay between each two.
type stream struct {
	net     *Net
	order   *proto.Flow
	stop    vtime.Time
	cc      string
	links   []*link
	relays  []*relay // relays[i] joins links[i] and links[i+1]
	header  vtime.Bytes
	ended   bool     // stopped before the run's end
	station *station // of the source, where the flow is one of cooperative TCP

	// The source.
	ends       *ends
	preamble   vtime.Bytes // header bytes not yet written
	rest       vtime.Bytes // of a write that was taken in part (see piece)
	closed     bool
	finishedAt vtime.Time

	// The destination.
	from, to vtime.Time // the measured interval
	meter    *workload.Meter
	skip     vtime.Bytes // header bytes not yet read
	lastAt   vtime.Time  // when data came last
	done     bool
	doneAt   vtime.Time
	lastSrc  proto.Sample
	hasLast  bool
}

// newStream makes an end-to-end or hop-by-hop TCP flow.
func (n *Net) newStream(f *proto.Flow, perHop bool) (*stream, error) {
	_, cc := transport.Split(f.Transport)
	s := &stream{net: n, order: f, stop: n.stopOf(f), cc: cc, finishedAt: vtime.Never}
	s.from, s.to = f.Measured(n.cfg.Warmup, n.cfg.End)
	s.meter = workload.NewMeter(s.from, s.to, f.Workload.Total())
	path, port := []int{f.Src, f.Dst}, transport.FlowPort+f.ID
	if perHop {
		s.header = relayHeader
		if path = f.Path; len(path) < 2 {
			return nil, fmt.Errorf("the path has %d nodes: hop-by-hop TCP needs the nodes from source to destination", len(path))
		}
	}
	s.skip = s.header
	// Only a congestion control that draws asks for it; flows draw apart.
	seeds := des.NewStream(n.cfg.Seed, fmt.Sprintf("flow/%d/tcp", f.ID))
	for i := 1; i < len(path); i++ {
		l := &link{net: n, app: s, index: i - 1, flow: f.ID, from: path[i-1], to: path[i],
			ac: wifi.CategoryOf(uint8(f.Options.DSCP)), dscp: uint8(f.Options.DSCP), port: uint16(port), established: vtime.Never, accepted: vtime.Never}
		var err error
		if l.maker, l.listener, err = n.connConfigs(f, cc, perHop, i == 1, i == len(path)-1); err != nil {
			return nil, err
		}
		l.maker.Seed, l.listener.Seed = seeds.Uint64(), seeds.Uint64()
		s.links = append(s.links, l)
		if i > 1 {
			s.relays = append(s.relays, newRelay(s, i-2))
		}
	}
	var err error
	s.ends, err = n.newEnds(f, s)
	s.preamble = s.header
	return s, err
}

func (s *stream) begin(now vtime.Time) {
	until := s.stop
	if w := s.order.Options.ConnectWithin; w > 0 {
		until = vtime.Min(until, now.Add(w))
	}
	s.links[0].dial(now, until)
}

func (s *stream) end(now vtime.Time) {
	s.remember(now)
	s.ended = true
	s.silent(now)
	s.ends.rest()
	for _, l := range s.links {
		l.close(now, true)
	}
}

// serve implements app.
func (s *stream) serve(now vtime.Time, k *socket) {
	l := k.link
	if !l.watch(now, k) {
		if l.err != nil {
			s.silent(now)
		}
		return
	}
	switch {
	case k == l.client && l.index == 0:
		if s.station != nil && s.finishedAt == vtime.Never {
			s.station.begin(now, s)
		}
		s.feed(now, k)
	case k == l.server && l.index == len(s.links)-1:
		s.drain(now, k)
	case k == l.server:
		s.relays[l.index].serve(now, k)
	default:
		s.relays[l.index-1].serve(now, k)
	}
}

// silent says that a flow of cooperative TCP transmits no more.
func (s *stream) silent(now vtime.Time) {
	if s.station != nil {
		s.station.end(now, s)
	}
}

// lost implements app.
func (s *stream) lost(l *link) {
	s.silent(s.net.eng.Now())
	if l.index > 0 {
		s.relays[l.index-1].rewind()
		return
	}
	s.ends.app.Rewind()
	s.preamble, s.rest, s.closed = s.header, 0, false
}

// supply implements supplier.
func (s *stream) supply(now vtime.Time) {
	if l := s.links[0]; !s.ended && l.established != vtime.Never && l.err == nil {
		s.feed(now, l.client)
		l.client.flush(now)
	}
}

// feed is the sending application: it writes as much as the socket takes, in
// pieces as the agent's does.
func (s *stream) feed(now vtime.Time, k *socket) {
	if s.preamble > 0 {
		s.preamble -= k.conn.Write(now, s.preamble)
	}
	for s.preamble == 0 {
		n := k.conn.Write(now, s.piece(now))
		if n == 0 {
			break
		}
		s.rest = max(s.rest-n, 0)
		s.ends.app.Take(now, n)
	}
	s.ends.wait(now)
	if s.ends.finished() && !s.closed {
		s.closed = true
		k.conn.Close(now)
	}
	if s.closed && s.finishedAt == vtime.Never && k.conn.EOF() {
		s.finishedAt = now // the destination closes when it has everything
		s.silent(now)
	}
}

// piece is the length of the next write: of all that is ready, so that messages
// which wait together leave together. Where the send buffer is fixed, one that was
// taken in part is finished first, as the agent's is: at its end all is pushed,
// which decides how much a small buffer sends. A tuned buffer is never so small;
// there every write begins anew.
func (s *stream) piece(now vtime.Time) vtime.Bytes {
	n := min(s.ends.app.Ready(now), workload.MaxChunk)
	if s.order.Options.SendBuffer == 0 {
		return n
	}
	if s.rest == 0 {
		s.rest = n
	}
	return s.rest
}

// drain is the receiving application: it reads all there is.
func (s *stream) drain(now vtime.Time, k *socket) {
	n := k.conn.Read(now, k.conn.Readable())
	h := min(n, s.skip)
	s.skip -= h
	if n > h {
		s.meter.Add(now, n-h)
		s.lastAt = now
		if r := s.ends.receipts; r != nil {
			r.Add(now, n-h)
			s.ends.received(now)
		}
	}
	if k.conn.EOF() && !s.done && s.whole() {
		s.done, s.doneAt = true, s.lastAt
		s.net.event(s.order.Dst, s.order.ID, proto.Destination, proto.Finished, s.doneAt, nil)
		k.conn.Close(now)
	}
}

// whole reports whether everything that the source will ever send has arrived.
func (s *stream) whole() bool {
	if r := s.ends.receipts; r != nil {
		return s.order.Workload.Ends() && r.Complete()
	}
	return s.meter.Finished() != vtime.Never
}

func (s *stream) observe(now vtime.Time, to Observer) {
	if !s.ended && s.sourceSample(now) {
		to(s.order.Src, &s.net.scratch)
	}
	out := s.net.newSample(s.order.ID, proto.Destination, now)
	out.Delivered = s.meter.Total()
	to(s.order.Dst, out)
	for _, r := range s.relays {
		if !r.present() {
			continue
		}
		r.note()
		if s.net.relayDue(now, s.order.ID, r.node) && r.sample(now) {
			to(r.node, &s.net.scratch)
		}
	}
}

// sourceSample fills the scratch sample from the source's connection; false
// while there is none.
func (s *stream) sourceSample(now vtime.Time) bool {
	l := s.links[0]
	if l.established == vtime.Never {
		return false
	}
	fillTCP(s.net.newSample(s.order.ID, proto.Source, now), l.client.conn)
	return true
}

// remember keeps the source's last state.
func (s *stream) remember(now vtime.Time) {
	if !s.hasLast && s.sourceSample(now) {
		s.lastSrc, s.hasLast = s.net.scratch, true
	}
}

func (s *stream) account(now vtime.Time, to func(int, proto.FlowResult)) {
	s.remember(now)
	for _, r := range s.relays {
		r.note()
	}
	first := s.links[0]
	r := proto.FlowResult{Flow: s.order.ID, Side: proto.Source, Total: s.ends.app.Taken(), Attempts: first.attempts, Error: first.outcome()}
	if first.established != vtime.Never {
		r.Established, r.SetupTime, r.CC = first.established, first.established.Sub(first.begun), s.cc
	}
	if s.finishedAt != vtime.Never {
		r.Finished, r.FinishedAt = true, s.finishedAt
	}
	if s.hasLast {
		r.Last = &s.lastSrc
	}
	to(s.order.Src, r)
	for _, r := range s.relays {
		to(r.node, r.account(now))
	}
	to(s.order.Dst, s.sinkAccount(now))
	for _, l := range s.links {
		l.close(now, false)
	}
}

func (s *stream) sinkAccount(now vtime.Time) proto.FlowResult {
	last := s.links[len(s.links)-1]
	r := proto.FlowResult{Flow: s.order.ID, Side: proto.Destination, Bytes: s.meter.Measured(), Total: s.meter.Total(),
		MeasuredFrom: s.from, MeasuredTo: s.to, Finished: s.done, FinishedAt: s.doneAt, Attempts: last.attempts,
		Last: &proto.Sample{Flow: s.order.ID, Side: proto.Destination, T: now, Delivered: s.meter.Total()}}
	if last.accepted != vtime.Never {
		r.Established, r.CC = last.accepted, s.cc
	}
	if r.Total > s.ends.app.Taken() {
		r.Error = &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", s.order.ID),
			Detail: fmt.Sprintf("%v arrived of %v that were sent", r.Total, s.ends.app.Taken())}
	}
	return r
}
