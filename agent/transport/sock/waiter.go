//go:build linux

package sock

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// waiter waits for a descriptor to become readable, with a timeout in
// nanoseconds, until it is woken. A loop over it has no timer granularity but
// the kernel's.
type waiter struct {
	fds   []unix.PollFd
	event int
}

// newWaiter watches the given descriptors, which stay the caller's.
func newWaiter(fds ...int) (*waiter, error) {
	w := &waiter{event: -1}
	for _, fd := range fds {
		w.fds = append(w.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	var err error
	if w.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "eventfd", Detail: err.Error()}
	}
	w.fds = append(w.fds, unix.PollFd{Fd: int32(w.event), Events: unix.POLLIN})
	return w, nil
}

// wait waits at most d.
func (w *waiter) wait(d vtime.Duration) error {
	ts := unix.NsecToTimespec(max(0, int64(d)))
	if _, err := unix.Ppoll(w.fds, &ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// ready tells whether the descriptor with the given place was readable when
// the last wait returned.
func (w *waiter) ready(i int) bool { return w.fds[i].Revents != 0 }

// wake ends the present and every later wait.
func (w *waiter) wake() {
	if w.event >= 0 {
		// An eventfd takes 8 bytes in the host's order; any value but 0 wakes, and
		// a full counter wakes as well.
		_, _ = unix.Write(w.event, []byte{1, 1, 1, 1, 1, 1, 1, 1})
	}
}

func (w *waiter) close() error {
	if w.event < 0 {
		return nil
	}
	err := unix.Close(w.event)
	w.event = -1
	return err
}
