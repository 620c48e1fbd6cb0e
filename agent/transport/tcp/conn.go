package tcp

import (
	"errors"
	"fmt"

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
	cfg  Config
	pool *Pool
}

// New returns a closed connection. pool provides the segments that Poll hands
// out; it may be shared by all connections of a thread.
func New(cfg Config, pool *Pool) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("tcp: not yet")
}

// Connect starts an active open: a SYN is ready for Poll.
func (c *Conn) Connect(now vtime.Time) {}

// Listen makes the end wait for one SYN.
func (c *Conn) Listen() {}

// Receive processes a segment from the peer. The segment stays the caller's.
func (c *Conn) Receive(now vtime.Time, s *Segment) {}

// Expire lets the timers run whose time has come (≤ now).
func (c *Conn) Expire(now vtime.Time) {}

// Deadline returns when Expire is next needed; vtime.Never if no timer runs.
func (c *Conn) Deadline() vtime.Time { return vtime.Never }

// Poll returns the next segment to send, false when there is none. The
// segment is the caller's until it is put back into the pool. With pacing
// (BBR) a segment may wait; Deadline covers it.
func (c *Conn) Poll(now vtime.Time) (*Segment, bool) { return nil, false }

// Write appends up to n bytes to the send queue and returns how many the send
// buffer took. Bytes may be written before the connection is established.
func (c *Conn) Write(now vtime.Time, n vtime.Bytes) vtime.Bytes { return 0 }

// Writable returns how many bytes Write would take now. Like a blocking or
// polling application under Linux, it is 0 until a third of the buffer is
// free.
func (c *Conn) Writable() vtime.Bytes { return 0 }

// Read takes up to n bytes from the receive queue and returns how many there
// were. Reading opens the window and may make an ACK ready.
func (c *Conn) Read(now vtime.Time, n vtime.Bytes) vtime.Bytes { return 0 }

// Readable returns the bytes that Read would give.
func (c *Conn) Readable() vtime.Bytes { return 0 }

// EOF reports that the peer has closed and all its bytes were read.
func (c *Conn) EOF() bool { return false }

// Close ends sending: a FIN follows the bytes written. Reading goes on.
func (c *Conn) Close(now vtime.Time) {}

// Abort sends a RST and closes at once.
func (c *Conn) Abort(now vtime.Time) {}

// State returns the connection's state.
func (c *Conn) State() State { return Closed }

// Err returns why the connection failed, nil if it did not.
func (c *Conn) Err() error { return nil }

// SetCwndCap limits the congestion window to n segments from now on (Linux's
// snd_cwnd_clamp); 0 removes the cap.
func (c *Conn) SetCwndCap(n int) {}

// Info returns the counters and estimates, the same as the kernel's TCP_INFO.
func (c *Conn) Info() Info { return Info{} }
