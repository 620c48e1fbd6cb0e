//go:build linux

package sock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Options are the socket options of one TCP connection. Zero values are left
// to the kernel.
type Options struct {
	CC            string
	MSS           int
	SendBuffer    vtime.Bytes // as asked for; the kernel doubles it for its overhead (socket(7))
	ReceiveBuffer vtime.Bytes
	NotSentLow    vtime.Bytes
	NoDelay       bool
	DSCP          int
	// ReceiveWindow is the most that the socket offers to the other end, in
	// segments of the MSS; 0 = the kernel decides. See holdWindow.
	ReceiveWindow int
	// created is told of every socket before it connects; nil: nobody is.
	created func(fd int) error
}

// FlowOptions returns the socket options of a flow of a TCP family; the receive
// window is the destination's.
func FlowOptions(f *proto.Flow, cc string) Options {
	o := f.Options
	return Options{CC: cc, MSS: o.MSS, SendBuffer: o.SendBuffer, ReceiveBuffer: o.ReceiveBuffer, NotSentLow: o.NotSentLow, NoDelay: o.NoDelay, DSCP: o.DSCP}
}

// Apply sets the options on a socket that is not yet connected or listening,
// or was just accepted, and reads every one back. An error is a *proto.Error:
// CodeUnavailable for a congestion control that this kernel does not have,
// CodeNotApplied for an option that did not take.
func (o Options) Apply(fd int) error {
	if o.CC != "" {
		if err := setCC(fd, o.CC); err != nil {
			return err
		}
	}
	ints := []struct {
		name       string
		on         bool
		level, opt int
		value      int
	}{
		{"TCP_MAXSEG", o.MSS > 0, unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.MSS},
		{"TCP_NOTSENT_LOWAT", o.NotSentLow > 0, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, int(o.NotSentLow)},
		{"TCP_NODELAY", true, unix.IPPROTO_TCP, unix.TCP_NODELAY, boolInt(o.NoDelay)}, // Go's net package sets it unasked
		{"IP_TOS", o.DSCP > 0, unix.IPPROTO_IP, unix.IP_TOS, o.DSCP << 2},
	}
	for _, i := range ints {
		if !i.on {
			continue
		}
		if err := unix.SetsockoptInt(fd, i.level, i.opt, i.value); err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: i.name, Wanted: fmt.Sprint(i.value), Detail: err.Error()}
		}
		got, err := unix.GetsockoptInt(fd, i.level, i.opt)
		if err != nil || got != i.value {
			if i.opt == unix.TCP_MAXSEG && err == nil && got > 0 && got < i.value {
				// A connection's MSS is what is left after the path and the
				// options; it is reported, not refused.
				continue
			}
			return &proto.Error{Code: proto.CodeNotApplied, What: i.name, Wanted: fmt.Sprint(i.value), Got: fmt.Sprint(got)}
		}
	}
	if err := SetBuffer(fd, unix.SO_SNDBUF, o.SendBuffer); err != nil {
		return err
	}
	if o.ReceiveWindow > 0 {
		return o.beginWindow(fd)
	}
	return SetBuffer(fd, unix.SO_RCVBUF, o.ReceiveBuffer)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func setCC(fd int, cc string) error {
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, cc); err != nil {
		return ccError(cc, err)
	}
	got, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil || got != cc {
		return &proto.Error{Code: proto.CodeNotApplied, What: "TCP_CONGESTION", Wanted: cc, Got: got}
	}
	return nil
}

// HasCC returns an error of CodeUnavailable when this kernel does not have the
// congestion control, after it had the opportunity to load it. That this user may
// not choose it is none: an agent may, in its own namespace.
func HasCC(cc string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "socket", Detail: err.Error()}
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, cc); errors.Is(err, unix.ENOENT) {
		return ccError(cc, err)
	}
	return nil
}

// ccError is the one place that explains a refused congestion control.
func ccError(cc string, err error) error {
	e := &proto.Error{Code: proto.CodeUnavailable, What: "congestion control", Wanted: cc, Got: available()}
	switch {
	case errors.Is(err, unix.ENOENT):
		e.Remedy = "modprobe tcp_" + cc + ", a kernel with the module, or --backend sim, which has its own TCP"
	case errors.Is(err, unix.EPERM):
		e.Detail = "it is not in net.ipv4.tcp_allowed_congestion_control and this user may not go beyond it"
		e.Remedy = "run as root, or sysctl net.ipv4.tcp_allowed_congestion_control=\"… " + cc + "\""
	default:
		e.Code, e.Detail = proto.CodeSystem, err.Error()
	}
	return e
}

// available lists the congestion controls that are loaded.
func available() string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return "unknown (" + err.Error() + ")"
	}
	return strings.Join(strings.Fields(string(b)), ", ")
}

// SetBuffer sets SO_SNDBUF or SO_RCVBUF to n bytes, beyond the host's limit
// where the user may, and reads it back: the kernel must report 2n
// (socket(7)). Zero leaves the kernel's autotuning on.
func SetBuffer(fd, opt int, n vtime.Bytes) error {
	if n == 0 {
		return nil
	}
	name, force, limit := "SO_SNDBUF", unix.SO_SNDBUFFORCE, "wmem_max"
	if opt == unix.SO_RCVBUF {
		name, force, limit = "SO_RCVBUF", unix.SO_RCVBUFFORCE, "rmem_max"
	}
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, int(n))
	if errors.Is(err, unix.EPERM) {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt, int(n))
	}
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: name, Wanted: n.String(), Detail: err.Error()}
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, opt)
	if err != nil || vtime.Bytes(got) != 2*n {
		return &proto.Error{Code: proto.CodeNotApplied, What: name, Wanted: (2 * n).String() + " (twice what was asked for)", Got: vtime.Bytes(got).String(),
			Remedy: "stay between the kernel's minimum and net.core." + limit + ", or raise that"}
	}
	return nil
}

// Setup reads the options back for the record.
func Setup(fd int, flow int, side proto.Side) proto.FlowSetup {
	s := proto.FlowSetup{Flow: flow, Side: side}
	// The values were compared by Apply; here they are evidence, and 0 means
	// that the kernel does not tell.
	s.CC, _ = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
		s.SendBuffer = vtime.Bytes(v)
	}
	if v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
		s.ReceiveBuffer = vtime.Bytes(v)
	}
	s.MSS, _ = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if v, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP); err == nil && side == proto.Destination {
		s.ReceiveWindow = vtime.Bytes(v)
	}
	return s
}

// control adapts Apply to net.Dialer and net.ListenConfig.
func (o Options) control(_, _ string, c syscall.RawConn) error {
	return onFD(c, func(fd int) error {
		if o.created != nil {
			if err := o.created(fd); err != nil {
				return err
			}
		}
		return o.Apply(fd)
	})
}

// onFD runs f with the descriptor of a connection.
func onFD(c syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := c.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// OnConn runs f with the descriptor of an open TCP connection.
func OnConn(c *net.TCPConn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return onFD(raw, f)
}
