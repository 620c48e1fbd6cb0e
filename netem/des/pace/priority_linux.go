package pace

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Priority is what a process's threads got.
type Priority struct {
	Policy string `json:"policy"` // "SCHED_FIFO" or "nice"
	Level  int    `json:"level"`  // real-time priority, or the nice value
	// Refused says what was tried before and why it was not permitted.
	Refused []string `json:"refused,omitempty"`
}

// String writes "SCHED_FIFO 20" or "nice -20".
func (p Priority) String() string { return fmt.Sprintf("%s %d", p.Policy, p.Level) }

// The pacing thread stands above the process's other threads, so that those
// never keep it from running, and both above ordinary work: the runtime hands a
// locked thread its processor through them.
const (
	fifoPacing = 20
	fifoOthers = 10
)

// Raise gives the calling thread, which must be locked, the best scheduling
// that the host permits, and the process's other threads the next best: round
// robin among equals is not wanted, so SCHED_FIFO; else the lowest permitted
// nice value. Threads that are started later inherit it from their creators.
func Raise() (Priority, error) {
	self := unix.Gettid()
	var refused []string
	err := setFIFO(self, fifoPacing)
	level := fifoPacing
	if err != nil {
		refused = append(refused, fmt.Sprintf("SCHED_FIFO %d: %v", fifoPacing, err))
		// RLIMIT_RTPRIO may permit less (limits.conf "rtprio").
		var lim unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_RTPRIO, &lim) == nil && lim.Cur >= 2 && lim.Cur < fifoPacing {
			level = int(lim.Cur)
			err = setFIFO(self, level)
		}
	}
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		return Priority{"SCHED_FIFO", level, refused}, others(self, func(tid int) error { return setFIFO(tid, min(fifoOthers, level-1)) })
	}
	// The default slack stretches sleeps by 50 µs to merge wake-ups; it does not
	// apply to real-time threads (prctl(2), PR_SET_TIMERSLACK).
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		refused = append(refused, "timer slack of 1 ns: "+err.Error())
	}
	nice := -20
	if err := unix.Setpriority(unix.PRIO_PROCESS, self, nice); err != nil {
		refused = append(refused, fmt.Sprintf("nice %d: %v", nice, err))
		nice = 0
		var lim unix.Rlimit // RLIMIT_NICE permits nice values down to 20-limit
		if unix.Getrlimit(unix.RLIMIT_NICE, &lim) == nil && lim.Cur > 20 && lim.Cur <= 40 {
			nice = 20 - int(lim.Cur)
			if err := unix.Setpriority(unix.PRIO_PROCESS, self, nice); err != nil {
				refused = append(refused, fmt.Sprintf("nice %d: %v", nice, err))
				nice = 0
			}
		}
	}
	if nice == 0 {
		return Priority{"nice", 0, refused}, nil
	}
	return Priority{"nice", nice, refused}, others(self, func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, nice) })
}

func setFIFO(tid, level int) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(level)}
	return unix.SchedSetAttr(tid, &attr, 0)
}

// others applies set to every other thread of the process, and again to those
// that an unraised thread may have started meanwhile.
func others(self int, set func(tid int) error) error {
	done := map[int]bool{self: true}
	for again := true; again; {
		again = false
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("raise the priority of the process's threads: %w", err)
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid], again = true, true
			if err := set(tid); err != nil && err != unix.ESRCH { // ESRCH: it has ended
				return fmt.Errorf("raise the priority of thread %d: %w", tid, err)
			}
		}
	}
	return nil
}

// Lower gives the calling thread, which must be locked, ordinary scheduling
// again, for work that must never compete with the pacing thread.
func Lower() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("lower the priority of a thread: %w", err)
	}
	return nil
}
