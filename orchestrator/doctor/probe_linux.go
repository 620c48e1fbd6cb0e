package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	external "github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/deploy/sshd"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/tc"
)

// Examine runs every check, in the order in which a reader wants them. noRoot
// says why this process could not get the privileges of root, if it tried.
func Examine(noRoot error) []Check {
	checks := []Check{privileges(noRoot), namespaces(), taps(), priority(), timer(), processors()}
	checks = append(checks, bridges(), congestionControls(), netem(), pressure())
	for _, p := range programs {
		checks = append(checks, program(p.name, p.use))
	}
	return append(checks, sshServer())
}

func privileges(noRoot error) Check {
	c := Check{Name: "privileges", Needed: true}
	if os.Geteuid() == 0 && noRoot == nil {
		c.State, c.Found = OK, "root"
		if os.Getenv("HOPBED_ROOTLESS") != "" {
			c.Found = "root in a user namespace (rootless)"
		}
		return c
	}
	c.State, c.Found = Lack, fmt.Sprintf("user %d without the capability to make namespaces", os.Geteuid())
	c.Cost = "no emulated nodes"
	c.Remedy = "run as root"
	var u *tap.Unavailable
	if errors.As(noRoot, &u) {
		c.Found, c.Remedy = c.Found+": "+u.Because, u.Do
	} else if noRoot != nil {
		c.Found += ": " + noRoot.Error()
	}
	return c
}

// apart runs f on a thread of its own in a new network namespace; thread and
// namespace end together.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("make a network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

func namespaces() Check {
	c := Check{Name: "network namespaces", Needed: true, State: OK, Found: "can be made"}
	if err := apart(func() error { return nil }); err != nil {
		c.State, c.Found, c.Cost, c.Remedy = Lack, err.Error(), "no emulated nodes", "a kernel with CONFIG_NET_NS, and the privileges above"
	}
	return c
}

func taps() Check {
	c := Check{Name: "TAP devices", Needed: true, State: OK, Found: "/dev/net/tun can be used"}
	err := apart(tap.Probe)
	var u *tap.Unavailable
	switch {
	case errors.As(err, &u):
		c.State, c.Found, c.Cost, c.Remedy = Lack, u.Because, "no emulated radio", u.Do
	case err != nil:
		c.State, c.Found, c.Cost, c.Remedy = Lack, err.Error(), "no emulated radio", "modprobe tun"
	}
	return c
}

// bridges makes a bridge in a namespace of its own, for nodes that join their
// radio and their wires at the link layer.
func bridges() Check {
	c := Check{Name: "bridge devices", State: OK, Found: "can be made"}
	err := apart(func() error {
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}})
	})
	if err != nil {
		c.State, c.Found = Lack, err.Error()
		c.Cost = "no nodes with `bridge: true`; nodes that route between their interfaces do not need it"
		c.Remedy = "modprobe bridge (CONFIG_BRIDGE)"
	}
	return c
}

func priority() Check {
	c := Check{Name: "real-time priority", State: OK, Found: "SCHED_FIFO is permitted"}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its priority
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		done <- unix.SchedSetAttr(0, &attr, 0)
	}()
	if err := <-done; err != nil {
		c.State, c.Found = Lack, "SCHED_FIFO: "+err.Error()
		c.Cost = "on a busy host the medium is late, and runs become invalid"
		c.Remedy = "run as root, or grant rtprio in /etc/security/limits.conf; on cgroup v1 give the group a cpu.rt_runtime_us"
	}
	return c
}

// timer measures how late a thread wakes after a wait of 200 µs: what the
// medium's pacing has to live with when the host is idle.
func timer() Check {
	const n, wait = 300, 200 * time.Microsecond
	late := make([]time.Duration, 0, n)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked
		defer close(done)
		for range n {
			begin := time.Now()
			ts := unix.NsecToTimespec(wait.Nanoseconds())
			if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil); err != nil {
				continue
			}
			late = append(late, time.Since(begin)-wait)
		}
	}()
	<-done
	c := Check{Name: "timer precision", State: OK}
	if len(late) == 0 {
		c.State, c.Found, c.Cost, c.Remedy = Lack, "clock_nanosleep fails", "no pacing", "a kernel with high-resolution timers"
		return c
	}
	slices.Sort(late)
	p50, p99 := late[len(late)/2], late[len(late)*99/100]
	c.Found = fmt.Sprintf("a wait of %v ends late by %v (p50), %v (p99) now", wait, p50.Round(time.Microsecond), p99.Round(time.Microsecond))
	if p99 > 500*time.Microsecond {
		c.State = Lack
		c.Cost = "above 0.5 ms a run carries a warning, above 1 ms it is invalid (with real-time priority it may be better than this)"
		c.Remedy = "stop other work, set the CPU governor to performance, give a virtual machine its own cores"
	}
	return c
}

