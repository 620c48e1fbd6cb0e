//go:build linux

package agenttest

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Main is for TestMain: it runs the agent when the process is one, else the
// tests.
func Main(m *testing.M) {
	reexec.Dispatch(reexec.Table{session.Part: func() int { return session.Main("test") }, program.GuardPart: program.Guard})
	os.Exit(m.Run())
}

// Lab is a network of agents.
type Lab struct {
	t     testing.TB
	opt   Options
	Nodes []*Node
	hub   *hub
	board *board.Board
}

// Node is one agent and what it has said.
type Node struct {
	ID     int
	Client *proto.Client
	Stdin  io.Closer
	Cmd    *exec.Cmd
	Exited chan struct{}

	drained  sync.WaitGroup
	mu       sync.Mutex
	samples  []proto.Sample
	messages []proto.Message
	events   []proto.Event
	logs     []proto.Log
	failed   []proto.Failure
}

// Options of a lab.
type Options struct {
	Board      bool // a queue board, as an emulated radio has it
	QueueLimit int  // frames per queue on the board; 0 = 50
	NoDevices  bool // agents without interfaces
	// Watchdog is told in the hello; nobody beats.
	Watchdog vtime.Duration
	UserNS   bool // each agent in a user namespace, with no rights outside
	// Watch sees every frame that a node sends, before its fate is decided; it
	// runs on the hub's thread.
	Watch func(node int, frame []byte)
	// Wires join two nodes each, by interfaces eth0, eth1 … in this order.
	Wires [][2]int
	// WiredOnly nodes have no radio; Bridges join all their interfaces by a
	// bridge (wired ones: the hub's radios do not know what is behind a bridge).
	WiredOnly, Bridges []int
}

type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error {
	err := p.WriteCloser.Close()
	p.ReadCloser.Close()
	return err
}

// New starts n agents and the hub. Everything ends with the test.
func New(t testing.TB, n int, opt Options) *Lab {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS)
	if !opt.NoDevices {
		testenv.Need(t, testenv.TAP)
	}
	l := &Lab{t: t, opt: opt}
	if opt.UserNS {
		testenv.Need(t, testenv.UserNS)
	}
	if opt.Board {
		b, err := board.Create(n, len(opt.Wires))
		if err != nil {
			t.Fatal(err)
		}
		l.board = b
		limit := opt.QueueLimit
		if limit == 0 {
			limit = 50
		}
		for i := range n {
			for ac := range board.NumAC {
				b.SetLimit(i, ac, limit)
			}
		}
		for q := range 2 * len(opt.Wires) {
			b.SetPipeLimit(q, limit)
		}
	}
	t.Cleanup(l.close)
	for i := range n {
		l.Nodes = append(l.Nodes, l.start(i))
	}
	if opt.NoDevices {
		return l
	}
	var devs []device
	add := func(node, wire, end int, c tap.Config) {
		d, err := tap.Create(l.Nodes[node].Cmd.Process.Pid, c)
		if err != nil {
			t.Fatal(err)
		}
		devs = append(devs, device{Device: d, node: node, wire: wire, end: end})
	}
	for i := range l.Nodes {
		if !slices.Contains(opt.WiredOnly, i) {
			add(i, -1, 0, tap.Config{HardwareAddress: tap.HardwareAddr(i)})
		}
	}
	for i, w := range opt.Wires {
		for end, node := range w {
			name, mac, _ := opt.link(node, w[1-end])
			add(node, i, end, tap.Config{Name: name, HardwareAddress: mac})
		}
	}
	h, err := newHub(devs, n, len(opt.Wires), l.board, opt.Watch)
	if err != nil {
		t.Fatal(err)
	}
	l.hub = h
	go h.run()
	return l
}

func (l *Lab) start(i int) *Node {
	l.t.Helper()
	cmd := reexec.Command(session.Part, nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	if l.opt.UserNS {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.Stderr = os.Stderr
	if l.board != nil {
		files, err := l.board.NodeFiles(i)
		if err != nil {
			l.t.Fatal(err)
		}
		cmd.ExtraFiles = files
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	nd := &Node{ID: i, Stdin: in, Cmd: cmd, Exited: make(chan struct{})}
	nd.Client = proto.NewClient(pipes{out, in})
	nd.drained.Go(func() { nd.drain() })
	go func() {
		nd.drained.Wait() // Wait closes the pipe that drain reads
		_ = cmd.Wait()
		close(nd.Exited)
	}()
	if _, err := nd.Client.Hello(l.Context(5*time.Second), proto.Hello{Controller: "test", Watchdog: l.opt.Watchdog}); err != nil {
		l.t.Fatalf("node %d: hello: %v", i, err)
	}
	return nd
}

func (n *Node) drain() {
	for a := range n.Client.Async() {
		n.mu.Lock()
		switch {
		case a.Samples != nil:
			n.samples = append(n.samples, a.Samples.Samples...)
			n.messages = append(n.messages, a.Samples.Messages...)
		case a.Event != nil:
			n.events = append(n.events, *a.Event)
		case a.Log != nil:
			n.logs = append(n.logs, *a.Log)
		case a.Failure != nil:
			n.failed = append(n.failed, *a.Failure)
		}
		n.mu.Unlock()
	}
}

// Samples returns what has come so far of one flow and side.
func (n *Node) Samples(flow int, side proto.Side) []proto.Sample {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []proto.Sample
	for _, s := range n.samples {
		if s.Flow == flow && s.Side == side {
			out = append(out, s)
		}
	}
	return out
}

// Messages returns what the node has told so far of one flow's messages.
func (n *Node) Messages(flow int) []proto.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []proto.Message
	for _, m := range n.messages {
		if m.Flow == flow {
			out = append(out, m)
		}
	}
	return out
}

// Events returns the events so far.
func (n *Node) Events() []proto.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]proto.Event(nil), n.events...)
}

