package sshclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// client implements Client.
type client struct {
	link  *link
	hop   *hop
	o     *Options
	slots chan struct{}
}

func (c *client) Local() net.Addr {
	if !c.link.direct {
		return nil
	}
	return c.link.raw.LocalAddr()
}

func (c *client) Remote() net.Addr {
	if !c.link.direct {
		return nil
	}
	return c.link.raw.RemoteAddr()
}

func (c *client) Done() <-chan struct{} { return c.link.done }

func (c *client) Err() error { return c.link.error() }

func (c *client) Close() error {
	c.link.close()
	return nil
}

// process implements Process.
type process struct {
	c       *client
	program string
	s       *ssh.Session
	in      io.WriteCloser
	out     *io.PipeReader
	free    func() // the slot, once
	ended   chan struct{}
	err     error // when it has ended

	once   sync.Once
	closed chan struct{}
}

func (p *process) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p *process) CloseWrite() error           { return p.in.Close() }

func (p *process) Signal(name string) error {
	return p.s.Signal(ssh.Signal(strings.TrimPrefix(strings.ToUpper(name), "SIG")))
}

func (p *process) Close() error {
	p.once.Do(func() { close(p.closed) })
	p.in.Close()
	err := p.s.Close()
	// OpenSSH confirms when the program has ended, which may be never.
	p.out.CloseWithError(net.ErrClosed)
	p.free()
	if errors.Is(err, io.EOF) {
		err = nil // it had ended
	}
	return err
}

func (p *process) Wait() error {
	select {
	case <-p.ended:
		return p.err
	default:
	}
	select {
	case <-p.ended:
		return p.err
	case <-p.closed:
		return p.c.hop.fail(Closed, p.program+": the session was closed before the program ended", "", net.ErrClosed)
	}
}

// Start implements Client.
func (c *client) Start(ctx context.Context, stderr io.Writer, argv ...string) (Process, error) {
	p, err := c.start(ctx, stderr, argv)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c *client) start(ctx context.Context, stderr io.Writer, argv []string) (*process, error) {
	command, err := Quote(argv...)
	if err != nil {
		return nil, c.hop.fail(Settings, "the command cannot be sent: "+err.Error(), "", err)
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, c.hop.fail(why(ctx.Err()), argv[0]+" was not started: as many programs as one connection may have are running", "", ctx.Err())
	case <-c.link.done:
		return nil, c.link.error()
	}
	var once sync.Once
	free := func() { once.Do(func() { <-c.slots }) }
	type result struct {
		p   *process
		err error
	}
	done := make(chan result, 1)
	go func() {
		p, err := c.open(command, argv[0], stderr, free)
		if err != nil {
			free()
		}
		done <- result{p, err}
	}()
	select {
	case r := <-done:
		return r.p, r.err
	case <-ctx.Done():
		// A node that does not answer keeps the goroutine, until the connection is
		// given up; a program that starts too late is ended.
		go func() {
			if r := <-done; r.p != nil {
				r.p.kill()
			}
		}()
		return nil, c.hop.fail(why(ctx.Err()), argv[0]+" was not started", "", ctx.Err())
	}
}

func (c *client) open(command, program string, stderr io.Writer, free func()) (*process, error) {
	s, err := c.session()
	if err != nil {
		return nil, c.refused(err)
	}
	p := &process{c: c, program: program, s: s, free: free, ended: make(chan struct{}), closed: make(chan struct{})}
	p.in, err = s.StdinPipe()
	var out io.Reader
	if err == nil {
		out, err = s.StdoutPipe()
	}
	s.Stderr = stderr
	if err == nil {
		err = s.Start(command)
	}
	if err != nil {
		s.Close()
		if lost := c.link.error(); lost != nil {
			return nil, lost
		}
		return nil, c.hop.fail(Sessions, program+": the server does not run programs for "+c.hop.conf.User+": "+oneLine(err.Error()), "see whether sshd_config or authorized_keys force a command or subsystem", err)
	}
	// Through a pipe, so that Close ends a Read that waits.
	r, w := io.Pipe()
	p.out = r
	go func() {
		_, err := io.Copy(w, out)
		w.CloseWithError(err)
	}()
	go func() {
		p.err = p.result(s.Wait())
		p.free()
		close(p.ended)
	}()
	return p, nil
}

