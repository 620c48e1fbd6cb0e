package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// link is a connection to one host: a node or a jump host.
type link struct {
	ssh    *ssh.Client
	raw    *watched
	direct bool // over TCP, not through another host
	done   chan struct{}

	mu     sync.Mutex
	err    error // why it ended
	closed bool  // by us
}

// watched counts what was read, so that silence is noticed.
type watched struct {
	net.Conn
	reads atomic.Uint64
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.reads.Add(1)
	}
	return n, err
}

func newLink(h *hop, o *Options, raw *watched, client *ssh.Client) *link {
	l := &link{ssh: client, raw: raw, direct: h.first, done: make(chan struct{})}
	go func() {
		err := client.Wait()
		l.fail(h, err)
		close(l.done)
	}()
	every := o.KeepAlive
	if a := h.conf.AliveInterval; a > 0 && a < every {
		every = a
	}
	go l.keepAlive(h, every)
	return l
}

// fail notes the first reason for which the connection ended.
func (l *link) fail(h *hop, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
	case l.closed:
		l.err = h.fail(Closed, "", "", net.ErrClosed)
	default:
		what := "the server ended it"
		if err != nil {
			what += ": " + oneLine(err.Error())
		}
		l.err = h.fail(Lost, what, "", err)
	}
}

func (l *link) error() error {
	select {
	case <-l.done:
	default:
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// close ends the connection and waits until it has ended.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	// Not through the SSH layer, which would wait for a peer that does not read.
	l.raw.Close()
	select {
	case <-l.done:
	case <-time.After(closePatience): // a jump host that is gone does not confirm
	}
}

const closePatience = 2 * time.Second

// keepAlive asks a silent server whether it is there, as ssh does. What counts is
// not the time, but how often nothing had come when we looked: a controller that
// was itself suspended or starved must not blame the node.
func (l *link) keepAlive(h *hop, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	asking := make(chan struct{}, 1)
	missed := 0
	for last := l.raw.reads.Load(); ; {
		select {
		case <-l.done:
			return
		case <-tick.C:
		}
		now := l.raw.reads.Load()
		if now != last {
			last, missed = now, 0
			continue
		}
		if missed++; missed > aliveCount {
			l.mu.Lock()
			if l.err == nil && !l.closed {
				l.err = h.fail(Lost, fmt.Sprintf("nothing came back for %v", every*time.Duration(missed)), "see whether the node is up and its network works", nil)
			}
			l.mu.Unlock()
			l.raw.Close()
			return
		}
		select {
		case asking <- struct{}{}:
			go func() {
				// Any answer will do, also that the request is not known.
				l.ssh.SendRequest("keepalive@openssh.com", true, nil)
				<-asking
			}()
		default: // the last one is on its way
		}
	}
}

// connect makes a connection to one host, over the one in front of it where there
// is one.
func (d *dialer) connect(ctx context.Context, h *hop, via *link) (*link, error) {
	var err error
	for try := 1; ; try++ {
		var l *link
		var again bool
		if l, again, err = d.attempt(ctx, h, via); err == nil {
			return l, nil
		}
		if !again || try >= max(h.conf.Attempts, dropTries) || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// dropTries is how often a server is tried that hangs up before it has said a
// word: sshd does so at random when many connect at once (MaxStartups).
const dropTries = 3

// attempt reports, with an error, whether another one may help.
func (d *dialer) attempt(ctx context.Context, h *hop, via *link) (l *link, again bool, err error) {
	clock := newClock(ctx, h.timeout(&d.o))
	defer clock.stop()
	// The context of the hop ends with the attempt, in any case.
	raw, err := d.open(clock.ctx, h, via)
	if err != nil {
		return nil, h.conf.Attempts > 1, h.unreachable(ctx, clock, via, err)
	}
	conn := &watched{Conn: raw}
	release := context.AfterFunc(clock.ctx, func() { conn.Close() })
	v, err := d.verifier(h)
	if err != nil {
		conn.Close()
		return nil, false, err
	}
	a := &auth{d: d, hop: h, ctx: clock.ctx, busy: clock.pause}
	defer a.close()
	conf, err := d.clientConfig(h, v, a)
	if err != nil {
		conn.Close()
		return nil, false, h.fail(Settings, err.Error(), "correct it in ssh_config", err)
	}
	c, chans, reqs, err := ssh.NewClientConn(conn, h.knownName(), conf)
	if err == nil && !release() {
		err = context.Cause(clock.ctx) // the time ended just now, and the connection with it
		c.Close()
	}
	if err != nil {
		conn.Close()
		// Who was asked for a passphrase may have taken longer than the server waits.
		dropped := conn.reads.Load() == 0 || a.asked && a.broken == nil && len(a.notes) == 0
		return nil, dropped && v.err == nil && clock.ctx.Err() == nil, h.handshake(ctx, clock, conn, v, a, err)
	}
	return newLink(h, &d.o, conn, ssh.NewClient(c, chans, reqs)), false, nil
}

func (d *dialer) open(ctx context.Context, h *hop, via *link) (net.Conn, error) {
	addr := hostPort(h.conf.HostName, h.conf.Port)
	switch {
	case via != nil:
		return via.ssh.DialContext(ctx, "tcp", addr)
	case d.o.DialNet != nil:
		return d.o.DialNet(ctx, h.node, h.conf.Family, addr)
	}
	return (&net.Dialer{}).DialContext(ctx, h.conf.Family, addr)
}

func (d *dialer) clientConfig(h *hop, v *verifier, a *auth) (*ssh.ClientConfig, error) {
	conf := &ssh.ClientConfig{User: h.conf.User, HostKeyCallback: v.check, AuthCallback: a.callback, ClientVersion: "SSH-2.0-hopbed"}
	var err error
	if conf.HostKeyAlgorithms, err = v.algorithms(); err != nil {
		return nil, err
	}
	good, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	if conf.KeyExchanges, err = algorithms("KexAlgorithms", h.conf.KexAlgorithms, good.KeyExchanges, old.KeyExchanges); err != nil {
		return nil, err
	}
	if conf.Ciphers, err = algorithms("Ciphers", h.conf.Ciphers, good.Ciphers, old.Ciphers); err != nil {
		return nil, err
	}
	conf.MACs, err = algorithms("MACs", h.conf.MACs, good.MACs, old.MACs)
	return conf, err
}

// ended says that the attempt's time or the caller's context is over; nil when
// neither is.
func (h *hop) ended(ctx context.Context, clock *clock, what string) *Error {
	switch {
	case ctx.Err() != nil:
		return h.fail(why(ctx.Err()), what, "", ctx.Err())
	case clock.ctx.Err() != nil:
		return h.fail(TimedOut, fmt.Sprintf("%s within %v", what, clock.total),
			"see whether the node is up and reachable; for a slow one: ConnectTimeout in ssh_config", context.DeadlineExceeded)
	}
	return nil
}

// cut reports whether a connection ended without a word.
func cut(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op)
}

// why is the reason of a context that has ended.
func why(err error) Reason {
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	return TimedOut
}

func (h *hop) unreachable(ctx context.Context, clock *clock, via *link, err error) error {
	if e := h.ended(ctx, clock, "no connection"); e != nil {
		return e
	}
	var open *ssh.OpenChannelError
	if via != nil && errors.As(err, &open) {
		if open.Reason == ssh.Prohibited {
			return h.fail(Unreachable, "the host in front of it forwards no connections: "+oneLine(open.Message), "AllowTcpForwarding yes in the sshd_config of "+h.before[len(h.before)-1], err)
		}
		return h.fail(Unreachable, "seen from "+h.before[len(h.before)-1]+": "+oneLine(open.Message), "see whether the node is up and its sshd runs", err)
	}
	return h.fail(Unreachable, oneLine(err.Error()), "see whether the node is up, its address and port are right, and its sshd runs", err)
}

// handshake says why there is a TCP connection, but no SSH.
func (h *hop) handshake(ctx context.Context, clock *clock, conn *watched, v *verifier, a *auth, err error) error {
	if v.err != nil {
		return v.err
	}
	if e := h.ended(ctx, clock, "connected, but not logged in"); e != nil {
		return e
	}
	var no *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &no):
		return h.fail(Protocol, oneLine(err.Error()), "for an old server, allow what it has in ssh_config, as in: HostKeyAlgorithms +ssh-rsa, KexAlgorithms +diffie-hellman-group14-sha1", err)
	case conn.reads.Load() == 0:
		return h.fail(Unreachable, "the server hung up before it said a word: "+oneLine(err.Error()), "it may have too many connections at once (MaxStartups in its sshd_config), or refuse this address", err)
	case a.ready && cut(err) && a.broken == nil:
		return h.fail(Unreachable, "the server hung up before the end of the login: "+oneLine(err.Error()), "see what its log says; it may not wait so long (LoginGraceTime), or have no room", err)
	case a.ready || len(a.methods) > 0:
		return a.refused(err)
	}
	return h.fail(Protocol, oneLine(err.Error()), "see whether an SSH server listens there", err)
}
