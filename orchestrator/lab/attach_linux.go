package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Program is what to run in a node.
type Program struct {
	Node string
	Argv []string // empty: the user's shell
	// Stdin, Stdout and Stderr are the program's own where they are no terminal.
	// Where input and output are one, the program gets a terminal of its own, which
	// is shown on it; in the background it reads nothing, and writes to it.
	Stdin, Stdout, Stderr *os.File
}

// signals are those that a client passes on.
var signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT}

// Exec runs a program in a node and returns how it ended. Signals that reach this
// process are passed on meanwhile.
func (c *Client) Exec(p Program) (*Exit, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the working directory: %w", err)
	}
	spec := &execSpec{Node: p.Node, Argv: p.Argv, Env: os.Environ(), Dir: dir, Umask: umask()}
	if len(spec.Argv) == 0 {
		spec.Argv = []string{shell()}
	}
	// From here on a signal is the program's, not ours.
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, signals...)
	defer signal.Stop(caught)

	files := []*os.File{p.Stdin, p.Stdout, p.Stderr}
	var t *terminal
	switch {
	case !isTerminal(p.Stdin):
	case !inForeground(p.Stdin):
		// What is typed is for somebody else, as with cmd & in a shell.
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		files[0] = null
	case isTerminal(p.Stdout):
		if t, err = newTerminal(p.Stdin, p.Stdout); err != nil {
			return nil, err
		}
		defer t.close()
		files[0], files[1] = t.slave, t.slave
		if isTerminal(p.Stderr) {
			files[2] = t.slave
		}
		spec.Terminal = true
	}
	conn, a, err := c.ask(&request{Exec: spec}, files)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if a.Started == 0 {
		return nil, fmt.Errorf("the keeper of the lab %s started nothing", c.Name)
	}
	if t != nil {
		if err := t.attach(); err != nil {
			return nil, err
		}
	}
	exit := make(chan *Exit, 1)
	lost := make(chan error, 1)
	go func() {
		a, err := c.answer(conn)
		if err == nil && a.Exit == nil {
			err = fmt.Errorf("the keeper of the lab %s did not say how the program ended", c.Name)
		}
		if err != nil {
			lost <- err
			return
		}
		exit <- a.Exit
	}()
	for {
		select {
		case e := <-exit:
			if t != nil {
				t.drain()
			}
			return e, nil
		case err := <-lost:
			return nil, err
		case s := <-caught:
			if n, ok := s.(syscall.Signal); ok {
				pass(conn, n)
			}
		}
	}
}

func pass(conn *net.UnixConn, s syscall.Signal) {
	_ = writeMessage(conn, control{Signal: int(s)}) // a keeper that is gone is noticed by the reader
}

// umask reads the process's file mode mask; there is no call that only reads it.
func umask() int {
	m := unix.Umask(0o077)
	unix.Umask(m)
	return m
}

func shell() string {
	if s := os.Getenv("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// inForeground tells whether this process may use its terminal: it is in the
// terminal's foreground process group, or the terminal has no job control for it.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// terminal is a terminal for a program in a node, shown on the user's.
type terminal struct {
	in, out *os.File // the user's
	master  *os.File
	slave   *os.File
	before  *unix.Termios // of the user's
	resized chan os.Signal
	shown   chan struct{} // closed when the program's terminal has nothing more to show
	once    sync.Once
}

func newTerminal(in, out *os.File) (*terminal, error) {
	fail := func(err error) (*terminal, error) { return nil, fmt.Errorf("a terminal for the program: %w", err) }
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	t := &terminal{in: in, out: out, master: os.NewFile(uintptr(fd), "ptmx"), shown: make(chan struct{})}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.master.Close()
		return fail(err)
	}
	// TIOCGPTPEER opens the other side whatever is mounted on /dev/pts (Linux 4.13).
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, uintptr(unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC))
	if errno != 0 {
		t.master.Close()
		return fail(errno)
	}
	t.slave = os.NewFile(slave, "pts")
	t.resize()
	return t, nil
}

// resize gives the program's terminal the size of the user's; the program is told.
func (t *terminal) resize() {
	if w, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ); err == nil {
		t.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, w) })
	}
}

// control leaves the descriptor non-blocking, which Fd would not.
func (t *terminal) control(f func(fd int) error) {
	raw, err := t.master.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = f(int(fd)) }) // a size that cannot be set costs little
	}
}

// attach joins the two terminals until close.
func (t *terminal) attach() error {
	t.slave.Close() // the program has it: its end shall be seen
	fd := int(t.in.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	t.before = before
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, raw(*before)); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	t.resized = make(chan os.Signal, 1)
	signal.Notify(t.resized, syscall.SIGWINCH)
	t.resize()
	go func() {
		for range t.resized {
			t.resize()
		}
	}()
	go func() { _, _ = io.Copy(t.master, t.in) }() // ends with the process: nothing can wake a read of a terminal
	go func() {
		defer close(t.shown)
		_, _ = io.Copy(t.out, t.master) // EIO when the last program has closed the other side
	}()
	return nil
}

// raw is cfmakeraw(3): every key is the program's, whose terminal gives Ctrl-C its
// meaning.
func raw(t unix.Termios) *unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return &t
}

// lastWords is how long output that follows a program's end is waited for, where
// something that it left running keeps the terminal open.
const lastWords = 200 * time.Millisecond

func (t *terminal) drain() {
	select {
	case <-t.shown:
	case <-time.After(lastWords):
	}
}

// close gives the user's terminal back as it was.
func (t *terminal) close() {
	t.once.Do(func() {
		if t.before != nil {
			_ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETS, t.before) // it may have been closed
		}
		if t.resized != nil {
			signal.Stop(t.resized)
			close(t.resized)
		}
		_ = t.slave.Close() // closed by attach, as a rule
		_ = t.master.Close()
	})
}

// ExitStatus is the status that a client exits with after an error of Exec: what a
// shell would give where the program could not be started.
func ExitStatus(err error) int {
	if r, ok := errors.AsType[*refused](err); ok && r.Code != 0 {
		return r.Code
	}
	return StatusHopbed
}
