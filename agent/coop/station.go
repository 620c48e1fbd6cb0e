package coop

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The constants of the method. Those of the paper are from its section 3; what it
// leaves open is said to be ours.
const (
	// BeaconEvery is the time between two beacons of a station that transmits.
	BeaconEvery = 300 * vtime.Millisecond
	// PeerTimeout is the silence after which a station no longer counts (ours: three
	// beacons may be lost).
	PeerTimeout = vtime.Second
	// Tick is the time between two looks at the round-trip time.
	Tick = 500 * vtime.Millisecond
	// EnterRatio is the round-trip time over its minimum from which on windows are
	// capped, MinRatio that from which on a capped window is one segment.
	EnterRatio, MinRatio = 6.0, 5.0
	// LeaveRatio is the ratio below which a window that was capped is set free, when
	// it lasts for LeaveAfter (ours).
	LeaveRatio = 2.0
	LeaveAfter = 5 * vtime.Second
	// DefaultBandwidth is BWmax. The paper prints 1.9e3 without a unit; kB/s agrees
	// with the segment, which is in kB.
	DefaultBandwidth vtime.BitRate = 15_200_000
	// exponent says how the bandwidth falls with the number of stations.
	exponent = -0.15
	// segment is the length of a segment in the formula.
	segment = 1500
)

// State is that of a connection.
type State string

// The states.
const (
	Normal State = "normal" // no cap
	Capped State = "capped" // the window is capped at the station's share
	Min    State = "min"    // the window is capped at one segment
)

// Config says how a station controls its connections.
type Config struct {
	Addr netip.Addr // the station's own
	// Bandwidth is BWmax; 0 = DefaultBandwidth.
	Bandwidth vtime.BitRate
	// Always caps windows by the number of stations alone, whatever the round-trip
	// time is: what the paper compares with as "without RTT control". There is no
	// state Min.
	Always bool
	// Seed decides when in BeaconEvery a station's first beacon is due: stations that
	// begin by the same clock would otherwise send at one moment for ever.
	Seed uint64
}

// Change is a new state of a connection, or a new cap, or a new number of stations.
type Change struct {
	Flow     int
	T        vtime.Time
	State    State
	Stations int            // that transmit, this one included
	RTT      vtime.Duration // at the last tick
	MinRTT   vtime.Duration // the least so far
	Cap      int            // segments; 0 = none
}

// String is the change as it stands in the results: words and numbers that
// ParseChange reads back.
func (c Change) String() string {
	return fmt.Sprintf("state=%s stations=%d cap=%d rtt_us=%d min_rtt_us=%d", c.State, c.Stations, c.Cap, c.RTT/vtime.Microsecond, c.MinRTT/vtime.Microsecond)
}

// ParseChange reads what String wrote, with round-trip times of whole microseconds
// and without flow and moment.
func ParseChange(s string) (c Change, err error) {
	var rtt, least int64
	_, err = fmt.Sscanf(s, "state=%s stations=%d cap=%d rtt_us=%d min_rtt_us=%d", &c.State, &c.Stations, &c.Cap, &rtt, &least)
	c.RTT, c.MinRTT = vtime.Duration(rtt)*vtime.Microsecond, vtime.Duration(least)*vtime.Microsecond
	if err != nil {
		return c, fmt.Errorf("change of a cooperative window %q: %w", s, err)
	}
	return c, nil
}

// IdealCwnd is the share of one of n stations in segments, at least 1:
//
//	BW × RTT / (1.5 kB × n), BW = BWmax × n^−0.15
//
// rounded to the nearest whole segment.
func IdealCwnd(bandwidth vtime.BitRate, rtt vtime.Duration, n int) int {
	// Only operations whose rounding is the same everywhere: caps decide events.
	share := fmath.Exp(float64(exponent*fmath.Log(float64(n)))) / float64(n)
	bytes := float64(float64(bandwidth)/8*share) * (float64(rtt) / float64(vtime.Second))
	return int(max(1, math.Floor(float64(bytes/segment)+0.5)))
}

// Station is the state machine of one node. It is not for several goroutines.
type Station struct {
	cfg   Config
	phase vtime.Duration
	peers []peer
	flows []flow

	beaconAt, tickAt vtime.Time // vtime.Never while no connection transmits
	due              bool       // a beacon is to be sent
	changes          []Change
}

type peer struct {
	addr netip.Addr
	last vtime.Time // when it was heard
}

type flow struct {
	id         int
	state      State
	cap        int
	rtt, least vtime.Duration
	since      vtime.Time // the first tick of a row with a ratio below LeaveRatio; vtime.Never: none
}

// New returns a station without connections.
func New(cfg Config) *Station {
	if cfg.Bandwidth == 0 {
		cfg.Bandwidth = DefaultBandwidth
	}
	s := &Station{cfg: cfg, beaconAt: vtime.Never, tickAt: vtime.Never}
	s.phase = vtime.Duration(des.NewStream(cfg.Seed, "coop/"+cfg.Addr.String()).IntN(int(BeaconEvery)))
	return s
}

// Addr is the station's own address.
func (s *Station) Addr() netip.Addr { return s.cfg.Addr }

