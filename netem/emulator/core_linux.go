package emulator

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/pace"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// readBatch bounds the frames read from one device before the others and the
// medium get their turn.
const readBatch = 64

// core joins devices, medium, pipes and board. Everything runs on the pacing
// thread and does not allocate once the frames' buffers exist.
type core struct {
	cfg    *Config
	eng    *des.Engine
	loop   *pace.Loop
	medium *wifi.Medium // nil without radios
	board  *board.Board // nil if nobody wants it
	wires  []*wire      // two per pipe
	ahead  horizon      // when pipes will do something visible
	// scheduled are the wires that change by a schedule, if there is a board.
	scheduled []*wire
	// devs are the devices of the radios, by node, then those of the pipes' ends,
	// in the order of wires; nil where a node has no radio, or a pipe is the kernel's. counts belong to them
	// since the start.
	devs   []*tap.Device
	counts []FrameCounts

	rewriters []*winrewrite.Rewriter // by node; nil where windows stay as they are
	scratch   []byte                 // a frame with another window than the one on the air

	recorder *recorder // nil: nothing is captured
	marks    marks
	changes  changes
}

// newCore builds the medium and creates the devices.
func newCore(cfg *Config, b *board.Board) (*core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if b != nil && (b.Nodes() != len(cfg.Nodes) || b.Pipes() != len(cfg.Pipes)) {
		return nil, fmt.Errorf("emulator: a queue board for %d nodes and %d pipes, but there are %d and %d", b.Nodes(), b.Pipes(), len(cfg.Nodes), len(cfg.Pipes))
	}
	c := &core{cfg: cfg, eng: des.New(), board: b, counts: make([]FrameCounts, len(cfg.Nodes)+2*len(cfg.Pipes))}
	var err error
	if c.medium, err = cfg.build(c.eng, c); err != nil {
		return nil, err
	}
	if c.loop, err = pace.New(c.eng, c.nextVisible); err != nil {
		return nil, err
	}
	if err := c.addRewriters(); err != nil {
		return nil, err
	}
	c.marks.init(c)
	c.changes.init(c)
	if err := c.connect(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// connect creates the devices and the pipes.
func (c *core) connect() error {
	for i, n := range c.cfg.Nodes {
		if n.NoRadio {
			c.devs = append(c.devs, nil)
			continue
		}
		if err := c.device(i, tap.Config{HardwareAddress: tap.HardwareAddr(i)}, c, uint64(i)); err != nil {
			return err
		}
		if c.board != nil {
			for ac := range wifi.NumAC {
				c.board.SetLimit(i, ac, c.cfg.mac(i).Queues[ac].Limit)
			}
		}
	}
	for i := range c.cfg.Pipes {
		if err := c.connectPipe(i); err != nil {
			return err
		}
	}
	return nil
}

// device creates one device in a node and watches it.
func (c *core) device(node int, t tap.Config, s pace.Source, arg uint64) error {
	n := &c.cfg.Nodes[node]
	t.QueueLength, t.IPv6 = c.cfg.DeviceQueue, c.cfg.IPv6
	d, err := tap.Create(n.PID, t)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	c.devs = append(c.devs, d)
	if err := c.loop.Watch(d.FD(), s, arg); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

func (c *core) close() {
	for _, d := range c.devs {
		if d != nil {
			_ = d.Close() // the device vanishes with the process anyway
		}
	}
	_ = c.loop.Close()
}

func (c *core) nextVisible() vtime.Time {
	at := min(c.ahead.next(c.eng.Now()), c.marks.next, c.changes.next)
	if c.medium != nil {
		at = min(at, c.medium.NextVisible())
	}
	c.publishLimits()
	return at
}

// failedRead counts a read that brought no frame, unless none waited. A broken
// device would stay ready for ever: it is read no more.
func (c *core) failedRead(dev int, err error) {
	if errors.Is(err, tap.ErrEmpty) || errors.Is(err, unix.EINTR) {
		return
	}
	c.counts[dev].ReadErrors++
	c.loop.Unwatch(c.devs[dev].FD())
}

// Ready takes the frames that a node's kernel has sent over its radio. It
// implements pace.Source.
func (c *core) Ready(now vtime.Time, arg uint64) {
	node := int(arg)
	n := &c.counts[node]
	for range readBatch {
		f := c.medium.NewFrame()
		if cap(f.Data) < tap.MaxFrame {
			f.Data = make([]byte, tap.MaxFrame)
		}
		size, err := c.devs[node].Read(f.Data[:tap.MaxFrame])
		if err != nil {
			c.medium.FreeFrame(f)
			c.failedRead(node, err)
			return
		}
		n.Read++
		f.Data = f.Data[:size]
		cl, refused := classify(f.Data, c.cfg.IPv6)
		dst, ok := 0, false
		if refused == accepted {
			if dst, ok = c.cfg.receiver(node, f.Data); !ok {
				refused = unknown
			}
		}
		if refused != accepted {
			c.medium.FreeFrame(f)
			n.refuse(refused)
			continue
		}
		if r := c.rewriters[node]; r != nil {
			packet := f.Data[headerLen:]
			r.SeePacket(now, packet, winrewrite.Down).Apply(packet)
		}
		f.Src, f.Dst, f.AC, f.Len = node, dst, cl.ac, cl.len
		lost := 0
		if !c.medium.Enqueue(f) {
			lost = 1
			n.Refused++
		}
		if c.board != nil {
			c.board.Arrived(node, int(cl.ac), 1, lost, c.medium.Queue(node, cl.ac).Packets)
		}
	}
}

// Deliver writes a received frame to the node's device. It implements
// wifi.Sink.
func (c *core) Deliver(now vtime.Time, node int, f *wifi.Frame) {
	c.loop.Visible()
	if err := c.devs[node].Write(c.received(now, node, f.Data)); err != nil {
		c.counts[node].WriteErrors++
		return
	}
	c.counts[node].Written++
}

// Done publishes that a frame has left its sender's queue. It implements
// wifi.Sink.
func (c *core) Done(_ vtime.Time, f *wifi.Frame, _ wifi.Outcome) {
	if c.board == nil {
		return // nobody can see it
	}
	c.loop.Visible()
	c.board.Left(f.Src, int(f.AC), 1, c.medium.Queue(f.Src, f.AC).Packets)
}
