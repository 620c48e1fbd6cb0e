//go:build linux

package sock

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The window that a receiver offers is bounded by TCP_WINDOW_CLAMP. The kernel
// does not keep to it: its automatic tuning of the receive buffer sets the clamp
// anew (tcp_rcvbuf_grow, net/ipv4/tcp_input.c), and so does the first full
// segment, from which it learns how much of the buffer can be window
// (tcp_measure_rcv_mss, since Linux 6.6). So
//
//   - a buffer whose size is set is not tuned;
//   - at first it is so small that the window stays below the bound, whatever the
//     kernel learns;
//   - at the first read, when the kernel has learned it, the clamp is set again,
//     and the buffer becomes so large that it bounds nothing;
//   - a listener is tuned all the same: the kernel would choose the scale of the
//     window (RFC 7323 §2) by a buffer whose size is set, and a scale too small
//     bounds it for good. It only tunes where data is read.
//
// So the window on the wire never passes the bound. It begins with three quarters
// of it and is exact after the first read. Two things are the kernel's and stay: a
// window is told in whole segments as the receiver knows them, and a sender that
// has never seen a window of two segments halves its segments
// (tcp_bound_to_half_wnd).

// defaultMSS is the MSS where the flow does not say: an Ethernet payload less the
// headers of IP and TCP.
const defaultMSS = 1460

// mss is what a connection announces (TCP_MAXSEG).
func (o Options) mss() int {
	if o.MSS > 0 {
		return o.MSS
	}
	return defaultMSS
}

// window is the bound in bytes.
func (o Options) window() int { return o.ReceiveWindow * o.mss() }

// The kernel's limits of a receive buffer (SOCK_MIN_RCVBUF, net/sock.h) and of a
// clamp (half of that), rounded up, in bytes.
const (
	leastBuffer = 2304
	leastWindow = leastBuffer / 2
)

// firstBuffer is the buffer before the kernel has learned, as asked for. The
// kernel begins with half of the size, 3/4 of the window, and what it learns is
// below 2/3 of the size, since a full segment takes 576 bytes of memory and more
// besides its own. A window of two segments is offered from the beginning, so
// that the sender makes whole ones; what is above it is no whole segment.
func (o Options) firstBuffer() vtime.Bytes {
	size := max(3*o.window()/2, 2*o.mss(), leastBuffer)
	if o.ReceiveWindow == 2 {
		size = 4 * o.mss()
	}
	return vtime.Bytes(size+1) / 2
}

// laterBuffer is the buffer afterwards, as asked for; the kernel doubles it. A
// segment of any size takes less memory than itself and segmentMemory.
func (o Options) laterBuffer() vtime.Bytes {
	return vtime.Bytes(o.ReceiveWindow*(o.mss()+segmentMemory)) + leastBuffer
}

const segmentMemory = 1280

// beginWindow bounds the window of a socket that listens or was just accepted.
func (o Options) beginWindow(fd int) error {
	if err := SetBuffer(fd, unix.SO_RCVBUF, o.firstBuffer()); err != nil {
		return err
	}
	return setClamp(fd, o.window())
}

// listenWindow lets the kernel choose the window's scale by the clamp, on a socket
// with a window that is about to listen: the size of its buffer stays, and counts
// as not set.
func (o Options) listenWindow(fd int) error {
	if o.window() <= unscaled {
		return nil
	}
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, locks&^receiveLock)
	}
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return &proto.Error{Code: proto.CodeUnavailable, What: "receive window", Wanted: fmt.Sprintf("a window of %d bytes, above %d (SO_BUF_LOCK, Linux 5.14)", o.window(), unscaled),
			Remedy: "use a smaller window, a newer kernel, or --backend sim"}
	case err != nil:
		return &proto.Error{Code: proto.CodeSystem, What: "SO_BUF_LOCK", Detail: err.Error()}
	}
	return nil
}

const (
	unscaled    = 65535 // largest window that needs no scale
	receiveLock = 2     // SOCK_RCVBUF_LOCK (linux/socket.h)
)

func setClamp(fd, window int) error {
	err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, window)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "TCP_WINDOW_CLAMP", Wanted: fmt.Sprint(window), Detail: err.Error()}
	}
	got, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP)
	if err != nil || got != window {
		return &proto.Error{Code: proto.CodeNotApplied, What: "TCP_WINDOW_CLAMP", Wanted: fmt.Sprint(window), Got: fmt.Sprint(got),
			Remedy: fmt.Sprintf("ask for a window of %d bytes or more", leastWindow)}
	}
	return nil
}

// windowHolder keeps one connection's window at its bound.
type windowHolder struct {
	opt   Options
	wide  bool // the buffer has its later size
	total int  // bytes read
}

// learned tells whether the kernel has seen a full segment, or has had the
// opportunity: a sender may have none.
func (h *windowHolder) learned(fd int) bool {
	if h.total >= 16*h.opt.mss() {
		return true
	}
	const options = 40 // most that they take of a segment (RFC 9293 §3.1)
	full := h.opt.mss() - options
	if h.opt.ReceiveWindow == 1 {
		full /= 2 // the sender halves its segments; the kernel's first guess, 536, is less
	}
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && int(i.Rcv_mss) >= full
}

// holdWindow is called after each read of n bytes.
func (h *windowHolder) holdWindow(conn *net.TCPConn, n int) error {
	if h.opt.ReceiveWindow == 0 {
		return nil
	}
	h.total += n
	return OnConn(conn, func(fd int) error {
		got, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP)
		if err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "TCP_WINDOW_CLAMP", Detail: err.Error()}
		}
		if !h.wide && h.learned(fd) {
			h.wide = true
			if err := SetBuffer(fd, unix.SO_RCVBUF, h.opt.laterBuffer()); err != nil {
				return err
			}
		}
		if got == h.opt.window() {
			return nil
		}
		return setClamp(fd, h.opt.window())
	})
}