// Begin says that a connection transmits from now on, without a cap.
func (s *Station) Begin(now vtime.Time, id int) {
	if s.find(id) != nil {
		return
	}
	if len(s.flows) == 0 {
		s.beaconAt, s.tickAt = now.Add(s.phase), now.Add(Tick)
	}
	s.flows = append(s.flows, flow{id: id, state: Normal, since: vtime.Never})
	s.counted(now) // a station that listened before knows of others already
}

// End says that a connection transmits no more.
func (s *Station) End(id int) {
	s.flows = slices.DeleteFunc(s.flows, func(f flow) bool { return f.id == id })
	if len(s.flows) == 0 {
		s.beaconAt, s.tickAt, s.due = vtime.Never, vtime.Never, false
	}
}

func (s *Station) find(id int) *flow {
	for i := range s.flows {
		if s.flows[i].id == id {
			return &s.flows[i]
		}
	}
	return nil
}

// Measure says what the round-trip time of a connection is, for the next tick; 0
// is not known.
func (s *Station) Measure(id int, rtt vtime.Duration) {
	f := s.find(id)
	if f == nil || rtt <= 0 {
		return
	}
	if f.rtt = rtt; f.least == 0 || rtt < f.least {
		f.least = rtt
	}
}

// Stations is the number of stations that transmit, as far as this one knows, itself
// included when it does.
func (s *Station) Stations() int {
	n := len(s.peers)
	if len(s.flows) > 0 {
		n++
	}
	return n
}

// Receive takes a beacon that came from an address.
func (s *Station) Receive(now vtime.Time, from netip.Addr) {
	if from == s.cfg.Addr {
		return
	}
	for i := range s.peers {
		if s.peers[i].addr == from {
			s.peers[i].last = now
			return
		}
	}
	s.peers = append(s.peers, peer{from, now})
	s.counted(now)
}

// counted notes the number of stations, for each connection.
func (s *Station) counted(now vtime.Time) {
	for i := range s.flows {
		s.note(now, &s.flows[i])
	}
}

func (s *Station) note(now vtime.Time, f *flow) {
	s.changes = append(s.changes, Change{f.id, now, f.state, s.Stations(), f.rtt, f.least, f.cap})
}

// Deadline is when Expire is to be called next.
func (s *Station) Deadline() vtime.Time {
	at := vtime.Min(s.beaconAt, s.tickAt)
	for i := range s.peers {
		at = vtime.Min(at, s.peers[i].last.Add(PeerTimeout))
	}
	return at
}

// Expire does what is due by now. The caller says by Measure before what the
// round-trip times are.
func (s *Station) Expire(now vtime.Time) {
	before := len(s.peers)
	s.peers = slices.DeleteFunc(s.peers, func(p peer) bool { return now.Sub(p.last) >= PeerTimeout })
	if len(s.peers) != before {
		s.counted(now)
	}
	if s.beaconAt <= now {
		s.due = true
		s.beaconAt = next(s.beaconAt, now, BeaconEvery)
	}
	if s.tickAt <= now {
		s.tickAt = next(s.tickAt, now, Tick)
		for i := range s.flows {
			s.tick(now, &s.flows[i])
		}
	}
}

// next is the first moment of a rhythm after now: a station that was kept from
// running does not make up for what it missed.
func next(at, now vtime.Time, every vtime.Duration) vtime.Time {
	return at.Add(every * (1 + now.Sub(at)/every))
}

// Poll returns the next beacon that is due: what follows the UDP header.
func (s *Station) Poll(vtime.Time) ([]byte, bool) {
	if !s.due {
		return nil, false
	}
	s.due = false
	return beacon, true
}

// Changes returns what has changed since it was called last. It is valid until the
// station is used again.
func (s *Station) Changes() []Change {
	c := s.changes
	s.changes = s.changes[:0]
	return c
}

// tick looks at a connection's round-trip time and sets its state and cap.
func (s *Station) tick(now vtime.Time, f *flow) {
	if f.least == 0 {
		return
	}
	n, state, cap := s.Stations(), f.state, f.cap
	ratio := float64(f.rtt) / float64(f.least)
	if s.cfg.Always {
		f.state = Normal
		if n > 1 {
			f.state = Capped
		}
	} else {
		f.step(now, ratio, n)
	}
	switch f.state {
	case Normal:
		f.cap = 0
	case Min:
		f.cap = 1
	case Capped:
		// The connections of a station share what is its own.
		f.cap = max(1, IdealCwnd(s.cfg.Bandwidth, f.least, n)/len(s.flows))
	}
	if f.state != state || f.cap != cap {
		s.note(now, f)
	}
}

// step is the state machine of a connection. A tick moves it by one state, so that
// Min lasts for one tick at least.
func (f *flow) step(now vtime.Time, ratio float64, n int) {
	if ratio >= LeaveRatio {
		f.since = vtime.Never
	} else if f.since == vtime.Never {
		f.since = now
	}
	switch {
	case f.state == Normal && ratio >= EnterRatio && n > 1:
		f.state = Capped
	case f.state == Capped && n <= 1, f.state == Capped && f.since != vtime.Never && now.Sub(f.since) >= LeaveAfter:
		f.state = Normal
	case f.state == Capped && ratio >= MinRatio:
		f.state = Min
	case f.state == Min && ratio < MinRatio:
		f.state = Capped
	}
}
