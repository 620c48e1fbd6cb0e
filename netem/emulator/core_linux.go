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
)

// readBatch bounds the frames read from one device before the others and the
// medium get their turn.
const readBatch = 64

// core joins devices, medium and board. Everything runs on the pacing thread
// and does not allocate once the frames' buffers exist.
type core struct {
	cfg    *Config
	eng    *des.Engine
	loop   *pace.Loop
	medium *wifi.Medium
	board  *board.Board // nil if nobody wants it
	devs   []*tap.Device
	counts []FrameCounts // per node, since the start

	marks marks
}

// newCore builds the medium and creates the devices.
func newCore(cfg *Config, b *board.Board) (*core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if b != nil && b.Nodes() != len(cfg.Nodes) {
		return nil, fmt.Errorf("emulator: a queue board for %d nodes, but there are %d", b.Nodes(), len(cfg.Nodes))
	}
	c := &core{cfg: cfg, eng: des.New(), board: b, counts: make([]FrameCounts, len(cfg.Nodes))}
	var err error
	if c.medium, err = cfg.build(c.eng, c); err != nil {
		return nil, err
	}
	if c.loop, err = pace.New(c.eng, c.nextVisible); err != nil {
		return nil, err
	}
	c.marks.init(c)
	for i, n := range cfg.Nodes {
		d, err := tap.Create(n.PID, tap.Config{HardwareAddress: tap.HardwareAddr(i), QueueLength: cfg.DeviceQueue})
		if err != nil {
			c.close()
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		c.devs = append(c.devs, d)
		if err := c.loop.Watch(d.FD(), c, uint64(i)); err != nil {
			c.close()
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if b != nil {
			for ac := range wifi.NumAC {
				b.SetLimit(i, ac, cfg.mac(i).Queues[ac].Limit)
			}
		}
	}
	return c, nil
}

func (c *core) close() {
	for _, d := range c.devs {
		_ = d.Close() // the device vanishes with the process anyway
	}
	_ = c.loop.Close()
}

func (c *core) nextVisible() vtime.Time { return min(c.medium.NextVisible(), c.marks.next) }

// Ready takes the frames that a node's kernel has sent. It implements
// pace.Source.
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
			if !errors.Is(err, tap.ErrEmpty) && !errors.Is(err, unix.EINTR) {
				n.ReadErrors++
				c.loop.Unwatch(c.devs[node].FD()) // a broken device would stay ready for ever
			}
			return
		}
		n.Read++
		f.Data = f.Data[:size]
		cl, refused := classify(f.Data, len(c.devs))
		if refused != accepted {
			c.medium.FreeFrame(f)
			if refused == unknown {
				n.Unknown++
			} else {
				n.Foreign++
			}
			continue
		}
		f.Src, f.Dst, f.AC, f.Len = node, cl.dst, cl.ac, cl.len
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
func (c *core) Deliver(_ vtime.Time, node int, f *wifi.Frame) {
	c.loop.Visible()
	if err := c.devs[node].Write(f.Data); err != nil {
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
