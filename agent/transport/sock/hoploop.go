//go:build linux

package sock

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// sendRun bounds the packets that are sent between two looks at the socket, so
// that a node whose queue never fills still receives.
const sendRun = 64

// run is the driver: receive, fire timers, send while the queue takes, sleep
// until a datagram, a deadline or a free place in the queue.
func (e *hopEndpoint) run() {
	if !SleepUntil(e.ctx, e.sched.Clock, 0) {
		return
	}
	for {
		next, err := e.turn()
		if err != nil {
			e.fail(err)
			return
		}
		if e.ctx.Err() != nil || next == vtime.Never {
			return
		}
		if err := e.wait.wait(next.Sub(e.sched.Clock.Now())); err != nil {
			e.fail(err)
			return
		}
		if e.event >= 0 && e.wait.ready(1) {
			// One-shot wishes were fulfilled; the next turn makes new ones.
			var b [8]byte
			_, _ = unix.Read(e.event, b[:])
		}
	}
}

func (e *hopEndpoint) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = fmt.Errorf("the Hop driver of node %s stopped: %w", e.node.Name, err)
	e.halted = e.sched.Clock.Now()
	e.node.Log("warn", e.failure.Error())
}

// turn does everything that is due and returns when to look again at the
// latest, vtime.Never at the end of the run.
func (e *hopEndpoint) turn() (vtime.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.facts.loops++
	now := e.sched.Clock.Now()
	if e.off {
		return e.rest(now)
	}
	e.radio.at(now)
	received, err := e.sock.receive(func(from [4]byte, data []byte) {
		id, ok := e.ids[from]
		if !ok {
			e.facts.strangers++
			return
		}
		e.hop.Receive(now, id, data)
	})
	if err != nil && !transient(err) {
		return 0, fmt.Errorf("receive: %w", err)
	}
	e.radio.departed(func(p hop.Port, c hop.Class, k int) { e.hop.TxDone(now, p, c, k) })
	if e.hop.Deadline() <= now {
		e.hop.Expire(now)
	}
	next := e.schedule(now)
	// What was delivered belongs to this moment, before anything else is sent.
	for _, f := range e.flows {
		f.progress(now, e.hop)
	}
	if now >= e.sched.End || e.ctx.Err() != nil {
		e.halted = now
		return vtime.Never, nil
	}
	more := e.send(now)
	if more || received == batch {
		return now, nil
	}
	if again := e.radio.watch(); again > 0 {
		next = vtime.Min(next, now.Add(again))
	}
	return vtime.Min(next, e.hop.Deadline()), nil
}

// transient errors belong to one datagram: an ICMP message about an earlier
// one, which Hop's own timers repair.
func transient(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.ENETDOWN)
}

// send hands over what the queues take. It returns true when it
// stopped for another reason.
func (e *hopEndpoint) send(now vtime.Time) (more bool) {
	for range sendRun {
		p, ok := e.hop.Poll(now)
		if !ok {
			return false
		}
		to, known := e.addr[p.To]
		if !known {
			// The table was checked: a neighbour without an address can only be
			// named by a damaged packet.
			e.facts.sendErrors++
			e.hop.TxDone(now, p.Port, p.Class, 1)
			continue
		}
		e.radio.sending(p.Port, p.Class)
		err := e.sock.send(to, transport.HopPort, dscps[p.Class]<<2, p.Buf)
		switch {
		case err == nil:
			continue
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
			e.facts.sendFull++
		default:
			e.facts.sendErrors++
		}
		e.radio.unsent(p.Port, p.Class)
		// Lost before the queue: to Hop it is one more lost packet.
		e.hop.TxDone(now, p.Port, p.Class, 1)
	}
	return true
}

// schedule opens and closes the flows that begin here and returns when the
// next one is due.
func (e *hopEndpoint) schedule(now vtime.Time) vtime.Time {
	next := e.sched.End
	for _, f := range e.flows {
		due := f.turn(now, e.hop)
		if f.failed != nil {
			e.report(f, now)
		}
		next = vtime.Min(next, due)
	}
	return next
}
