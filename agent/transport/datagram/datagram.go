package datagram

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// MaxSize is the largest datagram that a Socket sends, in bytes of UDP payload:
// what an Ethernet frame carries without IP's and UDP's headers (1500 − 28).
const MaxSize = 1472

// Options are a socket's parameters. The zero value is valid.
type Options struct {
	// ReceiveBuffer and SendBuffer are the kernel's buffers in bytes (SO_RCVBUF,
	// SO_SNDBUF); 0 leaves the system's default. The system may grant less
	// (net.core.rmem_max): Facts tells.
	ReceiveBuffer, SendBuffer int
	// NoOffload leaves GSO and GRO off.
	NoOffload bool
}

// Facts are what a socket got of its options, and what it has done.
type Facts struct {
	ReceiveBuffer, SendBuffer int  // bytes, as the system counts them; 0 where it does not tell
	GSO, GRO                  bool // in use
	Batches                   bool // several datagrams per system call

	Sent      uint64 // datagrams that the kernel took
	SendCalls uint64 // system calls that took at least one
	Refused   uint64 // datagrams that the kernel refused for good: no route, no buffer
	Received  uint64 // datagrams
	ReadCalls uint64 // system calls that gave at least one
}

// Socket is a UDP socket. Wait, Poll and All are for one goroutine; Slot, Put, Flush
// and Pending for one at a time, not necessarily the same. SetDeadline and Close
// may be called by any.
type Socket struct {
	conn  *net.UDPConn
	local netip.AddrPort
	train trains
	facts Facts
	sys   system
}

// Listen binds a socket to the address; port 0 picks one.
func Listen(at netip.AddrPort, o Options) (*Socket, error) {
	network := "udp"
	if at.Addr().Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("datagram: bind UDP %v: %w", at, err)
	}
	s := &Socket{conn: conn}
	s.local = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	s.local = netip.AddrPortFrom(s.local.Addr().Unmap(), s.local.Port())
	if err := s.setUp(o); err != nil {
		return nil, errors.Join(fmt.Errorf("datagram: UDP %v: %w", at, err), conn.Close())
	}
	s.train.init(s.facts.GSO)
	return s, nil
}

// LocalAddr is the address that the socket is bound to.
func (s *Socket) LocalAddr() netip.AddrPort { return s.local }

// Facts returns what the socket got and did. It is not synchronised with the
// other methods: call it where they are not called.
func (s *Socket) Facts() Facts { return s.facts }

// SetDeadline ends the present and every later Wait at that time, with
// os.ErrDeadlineExceeded; the zero time ends none.
func (s *Socket) SetDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// Close ends Wait with net.ErrClosed and frees the socket.
func (s *Socket) Close() error { return s.conn.Close() }

// Slot is the place of the next datagram, MaxSize bytes or more, nil if the
// batch is full. It is valid until Put or Flush.
func (s *Socket) Slot() []byte { return s.train.slot() }

// Put adds the first n bytes of Slot to the batch: a datagram to an address,
// with the type of service tos (the DSCP is its upper six bits).
func (s *Socket) Put(to netip.AddrPort, tos uint8, n int) { s.train.put(to, tos, n) }

// Pending is the number of datagrams in the batch that were not handed over.
func (s *Socket) Pending() int { return s.train.pending }

// Flush hands the batch to the kernel. It returns how many datagrams have left
// the batch, and whether some stay because the kernel's buffer is full: Flush
// again a little later. What the kernel refuses for good (no route to the
// address, for example) leaves the batch as a lost datagram does, and is counted
// in Facts.Refused. The error is that of a socket that is of no more use.
func (s *Socket) Flush() (left int, full bool, err error) {
	before := s.train.pending
	if before == 0 {
		return 0, false, nil
	}
	full, err = s.flush()
	if s.train.pending == 0 {
		s.train.reset()
	}
	return before - s.train.pending, full, err
}
