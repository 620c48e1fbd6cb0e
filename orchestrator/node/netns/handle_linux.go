package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// handle is one agent process.
type handle struct {
	spec      node.Spec
	cmd       *exec.Cmd
	conn      *conn
	stderr    *node.Tail
	namespace string // "net:[4026532000]"
	began     time.Time
	grace     time.Duration
	stopping  atomic.Bool
	done      chan struct{}
	err       error // written before done is closed
}

// conn is the agent's standard input and output. Close shuts the input, which
// asks the agent to end; its last words can still be read.
type conn struct {
	in       *os.File // we write
	out      *os.File // we read
	stopping *atomic.Bool
	once     sync.Once
	err      error
}

func (c *conn) Read(b []byte) (int, error)  { return c.out.Read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.in.Write(b) }
func (c *conn) Close() error {
	c.once.Do(func() {
		c.stopping.Store(true)
		c.err = c.in.Close()
	})
	return c.err
}

// launch starts the agent of one node. It is called for one node after the
// other: the Go runtime serialises forks anyway.
func (d *Driver) launch(s node.Spec) (*handle, error) {
	fail := func(err error) (*handle, error) { return nil, fmt.Errorf("node %s: %w", s.Name, err) }
	inR, inW, err := os.Pipe()
	if err != nil {
		return fail(files(err))
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return fail(files(err))
	}
	h := &handle{spec: s, stderr: &node.Tail{}, grace: d.opt.Grace, done: make(chan struct{}), began: time.Now()}
	h.conn = &conn{in: inW, out: outR, stopping: &h.stopping}
	h.cmd = reexec.Command(d.opt.Part, d.opt.Args, append(append([]string{TagVariable + "=" + d.opt.Tag}, d.opt.Env...), s.Env...)...)
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = inR, outW, h.stderr
	h.cmd.ExtraFiles = s.Files
	h.cmd.WaitDelay = time.Second // a process that inherited standard error must not hold us up
	h.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		// A terminal's Ctrl-C is for the controller, which then stops its agents
		// in order.
		Setpgid: true,
	}
	err = d.spawner.start(h.cmd)
	inR.Close()
	outW.Close()
	if err != nil {
		inW.Close()
		outR.Close()
		return fail(startError(err))
	}
	go h.reap()
	pid := h.cmd.Process.Pid
	if h.namespace, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
		return h, fmt.Errorf("node %s: namespace of the agent (pid %d): %w%s", s.Name, pid, err, said(h.stderr))
	}
	if own, err := ownNamespace(); err != nil || own == h.namespace {
		return h, fmt.Errorf("node %s: the agent (pid %d) has no network namespace of its own (%s, %v)", s.Name, pid, h.namespace, err)
	}
	start, err := procfs.StartTime(pid)
	if err != nil {
		return h, fmt.Errorf("node %s: start time of the agent (pid %d): %w", s.Name, pid, err)
	}
	// The process runs already: without this entry it is still found by its tag.
	if err := d.opt.Journal(KindPID, fmt.Sprintf("%d:%d", pid, start)); err != nil {
		return h, fmt.Errorf("node %s: %w", s.Name, err)
	}
	return h, nil
}

func files(err error) error {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fmt.Errorf("pipes: %w (five descriptors per node are needed: raise the limit with `ulimit -n`)", err)
	}
	return err
}

func startError(err error) error {
	switch {
	case errors.Is(err, syscall.EPERM):
		return &tap.Unavailable{What: "network namespaces", Because: fmt.Sprintf("starting a process in a new one: %v", err), Err: err,
			Do: "run as root, or without root on a host that permits user namespaces (hopbed doctor tells)"}
	case errors.Is(err, syscall.ENOSPC):
		return &tap.Unavailable{What: "more network namespaces", Because: fmt.Sprintf("the limit is reached: %v", err), Err: err,
			Do: "raise it: sysctl user.max_net_namespaces=100000"}
	case errors.Is(err, syscall.EINVAL):
		return &tap.Unavailable{What: "network namespaces", Because: fmt.Sprintf("the kernel does not know them: %v", err), Err: err, Do: "use a kernel with CONFIG_NET_NS"}
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("start the agent: %w (the limit of processes is reached: raise it with `ulimit -u`)", err)
	}
	return fmt.Errorf("start the agent: %w", files(err))
}

func said(t *node.Tail) string {
	if s := t.String(); s != "" {
		return "; it said: " + s
	}
	return ""
}

func (h *handle) reap() {
	err := h.cmd.Wait()
	state := "unknown"
	if h.cmd.ProcessState != nil {
		state = h.cmd.ProcessState.String()
	}
	if !h.stopping.Load() {
		h.err = &node.Exited{Name: h.spec.Name, PID: h.cmd.Process.Pid, State: state, Stderr: h.stderr.String(), After: time.Since(h.began)}
	} else if err != nil && h.cmd.ProcessState != nil && h.cmd.ProcessState.Exited() && h.cmd.ProcessState.ExitCode() != 0 {
		// An ordered end that failed: the agent could not revert, say.
		h.err = &node.Exited{Name: h.spec.Name, PID: h.cmd.Process.Pid, State: state, Stderr: h.stderr.String(), After: time.Since(h.began)}
	}
	close(h.done)
}

func (h *handle) ID() int                  { return h.spec.ID }
func (h *handle) Name() string             { return h.spec.Name }
func (h *handle) PID() int                 { return h.cmd.Process.Pid }
func (h *handle) Conn() io.ReadWriteCloser { return h.conn }
func (h *handle) Stderr() string           { return h.stderr.String() }
func (h *handle) Done() <-chan struct{}    { return h.done }

func (h *handle) Err() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// Stop ends the agent; see node.Handle.
func (h *handle) Stop(ctx context.Context) error { return h.stop(ctx, h.grace) }

func (h *handle) stop(ctx context.Context, grace time.Duration) error {
	defer func() { _ = h.conn.out.Close() }() // nothing more will come
	select {
	case <-h.done: // it ended before this: Err says how, Stop has nothing to do
		_ = h.conn.Close()
		return nil
	default:
	}
	_ = h.conn.Close() // fails only when it was closed before
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-h.done:
	case <-timer.C:
		_ = h.cmd.Process.Kill() // fails only when it has ended
	case <-ctx.Done():
		_ = h.cmd.Process.Kill()
	}
	<-h.done // a killed process ends; WaitDelay bounds the rest
	return h.err
}
