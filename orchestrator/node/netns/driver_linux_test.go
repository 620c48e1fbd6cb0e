package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/nodetest"
)

func tag(t testing.TB) string {
	return fmt.Sprintf("test-%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
}

func start(t testing.TB, o Options, n int) (*Driver, []node.Handle) {
	t.Helper()
	if o.Part == "" {
		o.Part = echoPart
	}
	if o.Tag == "" {
		o.Tag = tag(t)
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	hs, err := d.Start(context.Background(), specs(n))
	if err != nil {
		t.Fatal(err)
	}
	return d, hs
}

func specs(n int) []node.Spec {
	s := make([]node.Spec, n)
	for i := range s {
		name := fmt.Sprintf("n%03d", i+1)
		s[i] = node.Spec{ID: i, Name: name, Env: []string{"NODE=" + name}}
	}
	return s
}

func hello(t testing.TB, h node.Handle) (string, *bufio.Reader) {
	t.Helper()
	r := bufio.NewReader(h.Conn())
	line, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "hello") {
		t.Fatalf("node %s said %q, %v; stderr: %s", h.Name(), line, err, h.Stderr())
	}
	return strings.TrimSpace(line), r
}

func gone(t testing.TB, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if procfs.Running(pid) {
			t.Errorf("process %d (%s) is still there", pid, procfs.Name(pid))
		}
	}
}

func TestAgentsRunInNamespacesOfTheirOwn(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	d, hs := start(t, Options{}, 3)
	own, err := ownNamespace()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{own: true}
	var pids []int
	for i, h := range hs {
		line, r := hello(t, h)
		var pid int
		var ns, tg string
		if _, err := fmt.Sscanf(line, "hello %d %s %s", &pid, &ns, &tg); err != nil {
			t.Fatal(err)
		}
		if pid != h.PID() || h.ID() != i || seen[ns] || tg != tag(t) {
			t.Errorf("handle %d: %q for pid %d; namespaces so far %v", i, line, h.PID(), seen)
		}
		seen[ns] = true
		pids = append(pids, pid)
		fmt.Fprintf(h.Conn(), "ping\n")
		if got, err := r.ReadString('\n'); err != nil || got != h.Name()+" ping\n" {
			t.Errorf("node %s answered %q, %v", h.Name(), got, err)
		}
	}
	if err := d.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	for _, h := range hs {
		if h.Err() != nil {
			t.Errorf("an ordered end is no error: %v", h.Err())
		}
		if h.Stderr() != "end of input" {
			t.Errorf("the agent was not allowed to finish: %q", h.Stderr())
		}
	}
	gone(t, pids...)
}

