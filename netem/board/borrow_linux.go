package board

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNoPidfd says that this kernel cannot take descriptors of another process.
var ErrNoPidfd = errors.New("this kernel has no pidfd_getfd(2) (Linux 5.6)")

// Borrow copies the descriptors of the shared memory and of a node's eventfd from
// another process on this host, for an agent that it did not start. It needs the
// right to trace that process: the same user or root. The caller owns the copies.
func Borrow(pid, memory, event int) (mem, ev uintptr, err error) {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("queue board: process %d: %w", pid, noPidfd(err))
	}
	defer unix.Close(p)
	m, err := unix.PidfdGetfd(p, memory, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("queue board: descriptor %d of process %d: %w", memory, pid, noPidfd(err))
	}
	e, err := unix.PidfdGetfd(p, event, 0)
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("queue board: descriptor %d of process %d: %w", event, pid, noPidfd(err)), unix.Close(m))
	}
	return uintptr(m), uintptr(e), nil
}

func noPidfd(err error) error {
	if errors.Is(err, unix.ENOSYS) {
		return ErrNoPidfd
	}
	return err
}
