//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/deploy/lane"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of the kernel lane's machine and does nothing elsewhere")
		os.Exit(2)
	}
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lane:", err) // the console: the kernel's log
	}
	unix.Sync()
	if err == nil {
		sayStatus(status)
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// sayStatus ends the machine at once. Without it the machine ends silently, which
// the host takes for a death.
func sayStatus(status int) {
	f, err := os.OpenFile("/dev/port", os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{byte(min(status, 126) + 1)}, lane.ExitPort)
	}
	fmt.Fprintf(os.Stderr, "lane: the status %d was not taken: %v\n", status, err)
}

func run() (status int, err error) {
	if err := mountAll([]mount{
		{"devtmpfs", "/dev", "devtmpfs", 0, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
		{"tmpfs", "/tmp", "tmpfs", 0, "mode=1777"},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
	}); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(lane.OrdersPath)
	if err != nil {
		return 0, err
	}
	var o lane.Orders
	if err := json.Unmarshal(text, &o); err != nil {
		return 0, fmt.Errorf("orders: %w", err)
	}
	for _, m := range o.Modules {
		if err := load(m); err != nil {
			return 0, err
		}
	}
	for _, d := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return 0, err
		}
	}
	if err := mountAll([]mount{
		{"devpts", "/dev/pts", "devpts", 0, "ptmxmode=666"},
		{"tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777"},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""},
		{"bpf", "/sys/fs/bpf", "bpf", 0, ""},
		{"tracefs", "/sys/kernel/tracing", "tracefs", 0, ""},
		{"debugfs", "/sys/kernel/debug", "debugfs", 0, ""},
	}); err != nil {
		return 0, err
	}
	if err := loopbackUp(); err != nil {
		return 0, err
	}
	root, err := fileSystems(o)
	if err != nil {
		return 0, err
	}
	return program(o, root)
}

// load inserts a module. One that is there already is no error.
func load(m lane.Module) error {
	f, err := os.Open(m.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), m.Params, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load the module %s %s: %w", m.File, m.Params, err)
	}
	return nil
}

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func mountAll(ms []mount) error {
	for _, m := range ms {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.target, err)
		}
	}
	return nil
}

const p9 = "trans=virtio,version=9p2000.L,msize=512000"

// fileSystems mounts what the host shares and returns the root of the program.
// The host's tree is read-only; what the program writes goes to memory.
func fileSystems(o lane.Orders) (root string, err error) {
	root = "/"
	if o.HostRoot {
		root = "/new"
		if err := mountAll([]mount{
			{lane.HostTag, "/lower", "9p", unix.MS_RDONLY, p9 + ",cache=loose"},
			{"tmpfs", "/rw", "tmpfs", 0, ""},
		}); err != nil {
			return "", err
		}
		for _, d := range []string{"/rw/upper", "/rw/work"} {
			if err := os.Mkdir(d, 0o755); err != nil {
				return "", err
			}
		}
		ms := []mount{{"overlay", root, "overlay", 0, "lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work"}}
		for _, d := range []string{"/dev", "/proc", "/sys", "/run"} {
			ms = append(ms, mount{d, root + d, "", unix.MS_BIND | unix.MS_REC, ""})
		}
		if err := mountAll(ms); err != nil {
			return "", err
		}
	}
	if o.Share {
		dir := root + lane.SharePath
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		if err := mountAll([]mount{{lane.ShareTag, dir, "9p", 0, p9}}); err != nil {
			return "", err
		}
	}
	return root, nil
}

// loopbackUp brings lo up, as every host has it.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// program runs the program with the second serial line as its output. Orphans
// come to the first process: they are waited for, too.
func program(o lane.Orders, root string) (status int, err error) {
	out, err := serial("/dev/ttyS1")
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{
		Path: o.Argv[0], Args: o.Argv, Env: append(o.Env, lane.Marker+"=1"), Dir: o.Dir,
		Stdout: out, Stderr: out,
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", o.Argv[0], err)
	}
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("wait for %s: %w", o.Argv[0], err)
		case pid == cmd.Process.Pid && ws.Signaled():
			fmt.Fprintf(out, "lane: %s was ended by signal %d (%v)\n", o.Argv[0], ws.Signal(), ws.Signal())
			return 126, nil
		case pid == cmd.Process.Pid:
			return ws.ExitStatus(), nil
		}
	}
}

// serial opens a serial line for bytes as they are.
func serial(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}
