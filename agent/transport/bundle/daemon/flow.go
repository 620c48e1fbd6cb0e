//go:build linux

package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/agent/transport/bundle/cut"
	"github.com/hopbed/hopbed/agent/transport/bundle/disk"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// flow is this node's part in one flow: the machine, its connections, its disk.
type flow struct {
	e     *endpoint
	order proto.Flow
	side  proto.Side
	cfg   bundle.Config
	opt   sock.Options
	next  netip.AddrPort // of the next hop
	prev  netip.Addr     // of the previous hop
	peer  *flow          // at a destination: the flow of an exchange that begins here

	mu       sync.Mutex // guards what follows, and the machine
	changed  sync.Cond  // something about a session may have changed
	wake     chan struct{}
	machine  *bundle.Node // nil before the start and while the node is off
	listener *net.TCPListener
	up, down *link
	links    []*link // all that are not closed
	dir      *disk.Dir
	dialing  bool
	paused   vtime.Time // no connection before
	pause    vtime.Duration
	closing  context.CancelFunc // ends this life

	sched  transport.Schedule
	stop   vtime.Time
	halted vtime.Time
	ends   ends
	before bundle.Stats // of earlier lives
	most   vtime.Bytes
	// finished is when the next hop of the source had acknowledged everything.
	finished vtime.Time
	ended    proto.Sample // sums of connections that have ended
	result   proto.FlowResult
	problem  bool // a disk's, told once
}

func newFlow(e *endpoint, order proto.Flow, i int) (*flow, error) {
	_, cc := transport.Split(order.Transport)
	f := &flow{e: e, order: order, cfg: cut.NodeConfig(&order, i), opt: sock.FlowOptions(&order, cc), wake: make(chan struct{}, 1), pause: pauseFirst}
	f.side, _ = e.node.Side(&order)
	f.changed.L = &f.mu
	f.result = proto.FlowResult{Flow: order.ID, Side: f.side}
	addr := func(j int) (netip.Addr, error) {
		if a, ok := e.node.Addrs[order.Path[j]]; ok {
			return a, nil
		}
		return netip.Addr{}, &proto.Error{Code: proto.CodeOrder, What: "path", Detail: fmt.Sprintf("node %d has no address among the peers", order.Path[j])}
	}
	var err error
	if i > 0 {
		if f.prev, err = addr(i - 1); err != nil {
			return nil, err
		}
	}
	if i < len(order.Path)-1 {
		a, err := addr(i + 1)
		if err != nil {
			return nil, err
		}
		f.next = netip.AddrPortFrom(a, port(&order))
	}
	if f.cfg.Disk {
		if e.spool == nil {
			if e.spool, err = newSpool(); err != nil {
				return nil, err
			}
		}
		if f.dir, err = disk.Open(e.spool.flow(order.ID)); err != nil {
			return nil, storage(err)
		}
	}
	return f, f.ends.prepare(&order)
}

// port is the flow's port, the same at every node that listens for it.
func port(f *proto.Flow) uint16 { return uint16(transport.FlowPort + f.ID) }

func (f *flow) listen() (err error) {
	f.listener, err = sock.Listen(netip.AddrPortFrom(f.e.node.Addr, port(&f.order)), f.opt)
	return err
}

// begin gives the flow the schedule.
func (f *flow) begin(sched transport.Schedule) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sched, f.stop = sched, sched.FlowStop(&f.order)
	now := sched.Clock.Now()
	// The run's moment 0 as DTN time, of which nodes may think differently by the
	// difference of their clocks: it tells when a bundle has expired, after a day.
	f.cfg.Epoch = uint64(time.Now().Add(-vtime.Duration(now).Std()).Sub(dtnEpoch) / time.Millisecond)
	return f.ends.begin(f, sched)
}

var dtnEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// run begins a life of the node's machine. mu is not held.
func (f *flow) run() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start()
}

func (f *flow) start() {
	m, err := bundle.New(f.cfg, &f.ends)
	if err != nil {
		f.fail(f.sched.Clock.Now(), proto.AsError(err, proto.CodeInternal))
		return
	}
	if f.machine = m; f.dir != nil {
		f.restore()
	}
	ctx, cancel := context.WithCancel(f.e.ctx)
	f.closing, f.dialing, f.paused, f.pause = cancel, false, 0, pauseFirst
	l := f.listener
	f.e.wg.Go(func() { f.loop(ctx, l) })
	if l != nil {
		f.e.wg.Go(func() { f.accept(ctx, l) })
	}
}

// restore puts what is on disk into the machine.
func (f *flow) restore() {
	now := f.sched.Clock.Now()
	damaged, err := f.dir.Load(func(b *bundle.Bundle, size int) { f.machine.Restore(now, b, size) })
	if err != nil {
		f.fail(now, proto.AsError(storage(err), proto.CodeSystem))
	}
	if damaged > 0 {
		f.e.node.Log("warn", fmt.Sprintf("flow %d: %d damaged bundles in the storage were removed", f.order.ID, damaged))
	}
}

