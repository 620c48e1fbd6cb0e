//go:build linux

package undo

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
)

// namespace identifies a network namespace: a setting of one means nothing in
// another. The kernel gives the number of an inode again when a namespace is
// gone; the cookie (Linux 5.14) it never does, until it is booted.
type namespace struct {
	Inode  string `json:"inode"`            // "net:[4026531840]"
	Cookie uint64 `json:"cookie,omitempty"` // 0 = the kernel has none
}

func ownNamespace() (namespace, error) {
	inode, err := procfs.NetNS(os.Getpid())
	if err != nil {
		return namespace{}, fmt.Errorf("network namespace: %w", err)
	}
	n := namespace{Inode: inode}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return n, fmt.Errorf("network namespace: %w", err)
	}
	defer unix.Close(fd)
	if c, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		n.Cookie = c
	}
	return n, nil
}

// inUse reports whether a process, a mount or an open file keeps the namespace,
// which is not the caller's. What may not be looked at may keep it, but for the first process of a
// container that keeps its capabilities to itself: it is where everything began.
func (n namespace) inUse() bool {
	pids, err := procfs.PIDs()
	if err != nil {
		return true
	}
	for _, pid := range pids {
		ns, err := procfs.NetNS(pid)
		switch {
		case err == nil && ns == n.Inode:
			return true
		case err == nil && holds(pid, n.Inode):
			return true
		case err != nil && pid != 1 && procfs.Running(pid) && !kernelThread(pid):
			return true
		}
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(lines.Text(), " "+n.Inode+" ") {
			return true
		}
	}
	return false
}

// holds reports whether a process has a namespace open.
func holds(pid int, inode string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return procfs.Running(pid) && !kernelThread(pid)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(dir + "/" + fd.Name()); err == nil && to == inode {
			return true
		}
	}
	return false
}

// kernelThread reports whether a process has no program.
func kernelThread(pid int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return os.IsNotExist(err)
}
