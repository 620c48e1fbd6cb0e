package wifi

import (
	"math"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// timerKind is what a station's one timer stands for. A station waits for one
// thing at a time; the backoffs of its queues share one access timer.
type timerKind uint8

const (
	timerNone      timerKind = iota
	timerAccess              // a queue wins access
	timerTxEnd               // the end of the own transmission
	timerAck                 // ACKTimeout
	timerCts                 // CTSTimeout
	timerGap                 // SIFS before the next frame of the own exchange
	timerRespond             // SIFS before an ACK or CTS
	timerNav                 // NAV set by an RTS may be reset (runs beside the others)
	timerConfigure           // another configuration takes effect (runs beside the others)
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
	// Where the bits of the PLCP header and of the payload lie.
	headerFrom, headerTo, payloadTo vtime.Time
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
	kind            shapeKind
}

// mostUnder returns the most interference, in units of the channel, under which a
// signal keeps the given ratio to it and the noise; negative: not even alone.
func (c *Channel) mostUnder(power int64, ratio float64) int64 {
	keeps := func(other int64) bool {
		return float64(power) >= float64(ratio*float64(c.noise+other))
	}
	if !keeps(0) {
		return -1
	}
	low, high := int64(0), int64(math.MaxInt64-c.noise)
	for low+1 < high {
		mid := low + (high-low)/2
		if keeps(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// shapeKind numbers the shapes of a station.
type shapeKind uint8

const (
	shapeData shapeKind = iota
	shapeControl
	shapeProtect
	numShape
)

// shapes are those of the frames at the data, the control and the protection
// rate.
type shapes [numShape]shape

// receiver is what signals touch at a station: the first cache line at the begin and
// end of each transmission within reach (air.go), the others when the receiver locks
// or carrier sense changes. The transmissions of a large mesh touch hundreds of
// stations; therefore receivers lie in an array of their own. They name other stations
// by number, which costs the garbage collector nothing.
type receiver struct {
	energy, sensed int64 // sums over the signals on the air
	// Up to this energy, the power of the frame that the receiver is locked on
	// included, interference does not change the success probability. The greatest
	// number without a reception.
	limit int64
	// Carrier sense turns busy from the sum high on, the greatest number while it is
	// busy, and idle below low: never while it is idle, and while something else than
	// that sum keeps it busy.
	high, low int64
	// The least power of a signal that the receiver may lock on: 0, or more than that
	// of the frame that it is locked on; the greatest number while it cannot.
	least int64
	since vtime.Time // begin of the segment of constant interference
	from  int32      // the sender of the frame that the receiver is locked on; −1: not locked

	interfered bool // something else was on the air during the reception
	busy       bool // physical carrier sense
	counting   bool // the medium is idle and backoffs run
	up         bool

	power int64 // of the reception; 0 without one
	link  int32 // number of the link among the sender's

	id           int32
	early        bool // threshold model: interference when the receiver locked
	bad          bool // threshold model: interference reached the capture threshold
	transmitting bool
	eifs         bool // the last reception of this busy period had an error
	responding   bool // an ACK or CTS is due or on the air
	exch         exchange
	pending      uint8 // bit per queue: packets or backoff left
	commit       uint8 // queues that transmit at timerAt although the medium turned busy

	lnHeader, lnPayload float64    // ln of the success probability so far
	lockedAt            vtime.Time // when the receiver last locked
	idleFrom            vtime.Time
	// Begins of what the counters have not yet taken, and what they have taken
	// since the last Stats.
	busySince, rxSince vtime.Time
	busyTime, rxTime   vtime.Duration
}

func (r *receiver) locked() bool { return r.from >= 0 }

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

// hearer is a receiver within reach of a sender: what the begin and end of a signal
// need of a link, for frames of one shape.
type hearer struct {
	*receiver
	power, sense int64 // of the signal there
	bound        int64 // the receiver can synchronise to it if there is no more interference; never, if it cannot
	limit        int64 // receiver.limit when it has locked on it
}

// station is one node's interface. What most signals touch comes first.
type station struct {
	*receiver
	nav    vtime.Time
	hold   vtime.Time // end of the last ACK or CTS timeout
	phy    *phy
	mac    *MAC
	late   bool       // the timeout has passed while a frame was being received
	errors des.Stream // receptions
	draws  des.Stream // backoff
	shapes *shapes

	timerFor   timerKind
	timer      des.EventID
	timerAt    vtime.Time
	navTimer   des.EventID
	navTimerAt vtime.Time
	navFromRts vtime.Time // the value that an RTS gave to nav
	active     bool       // it is in Medium.active
	txSince    vtime.Time // as busySince
	txTime     vtime.Duration
	seq        uint32

	// The own exchange and the pending response.
	cur         AC
	firstOfTxop bool
	cleared     bool // CTS or CTS-to-self precedes: data is next
	respKind    FrameKind
	respTo      int32
	respNav     vtime.Duration
	txopEnd     vtime.Time
	sig         signal

	queues [NumAC]access
	stats  NodeStats
}

func newShapes(p *phy) shapes {
	s := shapes{shapeData: newShape(p, p.data, shapeData), shapeControl: newShape(p, p.control, shapeControl)}
	if p.protect != nil {
		s[shapeProtect] = newShape(p, p.protect, shapeProtect)
	}
	return s
}

func newShape(p *phy, m *mode, k shapeKind) shape {
	hm, bits := p.plcpMode(m), p.plcpMode(m).headerBits()
	s := shape{
		kind: k, header: hm.table(), payload: m.table(),
		headerEnd: p.plcp(m), payloadPerNano: m.bitsPerNano(), extension: p.extension(m), lockRatio: hm.lock(),
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
	}
	m.activate(s)
	s.timerFor, s.timerAt = kind, at
	s.timer = m.eng.Schedule(at, m, uint64(s.id)<<8|uint64(kind))
}

func (m *Medium) clearTimer(s *station) {
	if s.timerFor != timerNone {
		m.eng.Cancel(s.timer)
		s.timerFor = timerNone
	}
}

// activate notes a station that has a timer. Its place is kept until NextVisible
// finds it without one.
func (m *Medium) activate(s *station) {
	if !s.active {
		s.active = true
		m.active = append(m.active, s)
	}
}
