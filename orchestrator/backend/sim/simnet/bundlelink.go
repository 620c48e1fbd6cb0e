package simnet

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// bundleAttempt bounds an attempt to connect, as the agent does: the kernel's pauses
// between SYNs would grow to a minute while a link is down.
const bundleAttempt = 10 * vtime.Second

// bundleLink joins two neighbouring nodes of a bundle flow: one connection after the
// other, for as long as the flow lasts.
type bundleLink struct {
	link
	f       *bundleFlow
	a, b    bundleEnd // at the node that connects, at the other
	event   des.EventID
	waiting bool // for the moment of the next attempt
	first   vtime.Time
	setup   vtime.Duration
	ended   tcpSums // what earlier connections of the first end have counted
}

// bundleEnd is one end of a connection: a session's messages and the octets that
// stand for them.
type bundleEnd struct {
	n     *bundleNode
	s     *bundle.Session
	other *bundleEnd
	// out are the messages that were said and that the other end has not read
	// whole; rest is what TCP has not yet taken of the last.
	out  []bundle.Message
	rest vtime.Bytes
	have vtime.Bytes // read of the first message that the other end has said
}

// parserRoom is what the agent's parser holds of what it has not taken: a segment
// and a little.
const parserRoom = 66 * vtime.KiB

// forget ends the session, if there is one.
func (e *bundleEnd) forget(now vtime.Time, err error) {
	if e.s != nil {
		e.s.Lost(now, err)
	}
	e.s, e.out, e.rest, e.have = nil, nil, 0, 0
}

// up reports whether there is a connection, or one is being made.
func (l *bundleLink) up() bool { return l.client != nil && !l.client.dead }

// connect makes a connection, unless a pause is not over.
func (l *bundleLink) connect(now vtime.Time) {
	if l.waiting || l.up() || l.f.ended || now >= l.f.stop {
		return
	}
	if l.attempts == 0 {
		l.begun, l.pause = now, retryFirst
	}
	l.b.forget(now, errReplaced)
	l.try(now)
	l.after(now.Add(bundleAttempt))
}

var errReplaced = errors.New("another connection took its place")

// after plans the next thing that happens without a segment: the end of an attempt,
// or of a pause.
func (l *bundleLink) after(at vtime.Time) {
	l.net.eng.Cancel(l.event)
	l.event = l.net.eng.Schedule(at, l, uint64(l.flow))
}

// Fire implements des.Handler.
func (l *bundleLink) Fire(now vtime.Time, _ uint64) {
	l.event = 0
	if l.waiting {
		l.waiting = false
		l.a.n.pump(now)
	} else if l.up() && l.established == vtime.Never {
		l.lastFailure = fmt.Errorf("no answer within %v", bundleAttempt)
		l.broken(now, l.lastFailure)
	}
}

// broken ends the connection at the node that made it, and plans the next one.
func (l *bundleLink) broken(now vtime.Time, err error) {
	l.a.forget(now, err)
	if l.up() {
		if l.established != vtime.Never {
			l.ended.add(l.client.conn)
		}
		l.client.kill(now, true)
	}
	l.established, l.waiting = vtime.Never, true
	l.after(now.Add(l.pause))
	l.pause = min(2*l.pause, retryMost)
	l.a.n.pump(now)
}

// serve acts on an event at one of the link's sockets.
func (l *bundleLink) serve(now vtime.Time, k *socket) {
	failed := k.conn.State() == tcp.Closed && k.conn.Err() != nil
	if k == l.client {
		switch {
		case failed:
			l.lastFailure = k.conn.Err()
			l.broken(now, k.conn.Err())
			return
		case l.established == vtime.Never && k.conn.State() >= tcp.Established:
			l.connected(now)
		}
		l.a.n.pump(now)
		return
	}
	if k != l.server {
		return // what is left of a connection that was closed in good order
	}
	switch {
	case failed && l.accepted == vtime.Never:
		// The SYN-ACKs were in vain (see link.watch).
		l.net.hosts[k.node].tcp.add(k.conn)
		k.conn = l.newConn(&l.listener)
		k.conn.Listen()
		return
	case failed:
		l.b.forget(now, k.conn.Err())
	case l.accepted == vtime.Never && k.conn.State() >= tcp.Established:
		l.accepted = now
		l.b.begin(l.b.n.machine.Accept(now))
	}
	l.b.n.pump(now)
}

