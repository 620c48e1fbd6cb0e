//go:build linux

package sock

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/coop/clamp"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// coopWindow bounds what a source may have under way, as long as its connection stands:
// by the kernel's clamp where there is one, else by writing no more than the bound
// leaves of what the socket's queue holds (SIOCOUTQ). The methods begin and end of
// none do nothing.
type coopWindow struct {
	flow    int
	station *coopEndpoint

	clamp *clamp.Clamp // nil: the queue is bounded
	key   uint64       // of the clamp

	conn *net.TCPConn // guarded by the station's mu
	mss  int          // bytes
	// limit is the most that the queue may hold, in bytes; 0 = there is no bound.
	limit atomic.Int64
}

// created adds a socket to the clamp before it connects.
func (w *coopWindow) created(fd int) (err error) {
	w.key, err = w.clamp.Add(fd)
	return err
}

// begin says that the connection stands.
func (w *coopWindow) begin(conn *net.TCPConn) {
	if w == nil {
		return
	}
	mss := 0
	// A segment that is not known is the smallest that there is.
	_ = OnConn(conn, func(fd int) (err error) {
		mss, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		return err
	})
	w.station.begin(w, conn, max(mss, minMSS))
}

// minMSS is TCP_MIN_MSS.
const minMSS = 88

// end says that the connection is over.
func (w *coopWindow) end() {
	if w == nil {
		return
	}
	w.station.end(w)
	w.limit.Store(0)
	if w.clamp != nil {
		w.clamp.Remove(w.key)
	}
}

// set bounds the window at n segments; 0 takes the bound away.
func (w *coopWindow) set(n int) error {
	if w.clamp == nil {
		w.limit.Store(int64(n) * int64(w.mss))
		return nil
	}
	if n == 0 {
		n = clamp.None
	}
	return w.clamp.Set(w.key, n)
}

// look is the time between two looks at a queue that is full: short beside a round
// trip through an access point.
const look = time.Millisecond

// admit waits until the queue has room for a segment and returns how much of a piece
// may be written: nothing of it is waited for where there is no bound.
func (w *coopWindow) admit(ctx context.Context, conn *net.TCPConn, clock transport.Clock, stop vtime.Time, piece vtime.Bytes) (vtime.Bytes, error) {
	for {
		limit := w.limit.Load()
		if limit == 0 {
			return piece, nil
		}
		var queued int
		err := OnConn(conn, func(fd int) (err error) { queued, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); return err })
		if err != nil {
			return 0, &proto.Error{Code: proto.CodeSystem, What: "SIOCOUTQ", Detail: err.Error()}
		}
		if room := limit - int64(queued); room >= min(int64(w.mss), int64(piece)) {
			// Whole segments: a sender without Nagle's algorithm would send the rest of one
			// by itself.
			if room >= int64(w.mss) {
				room -= room % int64(w.mss)
			}
			return min(piece, vtime.Bytes(room)), nil
		}
		if clock.Now() >= stop {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
