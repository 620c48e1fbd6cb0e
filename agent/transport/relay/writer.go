//go:build linux

package relay

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/transport/sock"
)

// maxPiece bounds one write, and with it how far the kernel's send queue
// exceeds the size that was set.
const maxPiece = 16 << 10

// writer writes to a connection without overfilling its send queue. The kernel
// checks the queue's limit only when it begins a new buffer, and appends to
// the last one up to 64 KiB without a look (tcp_sendmsg_locked,
// net/ipv4/tcp.c): a queue limited to 32 KiB was seen to hold 92. MSG_EOR
// closes the buffer after each write.
type writer struct {
	raw   syscall.RawConn
	piece int // bytes per write: whole segments, since MSG_EOR ends one, too
}

func newWriter(c *net.TCPConn) (*writer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &writer{raw: raw}
	err = sock.OnConn(c, func(fd int) error {
		mss, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		if err == nil && mss > 0 {
			w.piece = max(1, maxPiece/mss) * mss
		}
		return err
	})
	w.piece = min(max(w.piece, 1), maxPiece)
	return w, err
}

// write writes what the queue takes of b, waiting until it takes anything.
func (w *writer) write(b []byte) (n int, err error) {
	waited := w.raw.Write(func(fd uintptr) bool {
		for {
			n, err = unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_EOR|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			switch err {
			case unix.EINTR:
				continue
			case unix.EAGAIN:
				return false
			}
			return true
		}
	})
	if waited != nil { // the deadline, or the connection was closed
		return 0, waited
	}
	return max(n, 0), err
}
