package lane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Config says in what surroundings a program runs. The zero value is a machine of
// two processors with nothing but the program.
type Config struct {
	// Modules are loaded before the program starts, with what they depend on. A
	// name may be followed by parameters: "mac80211_hwsim radios=4".
	Modules []string
	// HostRoot gives the program the host's file system, whose changes stay in the
	// guest's memory: for tools such as iw, sshd or iperf3. Without it the program
	// must be static.
	HostRoot bool
	// Share is a folder of the host's that the guest may write, at SharePath.
	Share string
	// Dir is the program's working folder; "" = the root, or, with HostRoot, that
	// of the caller.
	Dir string
	// Env is added to the program's environment.
	Env []string
	// Memory is the machine's, in MiB; 0 = 1024.
	Memory int
	// Timeout bounds the whole life of the machine; 0 = 5 min.
	Timeout time.Duration
	// Stdout receives what the program writes to its standard output and error; nil
	// = nobody.
	Stdout io.Writer
	// KernelLog, where set, receives the kernel's messages when the machine has
	// ended.
	KernelLog io.Writer
}

// AccelVar is the environment variable that chooses QEMU's accelerator: "tcg",
// which is the default and works everywhere, or "kvm".
const AccelVar = "HOPBED_LANE_ACCEL"

const qemu = "qemu-system-x86_64"

// Run boots the lane, runs the program (a file of the host's, for Linux on amd64)
// as root and returns its exit status; 126 stands for all above it and for a
// signal. Its error is an *Unavailable where the host cannot, or a *Died.
func Run(ctx context.Context, c Config, program string, args ...string) (status int, err error) {
	if _, err := exec.LookPath(qemu); err != nil {
		return 0, &Unavailable{what, "this host has no " + qemu, "install qemu-system-x86 (Debian, Ubuntu)", err}
	}
	k, err := Fetch(ctx)
	if err != nil {
		return 0, err
	}
	program, err = exec.LookPath(program)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return 0, fmt.Errorf("kernel lane: program: %w", err)
	}
	tmp, err := os.MkdirTemp("", "hopbed-lane-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	m, err := k.machine(ctx, c, tmp, program, args)
	if err != nil {
		return 0, err
	}
	return m.run(ctx)
}

// machine is one that can be started: its command line and files.
type machine struct {
	Config
	args []string
	log  string // the kernel's messages
}

func (k *Kernel) machine(ctx context.Context, c Config, tmp, program string, args []string) (*machine, error) {
	first, err := buildGuest(ctx, tmp)
	if err != nil {
		return nil, err
	}
	names := c.Modules
	if c.HostRoot || c.Share != "" {
		names = append(append([]string{}, hostModules...), names...)
	}
	modules, err := k.resolve(ctx, names)
	if err != nil {
		return nil, err
	}
	accel := os.Getenv(AccelVar)
	if accel == "" {
		accel = "tcg"
	}
	memory := c.Memory
	if memory == 0 {
		memory = 1024
	}
	m := &machine{Config: c, log: filepath.Join(tmp, "kernel.log")}
	m.args = []string{
		"-accel", accel, "-M", "q35", "-cpu", "max", "-smp", "2", "-m", fmt.Sprint(memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "file:" + m.log, "-serial", "stdio",
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=4", ExitPort),
		"-kernel", k.image, "-initrd", filepath.Join(tmp, "initrd"),
		// ttyS0 is the kernel's; a panic ends the machine.
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off audit=0",
	}
	o := Orders{HostRoot: c.HostRoot, Share: c.Share != "", Dir: c.Dir,
		Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp"}, c.Env...)}
	inside := program
	if c.HostRoot {
		m.args = append(m.args, "-virtfs", "local,path=/,mount_tag="+HostTag+",security_model=none,readonly=on,multidevs=remap")
		o.Argv = append([]string{program}, args...)
		if o.Dir == "" {
			if o.Dir, err = os.Getwd(); err != nil {
				return nil, err
			}
		}
		inside = ""
	} else {
		o.Argv = append([]string{ProgramPath}, args...)
		if o.Dir == "" {
			o.Dir = "/"
		}
	}
	if c.Share != "" {
		share, err := filepath.Abs(c.Share)
		if err != nil {
			return nil, err
		}
		if strings.Contains(share, ",") {
			return nil, fmt.Errorf("kernel lane: the shared folder %q has a comma in its name, which QEMU does not take", share)
		}
		m.args = append(m.args, "-virtfs", "local,path="+share+",mount_tag="+ShareTag+",security_model=none,multidevs=remap")
	}
	return m, pack(filepath.Join(tmp, "initrd"), first, inside, o, modules)
}

// buildGuest compiles the guest's first process.
func buildGuest(ctx context.Context, tmp string) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", &Unavailable{what, "this host has no go, which builds the guest's first process", "install Go and put it into PATH", err}
	}
	file := filepath.Join(tmp, "init")
	return file, Build(ctx, "build", "-trimpath", "-o", file, "github.com/hopbed/hopbed/deploy/lane/guest")
}

// Build runs the go command so that it builds static programs for the guest, in
// the caller's folder, which must lie in the module.
func Build(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kernel lane: go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// run starts the machine and waits for its end.
func (m *machine) run(ctx context.Context) (status int, err error) {
	timeout := m.Timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it did not end within %v", timeout))
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, qemu, m.args...)
	cmd.Stdout, cmd.Stderr = m.Stdout, &stderr
	err = cmd.Run()
	log, _ := os.ReadFile(m.log)
	if m.KernelLog != nil {
		m.KernelLog.Write(log)
	}
	died := func(format string, args ...any) error {
		return &Died{Cause: fmt.Sprintf(format, args...), KernelLog: lastLines(string(log), 20)}
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, died("%v", context.Cause(ctx))
	case err == nil:
		return 0, died("the machine went off without a status of its program")
	case !errors.As(err, &exit):
		return 0, fmt.Errorf("kernel lane: %s: %w", qemu, err)
	}
	// A status s of the guest's makes QEMU end with 2(s+1)+1, which is 3 or more;
	// QEMU's own errors end with 1.
	if code := exit.ExitCode(); code >= 3 && code%2 == 1 {
		return (code-1)/2 - 1, nil
	}
	return 0, died("%s ended with %v: %s", qemu, exit, lastLines(stderr.String(), 3))
}
