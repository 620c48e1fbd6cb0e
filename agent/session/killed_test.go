//go:build linux

package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Whatever ends the processes of an agent on a machine, the machine is as it was.
func TestNothingIsLeftOnAMachine(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, a *agent)
		says string // in the log
	}{
		{"bye", func(t *testing.T, a *agent) {
			if err := a.client.Bye(t.Context()); err != nil {
				t.Error(err)
			}
		}, ""},
		{"the controller is gone", func(t *testing.T, a *agent) { a.client.Close() }, ""},
		{"the guardian is told to end", func(t *testing.T, a *agent) { signal(t, a.cmd.Process.Pid, syscall.SIGTERM) }, ""},
		{"the worker is killed", func(t *testing.T, a *agent) { signal(t, a.worker, syscall.SIGKILL) }, "the agent ended (signal: killed) with"},
		{"the worker panics", func(t *testing.T, a *agent) { signal(t, a.worker, syscall.SIGQUIT) }, "put back: "},
		{"the guardian is killed", func(t *testing.T, a *agent) { signal(t, a.cmd.Process.Pid, syscall.SIGKILL) }, "the guardian process was killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
			before := m.state()
			a := m.start(0, "--guarded", "--journal", dir)
			a.configure(t, m.order())
			m.changed(before)
			if len(journals(t, dir)) != 1 {
				t.Fatalf("journals %v", journals(t, dir))
			}
			begin := time.Now()
			c.end(t, a)
			a.ended(t)
			t.Logf("put back after %v", time.Since(begin))
			m.compare(before)
			if left := journals(t, dir); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			if !strings.Contains(a.said.String(), c.says) {
				t.Errorf("it said %q, want %q", a.said, c.says)
			}
		})
	}
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// killBoth kills guardian and worker at once: neither may see the other die.
func (a *agent) killBoth(t *testing.T) {
	t.Helper()
	signal(t, a.cmd.Process.Pid, syscall.SIGSTOP)
	signal(t, a.worker, syscall.SIGKILL)
	for procfs.Running(a.worker) {
		time.Sleep(time.Millisecond)
	}
	signal(t, a.cmd.Process.Pid, syscall.SIGKILL)
	a.ended(t)
}

