package emulator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A medium that stood still is found out even when few events are late in it:
// within the interval, and across its beginning.
func TestStandstillSpoilsARun(t *testing.T) {
	for name, at := range map[string]time.Duration{"within": 250 * time.Millisecond, "across the beginning": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, line(2, 10, 150, 350), emulator.Options{}, nil)
			var ts unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
				t.Fatal(err)
			}
			ms := vtime.Time(vtime.Millisecond)
			if err := l.proc.Begin(t.Context(), ts.Nano(), 150*ms, 650*ms); err != nil {
				t.Fatal(err)
			}
			time.Sleep(at)
			if err := unix.Kill(l.proc.PID(), unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(250 * time.Millisecond)
			if err := unix.Kill(l.proc.PID(), unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			time.Sleep(550*time.Millisecond - at)
			v := emulator.Judge(l.stop())
			if v.Valid || !strings.Contains(strings.Join(v.Reasons, "; "), "the emulator stood still for") {
				t.Errorf("the emulator was stopped, and the verdict is %+v", v)
			}
		})
	}
}

// A killed emulator is a typed error for whoever asks, and takes its devices
// along.
func TestKilledEmulator(t *testing.T) {
	l := newLab(t, line(2, 10, 150, 350), emulator.Options{}, nil)
	if err := syscall.Kill(l.proc.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.proc.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the death of the emulator was not noticed")
	}
	var e *emulator.Exited
	if !errors.As(l.proc.Err(), &e) || e.State != "signal: killed" {
		t.Errorf("got %v, want an *Exited that names the signal", l.proc.Err())
	}
	if _, err := l.proc.Stop(context.Background()); !errors.As(err, &e) {
		t.Errorf("Stop says %v, want an *Exited", err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", l.pids[0]))
	if err != nil || bytes.Contains(b, []byte(tap.Interface)) {
		t.Errorf("the device is still there: %s %v", b, err)
	}
}

// A node whose process has died does not disturb the others, and the report
// says so.
func TestDeadNode(t *testing.T) {
	l := newLab(t, line(3, 10, 150, 350), emulator.Options{}, nil)
	if err := syscall.Kill(l.pids[2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := l.throughput(0, 1, 0); got < 2 {
		t.Errorf("%.2f Mb/s between the others", got)
	}
	r := l.stop()
	if r.Nodes[2].DeviceError == "" || r.Nodes[0].DeviceError != "" {
		t.Errorf("device errors %q and %q, want one for the dead node only", r.Nodes[2].DeviceError, r.Nodes[0].DeviceError)
	}
}

func TestBadConfigurationIsRefused(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	pid := holder(t)
	for name, c := range map[string]struct {
		change func(*emulator.Config)
		want   string
	}{
		"no node":                     {func(c *emulator.Config) { c.Nodes = nil }, "no nodes"},
		"positions":                   {func(c *emulator.Config) { c.Positions = nil }, "0 positions for 1 nodes"},
		"a bad MAC":                   {func(c *emulator.Config) { c.MACs[0].Queues[0].CWmin = 5 }, "contention window"},
		"a process that is not there": {func(c *emulator.Config) { c.Nodes[0].PID = 1 << 22 }, "node n01"},
		"no process":                  {func(c *emulator.Config) { c.Nodes[0].PID = 0 }, "process id 0"},
		"a loss of nobody":            {func(c *emulator.Config) { c.Losses = []emulator.Loss{{From: 0, To: 9, P: 1}} }, "9"},
		"a board for others":          {func(c *emulator.Config) {}, "board for 3 nodes and 0 pipes"},
	} {
		cfg := line(1, 10, 150, 350)
		cfg.Nodes = []emulator.Node{{Name: "n01", PID: pid}}
		c.change(cfg)
		opt := emulator.Options{}
		if name == "a board for others" {
			opt.Board = newBoard(t, 3, 0)
		}
		p, err := emulator.Start(context.Background(), cfg, opt)
		if err == nil {
			p.Kill()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

const lackingPart = "emulator-test-lacking"

// Where there is no /dev/net/tun the controller gets a typed error from the
// emulator's process.
func TestLackOfTAPIsTyped(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{lackingPart}, SysProcAttr: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "typed: TAP devices") {
		t.Errorf("%v: %s", err, out)
	}
}

func lacking() int {
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", "/dev/net", "tmpfs", 0, "")); err != nil {
		fmt.Println(err)
		return 1
	}
	cfg := line(1, 10, 150, 350)
	cfg.Nodes = []emulator.Node{{Name: "n01", PID: os.Getpid()}}
	p, err := emulator.Start(context.Background(), cfg, emulator.Options{})
	if err == nil {
		p.Kill()
	}
	var u *tap.Unavailable
	if !errors.As(err, &u) {
		fmt.Println("not typed:", err)
		return 1
	}
	fmt.Println("typed:", u)
	return 0
}
