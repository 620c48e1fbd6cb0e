package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// Spec is a node to start.
type Spec struct {
	ID   int    // index in the experiment's node order
	Name string // unique; shown in messages
	// Env is added to the agent's environment ("KEY=value").
	Env []string
	// Files are inherited by the agent as descriptors 3, 4, … in this order. The
	// caller keeps them. A driver that cannot pass descriptors (SSH) refuses a
	// spec that has any.
	Files []*os.File
}

// Driver starts agents and ends them. Every driver passes the same conformance
// test (orchestrator/node/nodetest).
type Driver interface {
	// Start starts one agent per spec, in parallel, and returns the handles in
	// the order of the specs. Either all run or none: after an error nothing of
	// the call is left.
	Start(ctx context.Context, specs []Spec) ([]Handle, error)
	// Close ends every agent that Start returned, politely at first, and returns
	// when they and their namespaces are gone or ctx has ended; then the error
	// says what is left. It may be called twice.
	Close(ctx context.Context) error
}

// Handle is one running agent.
type Handle interface {
	ID() int
	Name() string
	// PID is the process id of the agent, as seen from the controller's host; 0
	// when it runs on another one.
	PID() int
	// Conn speaks to the agent: writes go to its standard input, reads come from
	// its standard output. Closing it is the request to end.
	Conn() io.ReadWriteCloser
	// Stderr returns the last part of what the agent wrote to standard error
	// (bounded), for error messages and logs.
	Stderr() string
	// Done is closed when the agent has ended.
	Done() <-chan struct{}
	// Err is nil while the agent runs and after an ordered end; otherwise an
	// *Exited, or a *Lost when the connection to the node ended before the agent.
	Err() error
	// Stop closes the connection, waits for the agent to end, and kills it when
	// ctx ends or the driver's grace period is over. It returns when the agent
	// is reaped.
	Stop(ctx context.Context) error
}

// Exited says that an agent ended although nobody asked it to.
type Exited struct {
	Name   string
	PID    int
	State  string // "exit status 3", "signal: killed"
	Stderr string // the last lines of its standard error
	After  time.Duration
}

// Error names the node, how it ended and its last words.
func (e *Exited) Error() string {
	s := fmt.Sprintf("node %s: the agent (pid %d) ended unexpectedly after %v: %s", e.Name, e.PID, e.After.Round(time.Millisecond), e.State)
	if e.Stderr != "" {
		s += "; it said: " + e.Stderr
	}
	return s
}

// Lost says that a node cannot be spoken to any more: the connection was cut, the
// node was switched off or has no network. What its agent does is not known; left
// alone, it puts back what it changed and ends.
type Lost struct {
	Name   string
	Reason string
	After  time.Duration // since the agent was started; 0 = it had not been
	Stderr string        // the last lines of the agent's standard error
	Err    error         // of the connection
}

// Error names the node and the reason.
func (l *Lost) Error() string {
	s := fmt.Sprintf("node %s is lost", l.Name)
	if l.After > 0 {
		s += fmt.Sprintf(" after %v", l.After.Round(time.Millisecond))
	}
	s += ": " + l.Reason
	if l.Stderr != "" {
		s += "; its agent's last words: " + l.Stderr
	}
	return s
}

// Unwrap returns the connection's error.
func (l *Lost) Unwrap() error { return l.Err }

// Leftover says what teardown could not remove within its time.
type Leftover struct {
	What []string // one line each: kind, identity, reason
	// Remedy is what to do; empty = hopbed clean.
	Remedy string
}

// Error lists what is left.
func (l *Leftover) Error() string {
	s := "teardown left something behind:"
	for _, w := range l.What {
		s += "\n  " + w
	}
	if l.Remedy != "" {
		return s + "\nremedy: " + l.Remedy
	}
	return s + "\nremedy: hopbed clean"
}
