package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func lookPath(name string) error { _, err := exec.LookPath(name); return err }

func probeRoot() error {
	if os.Geteuid() != 0 {
		return lack("effective uid is %d", os.Geteuid())
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	for _, c := range []int{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN} {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return lack("capability %d is missing", c)
		}
	}
	return nil
}

// inNewNetNS runs f on a thread in a new network namespace and brings the thread
// back. Leaving it to die instead would not do: the main thread cannot.
func inNewNetNS(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			done <- fmt.Errorf("own network namespace: %w", err)
			return
		}
		defer unix.Close(home)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("unshare a network namespace: %w", err)
			return
		}
		err = f()
		if back := unix.Setns(home, unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		} else if err == nil {
			err = fmt.Errorf("return from a network namespace: %w", back)
		}
		done <- err
	}()
	return <-done
}

func probeNS() error { return inNewNetNS(func() error { return nil }) }

func probeTAP() error {
	return inNewNetNS(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/net/tun: %w", err)
		}
		defer unix.Close(fd)
		ifr, err := unix.NewIfreq("probe0")
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
			return fmt.Errorf("create a TAP: %w", err)
		}
		return nil
	})
}

// probeUserNS starts a program in a new user and network namespace, and looks
// at the settings that forbid it to ordinary users: root may do it anyway.
func probeUserNS() error {
	self, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Dir = "/"
	uid, gid := os.Geteuid(), os.Getegid()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a process in a user namespace: %w", err)
	}
	for file, bad := range map[string]string{
		"/proc/sys/kernel/unprivileged_userns_clone":             "0",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
		"/proc/sys/user/max_user_namespaces":                     "0",
	} {
		b, err := os.ReadFile(file)
		if err == nil && len(b) > 0 && string(b[:1]) == bad && len(b) <= 2 {
			return lack("%s is %s", file, bad)
		}
	}
	return nil
}

func probeFIFO() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return err
	}
	return unix.SchedSetAttr(0, before, 0)
}

func probeCC(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return lack("the kernel has no such module")
		}
		return err
	}
	return nil
}

func probePWait2() error {
	_, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, ^uintptr(0), 0, 0, 0, 0, 0)
	if errno == unix.ENOSYS {
		return errno
	}
	return nil // any other error is about the arguments
}
