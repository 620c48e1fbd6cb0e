//go:build linux

package sock

import (
	"net"

	"golang.org/x/sys/unix"
)

// Vanish closes a connection without a word to the other end, as a host does that
// is switched off: neither what is unsent, nor a FIN or a reset leaves it
// (TCP_REPAIR, tcp(7)). Where that is not permitted it is closed with a reset.
func Vanish(c *net.TCPConn) {
	_ = OnConn(c, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, unix.TCP_REPAIR_ON)
	})
	Abort(c)
}
