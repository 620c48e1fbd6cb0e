package kernelcompare

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// fifo gives the calling thread real-time priority where that is permitted.
func fifo(prio uint32) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: prio}
	_ = unix.SchedSetAttr(0, &attr, 0)
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// forwarder carries frames between two TAPs: Bernoulli loss on entry, a
// drop-tail queue, a rate, a delay. A packet's times follow from when it was
// read, not from when the thread woke.
type forwarder struct {
	fd   [2]int
	dir  [2]fwdDir
	stop atomic.Bool
	late int64 // largest lateness of a delivery, ns
	done sync.WaitGroup
}

type fwdDir struct {
	rate  vtime.BitRate
	delay int64
	limit int
	loss  float64
	rng   *des.Stream
	busy  int64
	q     []frame // in order of departure
	head  int     // first not yet delivered
	gone  int     // first whose departure is still to come

	entered, lost, overflow atomic.Uint64
}

type frame struct {
	depart, due int64
	n           int
	buf         [1514]byte
}

func (d *fwdDir) enter(now int64, b []byte) {
	d.entered.Add(1)
	_, hit := d.rng.Float64(), d.rng.Float64() // the draws of pipe.lose: equal seeds lose the same packets
	if hit < d.loss {
		d.lost.Add(1)
		return
	}
	for d.gone < len(d.q) && d.q[d.gone].depart <= now {
		d.gone++
	}
	if len(d.q)-d.gone >= d.limit {
		d.overflow.Add(1)
		return
	}
	d.busy = max(d.busy, now) + int64(d.rate.TxTime(vtime.Bytes(len(b)-14)))
	f := frame{depart: d.busy, due: d.busy + d.delay, n: len(b)}
	copy(f.buf[:], b)
	d.q = append(d.q, f)
}

func (f *forwarder) deliver(i int, now int64) {
	d := &f.dir[i]
	for d.head < len(d.q) && d.q[d.head].due <= now {
		k := &d.q[d.head]
		f.late = max(f.late, now-k.due)
		_, _ = unix.Write(f.fd[1-i], k.buf[:k.n])
		d.head++
		now = monotonic()
	}
	if d.head > 1024 {
		d.q = append(d.q[:0], d.q[d.head:]...)
		d.gone = max(d.gone-d.head, 0)
		d.head = 0
	}
}

func (f *forwarder) loop() {
	defer f.done.Done()
	runtime.LockOSThread()
	fifo(20)
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		panic(err)
	}
	defer unix.Close(ep)
	for i, fd := range f.fd {
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			panic(err)
		}
	}
	var buf [2048]byte
	var evs [2]unix.EpollEvent
	for !f.stop.Load() {
		now := monotonic()
		f.deliver(0, now)
		f.deliver(1, now)
		for i := range f.fd {
			for range 64 {
				n, err := unix.Read(f.fd[i], buf[:])
				if err != nil {
					break
				}
				f.dir[i].enter(monotonic(), buf[:n])
			}
		}
		next := monotonic() + 50_000_000
		for i := range f.dir {
			if d := &f.dir[i]; d.head < len(d.q) {
				next = min(next, d.q[d.head].due)
			}
		}
		if wait := next - monotonic(); wait > 0 {
			ts := unix.NsecToTimespec(wait)
			_, _, _ = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(ep), uintptr(unsafe.Pointer(&evs[0])), 2,
				uintptr(unsafe.Pointer(&ts)), 0, 0)
		}
	}
}