func (l *bundleLink) connected(now vtime.Time) {
	l.established, l.pause = now, retryFirst
	l.net.eng.Cancel(l.event)
	l.event = 0
	if l.first == vtime.Never {
		l.first, l.setup = now, now.Sub(l.begun)
		if l.index == 0 {
			l.net.event(l.from, l.flow, proto.Source, proto.Connected, now, nil)
		}
	}
	l.a.begin(l.a.n.machine.Connected(now))
}

func (e *bundleEnd) begin(s *bundle.Session) {
	e.s, e.rest, e.have = s, 0, 0
	e.out = nil
}

// move reads and writes what can be read and written at an end; it reports whether
// anything was.
func (e *bundleEnd) move(now vtime.Time, k *socket) (moved bool) {
	for e.s != nil && e.s.Reading() {
		if n := k.conn.Read(now, min(k.conn.Readable(), parserRoom-e.have)); n > 0 {
			e.have += n
			e.s.Heard(now)
			moved = true
		}
		if len(e.other.out) == 0 {
			break
		}
		m := &e.other.out[0]
		size := vtime.Bytes(m.WireLen())
		if e.have < size {
			break
		}
		e.have -= size
		said := *m
		e.other.out[0] = bundle.Message{}
		e.other.out = e.other.out[1:]
		e.s.Input(now, &said)
		moved = true
	}
	for e.s != nil {
		if e.rest == 0 {
			m, ok := e.s.Poll(now)
			if !ok {
				break
			}
			e.out = append(e.out, m)
			e.rest = vtime.Bytes(m.WireLen())
		}
		n := k.conn.Write(now, e.rest)
		if n == 0 {
			break
		}
		e.rest -= n
		moved = true
	}
	return moved
}

// settle closes the connection when the session is over, or forgets the session when
// the connection is. It reports whether it did anything.
func (e *bundleEnd) settle(now vtime.Time, k *socket) bool {
	if e.s == nil {
		return false
	}
	over, abort, err := e.s.Over()
	switch {
	case over && (abort || e.rest == 0):
		k.link.lastFailure = err
		if abort {
			k.kill(now, true)
		} else {
			k.conn.Close(now)
		}
	case k.conn.EOF():
		err = errors.New("the peer has closed the connection")
		k.kill(now, true)
	default:
		return false
	}
	l := e.n.f.links[k.link.index]
	e.forget(now, err)
	if e == &l.a {
		// A new connection may be made as soon as one is wanted.
		l.ended.add(k.conn)
		l.closing(now)
	}
	return true
}

// closing makes way for the next connection; what is left of this one goes on by
// itself.
func (l *bundleLink) closing(now vtime.Time) {
	if l.client.conn.Err() == nil && !l.client.dead {
		l.net.hosts[l.client.node].tcp.add(l.client.conn)
	}
	l.client, l.established, l.waiting = nil, vtime.Never, true
	l.after(now.Add(l.pause))
	l.pause = min(2*l.pause, retryMost)
}

// outcome is the error of a link at the end of the run: that no connection ever
// stood is an outcome of the network (see link.outcome).
func (l *bundleLink) outcome() *proto.Error {
	if l.attempts == 0 || l.first != vtime.Never {
		return nil
	}
	l.until = l.f.stop
	return l.link.outcome()
}

// tcpSums are counters of connections that have ended, so that a flow's go on over
// the next one.
type tcpSums struct {
	sent, retrans, acked                      vtime.Bytes
	retransPackets, deliveredPackets, timeout int64
}

func (t *tcpSums) add(c *tcp.Conn) {
	var s proto.Sample
	fillTCP(&s, c)
	t.sent, t.retrans, t.acked = t.sent+s.Sent, t.retrans+s.Retrans, t.acked+s.Acked
	t.retransPackets, t.deliveredPackets, t.timeout = t.retransPackets+s.RetransPackets, t.deliveredPackets+s.DeliveredPackets, t.timeout+s.Timeouts
}

// sample fills the sender's part of a sample.
func (l *bundleLink) sample(s *proto.Sample) {
	if l.established != vtime.Never {
		fillTCP(s, l.client.conn)
	}
	s.Sent, s.Retrans, s.Acked = s.Sent+l.ended.sent, s.Retrans+l.ended.retrans, s.Acked+l.ended.acked
	s.RetransPackets += l.ended.retransPackets
	s.DeliveredPackets += l.ended.deliveredPackets
	s.Timeouts += l.ended.timeout
}
