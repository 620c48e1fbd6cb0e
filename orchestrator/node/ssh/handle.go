package ssh

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// handle is one agent.
type handle struct {
	d        *Driver
	spec     node.Spec
	ready    *Ready
	proc     sshclient.Process
	out      *bufio.Reader // of proc
	pid      int           // on the node
	mark     string        // in the agent's environment: it identifies the process
	stderr   *node.Tail
	conn     *conn
	began    time.Time
	stopping atomic.Bool
	killed   atomic.Bool
	done     chan struct{}
	err      error // written before done is closed
}

// conn is the agent's standard input and output. Close shuts the input, which asks
// the agent to end; its last words can still be read.
type conn struct {
	h    *handle
	once sync.Once
	err  error
}

func (c *conn) Read(b []byte) (int, error)  { return c.h.out.Read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.h.proc.Write(b) }
func (c *conn) Close() error {
	c.once.Do(func() {
		c.h.stopping.Store(true)
		c.err = c.h.proc.CloseWrite()
	})
	return c.err
}

// markVariable carries a random mark, so that an agent can be told from another
// process that got its number.
const markVariable = "HOPBED_START"

// start says the process id of what becomes the agent: its arguments are the mark,
// the agent's file and the command. A line on standard output cannot come from
// anywhere else: it has the mark.
const start = `mark=$1; [ -x "$2" ] || { echo "there is no $2" >&2; exit 127; }; shift 2
printf 'hopbed-start %s %s\n' "$mark" "$$"; exec "$@"`

// launch starts the agent of one node.
func (d *Driver) launch(ctx context.Context, s node.Spec, n *inventory.Node) (*handle, error) {
	r, err := d.opt.Pool.Get(ctx, n)
	if err != nil {
		return nil, err
	}
	h, err := d.launchOn(ctx, s, r)
	var e *node.Exited
	if errors.As(err, &e) && (e.State == "exit status 127" || e.State == "exit status 126") {
		// Its file is gone: somebody cleaned up since it was put there.
		if r, err = d.opt.Pool.Again(ctx, n); err != nil {
			return nil, err
		}
		return d.launchOn(ctx, s, r)
	}
	return h, err
}

func (d *Driver) launchOn(ctx context.Context, s node.Spec, r *Ready) (*handle, error) {
	var b [12]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	h := &handle{d: d, spec: s, ready: r, mark: hex.EncodeToString(b[:]), stderr: &node.Tail{}, done: make(chan struct{}), began: time.Now()}
	h.conn = &conn{h: h}
	argv := append(r.Facts.Privileged(), "sh", "-c", start, "hopbed", h.mark, r.Placed.Path, "env")
	argv = append(argv, d.environment(s, h.mark)...)
	argv = append(append(argv, r.Placed.Path), d.opt.Args...)
	var err error
	if h.proc, err = r.Client.Start(ctx, h.stderr, argv...); err != nil {
		if !alive(r.Client) {
			err = lost(s.Name, r.Client, err)
		}
		return nil, err
	}
	h.out = bufio.NewReaderSize(h.proc, 64<<10)
	pid := make(chan int, 1)
	go func() { pid <- h.readStart() }()
	select {
	case h.pid = <-pid:
	case <-ctx.Done():
		_ = h.proc.Close()
		return nil, fmt.Errorf("the agent does not start: %w%s", context.Cause(ctx), said(h.stderr))
	}
	go h.reap()
	if h.pid != 0 {
		return h, nil
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		_ = h.proc.Close()
		return nil, fmt.Errorf("the agent does not start: %w%s", context.Cause(ctx), said(h.stderr))
	}
	if h.ready.Facts.Sudo && agents.IsSudo(h.stderr.String()) {
		return nil, agents.Privileges(s.Name, r.Facts.User, h.stderr.String())
	}
	if h.err == nil { // a shell that ends well and runs nothing
		h.err = &agents.Error{Kind: agents.KindShell, Node: s.Name, What: "the node's shell did not start the agent", Because: h.stderr.String(), Do: "the user needs a POSIX login shell (sh, dash, bash, BusyBox)"}
	}
	return nil, h.err
}

func said(t *node.Tail) string {
	if s := t.String(); s != "" {
		return "; it said: " + s
	}
	return ""
}

// noise bounds what a login script may print before the agent starts.
const noise = 64

// readStart returns the process id, 0 when the output ended before it came.
func (h *handle) readStart() int {
	for range noise {
		line, err := h.out.ReadSlice('\n')
		if _, after, ok := strings.Cut(string(line), "hopbed-start "+h.mark+" "); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(after)); err == nil {
				return pid
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0
		}
	}
	return 0
}

// reap waits for the agent's end.
func (h *handle) reap() {
	err := h.proc.Wait()
	var exit *sshclient.ExitError
	ended := errors.As(err, &exit)
	stopping := h.stopping.Load()
	after := time.Since(h.began)
	switch {
	case err != nil && !ended:
		// Whether it was asked to end or not: nobody has seen it end.
		l := lost(h.spec.Name, h.ready.Client, err)
		l.After, l.Stderr = after, h.stderr.String()
		h.err = l
	case h.killed.Load():
	case !stopping, ended && exit.Signal == "" && exit.Status != 0:
		state := "exit status 0"
		if ended {
			state = stateOf(exit)
		}
		h.err = &node.Exited{Name: h.spec.Name, PID: h.pid, State: state, Stderr: h.stderr.String(), After: after}
	}
	close(h.done)
}

func stateOf(e *sshclient.ExitError) string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Status)
}

func (h *handle) ID() int                  { return h.spec.ID }
func (h *handle) Name() string             { return h.spec.Name }
func (h *handle) PID() int                 { return 0 }
func (h *handle) Conn() io.ReadWriteCloser { return h.conn }
func (h *handle) Stderr() string           { return h.stderr.String() }
func (h *handle) Done() <-chan struct{}    { return h.done }

// Facts is for FactsOf.
func (h *handle) Facts() Facts {
	f := h.ready.Facts
	return Facts{Machine: f.Machine, PID: h.pid, Controller: f.Controller, Address: f.Address, Agent: h.ready.Placed}
}

func (h *handle) Err() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// Stop ends the agent; see node.Handle.
func (h *handle) Stop(ctx context.Context) error { return h.stop(ctx, h.d.opt.Grace) }
