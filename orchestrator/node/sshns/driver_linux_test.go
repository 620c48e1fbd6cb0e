package sshns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/sshd"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/nodetest"
	"github.com/hopbed/hopbed/orchestrator/node/ssh"
)

// TestMain: the test program is the servers' first part and the agent.
func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{Part: Main, agents.Part: agent, "hopbed-test-control": controller})
	os.Exit(m.Run())
}

func agent() int {
	if handled, status := about.Main(os.Args[1:], os.Stdout, os.Stderr); handled {
		return status
	}
	if os.Getenv(nodetest.Variable) != "" {
		return nodetest.Agent()
	}
	ns, err := procfs.NetNS(os.Getpid())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("hello", os.Getpid(), ns)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(in.Text())
	}
	return 0
}

type source struct{}

func (source) Agent(_ context.Context, arch string) (*agents.Binary, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return agents.Open(exe, arch)
}

func need(t testing.TB) {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.SSHServer(sshd.Available))
}

func newDriver(t testing.TB, o Options) *Driver {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
		if err := os.Chmod(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o.Agents, o.Tag = source{}, fmt.Sprintf("test-%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func specs(n int) []node.Spec {
	s := make([]node.Spec, n)
	for i := range s {
		s[i] = node.Spec{ID: i, Name: fmt.Sprintf("n%02d", i+1)}
	}
	return s
}

func start(t testing.TB, d *Driver, n int) []node.Handle {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	hs, err := d.Start(context.Background(), specs(n))
	if err != nil {
		t.Fatal(err)
	}
	return hs
}

func TestConformance(t *testing.T) {
	need(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	nodetest.Run(t, func(t *testing.T) node.Driver { return newDriver(t, Options{Dir: dir, Grace: 100 * time.Millisecond}) })
}

// Twenty namespaces: every agent is in that of its server, and nothing is left.
func TestTwentyNodes(t *testing.T) {
	need(t)
	d := newDriver(t, Options{})
	t0 := time.Now()
	hs := start(t, d, 20)
	t.Logf("20 nodes up after %v", time.Since(t0).Round(time.Millisecond))
	own, err := procfs.NetNS(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{own: true}
	uploads := 0
	var pids []int
	for i, h := range hs {
		var pid int
		var ns string
		in := bufio.NewReader(h.Conn())
		if _, err := fmt.Fscanf(in, "hello %d %s\n", &pid, &ns); err != nil {
			t.Fatalf("%s: %v; stderr: %s", h.Name(), err, h.Stderr())
		}
		server, err := procfs.NetNS(h.PID())
		if err != nil || server != ns || seen[ns] || h.ID() != i {
			t.Errorf("node %s: agent in %s, server (pid %d) in %s, %v; before: %v", h.Name(), ns, h.PID(), server, err, seen[ns])
		}
		seen[ns] = true
		f, ok := ssh.FactsOf(h)
		if !ok || f.PID != pid || f.Controller.String() != "127.0.0.1" {
			t.Errorf("facts %+v for pid %d", f, pid)
		}
		if f.Agent.Uploaded {
			uploads++
		}
		pids = append(pids, pid, h.PID())
		fmt.Fprintln(h.Conn(), "ping")
		if line, err := in.ReadString('\n'); err != nil || line != "ping\n" {
			t.Errorf("%s answered %q, %v", h.Name(), line, err)
		}
	}
	if uploads > 1 {
		t.Errorf("one file system, and %d uploads", uploads)
	}
	t0 = time.Now()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	t.Logf("down after %v", time.Since(t0).Round(time.Millisecond))
	for _, pid := range pids {
		if procfs.Running(pid) {
			t.Errorf("process %d (%s) is left", pid, procfs.Name(pid))
		}
	}
}

// Nobody else can log in, and the server forwards nothing.
func TestServersArePrivate(t *testing.T) {
	need(t)
	d := newDriver(t, Options{})
	h := start(t, d, 1)[0]
	files, err := filepath.Glob(filepath.Join(d.opt.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(f, ".pub") {
			t.Errorf("%s has the mode %v", f, st.Mode())
		}
		secrets++
	}
	if secrets < 6 {
		t.Errorf("files: %v", files)
	}
	// Outside the namespace nobody listens.
	if c, err := connect(context.Background(), "/proc/self/ns/net"); err == nil {
		c.Close()
		t.Log("somebody else's SSH server runs on this host")
	}
	c, err := connect(context.Background(), fmt.Sprintf("/proc/%d/ns/net", h.PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(line, "SSH-2.0-") {
		t.Errorf("the server says %q, %v", line, err)
	}
	if err := os.Chmod(d.opt.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(context.Background(), []node.Spec{{ID: 1, Name: "x"}}); err == nil || !strings.Contains(err.Error(), d.opt.Dir) {
		t.Errorf("keys in an open folder: %v", err)
	}
}

func TestKilledServerAndAgent(t *testing.T) {
	need(t)
	d := newDriver(t, Options{})
	hs := start(t, d, 3)
	f, _ := ssh.FactsOf(hs[0])
	if err := syscall.Kill(f.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait(t, hs[0])
	var exited *node.Exited
	if err := hs[0].Err(); !errors.As(err, &exited) || exited.Name != "n01" {
		t.Errorf("a killed agent: %v", err)
	}
	// The whole node: the server, its connection, the agent.
	ns, err := procfs.NetNS(hs[1].PID())
	if err != nil {
		t.Fatal(err)
	}
	pids, err := procfs.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if in, err := procfs.NetNS(pid); err == nil && in == ns {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	wait(t, hs[1])
	if err := hs[1].Err(); err == nil || !strings.Contains(err.Error(), "n02") {
		t.Errorf("a killed node: %v", err)
	}
	if hs[2].Err() != nil {
		t.Errorf("the third: %v", hs[2].Err())
	}
}

func wait(t *testing.T, h node.Handle) {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("node %s: its end was not noticed", h.Name())
	}
}

func TestJournalNamesTheServers(t *testing.T) {
	need(t)
	var log []string
	d := newDriver(t, Options{Journal: func(kind, id string) error {
		log = append(log, kind+" "+id)
		return nil
	}})
	h := start(t, d, 1)[0]
	at, err := procfs.StartTime(h.PID())
	if err != nil || len(log) != 2 || log[0] != "agent n01" || log[1] != fmt.Sprintf("pid %d:%d", h.PID(), at) {
		t.Errorf("journal %q, pid %d, %v", log, h.PID(), err)
	}
	// The server writes its state over its environment (setproctitle), so that only
	// the journal knows it; the agent has the tag.
	if line, err := bufio.NewReader(h.Conn()).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	f, _ := ssh.FactsOf(h)
	if ours, err := procfs.HasEnv(f.PID, journal.TagVariable+"="+d.opt.Tag); err != nil || !ours {
		t.Errorf("the agent does not have the tag: %v", err)
	}
}

// A server that does not start says why, and nothing is left.
func TestServerThatDoesNotStart(t *testing.T) {
	need(t)
	d := newDriver(t, Options{})
	if err := os.WriteFile(filepath.Join(d.opt.Dir, "host"), []byte("no key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.opt.Dir, "host.pub"), []byte("ssh-ed25519 AAAA x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	hs, err := d.Start(context.Background(), specs(2))
	if err == nil || hs != nil || !strings.Contains(err.Error(), "host") || time.Since(t0) > 15*time.Second {
		t.Errorf("after %v: %v, %v", time.Since(t0), hs, err)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestUnavailable(t *testing.T) {
	need(t)
	t.Setenv("HOPBED_ROOTLESS", "1")
	var u *tap.Unavailable
	if err := Available(); !errors.As(err, &u) || u.Do == "" {
		t.Errorf("in a user namespace: %v", err)
	}
	if _, err := New(Options{Dir: t.TempDir(), Agents: source{}, Tag: "test-tag"}); !errors.As(err, &u) {
		t.Errorf("in a user namespace: %v", err)
	}
}

func TestNodesDieWithTheController(t *testing.T) {
	need(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := reexec.Command("hopbed-test-control", []string{dir})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [4]int
	if _, err := fmt.Fscan(out, &pids[0], &pids[1], &pids[2], &pids[3]); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, pid := range pids {
			if procfs.Running(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %v are left", left, pids)
		}
	}
}

// controller starts two nodes, prints the processes and waits to be killed.
func controller() int {
	d, err := New(Options{Dir: os.Args[1], Agents: source{}, Tag: "test-controller"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	hs, err := d.Start(context.Background(), specs(2))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, h := range hs {
		f, _ := ssh.FactsOf(h)
		fmt.Println(h.PID(), f.PID)
	}
	time.Sleep(time.Hour)
	return 0
}

// BenchmarkNodes measures how long n namespaces with servers and agents take to come
// up, greet, and go.
func BenchmarkNodes(b *testing.B) {
	need(b)
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var up, down time.Duration
			for b.Loop() {
				d := newDriver(b, Options{})
				t0 := time.Now()
				hs := start(b, d, n)
				for _, h := range hs {
					if _, err := bufio.NewReader(h.Conn()).ReadString('\n'); err != nil {
						b.Fatal(h.Name(), err, h.Stderr())
					}
				}
				t1 := time.Now()
				if err := d.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				up += t1.Sub(t0)
				down += time.Since(t1)
			}
			b.ReportMetric(up.Seconds()/float64(b.N), "s-up")
			b.ReportMetric(down.Seconds()/float64(b.N), "s-down")
		})
	}
}
