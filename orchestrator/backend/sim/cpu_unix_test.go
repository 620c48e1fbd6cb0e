//go:build unix

package sim

import "syscall"

// cpuSeconds is the processor time that this process has used: on a machine that
// others share it says more than the wall clock.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
