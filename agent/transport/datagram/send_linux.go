//go:build linux && !portable

package datagram

import (
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flush hands over as many trains as the kernel takes.
func (s *Socket) flush() (full bool, err error) {
	y, t := &s.sys, &s.train
	for t.pending > 0 {
		y.fill(t)
		if err := y.raw.Write(y.write); err != nil {
			return false, err
		}
		if y.sent > 0 {
			s.facts.SendCalls++
			s.facts.Sent += uint64(t.gone(y.sent))
			continue
		}
		switch errno := y.sendErrno; {
		case errno == unix.EAGAIN:
			return true, nil
		case errno == unix.EBADF || errno == unix.ENOTSOCK || errno == unix.EFAULT:
			return false, fmt.Errorf("datagram: sendmmsg: %w", errno)
		case t.list[t.next].segments > 1 && (errno == unix.EIO || errno == unix.EINVAL || errno == unix.EOPNOTSUPP):
			// The device that the train would leave by lacks checksum offload.
			s.facts.GSO = false
			t.split()
		default:
			s.facts.Refused += uint64(t.gone(1))
		}
	}
	return false, nil
}

// fill makes the arguments of sendmmsg for the trains that are left.
func (y *system) fill(t *trains) {
	y.outN = 0
	for i := t.next; i < len(t.list) && y.outN < mostDatagrams; i++ {
		l, k := &t.list[i], y.outN
		h := &y.out[k].hdr
		h.Namelen = y.setAddress(&y.outNames[k], l.to)
		b := t.bytes(l)
		y.outIovs[k].Base = &b[0]
		y.outIovs[k].SetLen(len(b))
		n := 0
		if l.segments > 1 {
			c := control(y.outCtrl[k][n:], unix.SOL_UDP, unix.UDP_SEGMENT, 2)
			binary.NativeEndian.PutUint16(c, uint16(l.segment))
			n += unix.CmsgSpace(2)
		}
		if l.tos != 0 {
			level, typ := unix.IPPROTO_IP, unix.IP_TOS
			if l.to.Addr().Unmap().Is6() {
				level, typ = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
			}
			c := control(y.outCtrl[k][n:], level, typ, 4)
			binary.NativeEndian.PutUint32(c, uint32(l.tos))
			n += unix.CmsgSpace(4)
		}
		h.Control = nil
		if n > 0 {
			h.Control = &y.outCtrl[k][0]
		}
		h.SetControllen(n)
		y.outN++
	}
}

// control writes a control message's header and returns the place of its n
// bytes.
func control(b []byte, level, typ, n int) []byte {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = int32(level), int32(typ)
	h.SetLen(unix.CmsgLen(n))
	return b[unix.CmsgLen(0):][:n]
}

// writeBatch is called by the runtime with the socket. It never waits: a full
// buffer is for the caller to come back to.
func (y *system) writeBatch(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&y.out[0])), uintptr(y.outN), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		y.sent, y.sendErrno = 0, errno
		if errno == 0 {
			y.sent = int(n)
		}
		return true
	}
}

// swap converts a port between the host's and the network's byte order.
func swap(p uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], p)
	return binary.NativeEndian.Uint16(b[:])
}

// Interface names of link-local IPv6 addresses, by index and back. They are few
// and do not change.
var (
	zonesMu sync.Mutex
	zones   = map[uint32]string{}
)

func zone(index uint32) string {
	zonesMu.Lock()
	defer zonesMu.Unlock()
	if z, ok := zones[index]; ok {
		return z
	}
	z := strconv.FormatUint(uint64(index), 10)
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		z = i.Name
	}
	if len(zones) < 1024 {
		zones[index] = z
	}
	return z
}

func scope(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	n, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// Queued returns how many bytes of memory the datagrams hold that have been
// sent and have not yet left the device's queue (SIOCOUTQ, udp(7)).
func (s *Socket) Queued() int {
	n := 0
	_ = s.sys.raw.Control(func(fd uintptr) {
		if q, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			n = q
		}
	})
	return n
}
