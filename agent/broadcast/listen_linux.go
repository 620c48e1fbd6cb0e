package broadcast

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// receiveBuffer holds a second of broadcasts in a dense mesh, in bytes.
const receiveBuffer = 1 << 20

// Listen opens a socket that sends broadcasts by one interface, and gets only what
// arrives there at the port, whatever the routes are. The error is the system's.
func Listen(iface string, port uint16, dscp int) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			s := int(fd)
			// The device first: nothing of other interfaces may be counted.
			failed = errors.Join(
				os.NewSyscallError("SO_BINDTODEVICE", unix.BindToDevice(s, iface)),
				os.NewSyscallError("SO_BROADCAST", unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)),
				os.NewSyscallError("IP_TOS", unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_TOS, dscp<<2)))
			if unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
				failed = errors.Join(failed, os.NewSyscallError("SO_RCVBUF", unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)))
			}
		})
		return errors.Join(err, failed)
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return nil, err
	}
	return pc.(*net.UDPConn), nil
}

// To is the address of all neighbours, with a port.
func To(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), port)
}
