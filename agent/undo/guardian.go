//go:build linux

package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors of a worker, after its standard ones.
const (
	guardianFD = 3 // socket to the guardian
	journalFD  = 4 // the journal, where there is one
)

// Guardian is the parent of an agent that changes a machine: it takes the records
// of what the agent changes, and carries out what is left of them when the agent
// has ended, however it ended.
type Guardian struct {
	Table Table
	Dir   string    // of the journals
	Log   io.Writer // one line for whatever happens
	Name  string    // begins each line

	lines chan string
	wrote chan struct{}
}

// say logs a line. Nobody may read it any more: it never waits.
func (g *Guardian) say(format string, args ...any) {
	select {
	case g.lines <- fmt.Sprintf(g.Name+": "+format+"\n", args...):
	default:
	}
}

func (g *Guardian) startLog() {
	g.lines, g.wrote = make(chan string, 256), make(chan struct{})
	go func() {
		defer close(g.wrote)
		for line := range g.lines {
			if _, err := io.WriteString(g.Log, line); err != nil {
				return // nobody hears
			}
		}
	}()
}

func (g *Guardian) endLog() {
	close(g.lines)
	select {
	case <-g.wrote:
	case <-time.After(logWithin):
	}
}

// logWithin bounds the wait for somebody who reads the last lines.
const logWithin = 500 * time.Millisecond

// Run first carries out the journals of agents that died before, then starts the
// worker, whose standard streams are this process's, and returns its exit status
// when it has ended and everything is put back: 1 where that failed or a signal
// ended it. command makes the worker's command; journal is the argument for
// NewWorker. SIGTERM is passed on.
func (g *Guardian) Run(command func(journal string) *exec.Cmd) int {
	runtime.GOMAXPROCS(1)
	// The end of the SSH connection, a Ctrl-C at the controller's terminal and a
	// standard error that nobody reads must not end it before the worker.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	g.startLog()
	defer g.endLog()
	g.replay()

	path, files := "", []*os.File(nil)
	journal, err := Create(g.Dir)
	if err != nil {
		g.say("%v", err)
	} else {
		path = journal.Path()
	}
	ours, theirs, err := socketpair()
	if err != nil {
		g.say("start: %v", err)
		return g.end(journal, nil, 1)
	}
	files = append(files, theirs)
	if journal != nil {
		files = append(files, journal.File())
	}
	cmd := command(path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, files
	if err := cmd.Start(); err != nil {
		g.say("start: %v", err)
		return g.end(journal, nil, 1)
	}
	theirs.Close()
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, unix.SIGTERM)
	go func() {
		for range terminate {
			_ = cmd.Process.Signal(unix.SIGTERM) // fails only when it has ended
		}
	}()
	release()
	// Where memory runs out the worker goes first. It takes root.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0)

	stack := &Stack{table: g.Table}
	if journal != nil {
		stack.keepers = []Keeper{journal}
	}
	heard := make(chan error, 1)
	go func() { heard <- stack.hear(ours) }()
	_ = cmd.Wait() // its state says how it ended
	// What the worker sent is in the socket, and its end behind it.
	_ = ours.SetReadDeadline(time.Now().Add(time.Second))
	if err := <-heard; err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		g.say("records of the agent: %v", err)
	}
	status := cmd.ProcessState.ExitCode()
	if status < 0 {
		status = 1
	}
	if n := stack.Len(); n > 0 {
		g.say("the agent ended (%v) with %d settings changed: they are put back now", cmd.ProcessState, n)
	} else if cmd.ProcessState.ExitCode() < 0 {
		g.say("the agent ended (%v); nothing was changed", cmd.ProcessState)
	}
	return g.end(journal, stack, status)
}

// replay carries out what dead agents have left.
func (g *Guardian) replay() {
	found, err := Replay(context.Background(), g.Dir, g.Table)
	if err != nil {
		g.say("%v", err)
	}
	for _, r := range found {
		if r.Elsewhere {
			continue // not this agent's business
		}
		for _, line := range r.Lines() {
			g.say("%s", line)
		}
	}
}

