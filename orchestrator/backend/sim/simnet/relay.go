package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	agentrelay "github.com/hopbed/hopbed/agent/transport/relay"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/vtime"
)

// relayHeader is what opens each hop's connection, in bytes.
const relayHeader vtime.Bytes = agentrelay.HeaderLen

// piece bounds one write of a relay: the agent's, whole segments of at most
// 16 KiB.
const piece = 16 * vtime.KiB

// relay is a node between two connections of a hop-by-hop flow. It reads while
// its buffer has room and writes while the next hop takes; a full buffer stops
// the reading, which closes the window of the connection before it.
type relay struct {
	s     *stream
	node  int
	in    *link // from the node before
	out   *link // to the node after
	limit vtime.Bytes

	skip    vtime.Bytes // header bytes not yet read
	header  vtime.Bytes // header bytes not yet written
	held    vtime.Bytes
	moved   vtime.Bytes // payload passed on …
	passed  vtime.Bytes // … and before the node was switched off
	died    bool        // it was
	most    vtime.Bytes // most ever held in the buffer
	maxHeld vtime.Bytes // … with both sockets, as seen by the samples
	closed  bool        // the end of the stream was passed on
	done    bool        // the next hop has closed: the destination has everything
	doneAt  vtime.Time
}

func newRelay(s *stream, i int) *relay {
	in, out := s.links[i], s.links[i+1]
	return &relay{s: s, node: in.to, in: in, out: out, skip: relayHeader, header: relayHeader,
		limit: relayBound(s.order)/ringShare - piece}
}

// serve moves what can be moved after an event at one of the relay's sockets,
// and flushes the other one.
func (r *relay) serve(now vtime.Time, k *socket) {
	up := r.in.server
	if r.in.accepted == vtime.Never {
		return
	}
	if r.skip > 0 {
		if r.skip -= up.conn.Read(now, r.skip); r.skip > 0 {
			return
		}
		// The header says which flow this is: now the next hop is connected.
		r.out.dial(now, r.s.stop)
	}
	for r.fill(now, up.conn) || r.empty(now) {
	}
	down := r.out.client
	ready := r.out.established != vtime.Never
	if ready && up.conn.EOF() && r.held == 0 && r.header == 0 && !r.closed {
		r.closed = true
		down.conn.Close(now)
	}
	if r.closed && !r.done && down.conn.EOF() {
		r.done, r.doneAt = true, now
		up.conn.Close(now)
	}
	if k == up && ready {
		down.flush(now)
	}
	if k != up {
		up.flush(now)
	}
}

// fill reads into the buffer.
func (r *relay) fill(now vtime.Time, up *tcp.Conn) bool {
	n := up.Read(now, min(r.limit-r.held, up.Readable()))
	r.held += n
	r.most = max(r.most, r.held)
	return n > 0
}

// empty writes the buffer to the next hop.
func (r *relay) empty(now vtime.Time) bool {
	if r.out.established == vtime.Never {
		return false
	}
	down := r.out.client.conn
	if r.header > 0 {
		r.header -= down.Write(now, r.header)
	}
	if r.header > 0 || r.held == 0 {
		return false
	}
	whole := vtime.Bytes(max(1, down.MSS()))
	n := down.Write(now, min(r.held, max(whole, piece/whole*whole)))
	r.held -= n
	r.moved += n
	return n > 0
}

// rewind takes back what was written to a connection that the next hop never
// accepted: all that this relay has passed on.
func (r *relay) rewind() {
	r.held += r.moved
	r.moved, r.header, r.closed = 0, relayHeader, false
}

// kept is what this relay holds of the flow: in its buffer, received and not
// read, and sent and not acknowledged by the next hop.
func (r *relay) kept() vtime.Bytes {
	n := r.held
	if r.in.accepted != vtime.Never {
		n += r.in.server.conn.Readable()
	}
	if r.out.established != vtime.Never {
		// Of what is acknowledged one byte is the SYN, and at the end another the FIN.
		n += max(0, relayHeader-r.header+r.moved-(r.out.client.conn.BytesAcked()-1))
	}
	return n
}

// note keeps the most that this relay has held.
func (r *relay) note() { r.maxHeld = max(r.maxHeld, r.most, r.kept()) }

// present is false before the flow has come here, and after it was stopped.
func (r *relay) present() bool { return r.in.accepted != vtime.Never && !r.s.ended }

// sample fills the scratch sample; false while the flow is not here.
func (r *relay) sample(now vtime.Time) bool {
	if !r.present() {
		return false
	}
	out := r.s.net.newSample(r.s.order.ID, proto.Relay, now)
	out.Held = r.kept()
	if r.out.established != vtime.Never {
		fillTCP(out, r.out.client.conn)
	}
	return true
}

func (r *relay) account(now vtime.Time) proto.FlowResult {
	f := proto.FlowResult{Flow: r.s.order.ID, Side: proto.Relay, Total: r.passed + r.moved, MaxHeld: r.maxHeld,
		Attempts: r.out.attempts, Finished: r.done, FinishedAt: r.doneAt, Error: r.out.outcome()}
	if r.died && r.out.err == nil {
		f.Error = nil // it had a connection once
	}
	if r.out.established != vtime.Never {
		f.Established, f.SetupTime, f.CC = r.out.established, r.out.established.Sub(r.out.begun), r.s.cc
	}
	if r.sample(now) {
		last := r.s.net.scratch
		f.Last = &last
	}
	if f.Error == nil && r.held < 0 {
		f.Error = &proto.Error{Code: proto.CodeInternal, What: fmt.Sprintf("flow %d", r.s.order.ID), Detail: "the relay passed on more than it received"}
	}
	return f
}