// Failures returns the last words.
func (n *Node) Failures() []proto.Failure {
	n.drained.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]proto.Failure(nil), n.failed...)
}

// Logs returns the log lines so far.
func (n *Node) Logs() []proto.Log {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]proto.Log(nil), n.logs...)
}

func (l *Lab) close() {
	for _, n := range l.Nodes {
		n.Client.Close()
	}
	for _, n := range l.Nodes {
		select {
		case <-n.Exited:
		case <-time.After(10 * time.Second):
			l.t.Errorf("node %d did not exit within 10 s after its input had ended", n.ID)
			n.Cmd.Process.Kill()
		}
	}
	if l.hub != nil {
		l.hub.close()
	}
	if l.board != nil {
		l.board.Close()
	}
}

// Context returns a context for one order.
func (l *Lab) Context(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	l.t.Cleanup(cancel)
	return ctx
}

// SetLink changes both directions between two nodes.
func (l *Lab) SetLink(a, b int, link Link) {
	l.SetDirection(a, b, link)
	l.SetDirection(b, a, link)
}

// SetDirection changes the frames from a to b.
func (l *Lab) SetDirection(a, b int, link Link) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.hub.links[[2]int{a, b}] = link
}

// Frames returns how many frames passed and were lost from a to b.
func (l *Lab) Frames(a, b int) (passed, lost int) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.hub.passed[[2]int{a, b}], l.hub.lost[[2]int{a, b}]
}

// Stray returns how many frames came that no flow can have sent: broadcasts,
// other protocols, unknown destinations.
func (l *Lab) Stray() int {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.hub.stray
}

// Borrowed is the queue board of a node as an agent gets it that did not inherit
// it: from this process. other is its configuration.
func (l *Lab) Borrowed(node int, other *proto.Board) *proto.Board {
	l.t.Helper()
	files, err := l.board.NodeFiles(node)
	if err != nil {
		l.t.Fatal(err)
	}
	b := *other
	b.PID, b.MemFD, b.EventFD = os.Getpid(), int(files[0].Fd()), int(files[1].Fd())
	return &b
}

// Start starts every node with one epoch, 300 ms from now, and returns it.
func (l *Lab) Start(warmup, end vtime.Time) (epochNS int64) {
	l.t.Helper()
	epoch := probe.MonotonicNS() + 300e6
	for _, n := range l.Nodes {
		if err := n.Client.Start(l.Context(5*time.Second), proto.Start{EpochNS: epoch, Warmup: warmup, End: end}); err != nil {
			l.t.Fatalf("node %d: start: %v", n.ID, err)
		}
	}
	return epoch
}

// Finish waits until the run's end has passed, stops every node and returns
// their results.
func (l *Lab) Finish(epochNS int64, end vtime.Time) []*proto.Results {
	l.t.Helper()
	time.Sleep(time.Duration(epochNS + int64(end) - probe.MonotonicNS() + 50e6))
	var out []*proto.Results
	for _, n := range l.Nodes {
		if err := n.Client.Stop(l.Context(5 * time.Second)); err != nil {
			l.t.Fatalf("node %d: stop: %v", n.ID, err)
		}
		r, err := n.Client.Collect(l.Context(5 * time.Second))
		if err != nil {
			l.t.Fatalf("node %d: collect: %v", n.ID, err)
		}
		out = append(out, r)
	}
	return out
}

// Result finds one flow's account in what Finish returned.
func Result(t testing.TB, rs []*proto.Results, flow int, side proto.Side) proto.FlowResult {
	t.Helper()
	for _, r := range rs {
		for _, f := range r.Flows {
			if f.Flow == flow && f.Side == side {
				return f
			}
		}
	}
	t.Fatalf("no result of flow %d at its %s", flow, side)
	return proto.FlowResult{}
}
