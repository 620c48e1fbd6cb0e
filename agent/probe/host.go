//go:build linux

package probe

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Host is one reading of the agent's and the host's processor accounting.
type Host struct {
	Mono            int64 // CLOCK_MONOTONIC, ns
	user, system    vtime.Duration
	runDelay        vtime.Duration
	accounted       bool // the kernel keeps run delays
	pressure, steal vtime.Duration
	missing         []string
}

// MonotonicNS reads CLOCK_MONOTONIC, which all namespaces of a host share.
func MonotonicNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error()) // every Linux has it
	}
	return ts.Nano()
}

// ReadHost takes a reading. Facts that this kernel does not give are named in
// the difference's Missing.
func ReadHost() Host {
	h := Host{Mono: MonotonicNS()}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		h.missing = append(h.missing, "cpu time: "+err.Error())
	}
	h.user, h.system = vtime.Duration(ru.Utime.Nano()), vtime.Duration(ru.Stime.Nano())

	delay, ran, err := runDelay()
	h.runDelay, h.accounted = delay, ran > 0
	switch {
	case err != nil:
		h.missing = append(h.missing, "run delay: "+err.Error())
	case !h.accounted:
		h.missing = append(h.missing, "run delay: the kernel does not account it (boot with delayacct or set kernel.sched_schedstats=1)")
	}
	if h.pressure, err = pressureSome("/proc/pressure/cpu"); err != nil {
		h.missing = append(h.missing, "pressure: "+err.Error()+" (boot with psi=1)")
	}
	if h.steal, err = steal("/proc/stat"); err != nil {
		h.missing = append(h.missing, "steal: "+err.Error())
	}
	return h
}

// Since fills the host's part of the node's facts with the change since
// before.
func (h Host) Since(before Host, f *proto.NodeFacts) {
	f.Wall = vtime.Duration(h.Mono - before.Mono)
	f.CPUUser, f.CPUSystem = h.user-before.user, h.system-before.system
	f.RunDelay = h.runDelay - before.runDelay
	f.PressureSome, f.Steal = h.pressure-before.pressure, h.steal-before.steal
	f.Missing = append(f.Missing, h.missing...)
}

// runDelay sums, over this process's threads, the time that each was runnable
// and waited, and the time that it ran (Documentation/scheduler/sched-stats).
// Threads that ended between two readings are missing from the second.
func runDelay() (delay, ran vtime.Duration, err error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, 0, err
	}
	for _, t := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/schedstat")
		if os.IsNotExist(err) || err == unix.ESRCH {
			if _, gone := os.Stat("/proc/self/task/" + t.Name()); gone != nil {
				continue
			}
		}
		if err != nil {
			return 0, 0, err
		}
		var r, d, n int64
		if _, err := fmt.Sscan(string(b), &r, &d, &n); err != nil {
			return 0, 0, fmt.Errorf("schedstat %q: %w", bytes.TrimSpace(b), err)
		}
		ran, delay = ran+vtime.Duration(r), delay+vtime.Duration(d)
	}
	return delay, ran, nil
}

// pressureSome returns the accumulated "some" time of a PSI file
// (Documentation/accounting/psi).
func pressureSome(file string) (vtime.Duration, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if !strings.HasPrefix(line, "some ") {
			continue
		}
		if _, total, ok := strings.Cut(line, "total="); ok {
			us, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
			return vtime.Duration(us) * vtime.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s has no line \"some … total=\"", file)
}

// steal returns the time that the hypervisor took from all processors: the
// eighth value of the line "cpu" in /proc/stat, in ticks of 1/USER_HZ, which is
// 10 ms on every architecture that Go has a Linux port for.
func steal(file string) (vtime.Duration, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("%s begins with %q", file, line)
	}
	ticks, err := strconv.ParseInt(f[8], 10, 64)
	return vtime.Duration(ticks) * 10 * vtime.Millisecond, err
}
