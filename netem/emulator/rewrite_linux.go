package emulator

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// addRewriters makes the filters of the nodes that rewrite windows.
func (c *core) addRewriters() error {
	c.rewriters = make([]*winrewrite.Rewriter, len(c.cfg.Nodes))
	for i, n := range c.cfg.Nodes {
		if n.Rewriting == nil {
			continue
		}
		var err error
		if c.rewriters[i], err = winrewrite.New(*n.Rewriting); err != nil {
			return fmt.Errorf("emulator: node %s: %w", n.Name, err)
		}
		c.scratch = make([]byte, 0, tap.MaxFrame)
	}
	return nil
}

// received is a frame as a node hands it up: where it rewrites the window, a copy,
// since the sender may repeat the one on the air.
func (c *core) received(now vtime.Time, node int, frame []byte) []byte {
	r := c.rewriters[node]
	if r == nil {
		return frame
	}
	change := r.SeePacket(now, frame[headerLen:], winrewrite.Up)
	if !change.Any() {
		return frame
	}
	c.scratch = append(c.scratch[:0], frame...)
	change.Apply(c.scratch[headerLen:])
	return c.scratch
}