// end puts back what is left and removes the journal if nothing is.
func (g *Guardian) end(journal *Journal, stack *Stack, status int) int {
	if stack != nil && stack.Len() > 0 {
		if journal != nil {
			if err := journal.repair(); err != nil {
				g.say("undo journal %s: %v", journal.Path(), err)
			}
		}
		undone, failed := stack.Revert(context.Background())
		if len(undone) > 0 {
			g.say("put back: %s", strings.Join(undone, ", "))
		}
		for _, f := range failed {
			g.say("not put back: %v", f)
		}
		if len(failed) > 0 {
			if journal != nil {
				g.say("it is tried again by the next agent, or by hopbed-agent --clean (%s)", journal.Path())
				_ = journal.Close()
			}
			return max(status, 1)
		}
	}
	if journal != nil {
		if err := journal.Remove(); err != nil {
			g.say("undo journal: %v", err)
		}
	}
	return status
}

// release lets go of the standard input and output, which are the worker's: who
// waits for their end must not wait for this process.
func release() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	for fd := range 2 {
		_ = unix.Dup3(int(null.Fd()), fd, 0)
	}
}

func socketpair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	// Non-blocking on our side alone: the ends have flags of their own.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "guardian"), nil
}

// hear takes what a worker pushes and carries out itself, until its end closes.
func (s *Stack) hear(r io.Reader) error {
	d := json.NewDecoder(r)
	for {
		var e entry
		if err := d.Decode(&e); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // it was killed while it wrote: the change was not made
		} else if err != nil {
			return err
		}
		s.mu.Lock()
		if e.Record != nil {
			s.items = append(s.items, item{e.ID, *e.Record})
		} else {
			s.items = slices.DeleteFunc(s.items, func(it item) bool { return it.id == e.ID })
		}
		s.mu.Unlock()
	}
}

// Worker is a worker's side of its guardian and its journal.
type Worker struct {
	socket  *os.File
	journal *Journal // nil: none

	mu   sync.Mutex
	lost chan struct{}
}

// NewWorker takes over the descriptors that a process has from its guardian.
// journal is what Guardian.Run gave to command.
func NewWorker(journal string) (*Worker, error) {
	// They must not leak into what the worker executes.
	unix.CloseOnExec(guardianFD)
	var st unix.Stat_t
	if err := unix.Fstat(guardianFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errors.New("descriptor " + strconv.Itoa(guardianFD) + " is no socket to a guardian: this argument is the guardian's to give")
	}
	w := &Worker{socket: os.NewFile(guardianFD, "guardian"), lost: make(chan struct{})}
	if journal != "" {
		unix.CloseOnExec(journalFD)
		var err error
		if w.journal, err = Inherit(os.NewFile(journalFD, journal), journal); err != nil {
			return nil, err
		}
	}
	go func() {
		defer close(w.lost)
		// The guardian says nothing: what comes is its end.
		_, _ = io.Copy(io.Discard, w.socket)
	}()
	return w, nil
}

// Lost is closed when the guardian has ended.
func (w *Worker) Lost() <-chan struct{} { return w.lost }

// Keepers are the guardian and the journal.
func (w *Worker) Keepers() []Keeper {
	k := []Keeper{toGuardian{w}}
	if w.journal != nil {
		k = append(k, w.journal)
	}
	return k
}

// Finish removes the journal where the guardian cannot: it is gone, and nothing
// is left to be put back.
func (w *Worker) Finish(left int) error {
	select {
	case <-w.lost:
		if w.journal != nil && left == 0 {
			return w.journal.Remove()
		}
	default:
	}
	return nil
}

// toGuardian is the guardian as a Keeper: what is in the socket is its, even if
// this process is killed the moment after.
type toGuardian struct{ w *Worker }

func (g toGuardian) Push(id uint64, r Record) error { return g.send(entry{ID: id, Record: &r}) }
func (g toGuardian) Done(id uint64) error           { return g.send(entry{ID: id, Done: true}) }

func (g toGuardian) send(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if _, err := g.w.socket.Write(append(b, '\n')); err != nil {
		if errors.Is(err, syscall.EPIPE) {
			return errors.New("the guardian process has ended")
		}
		return fmt.Errorf("guardian process: %w", err)
	}
	return nil
}
