package emulator

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// hostSample is what the pacing thread can read of itself in a few
// microseconds.
type hostSample struct {
	cpu, thread, delay vtime.Duration
}

func (s hostSample) since(o hostSample) HostUse {
	u := HostUse{CPU: s.cpu - o.cpu, CPUPaced: s.thread - o.thread, RunDelay: -1, Pressure: -1, Steal: -1}
	if s.delay >= 0 && o.delay >= 0 {
		u.RunDelay = s.delay - o.delay
	}
	return u
}

func sampleHost() hostSample {
	return hostSample{cpu: usage(unix.RUSAGE_SELF), thread: usage(unix.RUSAGE_THREAD), delay: runDelay()}
}

func usage(who int) vtime.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0 // fails only for an unknown "who"
	}
	return vtime.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runDelay reads the second field of schedstat: nanoseconds spent runnable but
// waiting (Documentation/scheduler/sched-stats.rst). -1 without
// CONFIG_SCHED_INFO.
func runDelay() vtime.Duration {
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return -1
	}
	f := bytes.Fields(b)
	if len(f) < 2 {
		return -1
	}
	return parseDuration(f[1])
}

func parseDuration(b []byte) vtime.Duration {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return -1
	}
	return vtime.Duration(n)
}

// pressure reads the total of "some" in /proc/pressure/cpu, given in
// microseconds (Documentation/accounting/psi.rst). -1 without CONFIG_PSI.
func pressure() vtime.Duration {
	b, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return -1
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	_, total, ok := bytes.Cut(line, []byte("total="))
	if !ok || !bytes.HasPrefix(line, []byte("some ")) {
		return -1
	}
	us := parseDuration(bytes.TrimSpace(total))
	if us < 0 {
		return -1
	}
	return us * vtime.Microsecond
}

// userHz is the unit of /proc/stat: USER_HZ is 100 on every architecture that
// Go supports (proc_stat(5)).
const userHz = 100

// steal reads the processor time taken by the hypervisor, the eighth column of
// /proc/stat's first line, summed over all processors. -1 if there is none.
func steal() vtime.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 9 || string(f[0]) != "cpu" {
		return -1
	}
	ticks := parseDuration(f[8])
	if ticks < 0 {
		return -1
	}
	return ticks * (vtime.Second / userHz)
}

// outside is what the observer reads beside the pacing thread.
type outside struct {
	pressure, steal vtime.Duration
	devices         []tap.Counters
	errs            []error
}

func observe(devs []*tap.Device) *outside {
	o := &outside{pressure: pressure(), steal: steal(), devices: make([]tap.Counters, len(devs)), errs: make([]error, len(devs))}
	for i, d := range devs {
		if d == nil {
			continue // a node without a radio
		}
		o.devices[i], o.errs[i] = d.Counters()
	}
	return o
}

func diff(a, b vtime.Duration) vtime.Duration {
	if a < 0 || b < 0 {
		return -1
	}
	return a - b
}
