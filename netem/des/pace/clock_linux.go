package pace

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/vtime"
)

// clock is the wall clock in virtual time; tests have a scripted one.
type clock interface {
	start(at vtime.Time) // now() is at from here on
	now() vtime.Time
	zero() int64         // CLOCK_MONOTONIC of virtual time zero, in ns
	cpu() vtime.Duration // processor time of the calling thread
}

// monotonic reads CLOCK_MONOTONIC through the runtime (a vDSO call of some
// 30 ns; the system call wrapper would cost ten times as much).
type monotonic struct {
	base   time.Time
	offset vtime.Time // virtual time at base
	mono   int64      // CLOCK_MONOTONIC at base
}

func newMonotonic() *monotonic {
	m := &monotonic{}
	m.start(0)
	return m
}

func (m *monotonic) start(at vtime.Time) {
	// The runtime hides the absolute value of its clock. Of several readings the
	// one with the narrowest bracket is within half its width of the truth.
	best := time.Duration(1<<63 - 1)
	for range 16 {
		var ts unix.Timespec
		t0 := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			panic("pace: CLOCK_MONOTONIC: " + err.Error()) // exists since Linux 2.6
		}
		width := time.Since(t0)
		if width < best {
			best = width
			m.base, m.mono = t0, ts.Nano()-int64(width/2)
		}
	}
	m.offset = at
}

func (m *monotonic) now() vtime.Time { return m.offset.Add(vtime.FromStd(time.Since(m.base))) }
func (m *monotonic) zero() int64     { return m.mono - int64(m.offset) }

func (m *monotonic) cpu() vtime.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0 // exists since Linux 2.6.12; 0 means "never crowded"
	}
	return vtime.Duration(ts.Nano())
}
