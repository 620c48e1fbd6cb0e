package wifi

import (
	"fmt"
	"math"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Medium runs the MACs of all nodes over one channel. It is driven by the
// engine's events and by its methods, all on one thread.
type Medium struct {
	eng       *des.Engine
	ch        *Channel
	owned     bool // ch is no other medium's
	seed      uint64
	sink      Sink
	stations  []station
	receivers []receiver           // of the stations
	void      receiver             // where links lead that are down: it never has anything to do
	links     [][]linkState        // parallel to ch.links
	hearers   [][numShape][]hearer // parallel to ch.links
	alone     [][numShape][]alone  // parallel to ch.links
	configs   map[int32]*MAC       // of SetMAC, for stations that transmit
	cut       map[[2]int]bool      // pairs, the smaller node first, whose link is down; nil: none ever was
	acts      []int32              // of spread and fade: hearers that have something to do
	active    []*station           // stations with a timer, and some that had one
	calls     []call               // upcalls of the current event
	flushing  bool
	pool      *Frame
	monitor   Monitor
	recorder  Recorder     // the monitor, if it is one
	seen      Transmission // reused for the monitor
}

// linkState is the state of a link's receiving side.
type linkState struct {
	last  [NumAC]uint32 // sequence number of the last frame received (duplicate detection)
	loss  float64
	draws *des.Stream // of SetLoss
}

// alone is what is known beforehand of the frames of one shape on a link.
type alone struct {
	header, payload float64 // ln(1−BER) when nothing interferes
}

// NewMedium returns the medium of the channel's nodes. macs has one entry per
// node, or one entry for all. All nodes follow one standard.
func NewMedium(eng *des.Engine, seed uint64, ch *Channel, macs []MAC, sink Sink) (*Medium, error) {
	if len(macs) != 1 && len(macs) != ch.n {
		return nil, fmt.Errorf("medium: %d MAC configurations for %d nodes: want one per node, or one for all", len(macs), ch.n)
	}
	macs = append([]MAC(nil), macs...)
	phys := make([]phy, len(macs))
	forms := make([]shapes, len(macs))
	for i := range macs {
		if err := macs[i].Validate(); err != nil {
			return nil, fmt.Errorf("medium: node %d: %w", i, err)
		}
		phys[i], _ = newPHY(&macs[i]) // Validate has built it once without an error
		forms[i] = newShapes(&phys[i])
		if std := macs[i].Standard; std != macs[0].Standard || !ch.threshold && std != ch.std {
			return nil, fmt.Errorf("medium: node %d speaks %v on a channel of %v: one channel has one standard", i, std, ch.standard(macs[0].Standard))
		}
	}
	m := &Medium{eng: eng, ch: ch, seed: seed, sink: sink,
		stations: make([]station, ch.n), receivers: make([]receiver, ch.n), links: make([][]linkState, ch.n), hearers: make([][numShape][]hearer, ch.n), alone: make([][numShape][]alone, ch.n)}
	most := 0
	for i := range ch.links {
		most = max(most, len(ch.links[i]))
	}
	m.acts = make([]int32, most)
	m.void.from, m.void.limit = -1, math.MaxInt64
	m.setBounds(&m.void)
	m.void.high = math.MaxInt64
	for i := range m.stations {
		k := i % len(macs)
		m.initStation(&m.stations[i], i, &macs[k], &phys[k], &forms[k])
		m.initLinks(i)
	}
	return m, nil
}

func (c *Channel) standard(first Standard) Standard {
	if c.threshold {
		return first
	}
	return c.std
}

func (m *Medium) initStation(s *station, i int, mac *MAC, p *phy, forms *shapes) {
	s.receiver = &m.receivers[i]
	s.up, s.from, s.limit = true, -1, math.MaxInt64
	m.setBounds(s.receiver)
	s.id, s.mac, s.phy, s.shapes = int32(i), mac, p, forms
	s.draws.Reseed(m.seed, fmt.Sprintf("wifi/%d/backoff", i))
	s.errors.Reseed(m.seed, fmt.Sprintf("wifi/%d/reception", i))
	now := m.eng.Now()
	s.idleFrom, s.counting = now, true
	s.nav, s.hold, s.lockedAt = now, now, now
	for ac := range s.queues {
		q := &s.queues[ac]
		q.cfg = &mac.Queues[ac]
		q.aifs, q.cw, q.lengthAt = p.aifs(q.cfg.AIFSN), q.cfg.CWmin, now
	}
	s.stats.Since = now
}

// initLinks lists who hears station i, and evaluates beforehand what can be of the
// frames that it sends.
func (m *Medium) initLinks(i int) {
	m.links[i] = make([]linkState, len(m.ch.links[i]))
	m.evaluate(i)
}

// evaluate computes what the shapes of station i's frames mean to each hearer.
func (m *Medium) evaluate(i int) {
	links, forms := m.ch.links[i], m.stations[i].shapes
	for f := range forms {
		sh := &forms[f]
		if sh.header == nil {
			continue
		}
		m.alone[i][f] = make([]alone, len(links))
		for k := range links {
			m.alone[i][f][k] = m.ch.alone(&links[k], sh)
		}
		m.hearers[i][f] = make([]hearer, len(links))
		for k := range links {
			m.hearers[i][f][k] = m.hearer(&links[k], sh)
		}
	}
}

// hearer is what the receiving end of a link hears of frames of one shape.
func (m *Medium) hearer(l *link, sh *shape) hearer {
	return hearer{receiver: &m.receivers[l.to], power: l.power, sense: l.sense, bound: m.ch.bound(l, sh), limit: m.ch.limit(l, sh)}
}

// bound is the most interference against which a receiver can synchronise to a
// frame: the PLCP header has a chance; negative: never. In the disk and matrix
// models it can whenever it senses the signal: the power comparison decides about
// the frame as a whole.
func (c *Channel) bound(l *link, sh *shape) int64 {
	switch {
	case c.threshold && (l.decodes || l.sense > 0):
		return math.MaxInt64
	case c.threshold || l.power < c.lockAt:
		return -1
	}
	return c.mostUnder(l.power, sh.lockRatio)
}

// alone is what is known beforehand of the frames of one shape on a link.
func (c *Channel) alone(l *link, sh *shape) alone {
	if c.threshold || l.power < c.lockAt {
		return alone{} // no receiver locks on it, or bit errors are of no matter
	}
	g := float64(l.power) / float64(c.noise)
	return alone{header: sh.header.lnBit(g), payload: sh.payload.lnBit(g)}
}

// limit is receiver.limit of a reception over a link.
func (c *Channel) limit(l *link, sh *shape) int64 {
	switch {
	case c.threshold:
		return never // whatever begins may be above the capture threshold
	case l.power < c.lockAt:
		return math.MaxInt64 // no receiver locks on it
	}
	return l.power + min(c.mostUnder(l.power, sh.perfect), math.MaxInt64-l.power)
}

// Fire is the entry of the engine's events.
func (m *Medium) Fire(now vtime.Time, arg uint64) {
	s := &m.stations[arg>>8]
	kind := timerKind(arg & 0xff)
	switch kind {
	case timerNav:
		s.navTimer = 0
		m.navReset(s, now)
		return
	case timerConfigure:
		m.configure(s, now)
		return
	}
	s.timerFor = timerNone
	switch kind {
	case timerAccess:
		m.access(s, now)
	case timerTxEnd:
		m.txEnd(s, now)
	case timerAck, timerCts:
		m.timeout(s, now)
	case timerGap:
		m.sendNext(s, now)
	case timerRespond:
		m.respond(s, now)
	}
	m.flush(now)
}

// call is one deferred upcall. The sink runs only after the event has brought
// every station up to date, so that an Enqueue inside it meets a consistent
// medium.
type call struct {
	kind  callKind
	out   Outcome
	node  int32
	frame *Frame
}

type callKind uint8

const (
	callDeliver callKind = iota
	callDone
	callProceed // continue or end the txop of a station
)

func (m *Medium) flush(now vtime.Time) {
	if m.flushing { // a sink called SetNodeUp: the loop below sees its calls
		return
	}
	m.flushing = true
	for i := 0; i < len(m.calls); i++ {
		c := m.calls[i]
		switch c.kind {
		case callDeliver:
			m.eng.Mix(uint64(c.node)<<8|uint64(callDeliver), uint64(c.frame.Src)<<32|uint64(c.frame.seq))
			st := &m.stations[c.node].stats
			st.Delivered++
			st.BytesUp += c.frame.Len
			m.sink.Deliver(now, int(c.node), c.frame)
		case callDone:
			m.eng.Mix(uint64(c.out)<<8|uint64(callDone), uint64(c.frame.Src)<<32|uint64(c.frame.seq))
			m.sink.Done(now, c.frame, c.out)
			m.FreeFrame(c.frame)
		case callProceed:
			m.proceed(&m.stations[c.node], now)
		}
	}
	m.calls = m.calls[:0]
	m.flushing = false
}

// SetLoss drops a share p of the frames from → to after the receiver's MAC has
// taken and acknowledged them, as a modified receiving driver would. It returns
// an error when p is not in 0…1 or a node does not exist; for a pair that is out
// of reach of each other there is nothing to drop.
func (m *Medium) SetLoss(from, to int, p vtime.Fraction) error {
	if !(p >= 0 && p <= 1) {
		return fmt.Errorf("medium: loss %v on link %d→%d: want 0…100%%", p, from, to)
	}
	if from < 0 || from >= m.ch.n || to < 0 || to >= m.ch.n {
		return fmt.Errorf("medium: loss on link %d→%d: there are nodes 0…%d", from, to, m.ch.n-1)
	}
	k, l := m.ch.find(from, to)
	if l == nil {
		return nil
	}
	ls := &m.links[from][k]
	ls.loss = float64(p)
	if ls.draws == nil {
		ls.draws = des.NewStream(m.seed, fmt.Sprintf("wifi/loss/%d/%d", from, to))
	}
	return nil
}
