package wifi

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// timerKind is what a station's one timer stands for. A station waits for one
// thing at a time; the backoffs of its queues share one access timer.
type timerKind uint8

const (
	timerNone    timerKind = iota
	timerAccess            // a queue wins access
	timerTxEnd             // the end of the own transmission
	timerAck               // ACKTimeout
	timerCts               // CTSTimeout
	timerGap               // SIFS before the next frame of the own exchange
	timerRespond           // SIFS before an ACK or CTS
	timerNav               // NAV set by an RTS may be reset (runs beside the others)
)

// exchange is the state of the frame exchange that a station has begun. All
// queues of the station are held while it is not exchangeNone.
type exchange uint8

const (
	exchangeNone    exchange = iota
	exchangeSending          // transmitting RTS, CTS-to-self or data
	exchangeWaitCts
	exchangeWaitAck
	exchangeGap  // data follows after SIFS
	exchangeDone // finished; the next frame of the txop or the end follows within this event
)

// fate is what happened to a unicast data frame at its receiver, known to the
// medium only: it feeds the counters, never the protocol.
type fate uint8

const (
	fateNoise     fate = iota // too weak or bit errors without interference
	fateCollision             // interference, or the receiver was busy otherwise
	fateReceived
)

// signal is one transmission on the air. A station has at most one.
type signal struct {
	src, dst   int32
	kind       FrameKind
	ac         AC
	fate       fate
	wantAck    bool
	retry      bool
	truncated  bool
	frame      *Frame // data only
	mode       *mode
	shape      *shape
	start, end vtime.Time
	nav        vtime.Duration // the Duration field
}

// shape is where the bits of a frame lie in time, and how they are coded.
type shape struct {
	header, payload *errorTable
	headerStart     vtime.Duration // within the frame
	headerEnd       vtime.Duration
	headerPerNano   float64 // bits per ns
	payloadPerNano  float64
	extension       vtime.Duration
	lockRatio       float64
	perfect         float64 // no bit error is ever drawn at or above this ratio
}

// reception is the state of a locked receiver.
type reception struct {
	sig        *signal // nil: not locked
	power      int64
	since      vtime.Time // begin of the segment of constant interference
	bad        bool       // threshold model: interference reached the capture threshold
	interfered bool
	lnHeader   float64 // ln of the success probability so far
	lnPayload  float64
	link       *link
}

// access is one queue with its EDCA function (EDCAF).
type access struct {
	cfg        *Queue
	aifs       vtime.Duration
	head, tail *Frame
	packets    int
	bytes      vtime.Bytes
	cw         int
	backoff    int        // slots left, counted up to the last freeze
	lengthAt   vtime.Time // QueueTime is counted up to here
}

// station is one node's interface. What every signal touches comes first and lies
// together: it is read at the begin and end of each transmission within reach, and
// the transmissions of a large mesh touch hundreds of stations.
type station struct {
	energy, sensed int64 // sums over the signals on the air
	up             bool
	transmitting   bool
	busy           bool  // physical carrier sense
	eifs           bool  // the last reception of this busy period had an error
	counting       bool  // the medium is idle and backoffs run from base
	responding     bool  // an ACK or CTS is due or on the air
	pending        uint8 // bit per queue: packets or backoff left
	commit         uint8 // queues that transmit at timerAt although the medium turned busy
	exch           exchange
	timerFor       timerKind
	id             int32
	lockedAt       vtime.Time // when the receiver last locked
	rx             reception
	idleFrom       vtime.Time
	nav            vtime.Time
	hold           vtime.Time // end of the last ACK or CTS timeout
	base           vtime.Time // the backoffs run from here, AIFS first
	phy            *phy
	// Begins of what the counters have not yet taken, and what they have taken
	// since the last Stats.
	busySince, rxSince, txSince vtime.Time
	busyTime, rxTime, txTime    vtime.Duration

	mac     *MAC
	errors  des.Stream // receptions
	draws   des.Stream // backoff
	data    shape      // of frames at the data, control and protection rate
	control shape
	protect shape

	timer       des.EventID
	timerAt     vtime.Time
	navTimer    des.EventID
	navTimerAt  vtime.Time
	navFromRts  vtime.Time // the value that an RTS gave to nav
	activeIndex int32      // place in Medium.active, -1
	seq         uint32

	// The own exchange and the pending response.
	cur         AC
	firstOfTxop bool
	cleared     bool // CTS or CTS-to-self precedes: data is next
	late        bool // the timeout has passed while a frame was being received
	respKind    FrameKind
	respTo      int32
	respNav     vtime.Duration
	txopEnd     vtime.Time
	sig         signal

	queues [NumAC]access
	stats  NodeStats
}

func newShape(p *phy, m *mode) shape {
	hm, bits := p.plcpMode(m)
	s := shape{
		header: hm.table(), payload: m.table(),
		headerEnd: p.plcp(m), payloadPerNano: m.bitsPerNano(), extension: p.extension(m), lockRatio: lockRatio(p, m),
	}
	// 802.11-2012 17.2.2, 18.3.4: the header is the last 48 bits, or the SIGNAL
	// symbol, of the PLCP preamble and header.
	d := 4 * vtime.Microsecond
	if m.dsss {
		d = hm.rate.TxTime(vtime.Bytes(bits / 8))
	}
	s.headerStart = s.headerEnd - d
	s.perfect = max(s.header.perfect, s.payload.perfect)
	s.headerPerNano = float64(bits) / float64(d)
	return s
}

// setTimer replaces the station's timer.
func (m *Medium) setTimer(s *station, kind timerKind, at vtime.Time) {
	if s.timerFor != timerNone {
		m.eng.Cancel(s.timer)
	} else if s.activeIndex < 0 {
		m.activate(s)
	}
	s.timerFor, s.timerAt = kind, at
	s.timer = m.eng.Schedule(at, m, uint64(s.id)<<8|uint64(kind))
}

func (m *Medium) clearTimer(s *station) {
	if s.timerFor != timerNone {
		m.eng.Cancel(s.timer)
		m.timerGone(s)
	}
}

// timerGone records that the timer fired or was cancelled.
func (m *Medium) timerGone(s *station) {
	s.timerFor = timerNone
	m.deactivate(s)
}

func (m *Medium) activate(s *station) {
	s.activeIndex = int32(len(m.active))
	m.active = append(m.active, s)
}

func (m *Medium) deactivate(s *station) {
	if s.timerFor != timerNone || s.navTimer != 0 || s.activeIndex < 0 {
		return
	}
	last := m.active[len(m.active)-1]
	m.active[s.activeIndex] = last
	last.activeIndex = s.activeIndex
	m.active = m.active[:len(m.active)-1]
	s.activeIndex = -1
}