func TestConformance(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	nodetest.Run(t, func(t *testing.T) node.Driver {
		d, err := New(Options{Part: "hopbed-test-conform", Tag: tag(t), Grace: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestKilledAgentIsATypedError(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	d, hs := start(t, Options{}, 2)
	hello(t, hs[0])
	hello(t, hs[1])
	if err := syscall.Kill(hs[1].PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hs[1].Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the death of an agent was not noticed")
	}
	var e *node.Exited
	if !errors.As(hs[1].Err(), &e) || e.Name != "n002" || e.State != "signal: killed" {
		t.Errorf("got %v, want an *Exited that names n002 and the signal", hs[1].Err())
	}
	if hs[0].Err() != nil {
		t.Errorf("the other node: %v", hs[0].Err())
	}
	if err := d.Close(context.Background()); err != nil {
		t.Errorf("close after a death: %v", err)
	}
}

func TestStubbornAgentIsKilled(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	d, hs := start(t, Options{Part: "hopbed-test-deaf", Grace: 50 * time.Millisecond}, 2)
	hello(t, hs[0])
	hello(t, hs[1])
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	gone(t, hs[0].PID(), hs[1].PID())
}

func TestWhatAnAgentLeftBehindIsRemoved(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	d, hs := start(t, Options{Part: "hopbed-test-parent"}, 1)
	line, _ := hello(t, hs[0])
	var child int
	if _, err := fmt.Sscanf(line, "hello %d", &child); err != nil {
		t.Fatal(err)
	}
	if !procfs.Running(child) {
		t.Fatal("the child does not run: the test shows nothing")
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	gone(t, child, hs[0].PID())
}

func TestJournalComesFirst(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	var mu sync.Mutex
	var log []string
	_, hs := start(t, Options{Journal: func(kind, id string) error {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, kind+" "+id)
		return nil
	}}, 2)
	if len(log) != 4 || !strings.HasPrefix(log[0], "agent n00") || !strings.HasPrefix(log[1], "agent n00") {
		t.Fatalf("journal: %v", log)
	}
	for i, h := range hs {
		start, err := procfs.StartTime(h.PID())
		if want := fmt.Sprintf("pid %d:%d", h.PID(), start); err != nil || log[2+i] != want {
			t.Errorf("journal: %q, want %q (%v)", log[2+i], want, err)
		}
	}
	// A journal that cannot be written forbids the start.
	d, err := New(Options{Part: echoPart, Tag: tag(t), Journal: func(kind, id string) error { return errors.New("disk full") }})
	if err != nil {
		t.Fatal(err)
	}
	if hs, err := d.Start(context.Background(), specs(1)); err == nil || !strings.Contains(err.Error(), "disk full") || hs != nil {
		t.Errorf("started %v without a journal: %v", hs, err)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	var pids []int
	n := 0
	d, err := New(Options{Part: echoPart, Tag: tag(t), Journal: func(kind, id string) error {
		if kind != KindPID {
			return nil
		}
		var pid int
		fmt.Sscanf(id, "%d:", &pid)
		pids = append(pids, pid)
		if n++; n == 3 {
			return errors.New("disk full")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(context.Background(), specs(5)); err == nil {
		t.Fatal("the failure was swallowed")
	}
	if len(pids) != 3 {
		t.Errorf("%d agents were started, want 3", len(pids))
	}
	gone(t, pids...)
}

func TestFilesAreInherited(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d, err := New(Options{Part: echoPart, Tag: tag(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := specs(1)
	s[0].Files = []*os.File{w}
	hs, err := d.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	hello(t, hs[0])
	got, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", hs[0].PID()))
	want, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
	if err != nil || got != want {
		t.Errorf("descriptor 3 of the agent is %q (%v), want %q", got, err, want)
	}
	w.Close()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestNamesAreUnique(t *testing.T) {
	d, err := New(Options{Part: echoPart, Tag: tag(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := specs(2)
	s[1].Name = s[0].Name
	if _, err := d.Start(context.Background(), s); err == nil || !strings.Contains(err.Error(), "n001") {
		t.Errorf("two nodes of one name: %v", err)
	}
	if _, err := New(Options{Part: echoPart}); err == nil {
		t.Error("a driver without an ownership tag")
	}
}

func TestAgentsDieWithTheController(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	cmd := reexec.Command("hopbed-test-control", nil)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [3]int
	if _, err := fmt.Fscan(out, &pids[0], &pids[1], &pids[2]); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !procfs.Running(pids[0]) && !procfs.Running(pids[1]) && !procfs.Running(pids[2]) {
			return
		}
	}
	gone(t, pids[:]...)
}

// controller starts deaf agents, which do not notice the end of their input,
// and waits to be killed.
func controller() int {
	d, err := New(Options{Part: "hopbed-test-deaf", Tag: "test-controller"})
	if err != nil {
		return 1
	}
	hs, err := d.Start(context.Background(), specs(3))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(hs[0].PID(), hs[1].PID(), hs[2].PID())
	time.Sleep(time.Hour)
	return 0
}

func TestErrorsNameTheRemedy(t *testing.T) {
	for _, e := range []error{syscall.EPERM, syscall.ENOSPC, syscall.EINVAL} {
		var u *tap.Unavailable
		if err := startError(&os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: e}); !errors.As(err, &u) || u.Do == "" || !errors.Is(err, e) {
			t.Errorf("%v became %v", e, err)
		}
	}
	if err := startError(syscall.EMFILE); !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("too many open files: %v", err)
	}
}

// BenchmarkNodes measures how long n namespaces take to come up, greet, and
// go.
func BenchmarkNodes(b *testing.B) {
	testenv.Need(b, testenv.Root, testenv.NetNS)
	for _, n := range []int{10, 100, 400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var up, down time.Duration
			for b.Loop() {
				t0 := time.Now()
				d, hs := start(b, Options{}, n)
				if err := parallel(n, func(i int) error {
					_, err := bufio.NewReader(hs[i].Conn()).ReadString('\n')
					return err
				}); err != nil {
					b.Fatal(err)
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
