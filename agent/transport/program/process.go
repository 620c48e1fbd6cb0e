//go:build linux

package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/reexec"
)

const (
	// killAfter is the time between the polite request to end and SIGKILL.
	killAfter = time.Second
	// askAgain is when the request is repeated: iperf2 says "Interrupt again to
	// force quit".
	askAgain = 300 * time.Millisecond
	// lingering is how long output may still come after a process has ended; who
	// holds the pipe then is a descendant that has left the process group.
	lingering = 500 * time.Millisecond
	// maxOutput bounds what a program may write in its life, in bytes.
	maxOutput = 64 << 20
	// maxTail bounds what is kept of its standard error.
	maxTail = 2 << 10
)

// spawner starts processes from one OS thread that lives as long as the endpoint:
// a process is killed when the thread that started it ends (prctl(2),
// PR_SET_PDEATHSIG), and the Go runtime may end any other thread.
type spawner struct{ work chan func() }

func newSpawner() *spawner {
	s := &spawner{work: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range s.work {
			f()
		}
	}()
	return s
}

// close ends the thread, and with it every process that is still there.
func (s *spawner) close() { close(s.work) }

// command is what is to be started.
type command struct {
	argv []string
	dir  string
	env  []string // in addition to the agent's
	// nested puts the program into a process namespace of its own, with a guard as
	// its parent: what it leaves behind, however detached, ends with it and with
	// the agent.
	nested bool
}

// process is a started program. It has a process group of its own.
type process struct {
	name string
	cmd  *exec.Cmd
	// out is its standard output, which must be read to the end or closed.
	out    *bounded
	tail   *tail
	exited chan struct{} // closed when it has ended and been waited for

	mu     sync.Mutex
	reaped bool
}

// start starts a program.
func (s *spawner) start(c command) (*process, error) {
	p, err := s.try(c)
	if c.nested && errors.Is(err, unix.EPERM) {
		c.nested = false // no right to make process namespaces: the group has to do
		p, err = s.try(c)
	}
	return p, err
}

func (s *spawner) try(c command) (*process, error) {
	path, err := exec.LookPath(c.argv[0])
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	said, stderr, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, out.Close(), stdout.Close())
	}
	cmd := &exec.Cmd{Path: path, Args: c.argv, Env: environment(c.env)}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if c.nested {
		cmd = reexec.Command(GuardPart, append([]string{path}, c.argv...))
		cmd.Env = environment(append(c.env, reexec.Marker+"="+GuardPart))
		attr.Cloneflags = unix.CLONE_NEWPID
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = c.dir, stdout, stderr, attr
	started := make(chan error, 1)
	s.work <- func() { started <- cmd.Start() }
	err = <-started
	err = errors.Join(err, stdout.Close(), stderr.Close())
	if err != nil {
		return nil, errors.Join(err, out.Close(), said.Close())
	}
	p := &process{name: c.argv[0], cmd: cmd, out: &bounded{in: out, left: maxOutput}, tail: &tail{}, exited: make(chan struct{})}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(p.tail, said) // to its end, or its deadline
	}()
	go func() {
		p.reap()
		limit := time.Now().Add(lingering)
		_, _ = out.SetReadDeadline(limit), said.SetReadDeadline(limit)
		<-heard
		close(p.exited)
	}()
	return p, nil
}

// environment is the agent's with more.
func environment(more []string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, reexec.Marker+"=") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// reap waits for the end, and ends what the program has left in its group. Only
// then is the number of the group given back to the system.
func (p *process) reap() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.signal(unix.SIGKILL)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	_ = p.cmd.Wait() // the status is in ProcessState
}

// signal signals the whole group, as long as there is one.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.cmd.Process.Pid, sig)
	}
}

// stop ends the program: SIGTERM, and SIGKILL when it is still there a second
// later. It returns when it has ended.
func (p *process) stop() {
	p.signal(unix.SIGTERM)
	p.signal(unix.SIGCONT) // it may have been stopped before
	again, kill := time.NewTimer(askAgain), time.NewTimer(killAfter)
	defer again.Stop()
	defer kill.Stop()
	for {
		select {
		case <-p.exited:
			return
		case <-again.C:
			p.signal(unix.SIGTERM)
		case <-kill.C:
			p.signal(unix.SIGKILL)
			<-p.exited
			return
		}
	}
}

// status is how the program ended: its exit status, or 128 and the number of the
// signal that ended it.
func (p *process) status() int {
	w, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if w.Signaled() {
		return 128 + int(w.Signal())
	}
	return w.ExitStatus()
}

// ended describes the end for an error: the status and what was said.
func (p *process) ended() string {
	text := fmt.Sprintf("%s ended with status %d", p.name, p.status())
	if s := p.status(); s > 128 && s < 128+65 {
		text = fmt.Sprintf("%s was ended by the signal %v", p.name, syscall.Signal(s-128))
	}
	if said := p.tail.String(); said != "" {
		text += ", and said: " + said
	}
	return text
}

// errTooMuch is the end of the output of a program that does not stop writing.
var errTooMuch = fmt.Errorf("more than %d MiB of output", maxOutput>>20)

// bounded reads at most so many bytes, and takes the deadline after the
// program's end for the end.
type bounded struct {
	in   *os.File
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.close()
		return 0, errTooMuch
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	if err != nil {
		b.close()
	}
	return n, err
}

// close ends the reading; a program that writes more gets SIGPIPE.
func (b *bounded) close() { _ = b.in.Close() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns it as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return oneLine(t.text)
}

// missing is the error of a program that is not there.
func missing(name, pack string) error {
	e := &proto.Error{Code: proto.CodeUnavailable, What: name, Detail: name + " is not installed", Remedy: "put it into a folder of PATH"}
	if pack != "" {
		e.Remedy = "apt install " + pack
	}
	return e
}
