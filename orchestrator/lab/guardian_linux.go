package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/reexec"
)

// GuardianPart is the name of the process that outlives a killed keeper by the
// moment that it takes to remove what is left: programs that were started in nodes
// and have detached themselves. Everything else dies with the keeper by itself.
const GuardianPart = "hopbed-lab-guardian"

// fdAlive is the pipe that ends with the keeper; the nodes' namespaces follow.
const fdAlive = 3

// Vacate ends every process in the given network namespaces ("net:[…]" → node)
// and returns when none is left.
type Vacate func(ctx context.Context, spaces map[string]string) error

// Guard starts the guardian of a lab. It ends when the process that called Guard
// does, or when release is called after an orderly end.
func Guard(e Entry, journals string, place *Place, nodes []Node, log *os.File) (release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	files := []*os.File{r}
	defer func() {
		for _, f := range files[1:] {
			f.Close()
		}
	}()
	for _, n := range nodes {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.PID))
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		files = append(files, f)
	}
	cmd := reexec.Command(GuardianPart, []string{journals, e.Tag, place.dir, e.Name})
	cmd.Stderr, cmd.ExtraFiles, cmd.Dir = log, files, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no Pdeathsig: it is to live on
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start the lab's guardian: %w", err)
	}
	return func() {
		w.Close()
		end(cmd)
	}, nil
}

// end waits for a guardian that has nothing to do.
func end(cmd *exec.Cmd) {
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(guardWithin):
		_ = cmd.Process.Kill()
		<-done
	}
}

// guardWithin bounds the removal of what a killed keeper left.
const guardWithin = 15 * time.Second

// GuardianMain is the part's main function.
func GuardianMain(vacate Vacate) int {
	runtime.GOMAXPROCS(1)
	if len(os.Args) != 5 {
		return 2
	}
	journals, tag, dir, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	spaces := map[string]string{}
	for fd := fdAlive + 1; ; fd++ {
		// An open namespace keeps its number: no other can have got it.
		ns, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil || len(ns) < 4 || ns[:4] != "net:" {
			break
		}
		spaces[ns] = "of the lab " + name
	}
	_, _ = io.Copy(io.Discard, os.NewFile(fdAlive, "keeper"))

	ctx, cancel := context.WithTimeout(context.Background(), guardWithin)
	defer cancel()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s guardian: %s\n", time.Now().Format("2006-01-02T15:04:05.000Z07:00"), fmt.Sprintf(format, args...))
	}
	// First what may have put its environment, and with it the tag, off.
	left := vacate(ctx, spaces)
	cleaned, err := journal.CleanOne(ctx, journals, tag)
	for cleaned != nil && cleaned.Alive && ctx.Err() == nil {
		// The keeper is not quite dead, or another hopbed sweeps at this moment.
		time.Sleep(20 * time.Millisecond)
		cleaned, err = journal.CleanOne(ctx, journals, tag)
	}
	if cleaned != nil && cleaned.Alive {
		err = errors.Join(err, errors.New("its journal is in use"))
	}
	if cleaned == nil && err == nil && left == nil {
		return 0 // the keeper has removed everything, and its journal
	}
	ended := "its keeper was killed, and everything of it was removed"
	if cleaned != nil {
		for _, r := range cleaned.Removed {
			say("removed %s", r)
		}
		for _, l := range cleaned.Left {
			err = errors.Join(err, errors.New(l))
		}
	}
	if err = errors.Join(left, err); err != nil {
		say("%v", err)
		ended = "its keeper was killed, and something is left that hopbed clean removes: " + err.Error()
	}
	if err := noteEnd(dir, name, tag, ended); err != nil {
		say("%v", err)
	}
	say("the lab %s is gone: %s", name, ended)
	return 0
}

// noteEnd leaves word for the next command, if the name is still that of the lab.
func noteEnd(dir, name, tag, ended string) error {
	c, e, err := (&Place{dir}).Claim(name)
	if err != nil {
		return err // a new lab has it: it told its user
	}
	if e == nil || e.Tag != tag {
		return c.Release()
	}
	e.Ended = ended
	if err := c.Write(*e); err != nil {
		return err
	}
	return c.Leave()
}
