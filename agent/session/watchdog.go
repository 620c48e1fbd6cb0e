//go:build linux

package session

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// minWatchdog is the shortest silence that may end an agent: below it, a busy
// host would.
const minWatchdog = 200 * vtime.Millisecond

// looks is how often the watchdog looks in the time that it allows.
const looks = 8

// heard is the controller's stream. Any byte of it is a sign of life.
type heard struct {
	io.Reader
	bytes atomic.Int64
}

// Read reads.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.bytes.Add(int64(n))
	return n, err
}

// watchdog adds up the silence of a controller. It has no clock: what it is
// told at each look is how much time has passed since the one before.
type watchdog struct {
	limit, silent time.Duration
	bytes         int64
}

// look reports whether the controller has been silent for too long. A look that
// comes late counts as two: it is this agent that stood still then, and what the
// controller said meanwhile has not been read yet.
func (w *watchdog) look(bytes int64, passed time.Duration) bool {
	if bytes != w.bytes {
		w.bytes, w.silent = bytes, 0
		return false
	}
	w.silent += min(passed, 2*w.limit/looks)
	return w.silent >= w.limit
}

// watch ends the conversation when nothing has come for the given time. Orders
// that take long do not matter: the controller's clock orders come, and are
// answered, beside them.
func (s *session) watch(ctx context.Context, d vtime.Duration, end context.CancelCauseFunc) {
	w := watchdog{limit: d.Std(), bytes: s.heard.bytes.Load()}
	tick := time.NewTicker(w.limit / looks)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if w.look(s.heard.bytes.Load(), now.Sub(last)) {
				end(silent(d))
				return
			}
			last = now
		}
	}
}

// silent is the end of a conversation with a controller that says nothing.
func silent(d vtime.Duration) error {
	return &proto.Error{Code: proto.CodeTimeout, What: "controller", Detail: fmt.Sprintf("it said nothing for %v: the network was cut, or it stands still", d),
		Remedy: "everything is put back and the agent ends; start the run again (hopbed run --resume)"}
}
