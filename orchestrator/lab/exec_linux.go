package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/reexec"
)

// Environment variables that a program in a node finds.
const (
	NodeVariable = "HOPBED_NODE" // the node's name
	LabVariable  = "HOPBED_LAB"  // the lab's name
)

// How long a program that lost its client may take to end: after SIGHUP, as at the
// end of a terminal, and after SIGTERM.
const (
	hangup    = time.Second
	terminate = 2 * time.Second
)

// program is a program that runs in a node for a client.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	exit  Exit
}

// exec runs a program for the client of a connection until it ends.
func (k *Keeper) exec(c *net.UnixConn, s *execSpec, files []*os.File) {
	say := func(a *answer) { _ = writeMessage(c, a) } // a client that is gone is noticed below
	p, fault := k.start(s, files)
	for _, f := range files {
		f.Close() // they are the program's now, and the end of its output is the client's to see
	}
	if fault != nil {
		k.logf("exec on %s: %s", s.Node, fault.Text)
		say(&answer{Version: protocol, Error: fault})
		return
	}
	pid := p.cmd.Process.Pid
	k.logf("exec on %s: %s: process %d", s.Node, s.Argv[0], pid) // arguments may hold secrets
	say(&answer{Version: protocol, Started: pid})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var o control
			if err := readMessage(c, &o); err != nil {
				return
			}
			if o.Signal > 0 && o.Signal < 65 {
				p.signal(syscall.Signal(o.Signal))
			}
		}
	}()
	select {
	case <-p.ended:
	case <-gone:
		k.logf("exec on %s: the client of process %d is gone", s.Node, pid)
		p.end()
	case <-k.closing:
		p.signal(syscall.SIGHUP)
		select {
		case <-p.ended:
		case <-time.After(hangup):
			p.signal(syscall.SIGKILL)
			<-p.ended
		}
	}
	k.logf("exec on %s: process %d ended: %s", s.Node, pid, p.cmd.ProcessState)
	say(&answer{Version: protocol, Exit: &p.exit})
}

// signal goes to the program's process group: what it has started in the
// foreground is meant as well, as by a terminal.
func (p *program) signal(sig syscall.Signal) {
	select {
	case <-p.ended: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, sig) // fails only when it has ended
	}
}

func (p *program) end() {
	for _, s := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGHUP, hangup}, {syscall.SIGTERM, terminate}} {
		p.signal(s.sig)
		p.signal(syscall.SIGCONT) // a stopped one would not notice
		select {
		case <-p.ended:
			return
		case <-time.After(s.wait):
		}
	}
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// start starts the program, through the part that enters the node.
func (k *Keeper) start(s *execSpec, files []*os.File) (*program, *fault) {
	return k.startAs(entry{Argv: s.Argv, Dir: s.Dir, Umask: s.Umask & 0o777, Folder: k.folder, Over: k.over, Sysfs: k.sysfs}, s, files)
}

func (k *Keeper) startAs(e entry, s *execSpec, files []*os.File) (*program, *fault) {
	fail := func(err error) (*program, *fault) { return nil, &fault{err.Error(), StatusHopbed} }
	n, err := k.node(s.Node)
	switch {
	case err != nil:
		return fail(err)
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return fail(errors.New("no program to run"))
	case len(files) != maxFiles:
		return fail(fmt.Errorf("%d descriptors came with the request, want %d", len(files), maxFiles))
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.PID))
	if err != nil {
		return fail(fmt.Errorf("node %s: %w", n.Name, err))
	}
	defer space.Close()
	e.Node = n.Name
	spec, err := json.Marshal(e)
	if err != nil {
		return fail(err)
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer specR.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		specW.Close()
		return fail(err)
	}
	defer reportR.Close()
	defer reportW.Close()

	p := &program{ended: make(chan struct{})}
	p.cmd = reexec.Command(ExecPart, nil)
	p.cmd.Env = append(s.Env[:len(s.Env):len(s.Env)], reexec.Marker+"="+ExecPart, journal.TagVariable+"="+k.opt.Tag, NodeVariable+"="+n.Name, LabVariable+"="+k.opt.Name)
	p.cmd.Env = append(p.cmd.Env, k.opt.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = files[0], files[1], files[2]
	p.cmd.ExtraFiles = []*os.File{specR, space, reportW}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		// A session of its own: Ctrl-C is what the client passes on, and the keeper's
		// is nobody's business.
		Setsid: true, Setctty: s.Terminal, Ctty: 0,
		Pdeathsig: syscall.SIGKILL,
	}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig fires when the thread that started the process ends, so this one
		// waits for it.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // ProcessState says more
		p.exit = exitOf(p.cmd.ProcessState)
		close(p.ended)
	}()
	if err := <-started; err != nil {
		specW.Close()
		return fail(fmt.Errorf("start a process: %w", err))
	}
	specR.Close()
	reportW.Close()
	go func() {
		_, _ = specW.Write(spec) // a process that has ended reads nothing
		specW.Close()
	}()
	said, err := io.ReadAll(reportR) // ends with exec, or with the process
	var why failure
	if err == nil && len(said) > 0 {
		err = json.Unmarshal(said, &why)
	}
	if err != nil || why.Text != "" {
		<-p.ended
		if err != nil {
			return fail(err)
		}
		return nil, &fault{why.Text, why.Code}
	}
	return p, nil
}

func exitOf(s *os.ProcessState) Exit {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal())}
	}
	return Exit{Code: s.ExitCode()}
}