func processors() Check {
	found := fmt.Sprintf("%d processors", runtime.NumCPU())
	if b, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); err == nil {
		found += ", governor " + strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil && strings.Contains(string(b), " hypervisor") {
		found += ", a virtual machine"
	}
	c := Check{Name: "processors", State: Note, Found: found}
	if runtime.NumCPU() < 2 {
		c.State, c.Cost, c.Remedy = Lack, "medium and senders share one processor: expect invalid runs", "2 processors or more"
	}
	return c
}

// wanted are the congestion controls that the shipped experiments and papers
// name.
var wanted = []string{"reno", "cubic", "bbr", "westwood", "bic"}

func congestionControls() Check {
	c := Check{Name: "TCP congestion controls", State: OK}
	var have, lack []string
	for _, name := range wanted {
		if err := tryCC(name); err != nil {
			lack = append(lack, name)
		} else {
			have = append(have, name)
		}
	}
	c.Found = "available: " + strings.Join(have, ", ")
	if len(lack) > 0 {
		c.State = Lack
		c.Found += "; missing: " + strings.Join(lack, ", ")
		c.Cost = "flows that name a missing one fail with \"unavailable on this kernel\""
		c.Remedy = "modprobe tcp_" + strings.Join(lack, "; modprobe tcp_") + " (a distribution's kernel has them; linux-modules-extra on Ubuntu)"
	}
	return c
}

func tryCC(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// netem looks at what the kernel can emulate links with.
func netem() Check {
	c := Check{Name: "kernel link emulator (sch_netem)", State: OK, Found: "available, with seeds"}
	f, err := tc.Probe()
	if err == nil {
		err = f.Netem
	}
	var u *tap.Unavailable
	switch {
	case errors.As(err, &u):
		c.State, c.Found, c.Remedy = Lack, u.Because, u.Do
		c.Cost = "no wired links with emulator: kernel but those of a rate alone; the emulated radio does not need it"
	case err != nil:
		c.State, c.Found, c.Cost = Lack, err.Error(), "no wired links with emulator: kernel"
	case !f.Seed:
		c.Found = "available, without seeds (they came with Linux 6.6): what it draws differs from run to run"
	}
	return c
}

func pressure() Check {
	c := Check{Name: "pressure stall information", State: OK, Found: "/proc/pressure/cpu is there"}
	if _, err := os.ReadFile("/proc/pressure/cpu"); err != nil {
		c.State, c.Found = Lack, err.Error()
		c.Cost = "one witness of a starved host less; lateness is measured all the same"
		c.Remedy = "boot with psi=1"
	}
	return c
}

// programs are external tools with their use; none is needed for the main job.
var programs = []struct{ name, use string }{
	{"tshark", "read captures"},
	{"iperf3", "carry flows of the transports iperf3/CC and iperf3/udp"},
	{"iperf", "carry flows of the transports iperf2/CC and iperf2/udp"},
}

// sshServer is for emulated nodes: real ones are reached without a program of this
// host.
func sshServer() Check {
	c := Check{Name: "OpenSSH server", State: OK, Found: "can be started in namespaces (--via ssh)"}
	var u *sshd.Unavailable
	if err := sshd.Available(); errors.As(err, &u) {
		c.State, c.Found, c.Cost, c.Remedy = Note, u.Because, "cannot reach namespaces by SSH (--via ssh); not needed for real nodes", u.Do
	} else if err != nil {
		c.State, c.Found, c.Cost = Note, err.Error(), "cannot reach namespaces by SSH (--via ssh)"
	}
	return c
}

// programFamilies are the transports of which a program has to be of a version.
var programFamilies = map[string]string{"iperf3": "iperf3", "iperf": "iperf2"}

func program(name, use string) Check {
	c := Check{Name: name, State: OK}
	path, err := exec.LookPath(name)
	if err != nil {
		c.State, c.Found, c.Cost, c.Remedy = Note, "not installed", "cannot "+use+"; not needed for emulated experiments", "apt install "+name
		return c
	}
	c.Found = path
	if f := programFamilies[name]; f != "" {
		version, err := external.Available(f)
		if err != nil {
			c.State, c.Found, c.Cost, c.Remedy = Note, err.Error(), "cannot "+use+"; not needed for other transports", "apt install "+name
			return c
		}
		c.Found += ", " + version
	}
	return c
}
