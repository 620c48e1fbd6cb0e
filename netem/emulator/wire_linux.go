package emulator

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// wire is one direction of a pipe: from the device of one end to that of the
// other. It is the source of its sender's device and the sink of its pipe.
type wire struct {
	c         *core
	cell      int // 2·pipe + end, its number on the board
	node      int // the sender
	dev, peer int // indices of the sender's and the receiver's device
	name      string
	cfg       *pipe.Config
	pipe      *pipe.Pipe
	spare     *pipe.Packet // read into, and not sent
	overflow  bool         // Send has told of a full queue
	passed    bool         // Send has told of a departure …
	sending   bool         // … while this is set
	limit     int          // as published
}

// departing is the wire as its pipe's sink where the board shows departures.
type departing struct{ *wire }

// connectPipe creates the devices at both ends of a pipe and its directions.
func (c *core) connectPipe(i int) error {
	p := &c.cfg.Pipes[i]
	first := len(c.devs)
	for e, end := range p.Ends {
		w := &wire{c: c, cell: 2*i + e, node: end.Node, dev: first + e, peer: first + 1 - e,
			name: fmt.Sprintf("pipe/%d/%d", i, e), cfg: &p.Config[e], limit: -1}
		begin := *w.cfg
		begin.Schedule = nil // its times come with the epoch
		if err := w.renew(begin); err != nil {
			return err
		}
		c.wires = append(c.wires, w)
		if len(w.cfg.Schedule) > 0 && c.board != nil {
			c.scheduled = append(c.scheduled, w)
		}
		if p.Kernel {
			continue
		}
		err := c.device(end.Node, tap.Config{Name: end.Interface, HardwareAddress: end.HardwareAddress}, w, 0)
		if err != nil {
			return err
		}
	}
	if p.Kernel {
		return c.pair(p)
	}
	return nil
}

// pair makes the ends of a link that is the kernel's. Its wires carry nothing.
func (c *core) pair(p *Pipe) error {
	var pids [2]int
	var ends [2]tap.Config
	for e, end := range p.Ends {
		pids[e] = c.cfg.Nodes[end.Node].PID
		ends[e] = tap.Config{Name: end.Interface, HardwareAddress: end.HardwareAddress, QueueLength: c.cfg.DeviceQueue, IPv6: c.cfg.IPv6}
	}
	c.devs = append(c.devs, nil, nil)
	if err := tap.Pair(pids, ends); err != nil {
		return fmt.Errorf("between nodes %s and %s: %w", c.cfg.Nodes[p.Ends[0].Node].Name, c.cfg.Nodes[p.Ends[1].Node].Name, err)
	}
	return nil
}

// renew gives the wire a pipe whose random streams are at their beginning.
// Packets in the old one arrive all the same.
func (w *wire) renew(cfg pipe.Config) (err error) {
	var sink pipe.Sink = w
	if w.c.board != nil {
		sink = departing{w}
	}
	if w.pipe, err = pipe.New(w.c.eng, w.c.cfg.Seed, w.name, cfg, sink); err != nil {
		return err
	}
	w.spare = nil
	w.watch()
	w.publishLimit()
	return nil
}

// renewPipes begins the run of every pipe at epoch, the engine's time of the
// run's time 0. It makes them anew, so that schedules, traces and the fates of
// the run's first packets do not depend on what was sent before, and are those of
// the same run in virtual time.
func (c *core) renewPipes(epoch vtime.Time) {
	for _, w := range c.wires {
		cfg := *w.cfg
		cfg.Epoch = epoch
		if err := w.renew(cfg); err != nil {
			panic(fmt.Sprintf("emulator: %v", err)) // it was valid before, and the epoch is now or past
		}
	}
}

// Ready takes the frames that the sender's kernel has sent. It implements
// pace.Source.
func (w *wire) Ready(vtime.Time, uint64) {
	n := &w.c.counts[w.dev]
	for range readBatch {
		k := w.spare
		w.spare = nil
		if k == nil {
			k = w.pipe.NewPacket()
			if cap(k.Data) < tap.MaxFrame {
				k.Data = make([]byte, tap.MaxFrame)
			}
		}
		size, err := w.c.devs[w.dev].Read(k.Data[:tap.MaxFrame])
		if err != nil {
			w.spare = k
			w.c.failedRead(w.dev, err)
			return
		}
		n.Read++
		k.Data = k.Data[:size]
		cl, refused := classify(k.Data, w.c.cfg.IPv6)
		if refused != accepted {
			w.spare = k
			n.refuse(refused)
			continue
		}
		k.Len = cl.len
		w.send(k)
	}
}

// send puts a packet into the pipe and tells the board.
func (w *wire) send(k *pipe.Packet) {
	w.overflow, w.passed, w.sending = false, false, true
	taken := w.pipe.Send(k)
	w.sending = false
	refused := 0
	if w.overflow {
		refused = 1
		w.c.counts[w.dev].Refused++
	}
	b := w.c.board
	if b == nil {
		return
	}
	queued := w.pipe.Queued()
	b.PipeArrived(w.cell, 1, refused, queued)
	if w.passed || !taken && !w.overflow { // passed on, or lost, at once
		b.PipeLeft(w.cell, w.node, 1, queued)
	}
	w.publishLimit()
}

// Deliver writes a packet to the other end's device. It implements pipe.Sink.
func (w *wire) Deliver(_ vtime.Time, k *pipe.Packet) {
	w.c.loop.Visible()
	if err := w.c.devs[w.peer].Write(k.Data); err != nil {
		w.c.counts[w.peer].WriteErrors++
		return
	}
	w.c.counts[w.peer].Written++
}

// Drop notes why Send takes a packet no further. It implements pipe.Sink.
func (w *wire) Drop(_ vtime.Time, _ *pipe.Packet, why pipe.Cause) {
	w.overflow = w.overflow || why == pipe.Overflow
}

// Expect implements pipe.Expecter.
func (w *wire) Expect(at vtime.Time) { w.c.ahead.Expect(at) }

// Left publishes that a packet has left the queue. It implements pipe.Leaver.
func (w departing) Left(vtime.Time, *pipe.Packet) {
	if w.sending {
		w.passed = true // send tells the board that it arrived before
		return
	}
	w.c.loop.Visible()
	w.c.board.PipeLeft(w.cell, w.node, 1, w.pipe.Queued())
	w.publishLimit()
}

// publishLimit tells the board how many packets the queue holds: those in it and
// as many of the largest size as there is room for.
func (w *wire) publishLimit() {
	if w.c.board == nil {
		return
	}
	limit := board.Unlimited
	if room := w.pipe.Room(tap.MTU); room < limit {
		limit = w.pipe.Queued() + room
	}
	if limit != w.limit {
		w.limit = limit
		w.c.board.SetPipeLimit(w.cell, limit)
	}
}

// publishLimits follows the schedules, which may change queues while nothing
// moves.
func (c *core) publishLimits() {
	for _, w := range c.scheduled {
		w.publishLimit()
	}
}
