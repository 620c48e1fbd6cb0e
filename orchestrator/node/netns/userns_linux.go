package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/tap"
)

// rootlessVariable marks the process that runs inside the user namespace, so
// that one which is still without privileges there does not try for ever.
const rootlessVariable = "HOPBED_ROOTLESS"

// EnsureRoot gives the controller the privileges that the namespace driver and
// the emulator need. With them (root) it does nothing and returns ran = false.
// Without, it runs this program once more with the same arguments inside a new
// user, mount and network namespace, in which the user is root, passes signals
// on, and returns ran = true with the exit status, which the caller then exits
// with. Files that it writes belong to the user.
//
// Where the host forbids that, the error is a *tap.Unavailable.
func EnsureRoot() (ran bool, status int, err error) {
	missing, err := missingCapability()
	if err != nil {
		return false, 0, err
	}
	if missing == "" {
		return false, 0, nil
	}
	if os.Getenv(rootlessVariable) != "" {
		return false, 0, userNSUnavailable(fmt.Errorf("the process in the user namespace has no %s", missing))
	}
	status, err = runRootless()
	return err == nil, status, err
}

// Rootless says whether this process runs in the user namespace that
// EnsureRoot made.
func Rootless() bool { return os.Getenv(rootlessVariable) != "" }

func missingCapability() (string, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return "", fmt.Errorf("read the process's capabilities: %w", err)
	}
	for _, c := range []struct {
		bit  int
		name string
	}{{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}} {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			return c.name, nil
		}
	}
	return "", nil
}

func runRootless() (int, error) {
	cmd := &exec.Cmd{
		Path: reexec.Self, Args: os.Args, // argv[0] as it is: the same part of the program
		Env:   append(os.Environ(), rootlessVariable+"=1"),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			Pdeathsig:   syscall.SIGKILL,
		},
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)

	// Pdeathsig fires when the starting thread ends: keep it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, userNSUnavailable(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			// A terminal sends its signals to the whole foreground process group, so
			// the child has them already; passing them on would count twice, and a
			// second interrupt means "at once".
			if (sig == syscall.SIGINT || sig == syscall.SIGQUIT) && inForeground() {
				continue
			}
			_ = cmd.Process.Signal(sig) // fails only when it has ended
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 0, fmt.Errorf("wait for the controller in the user namespace: %w", err)
			}
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				return 128 + int(ws.Signal()), nil // as a shell would
			}
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}

// inForeground says whether this process's group is the one that its terminal
// sends signals to.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false // no controlling terminal
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// gate is a setting that forbids user namespaces to ordinary users.
type gate struct{ file, forbids, do string }

var gates = []gate{
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"run `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or give the program an AppArmor profile with the rule \"userns,\" (Ubuntu 23.10 and newer), or run hopbed as root"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0",
		"run `sudo sysctl kernel.unprivileged_userns_clone=1`, or run hopbed as root"},
	{"/proc/sys/user/max_user_namespaces", "0",
		"run `sudo sysctl user.max_user_namespaces=10000`, or run hopbed as root"},
}

// userNSUnavailable explains the failure by the first setting that forbids
// user namespaces.
func userNSUnavailable(err error) error { return explain(err, os.ReadFile) }

func explain(err error, readFile func(string) ([]byte, error)) error {
	u := &tap.Unavailable{What: "running without root (user namespaces)", Because: err.Error(), Err: err,
		Do: "run hopbed as root; inside a container, allow user namespaces (seccomp and CAP_SYS_ADMIN decide there)"}
	for _, g := range gates {
		b, readErr := readFile(g.file)
		if readErr == nil && strings.TrimSpace(string(b)) == g.forbids {
			u.Because = fmt.Sprintf("%v, and %s is %s", err, g.file, g.forbids)
			u.Do = g.do
			break
		}
	}
	return u
}