// session opens one. A server that has as many as it allows may just be about to
// forget one that has ended.
func (c *client) session() (*ssh.Session, error) {
	for try := time.Duration(1); ; try++ {
		s, err := c.link.ssh.NewSession()
		var open *ssh.OpenChannelError
		if err == nil || !errors.As(err, &open) || open.Reason == ssh.Prohibited || try > 5 {
			return s, err
		}
		select {
		case <-time.After(try * 50 * time.Millisecond):
		case <-c.link.done:
			return nil, c.link.error()
		}
	}
}

// refused says why no session can be opened.
func (c *client) refused(err error) error {
	if lost := c.link.error(); lost != nil {
		return lost
	}
	var open *ssh.OpenChannelError
	if errors.As(err, &open) {
		return c.hop.fail(Sessions, "the server opens no further session: "+oneLine(open.Message), "raise MaxSessions in its sshd_config to 10, or close other sessions", err)
	}
	// The connection is ending, and its reason is about to be known.
	<-c.link.done
	return c.link.error()
}

// result is how the program ended.
func (p *process) result(err error) error {
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return &ExitError{Node: p.c.hop.node.Name, Program: p.program, Status: exit.ExitStatus(), Signal: exit.Signal()}
	}
	if lost := p.c.link.error(); lost != nil {
		return lost
	}
	if errors.As(err, &missing) {
		return p.c.hop.fail(Lost, p.program+": the session ended without an exit status", "", err)
	}
	return p.c.hop.fail(Lost, p.program+": "+oneLine(err.Error()), "", err)
}

// kill ends the program as far as the server allows, and the session in any case.
func (p *process) kill() {
	p.Signal("KILL")
	p.Close()
}

// Run implements Client.
func (c *client) Run(ctx context.Context, stdin io.Reader, argv ...string) (stdout, stderr []byte, err error) {
	over := make(chan struct{})
	var once sync.Once
	full := func() { once.Do(func() { close(over) }) }
	out, errs := &bounded{limit: c.o.MaxOutput, full: full}, &bounded{limit: c.o.MaxOutput, full: full}
	p, err := c.start(ctx, errs, argv)
	if err != nil {
		return nil, nil, err
	}
	// What the program does not read of its input must not keep us.
	go func() {
		if stdin != nil {
			io.Copy(p.in, stdin)
		}
		p.in.Close()
	}()
	ended := make(chan error, 1)
	go func() {
		io.Copy(out, p.out)
		ended <- p.Wait()
	}()
	select {
	case err = <-ended:
	case <-over:
		p.kill()
		err = &OutputError{c.hop.node.Name, argv[0], c.o.MaxOutput}
	case <-ctx.Done():
		p.kill()
		err = c.hop.fail(why(ctx.Err()), argv[0]+" did not end in time, and was ended", "", ctx.Err())
	}
	stdout, stderr = out.take(), errs.take()
	var exit *ExitError
	if errors.As(err, &exit) {
		exit.Stderr = tail(stderr)
	}
	return stdout, stderr, err
}

// bounded keeps the first bytes that are written to it, and tells when there are
// more. It takes them all the same: a writer that stopped would block the session.
type bounded struct {
	limit int
	full  func()

	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := b.limit - b.buf.Len(); len(p) <= room {
		b.buf.Write(p)
	} else {
		b.buf.Write(p[:room])
		b.full()
	}
	return len(p), nil
}

// take returns a copy: a session that was given up may still write.
func (b *bounded) take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}
