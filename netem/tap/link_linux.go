package tap

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// configure gives the interface of the calling thread's namespace its address,
// MTU and queue length and brings it up, in one request (rtnetlink(7),
// RTM_SETLINK). The ioctl for the queue length asks for CAP_NET_ADMIN in the
// initial user namespace, which a rootless run does not have; netlink asks in
// the namespace's own.
func configure(c Config) error {
	ne := binary.NativeEndian
	body := make([]byte, unix.SizeofIfInfomsg)
	body[0] = unix.AF_UNSPEC
	ne.PutUint32(body[8:], unix.IFF_UP)  // flags
	ne.PutUint32(body[12:], unix.IFF_UP) // the flags to change
	word := func(v int) []byte { return ne.AppendUint32(nil, uint32(v)) }
	body = attribute(body, unix.IFLA_IFNAME, append([]byte(c.Name), 0))
	body = attribute(body, unix.IFLA_ADDRESS, c.HardwareAddress[:])
	body = attribute(body, unix.IFLA_MTU, word(c.MTU))
	body = attribute(body, unix.IFLA_TXQLEN, word(c.QueueLength))
	if err := request(unix.RTM_SETLINK, body, 0); err != nil {
		return fmt.Errorf("set address %v, MTU %d, queue length %d and bring it up: %w", c.HardwareAddress, c.MTU, c.QueueLength, err)
	}
	return nil
}

// attribute appends one route attribute, padded to four bytes (rtnetlink(7)).
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%unix.NLMSG_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// request sends one message and waits for the kernel's acknowledgement. flags are
// added to those of every request.
func request(kind uint16, body []byte, flags uint16) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink socket: %w", err)
	}
	defer unix.Close(fd)
	ne := binary.NativeEndian
	msg := ne.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	msg = ne.AppendUint16(msg, kind)
	msg = ne.AppendUint16(msg, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	msg = ne.AppendUint32(msg, 1) // sequence number
	msg = ne.AppendUint32(msg, 0) // port: the kernel fills it in
	msg = append(msg, body...)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	if n < unix.SizeofNlMsghdr+4 || (*unix.NlMsghdr)(unsafe.Pointer(&buf[0])).Type != unix.NLMSG_ERROR {
		return fmt.Errorf("netlink: %d bytes that are no acknowledgement", n)
	}
	if code := int32(ne.Uint32(buf[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