// When both processes are killed, the next agent, or --clean, finds the journal.
func TestJournalIsCarriedOut(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
		before := m.state()
		a := m.start(0, "--guarded", "--journal", dir)
		a.configure(t, m.order())
		a.killBoth(t)
		m.changed(before)
		if len(journals(t, dir)) != 1 {
			t.Fatalf("journals %v", journals(t, dir))
		}
		// An agent of another machine leaves it alone.
		other := newMachine(t)
		otherBefore := other.state()
		b := other.start(0, "--guarded", "--journal", dir)
		if out := other.agentSays(t, 0, "--clean", "--journal", dir); !strings.Contains(out, "another network namespace") {
			t.Errorf("--clean elsewhere said %q", out)
		}
		b.client.Close()
		b.ended(t)
		other.compare(otherBefore)
		m.changed(before)

		if byHand {
			out := m.agentSays(t, 0, "--clean", "--journal", dir)
			if !strings.Contains(out, "were put back: ") || !strings.Contains(out, "mtu of wlan0") {
				t.Errorf("--clean said %q", out)
			}
			if out := m.agentSays(t, 0, "--clean", "--journal", dir); !strings.Contains(out, "nothing is left") {
				t.Errorf("a second --clean said %q", out)
			}
		} else {
			next := m.start(0, "--guarded", "--journal", dir)
			m.compare(before) // before it was told anything
			if !strings.Contains(next.said.String(), "were put back: ") {
				t.Errorf("the next agent said %q", next.said)
			}
			next.configure(t, m.order())
			next.client.Close()
			next.ended(t)
		}
		m.compare(before)
		if left := journals(t, dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// agentSays runs the agent's program with arguments and returns what it prints.
func (m *machine) agentSays(t *testing.T, status int, args ...string) string {
	t.Helper()
	var out []byte
	cmd := agentCommand(args...)
	err := m.inside(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if _, exit := err.(*exec.ExitError); err != nil && !exit || cmd.ProcessState.ExitCode() != status {
		t.Errorf("%v: %v, want the status %d: %s", args, err, status, out)
	}
	return string(out)
}

// Two agents of one machine, each with its own interface: the end of one, however
// it comes, and the start of a third revert nothing of the other.
func TestTwoAgentsOfOneMachine(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	for _, line := range []string{"link add wlan1 address 02:68:6f:70:00:11 type veth peer name air1", "link set wlan1 up", "link set wlan1 down"} {
		m.run("ip", strings.Fields(line)...)
	}
	before := m.state()
	a := m.start(0, "--guarded", "--journal", dir)
	a.configure(t, m.order())
	first := m.state()
	b := m.start(0, "--guarded", "--journal", dir)
	c := m.order()
	c.Interfaces[0].Name, c.Interfaces[0].HardwareAddress = "wlan1", "02:68:6f:70:00:11"
	c.Routes, c.Neighbours, c.Sysctls = nil, nil, nil
	b.configure(t, c)
	signal(t, b.worker, syscall.SIGKILL)
	b.ended(t)
	m.compare(first)
	third := m.start(0, "--guarded", "--journal", dir)
	third.client.Close()
	third.ended(t)
	if out := m.agentSays(t, 0, "--clean", "--journal", dir); !strings.Contains(out, "nothing is left") {
		t.Errorf("--clean said %q while an agent lives", out)
	}
	m.compare(first)
	a.client.Close()
	a.ended(t)
	m.compare(before)
}

// The same when the agent's output is stuck, as an SSH channel over a network that
// was cut is.
func TestSilentControllerThatDoesNotRead(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	before := m.state()
	cmd := agentCommand("--guarded", "--journal", dir)
	said := &logBuffer{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	cmd.Stdout = out
	if err := m.inside(cmd.Start); err != nil {
		t.Fatal(err)
	}
	out.Close()
	// 64 KiB of replies fill the pipe.
	for seq := uint64(1); seq <= 900; seq++ {
		typ, body := proto.TypeHello, any(proto.Hello{Watchdog: 2 * vtime.Second})
		if seq == 2 {
			typ, body = proto.TypeConfigure, m.order()
		}
		line, err := proto.EncodeEnvelope(seq, typ, body, nil)
		if err == nil {
			_, err = in.Write(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	m.changed(before)
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it ended after %v", d)
	}
	m.compare(before)
	if !strings.Contains(said.String(), "it said nothing for 2s") {
		t.Errorf("it said %q", said)
	}
}

// A controller that stands still, as one whose network was cut does: its end of
// the pipes stays open, and nothing comes.
func TestSilentController(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	before := m.state()
	a := m.start(vtime.Second, "--guarded", "--journal", dir)
	a.configure(t, m.order())
	begin := time.Now()
	a.ended(t)
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("the machine was as before after %v", d)
	}
	m.compare(before)
	if !strings.Contains(a.said.String(), "it said nothing for 1s") || a.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v; it said %q", a.cmd.ProcessState, a.said)
	}
}

// A full disk keeps nobody from measuring: the guardian has every record. The
// controller is told what that means.
func TestFullDisk(t *testing.T) {
	m, dir := newMachine(t), t.TempDir()
	if err := unix.Mount("hopbed-test", dir, "tmpfs", 0, "size=12k,mode=700"); err != nil {
		t.Skipf("SKIP[unavailable: mounts] %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	before := m.state()
	a := m.start(0, "--guarded", "--journal", dir)
	for i, err := 0, error(nil); err == nil; i++ { // what is left of the page of the journal's beginning is all it gets
		err = os.WriteFile(filepath.Join(dir, "full"+strconv.Itoa(i)), []byte("full"), 0o600)
	}
	c := m.order()
	for i := range 200 { // more than a page
		c.Neighbours = append(c.Neighbours, proto.Neighbour{Interface: "wlan0", Addr: netip.AddrFrom4([4]byte{10, 77, 1, byte(i + 1)}), HardwareAddress: "02:68:6f:70:01:02"})
	}
	a.configure(t, c)
	m.changed(before)
	signal(t, a.worker, syscall.SIGKILL)
	a.ended(t)
	m.compare(before)
	if !strings.Contains(a.logged.String(), "no space left on device; free some space there; without it nothing is put back if agent and guardian are killed at once") {
		t.Errorf("the controller was told %q", a.logged)
	}
	for _, left := range journals(t, dir) {
		if strings.HasSuffix(left, ".undo") {
			t.Errorf("left: %s", left)
		}
	}
}

// Without rights on the machine an agent changes nothing, and says which right it
// lacks; its journal is where the user may write.
func TestWithoutRightsOnAMachine(t *testing.T) {
	m := newMachine(t)
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("hopbed-test-%d", os.Getpid()))
	defer os.RemoveAll(dir)
	before := m.state()
	a := m.startAs(65534, 0, "--guarded", "--journal", dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := a.client.Configure(ctx, m.order())
	var e *proto.Error
	if !errors.As(err, &e) || e.Code != proto.CodeSystem || e.Remedy == "" {
		t.Errorf("%v, want a remedy", err)
	}
	m.compare(before)
	if len(journals(t, dir)) != 1 {
		t.Errorf("journals %v", journals(t, dir))
	}
	a.client.Close()
	a.ended(t)
	if left := journals(t, dir); len(left) != 0 {
		t.Errorf("left: %v; it said %q", left, a.said)
	}
}
