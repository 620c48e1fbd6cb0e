// The tag "portable" tests this file on Linux.

//go:build !linux || portable

package datagram

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// system is what a Socket has besides: the one datagram that Wait took.
type system struct {
	buf  []byte
	n    int
	from netip.AddrPort
}

func (s *Socket) setUp(o Options) error {
	s.sys.buf = make([]byte, 65_536)
	if o.ReceiveBuffer > 0 {
		if err := s.conn.SetReadBuffer(o.ReceiveBuffer); err != nil {
			return fmt.Errorf("receive buffer of %d bytes: %w", o.ReceiveBuffer, err)
		}
	}
	if o.SendBuffer > 0 {
		if err := s.conn.SetWriteBuffer(o.SendBuffer); err != nil {
			return fmt.Errorf("send buffer of %d bytes: %w", o.SendBuffer, err)
		}
	}
	return nil
}

// Wait waits for a datagram. It stays until the next Wait.
func (s *Socket) Wait() error {
	y := &s.sys
	y.n = -1
	n, from, err := s.conn.ReadFromUDPAddrPort(y.buf)
	if err != nil {
		var t net.Error
		if errors.Is(err, net.ErrClosed) || errors.As(err, &t) && t.Timeout() {
			return err
		}
		return nil // it tells of an earlier datagram, which is lost like any other
	}
	y.n, y.from = n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	return nil
}

// Poll takes nothing: here datagrams come from Wait alone.
func (s *Socket) Poll() error {
	s.sys.n = -1
	return nil
}

// All calls f with every datagram of the last Wait, in order, each with its
// sender; data is valid until the next Wait.
func (s *Socket) All(f func(from netip.AddrPort, data []byte)) {
	if s.sys.n < 0 {
		return
	}
	s.facts.ReadCalls++
	s.facts.Received++
	f(s.sys.from, s.sys.buf[:s.sys.n])
}

// flush sends the batch, one datagram after the other. The type of service is
// not set.
func (s *Socket) flush() (full bool, err error) {
	t := &s.train
	for t.pending > 0 {
		l := &t.list[t.next]
		_, err := s.conn.WriteToUDPAddrPort(t.bytes(l), l.to)
		if errors.Is(err, net.ErrClosed) {
			return false, err
		}
		k := uint64(t.gone(1))
		if err != nil {
			s.facts.Refused += k
			continue
		}
		s.facts.SendCalls++
		s.facts.Sent += k
	}
	return false, nil
}

// Queued is 0: the system does not tell.
func (s *Socket) Queued() int { return 0 }
