package ssh

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/nodetest"
)

// TestMain: the test program is the agent.
func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{agents.Part: agent})
	os.Exit(m.Run())
}

func agent() int {
	if handled, status := about.Main(os.Args[1:], os.Stdout, os.Stderr); handled {
		return status
	}
	switch os.Getenv("TEST_AGENT") {
	case "stubborn": // it has a child, and neither hears
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println("hello", os.Getpid(), child.Process.Pid)
		time.Sleep(time.Hour)
	case "who":
		fmt.Println("hello", os.Getpid(), os.Geteuid(), os.Getenv("HOPBED_TAG"), strings.Join(os.Args[1:], ","))
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprintln(os.Stderr, "end of input")
		return 0
	case "fails":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprintln(os.Stderr, "could not put back the channel")
		return 1
	}
	return nodetest.Agent()
}

// source is the test program as an agent.
type source struct{}

func (source) Agent(_ context.Context, arch string) (*agents.Binary, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return agents.Open(exe, arch)
}

// lab is one server that plays all nodes.
type lab struct {
	*sshtest.Server
	pool *Pool
	sudo *bool
	dir  string // of the agent
}

func newLab(t *testing.T, o sshtest.Options) *lab {
	t.Helper()
	if o.Config == nil {
		o.Config = []string{"SetEnv HOME=" + t.TempDir()}
	}
	l := &lab{Server: sshtest.Start(t, o), dir: t.TempDir() + "/agents"}
	var err error
	if l.pool, err = NewPool(PoolOptions{Dialer: sshclient.New(sshclient.Options{KeepAlive: 300 * time.Millisecond, Timeout: time.Minute}), Agents: source{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.pool.Close() })
	return l
}

func (l *lab) node(s node.Spec) (*inventory.Node, error) {
	n := l.Node(s.Name)
	n.Dir, n.Sudo = l.dir, l.sudo
	return n, nil
}

func (l *lab) driver(t *testing.T, o Options) *Driver {
	t.Helper()
	o.Pool, o.Tag = l.pool, "test-tag"
	if o.Nodes == nil {
		o.Nodes = l.node
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// start starts nodes whose agents behave as TEST_AGENT says.
func (l *lab) start(t *testing.T, d *Driver, kind string, n int) []node.Handle {
	t.Helper()
	hs, err := d.Start(context.Background(), specs(kind, n))
	if err != nil {
		t.Fatal(err)
	}
	return hs
}

func specs(kind string, n int) []node.Spec {
	s := make([]node.Spec, n)
	for i := range s {
		s[i] = node.Spec{ID: i, Name: fmt.Sprintf("n%02d", i+1), Env: []string{"TEST_AGENT=" + kind}}
	}
	return s
}

// hello reads an agent's first line.
func hello(t *testing.T, h node.Handle) []string {
	t.Helper()
	line, err := bufio.NewReader(h.Conn()).ReadString('\n')
	if err != nil {
		t.Fatalf("node %s said %q, %v; stderr: %s", h.Name(), line, err, h.Stderr())
	}
	return strings.Fields(line)
}

func ended(t *testing.T, h node.Handle) {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("node %s: its end was not noticed", h.Name())
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	end := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for running(pid) {
			if time.Now().After(end) {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