// loop acts on what is due at some moment: deadlines of the machine, bundles for
// the disk, a connection that is wanted, data that become ready.
func (f *flow) loop(ctx context.Context, listener *net.TCPListener) {
	if listener != nil {
		defer listener.Close() // fails only when it is closed already
	}
	if !sock.SleepUntil(ctx, f.sched.Clock, f.order.Start) {
		return
	}
	end := context.AfterFunc(ctx, f.poke)
	defer end()
	for {
		at, data, more := f.look(ctx)
		if !more {
			return
		}
		if data {
			// Delays count from the moment at which a message is ready.
			if at = at.Add(-sock.Precise); !f.sleep(at) {
				sock.SleepRest(ctx, f.sched.Clock, at.Add(sock.Precise))
			}
		} else {
			f.sleep(at)
		}
	}
}

// look does what is due, and returns when to look again, and whether the
// application has more data then; more is false when this life of the machine is
// over.
func (f *flow) look(ctx context.Context) (at vtime.Time, data, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.sched.Clock.Now()
	if f.e.ctx.Err() != nil || ctx.Err() == nil && now >= f.stop {
		f.hangUp(now)
		return 0, false, false
	}
	if ctx.Err() == nil && f.machine.Deadline() <= now {
		f.machine.Expire(now)
	}
	f.files()
	if f.finished == 0 && f.side == proto.Source && f.machine != nil && f.machine.Done() {
		f.finished = now
	}
	if ctx.Err() != nil { // the node was switched off
		return 0, false, false
	}
	ready := f.ends.next(now)
	at = vtime.Min(f.stop, vtime.Min(f.machine.Deadline(), ready))
	switch {
	case !f.machine.Dial() || f.dialing:
	case now < f.paused:
		at = vtime.Min(at, f.paused)
	default:
		f.dialing = true
		f.e.wg.Go(func() { f.dial(ctx) })
	}
	f.tell()
	return at, at == ready, true
}

// sleep waits for a moment, or until something has happened: then it is true.
func (f *flow) sleep(until vtime.Time) bool {
	t := time.NewTimer(max(0, until.Sub(f.sched.Clock.Now()).Std()))
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-f.wake:
		return true
	}
}

// poke lets the loop look again.
func (f *flow) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// happened tells everybody that a session may have changed. mu is held.
func (f *flow) happened() {
	f.tell()
	f.poke()
}

// tell wakes those that wait for a session to change. One that is over gets a
// moment for its last words, whatever its writer is at. mu is held.
func (f *flow) tell() {
	for _, l := range f.links {
		if l.s.Closed() && !l.ending {
			l.ending = true
			_ = l.conn.SetWriteDeadline(time.Now().Add(lingering))
		}
	}
	f.changed.Broadcast()
}

// hangUp ends all connections: the flow is over. mu is held.
func (f *flow) hangUp(now vtime.Time) {
	f.keepLast(now)
	for _, l := range f.links {
		l.abort(now)
	}
	f.changed.Broadcast()
}

// files does what the machine asks of the disk. mu is held, but not while a bundle
// is written.
func (f *flow) files() {
	for f.machine != nil {
		op, ok := f.machine.Op()
		if !ok {
			return
		}
		m, seq := f.machine, op.Seq
		f.mu.Unlock()
		var payload bundle.Content
		var err error
		if op.Kind == bundle.Save {
			payload, err = f.dir.Write(seq, op.Encoded)
		} else {
			err = f.dir.Remove(seq)
		}
		f.mu.Lock()
		if err != nil && !f.problem {
			f.problem = true
			f.e.node.Log("warn", fmt.Sprintf("flow %d: storage of bundle %d: %v", f.order.ID, seq, err))
		}
		if op.Kind == bundle.Save && f.machine == m {
			m.Saved(f.sched.Clock.Now(), seq, payload, err)
			f.tell()
		}
	}
}

// fail records what makes the flow's figures unusable, or, with CodeTimeout, that
// no connection ever stood. mu is held.
func (f *flow) fail(now vtime.Time, err *proto.Error) {
	if f.result.Error == nil && err != nil {
		f.result.Error = err
		f.e.node.Event(proto.Event{Flow: f.order.ID, Side: f.side, Kind: proto.Failed, T: now, Error: err})
	}
}

// stats are the counters of all lives of the node's machine. mu is held.
func (f *flow) stats() bundle.Stats {
	s := f.before
	if f.machine != nil {
		s.Add(f.machine.Stats())
	}
	return s
}

func (f *flow) held() vtime.Bytes {
	if f.machine == nil {
		return f.most
	}
	_, _, most := f.machine.Held()
	return max(f.most, most)
}
