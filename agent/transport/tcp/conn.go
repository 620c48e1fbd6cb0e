package tcp

import (
	"errors"

	"github.com/hopbed/hopbed/netem/vtime"
)

// State is the connection's state (RFC 9293 §3.3.2).
type State uint8

// The states of RFC 9293; CLOSING, LAST-ACK and the rest keep their names.
const (
	Closed State = iota
	Listen
	SynSent
	SynReceived
	Established
	FinWait1
	FinWait2
	CloseWait
	Closing
	LastAck
	TimeWait
)

// String names the state as RFC 9293 does.
func (s State) String() string {
	return [...]string{"CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED",
		"FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"}[s]
}

// The ways in which a connection fails; Err returns one of them.
var (
	// ErrTimeout: too many retransmissions without an answer.
	ErrTimeout = errors.New("connection timed out")
	// ErrReset: the peer reset an established connection.
	ErrReset = errors.New("connection reset by peer")
	// ErrRefused: the peer answered the SYN with a reset.
	ErrRefused = errors.New("connection refused")
	// ErrAborted: Abort was called here.
	ErrAborted = errors.New("connection aborted")
)

// Conn is one end of a connection. All its methods take the time of the call,
// which never goes backwards. After any of them the caller drains Poll and
// then looks at Deadline. A Conn is used by one thread.
type Conn struct {
	cfg   Config
	pool  *Pool
	state State
	err   error
	cc    Control
	rate  RateControl // cc if it is one, else nil

	w Window // what the congestion control works on

	now   vtime.Time // of the call being served
	us    int64      // the same in microseconds: the unit of Linux's estimators
	jiffy vtime.Duration

	out segQueue // ready for Poll

	snd sender
	rcv receiver
	est estimator
	rec recovery
	rk  rack
	tmr timers
	rs  rateState
	syn handshake

	info         Info       // the counters; the rest is filled by Info
	limitedSince vtime.Time // since when the peer's window is the limit
}

// New returns a closed connection. pool provides the segments that Poll hands
// out; it may be shared by all connections of a thread.
func New(cfg Config, pool *Pool) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if pool == nil {
		pool = new(Pool)
	}
	c := &Conn{cfg: cfg, pool: pool, jiffy: cfg.Tick, limitedSince: vtime.Never}
	if c.jiffy == 0 {
		c.jiffy = vtime.Millisecond
	}
	mk, _ := lookup(cfg.CC)
	c.cc = mk()
	c.rate, _ = c.cc.(RateControl)
	c.w = Window{Cwnd: cfg.InitialWindow, Ssthresh: infinite, Clamp: infinite, MSS: cfg.MSS, Tick: c.jiffy, InitialCwnd: cfg.InitialWindow, Seed: cfg.Seed}
	c.SetCwndCap(cfg.CwndCap)
	c.w.Cwnd = min(c.w.Cwnd, c.w.Clamp)
	c.snd.init(c)
	c.est.rto = 1000000 // RFC 6298 §2.1: 1 s before the first sample
	c.rec.reordering = defaultReordering
	c.rk.steps = 1
	c.tmr.init()
	return c, nil
}

// defaultReordering is tcp_reordering: RFC 5681's DupThresh.
const defaultReordering = 3

// clock sets the time of the call being served.
func (c *Conn) clock(now vtime.Time) {
	c.now = now
	c.us = micros(now)
}

// micros returns a moment in microseconds; the clock begins at 1 because 0
// means "never" in the estimators.
func micros(t vtime.Time) int64 { return int64(t)/1000 + 1 }

// jiffies returns the tick of the call being served.
func (c *Conn) jiffies() int64 { return int64(c.now) / int64(c.jiffy) }

// Poll returns the next segment to send, false when there is none. The
// segment is the caller's until it is put back into the pool. With pacing
// (BBR) a segment may wait; Deadline covers it.
func (c *Conn) Poll(now vtime.Time) (*Segment, bool) {
	s := c.out.pop()
	return s, s != nil
}

// State returns the connection's state.
func (c *Conn) State() State { return c.state }

// Err returns why the connection failed, nil if it did not.
func (c *Conn) Err() error { return c.err }

// SetCwndCap limits the congestion window to n segments from now on (Linux's
// snd_cwnd_clamp); 0 removes the cap.
func (c *Conn) SetCwndCap(n int) {
	c.w.Clamp = infinite
	if n > 0 {
		c.w.Clamp = n
		c.w.Cwnd = min(c.w.Cwnd, n)
	}
}

// LimitCwnd bounds the congestion window of an open connection at n segments from
// when it would grow next; 0 takes the bound away. Unlike SetCwndCap it cuts nothing
// at once, as Linux's snd_cwnd_clamp does not, and leaves all else to the congestion
// control, the slow-start threshold among it.
func (c *Conn) LimitCwnd(n int) {
	if n == 0 {
		n = infinite
	}
	c.w.Clamp = n
}

// setState moves the connection; Closed and TimeWait stop the timers that
// have nothing left to do.
func (c *Conn) setState(s State) {
	c.state = s
	if s == Closed {
		c.tmr.stopAll()
	}
}

// fail closes the connection with an error and forgets what was queued.
func (c *Conn) fail(err error) {
	c.err = err
	c.snd.purge()
	c.setState(Closed)
}

// segQueue holds segments that wait for Poll, oldest first.
type segQueue struct{ head, tail *Segment }

func (q *segQueue) push(s *Segment) {
	s.next = nil
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.next = s
	}
	q.tail = s
}

func (q *segQueue) pop() *Segment {
	s := q.head
	if s == nil {
		return nil
	}
	q.head = s.next
	if q.head == nil {
		q.tail = nil
	}
	s.next = nil
	return s
}
