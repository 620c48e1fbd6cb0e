package pace

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/vtime"
)

// poller waits with epoll_pwait2 (Linux 5.11), whose timeout is in nanoseconds.
// On older kernels a timerfd in the same epoll set gives the same precision for
// one more system call per wait; epoll_wait's own milliseconds would not do,
// and a clock_nanosleep would not notice descriptors.
type poller struct {
	epfd    int
	timerfd int // -1 with epoll_pwait2
	events  [128]unix.EpollEvent
	ready   [128]int32
}

const timerKey = -1

func newPoller() (*poller, error) {
	p := &poller{timerfd: -1}
	var err error
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pacing: epoll_create1: %w", err)
	}
	switch _, err := p.pwait2(0); err {
	case nil:
	case unix.ENOSYS, unix.EPERM: // EPERM: a seccomp filter of an old container runtime
		if err := p.useTimer(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("pacing: epoll_pwait2: %w", err)
	}
	return p, nil
}

func (p *poller) useTimer() error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("pacing: timerfd_create: %w", err)
	}
	p.timerfd = fd
	return p.add(fd, timerKey)
}

func (p *poller) method() string {
	if p.timerfd >= 0 {
		return "epoll+timerfd"
	}
	return "epoll_pwait2"
}

func (p *poller) add(fd, key int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(key)}
	return unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd, &ev)
}

func (p *poller) remove(fd int) {
	_ = unix.EpollCtl(p.epfd, unix.EPOLL_CTL_DEL, fd, nil) // fails only when it is not watched
}

func (p *poller) wait(d vtime.Duration) ([]int32, error) {
	var n int
	var err error
	if p.timerfd >= 0 {
		n, err = p.waitTimer(d)
	} else {
		n, err = p.pwait2(d)
	}
	if err != nil && err != unix.EINTR {
		return nil, err
	}
	ready := p.ready[:0]
	for i := range n {
		if key := p.events[i].Fd; key != timerKey {
			ready = append(ready, key)
		}
	}
	return ready, nil
}

// The waits are raw system calls: the runtime's bookkeeping of a blocking call
// would hand the processor to another thread and back at every wait.

func (p *poller) pwait2(d vtime.Duration) (int, error) {
	ts := timespec64{int64(d / vtime.Second), int64(d % vtime.Second)}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epfd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// timespec64 is the kernel's __kernel_timespec, 64 bits wide on 32-bit machines
// too.
type timespec64 struct{ sec, nsec int64 }

func (p *poller) sleep(d vtime.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	// A signal ends it early: the next pause comes soon.
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func (p *poller) waitTimer(d vtime.Duration) (int, error) {
	timeout := 0
	if d > 0 {
		// Setting the timer again also takes back an expiry that nobody has read.
		spec := struct{ interval, value unix.Timespec }{value: unix.NsecToTimespec(int64(d))}
		_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(p.timerfd), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		timeout = -1
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epfd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(timeout), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (p *poller) close() error {
	if p.timerfd >= 0 {
		_ = unix.Close(p.timerfd)
	}
	return unix.Close(p.epfd)
}
