package simnet

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// app is what uses a connection.
type app interface {
	// serve is called whenever something may have changed at s; it reads and
	// writes, and flushes any other socket that it touched.
	serve(now vtime.Time, s *socket)
	// lost says that the attempt failed: nothing that was written to it has
	// arrived, and the next one begins anew.
	lost(l *link)
}

// link is one connection of a flow between two nodes, and what the node that
// makes it does until it stands: it tries again after a failure, as agents do.
type link struct {
	net             *Net
	app             app
	index           int // along the flow's path
	flow            int
	from, to        int
	maker, listener tcp.Config
	ac              wifi.AC
	dscp            uint8
	port            uint16 // at which the other end listens

	client, server *socket // of the present attempt; nil before the first
	attempts       int
	pause          vtime.Duration
	begun, until   vtime.Time
	established    vtime.Time // at the client; vtime.Never: not yet
	accepted       vtime.Time // at the server; vtime.Never: not yet
	forgotten      bool       // the server accepted a connection and was switched off since
	lastFailure    error
	err            *proto.Error // for good
}

// Pauses between attempts, doubling from the first to the longest.
const (
	retryFirst = 200 * vtime.Millisecond
	retryMost  = 2 * vtime.Second
)

// dial makes the first attempt.
func (l *link) dial(now, until vtime.Time) {
	l.begun, l.until, l.pause = now, until, retryFirst
	l.try(now)
}

// Fire implements des.Handler: the pause before the next attempt is over.
func (l *link) Fire(now vtime.Time, _ uint64) {
	if l.err == nil && now < l.until {
		l.try(now)
	}
}

// try makes a new connection; what is left of an earlier one is forgotten.
func (l *link) try(now vtime.Time) {
	l.attempts++
	l.client.kill(now, false)
	l.server.kill(now, false)
	l.client, l.server = l.socket(l.from, &l.maker), l.socket(l.to, &l.listener)
	l.client.peer, l.server.peer = l.server, l.client
	l.client.port, l.server.port = l.net.ephemeralPort(l.from), l.port
	l.established, l.accepted = vtime.Never, vtime.Never
	l.server.conn.Listen()
	l.client.conn.Connect(now)
	l.client.flush(now)
}

func (l *link) socket(node int, cfg *tcp.Config) *socket {
	return &socket{net: l.net, node: node, conn: l.newConn(cfg), ac: l.ac, link: l, at: vtime.Never}
}

// newConn makes a connection of a configuration that newStream has validated.
func (l *link) newConn(cfg *tcp.Config) *tcp.Conn {
	c, err := tcp.New(*cfg, &l.net.pool)
	if err != nil {
		panic(fmt.Sprintf("simnet: flow %d: %v", l.flow, err))
	}
	return c
}

// watch follows the connection's life after each of its events. It reports
// whether s may be read and written.
func (l *link) watch(now vtime.Time, s *socket) bool {
	failed := s.conn.State() == tcp.Closed && s.conn.Err() != nil
	if s == l.server {
		if failed && l.accepted == vtime.Never {
			// The SYN-ACKs were in vain: the half-open connection is forgotten,
			// and the port still listens (tcp_synack_retries).
			l.net.hosts[s.node].tcp.add(s.conn)
			s.conn = l.newConn(&l.listener)
			s.conn.Listen()
			return false
		}
		if l.accepted == vtime.Never && s.conn.State() >= tcp.Established {
			l.accepted = now
		}
		return !failed && l.accepted != vtime.Never
	}
	if l.established == vtime.Never && s.conn.State() >= tcp.Established {
		l.established = now
		if l.index == 0 {
			l.net.event(l.from, l.flow, proto.Source, proto.Connected, now, nil)
		}
	}
	if failed {
		l.failed(now, s.conn)
	}
	return !failed && l.established != vtime.Never
}

// failed tries again, or gives up. A reset before anything was acknowledged is
// a failed attempt: the other end had forgotten the half-open connection.
func (l *link) failed(now vtime.Time, c *tcp.Conn) {
	if l.err != nil {
		return
	}
	err := c.Err()
	l.lastFailure = err
	fresh := l.established == vtime.Never || errors.Is(err, tcp.ErrReset) && l.accepted == vtime.Never && !l.forgotten
	if !fresh {
		l.err = &proto.Error{Code: proto.CodeFlow, What: fmt.Sprintf("flow %d", l.flow),
			Detail: fmt.Sprintf("the connection from node %d to node %d ended at %v: %v", l.from, l.to, now, err)}
		side := proto.Relay
		if l.index == 0 {
			side = proto.Source
		}
		l.net.event(l.from, l.flow, side, proto.Failed, now, l.err)
		return
	}
	l.established = vtime.Never
	l.client.kill(now, false)
	l.app.lost(l)
	at := now.Add(l.pause)
	l.pause = min(2*l.pause, retryMost)
	if at < l.until {
		l.net.eng.Schedule(at, l, uint64(l.flow))
	}
}

// outcome is the error of a link at the end of the run: a connection that was
// wanted and never stood is an outcome of the network, not a fault.
func (l *link) outcome() *proto.Error {
	if l.err != nil || l.attempts == 0 || l.established != vtime.Never {
		return l.err
	}
	e := &proto.Error{Code: proto.CodeTimeout, What: fmt.Sprintf("flow %d set-up", l.flow),
		Detail: fmt.Sprintf("no connection from node %d to node %d between %v and %v", l.from, l.to, l.begun, l.until)}
	if l.lastFailure != nil {
		e.Detail += "; the last attempt: " + l.lastFailure.Error()
	}
	return e
}

// close ends both ends: with a reset when the flow stops before the run does.
func (l *link) close(now vtime.Time, reset bool) {
	l.client.kill(now, reset)
	l.server.kill(now, reset)
}
