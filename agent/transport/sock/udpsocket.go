//go:build linux

package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// batch is the number of datagrams that one system call receives.
const batch = 32

// maxDatagram is the largest datagram that is expected, in bytes: an Ethernet
// payload.
const maxDatagram = 1600

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// udpSocket is a UDP socket for one goroutine: non-blocking, with the type of
// service chosen per datagram, receiving in batches. It does not allocate
// after it was opened.
type udpSocket struct {
	fd int

	// Receiving: one slot per message of the batch.
	msgs  [batch]mmsghdr
	iovs  [batch]unix.Iovec
	names [batch]unix.RawSockaddrInet4
	bufs  [batch][maxDatagram]byte

	// Sending.
	out     unix.Msghdr
	outIov  unix.Iovec
	outName unix.RawSockaddrInet4
	outTOS  [24]byte // one control message with an int
}

// openUDP binds a socket to the address with receive and send buffers of the
// given sizes in bytes.
func openUDP(at netip.AddrPort, receive, send vtime.Bytes) (*udpSocket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "UDP socket", Detail: err.Error()}
	}
	s := &udpSocket{fd: fd}
	if err := errors.Join(SetBuffer(fd, unix.SO_RCVBUF, receive), SetBuffer(fd, unix.SO_SNDBUF, send)); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		unix.Close(fd)
		return nil, &proto.Error{Code: proto.CodeSystem, What: fmt.Sprintf("UDP port %v", at), Detail: err.Error(), Remedy: "another program may use the port"}
	}
	for i := range s.msgs {
		s.iovs[i].Base = &s.bufs[i][0]
		s.iovs[i].SetLen(maxDatagram)
		h := &s.msgs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&s.names[i]))
		h.Iov = &s.iovs[i]
		h.SetIovlen(1)
	}
	s.outName.Family = unix.AF_INET
	s.out.Name = (*byte)(unsafe.Pointer(&s.outName))
	s.out.Namelen = unix.SizeofSockaddrInet4
	s.out.Iov = &s.outIov
	s.out.SetIovlen(1)
	c := (*unix.Cmsghdr)(unsafe.Pointer(&s.outTOS[0]))
	c.Level, c.Type = unix.IPPROTO_IP, unix.IP_TOS
	c.SetLen(unix.CmsgLen(4))
	s.out.Control = &s.outTOS[0]
	s.out.SetControllen(unix.CmsgSpace(4))
	return s, nil
}

// port is in network byte order in the kernel's structure.
func networkPort(p uint16) (v uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&v))[:], p)
	return v
}

// send sends one datagram with a type of service. The error is the kernel's
// errno: EAGAIN when the send buffer is full, ENOBUFS when the device's queue
// is.
func (s *udpSocket) send(to [4]byte, port uint16, tos int, data []byte) error {
	s.outName.Addr, s.outName.Port = to, networkPort(port)
	s.outIov.Base = unsafe.SliceData(data)
	s.outIov.SetLen(len(data))
	*(*int32)(unsafe.Pointer(&s.outTOS[unix.CmsgLen(0)])) = int32(tos)
	_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out)), unix.MSG_DONTWAIT)
	s.outIov.Base = nil // the buffer is the caller's
	if errno != 0 {
		return errno
	}
	return nil
}

// receive takes the datagrams that wait, one batch at most, and calls f for
// each; data is valid until f returns. It returns how many there were.
func (s *udpSocket) receive(f func(from [4]byte, data []byte)) (int, error) {
	for i := range s.msgs {
		s.msgs[i].hdr.Namelen = unix.SizeofSockaddrInet4
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msgs[0])), batch, unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	default:
		return 0, errno
	}
	for i := range int(n) {
		size := min(int(s.msgs[i].len), maxDatagram)
		f(s.names[i].Addr, s.bufs[i][:size])
	}
	return int(n), nil
}

// queued returns how many bytes of memory the datagrams hold that have been
// sent and not yet left the device's queue (SIOCOUTQ, udp(7)).
func (s *udpSocket) queued() int {
	n, err := unix.IoctlGetInt(s.fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

func (s *udpSocket) close() error {
	if s.fd < 0 {
		return nil
	}
	err := unix.Close(s.fd)
	s.fd = -1
	return err
}
