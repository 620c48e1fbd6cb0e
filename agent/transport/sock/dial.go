//go:build linux

package sock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Pauses between attempts to connect.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 2 * time.Second
)

// Dialer makes one TCP connection of a flow.
type Dialer struct {
	Flow  int
	From  netip.Addr
	To    netip.AddrPort
	Opt   Options
	Clock transport.Clock
	Until vtime.Time
	// Within bounds each try; 0 = Until does. The kernel's pauses between SYNs grow
	// to a minute, so that a try that began while a link was down may not notice for
	// long that it is up.
	Within time.Duration
}

// Connect tries until the connection stands, calling attempt before each try.
// Lost SYNs are the kernel's business within a try (RFC 9293 §3.8.1); a
// refusal or an unreachable destination ends a try and is tried again. The
// error is of CodeTimeout when Until has passed: an outcome of a bad network,
// not a fault.
func (d Dialer) Connect(ctx context.Context, attempt func()) (*net.TCPConn, error) {
	nd := net.Dialer{Control: d.Opt.control, KeepAlive: -1, Deadline: Wall(d.Clock, d.Until), Timeout: d.Within}
	nd.SetMultipathTCP(false)
	if d.From.IsValid() {
		nd.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.From, 0))
	}
	begun := d.Clock.Now()
	var last error
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		attempt()
		c, err := nd.DialContext(ctx, "tcp4", d.To.String())
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e, ok := errors.AsType[*proto.Error](err); ok {
			return nil, e
		}
		retry := again(err) || d.Within > 0 && timedOut(err) && d.Clock.Now() < d.Until
		if retry {
			last = err
		}
		if timedOut(err) && !retry || d.Clock.Now() >= d.Until || retry && d.Clock.Now().Add(vtime.FromStd(pause)) >= d.Until {
			e := &proto.Error{Code: proto.CodeTimeout, What: fmt.Sprintf("flow %d set-up", d.Flow),
				Detail: fmt.Sprintf("no connection from %v to %v between %v and %v", d.From, d.To, begun, d.Until)}
			if last != nil {
				e.Detail += "; the last refusal: " + last.Error()
			}
			return nil, e
		}
		if !retry {
			return nil, err
		}
		if !SleepUntil(ctx, d.Clock, d.Clock.Now().Add(vtime.FromStd(pause))) {
			return nil, ctx.Err()
		}
	}
}

// again lists the errors after which another try may succeed.
func again(err error) bool {
	for _, e := range []error{unix.ECONNREFUSED, unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ECONNRESET, unix.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// timedOut tells our own deadline from the kernel's ETIMEDOUT.
func timedOut(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return errors.Is(err, os.ErrDeadlineExceeded) || ok && n.Timeout() && !errors.Is(err, unix.ETIMEDOUT)
}

// Judge decides whether the end of a connection is an error of the flow: not
// when the flow was stopped, by the schedule or by order.
func Judge(flow int, now, stop vtime.Time, ordered bool, err error) *proto.Error {
	if err == nil || ordered {
		return nil
	}
	if e, ok := errors.AsType[*proto.Error](err); ok {
		return e
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || now >= stop.Add(-stopSlack) {
		return nil
	}
	return &proto.Error{Code: proto.CodeFlow, What: fmt.Sprintf("flow %d", flow), Detail: fmt.Sprintf("it ended at %.3f s, before its stop at %.3f s: %v", now.Seconds(), stop.Seconds(), err)}
}

// Abort closes a connection with a reset, so that nothing of it outlives the
// flow: neither unsent data nor a retransmission timer.
func Abort(c *net.TCPConn) {
	// Both fail only when the connection is gone already.
	_ = c.SetLinger(0)
	_ = c.Close()
}
