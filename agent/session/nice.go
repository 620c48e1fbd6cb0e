//go:build linux

package session

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// wantedNice is above ordinary programs and below the emulator, which tries
// for real-time priority or -20.
const wantedNice = -10

// raisePriority asks for a better niceness for all threads of this process;
// threads made later inherit it. Where that is not permitted everything works
// as well, if the host is not busy: the niceness is reported and lateness is
// measured.
func raisePriority() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			if unix.Setpriority(unix.PRIO_PROCESS, tid, wantedNice) != nil {
				return
			}
		}
	}
}

// niceness reads the calling thread's: the kernel returns 20 - nice
// (getpriority(2), "C library/kernel differences").
func niceness() int {
	v, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - v
}
