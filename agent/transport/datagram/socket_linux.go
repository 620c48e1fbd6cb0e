//go:build linux && !portable

package datagram

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// system is what a Socket has besides on Linux: the arguments of recvmmsg and
// sendmmsg, made once.
type system struct {
	raw syscall.RawConn
	v6  bool // an IPv6 socket: IPv4 addresses are written as mapped ones

	// Receiving.
	in      [readBatch]mmsghdr
	inIovs  [readBatch]unix.Iovec
	inNames [readBatch]unix.RawSockaddrInet6 // of either family
	inCtrl  [readBatch][controlSize]byte
	inBufs  []byte // readSize bytes for each
	inSize  int
	got     int
	errno   syscall.Errno
	read    func(fd uintptr) bool
	peek    func(fd uintptr)

	// Sending.
	out      [mostDatagrams]mmsghdr
	outIovs  [mostDatagrams]unix.Iovec
	outNames [mostDatagrams]unix.RawSockaddrInet6
	outCtrl  [mostDatagrams][controlSize]byte
	outN     int
	write    func(fd uintptr) bool

	sent      int
	sendErrno syscall.Errno
}

const (
	readBatch   = 32
	readTrain   = 65_535 // bytes: a train of datagrams that the kernel joined
	readPlain   = 2_048  // bytes: one datagram
	controlSize = 64     // two control messages of an int
)

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// setUp sets the socket's options and makes the arguments of its calls.
func (s *Socket) setUp(o Options) error {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	y := &s.sys
	y.raw = raw
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = s.configure(int(fd), o)
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	y.inSize = readPlain
	if s.facts.GRO {
		y.inSize = readTrain
	}
	y.inBufs = make([]byte, readBatch*y.inSize)
	for i := range y.in {
		y.inIovs[i].Base = &y.inBufs[i*y.inSize]
		y.inIovs[i].SetLen(y.inSize)
		h := &y.in[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&y.inNames[i]))
		h.Iov = &y.inIovs[i]
		h.SetIovlen(1)
		h.Control = &y.inCtrl[i][0]
	}
	for i := range y.out {
		h := &y.out[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&y.outNames[i]))
		h.Iov = &y.outIovs[i]
		h.SetIovlen(1)
	}
	y.read, y.write = y.readBatch, y.writeBatch
	y.peek = func(fd uintptr) { y.readBatch(fd) }
	return nil
}

// configure sets options and reads them back.
func (s *Socket) configure(fd int, o Options) error {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	_, s.sys.v6 = name.(*unix.SockaddrInet6)
	for _, b := range []struct {
		name             string
		size             int
		option, forcedBy int
		got              *int
	}{
		{"SO_RCVBUF", o.ReceiveBuffer, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, &s.facts.ReceiveBuffer},
		{"SO_SNDBUF", o.SendBuffer, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, &s.facts.SendBuffer},
	} {
		if b.size > 0 {
			// With CAP_NET_ADMIN the system's limit does not apply.
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.forcedBy, b.size) != nil {
				if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.option, b.size); err != nil {
					return fmt.Errorf("%s = %d: %w", b.name, b.size, err)
				}
			}
		}
		if *b.got, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.option); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	s.facts.Batches = true
	if !o.NoOffload {
		// GSO is asked for per train; this only asks whether the kernel knows it
		// (Linux 4.18). GRO of UDP is of 5.0.
		_, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT)
		s.facts.GSO = err == nil
		s.facts.GRO = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
	}
	return nil
}

// Wait waits for datagrams and takes what there is, one batch at most. They
// stay until the next Wait.
func (s *Socket) Wait() error {
	s.sys.prepare()
	if err := s.sys.raw.Read(s.sys.read); err != nil {
		return err
	}
	return s.sys.readError()
}

// Poll is Wait without waiting, whatever the deadline: it takes what there is,
// which may be nothing.
func (s *Socket) Poll() error {
	s.sys.prepare()
	if err := s.sys.raw.Control(s.sys.peek); err != nil {
		return err
	}
	return s.sys.readError()
}

// prepare makes room for a batch.
func (y *system) prepare() {
	y.got, y.errno = 0, 0
	for i := range y.in {
		h := &y.in[i].hdr
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(controlSize)
	}
}

func (y *system) readError() error {
	if y.errno != 0 {
		return fmt.Errorf("datagram: recvmmsg: %w", y.errno)
	}
	return nil
}

// readBatch is called by the runtime when the socket may be readable; false
// waits for the next time.
func (y *system) readBatch(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&y.in[0])), readBatch, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			y.got = int(n)
			return true
		case unix.EAGAIN:
			return false
		case unix.EINTR:
		case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EHOSTDOWN:
			// They tell of an earlier datagram, which is lost like any other.
		default:
			y.errno = errno
			return true
		}
	}
}

// All calls f with every datagram of the last Wait, in order, each with its
// sender; data is valid until the next Wait.
func (s *Socket) All(f func(from netip.AddrPort, data []byte)) {
	y := &s.sys
	if y.got > 0 {
		s.facts.ReadCalls++
	}
	for i := range y.got {
		m := &y.in[i]
		from := y.address(&y.inNames[i])
		data := y.inBufs[i*y.inSize:][:min(int(m.len), y.inSize)]
		segment := len(data)
		if s.facts.GRO {
			if n := segmentSize(y.inCtrl[i][:m.hdr.Controllen]); n > 0 {
				segment = n
			}
		}
		if m.hdr.Flags&unix.MSG_TRUNC != 0 && !s.facts.GRO {
			continue // larger than anything that this package sends
		}
		for len(data) > segment {
			s.facts.Received++
			f(from, data[:segment:segment])
			data = data[segment:]
		}
		s.facts.Received++
		f(from, data)
	}
}

// segmentSize finds the size of a train's datagrams in its control messages; 0
// if it is a single one. (unix.ParseSocketControlMessage allocates.)
func segmentSize(c []byte) int {
	for len(c) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(c) {
			return 0
		}
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && n >= unix.CmsgLen(2) {
			size := *(*uint16)(unsafe.Pointer(&c[unix.CmsgLen(0)])) // an int, of which the kernel sets 16 bits or 32
			return int(size)
		}
		c = c[min(len(c), unix.CmsgSpace(n-unix.CmsgLen(0))):]
	}
	return 0
}

// address reads a sender's address.
func (y *system) address(name *unix.RawSockaddrInet6) netip.AddrPort {
	if name.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), swap(v4.Port))
	}
	a := netip.AddrFrom16(name.Addr).Unmap()
	if a.Is6() && name.Scope_id != 0 {
		a = a.WithZone(zone(name.Scope_id))
	}
	return netip.AddrPortFrom(a, swap(name.Port))
}

// setAddress writes a destination and returns its size.
func (y *system) setAddress(name *unix.RawSockaddrInet6, to netip.AddrPort) uint32 {
	a := to.Addr().Unmap()
	if !y.v6 {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		v4.Family, v4.Port, v4.Addr = unix.AF_INET, swap(to.Port()), [4]byte{}
		if a.Is4() {
			v4.Addr = a.As4()
		}
		return unix.SizeofSockaddrInet4
	}
	name.Family, name.Port, name.Addr, name.Scope_id = unix.AF_INET6, swap(to.Port()), a.As16(), scope(a.Zone())
	return unix.SizeofSockaddrInet6
}
