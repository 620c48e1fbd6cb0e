package tap

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// InNamespace runs f in the network namespace of process pid, on an OS thread
// that belongs to f alone meanwhile. f must not start goroutines: they would
// run elsewhere. If the thread cannot return to its own namespace it is
// destroyed, so that no other goroutine ever runs in a foreign one.
func InNamespace(pid int, f func() error) error {
	target, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	defer target.Close()
	done := make(chan error, 1)
	go func() { done <- inNamespace(int(target.Fd()), pid, f) }()
	return <-done
}

func inNamespace(target, pid int, f func() error) error {
	runtime.LockOSThread() // ends with the goroutine unless unlocked below
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("own network namespace: %w", err)
	}
	defer unix.Close(home)
	if err := unix.Setns(target, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		if err == unix.EPERM {
			return &Unavailable{What: "entering a node's network namespace", Err: err,
				Because: fmt.Sprintf("setns into the namespace of process %d: %v", pid, err),
				Do:      "run as root, or without root on a host that permits user namespaces"}
		}
		return fmt.Errorf("enter the network namespace of process %d: %w", pid, err)
	}
	result := f()
	if err := unix.Setns(home, unix.CLONE_NEWNET); err == nil {
		runtime.UnlockOSThread()
	}
	return result
}

// writeSysctl sets one value of the calling thread's network namespace.
func writeSysctl(s Sysctl) error {
	path := filepath.Join("/proc/sys", strings.ReplaceAll(s.Key, ".", "/"))
	if err := os.WriteFile(path, []byte(s.Value), 0); err != nil {
		return fmt.Errorf("set %s to %s: %w", s.Key, s.Value, err)
	}
	return nil
}

// calmIPv6 keeps IPv6 on, without what the kernel would ask of everybody when an
// interface comes up: link-local addresses follow from the plan's hardware
// addresses, so that none is there twice, and nobody advertises prefixes.
func calmIPv6() error {
	for _, s := range []Sysctl{{"net.ipv6.conf.default.accept_dad", "0"}, {"net.ipv6.conf.default.router_solicitations", "0"}} {
		if err := writeSysctl(s); err != nil {
			if os.IsNotExist(err) {
				return &Unavailable{What: "IPv6 in nodes", Because: "the kernel has none: " + err.Error(), Do: "use a kernel with CONFIG_IPV6, booted without ipv6.disable=1", Err: err}
			}
			return err
		}
	}
	return nil
}

// silenceIPv6 keeps a namespace from sending IPv6 frames on interfaces that
// come up later. A kernel without IPv6 has nothing to silence.
func silenceIPv6() error {
	for _, s := range NodeSysctls() {
		if !strings.HasPrefix(s.Key, "net.ipv6.") {
			continue
		}
		if err := writeSysctl(s); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
