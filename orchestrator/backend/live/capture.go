package live

import (
	"errors"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/backend"
)

// collectCapture takes over what the emulator says of its capture.
func collectCapture(c *backend.Capture, rep *emulator.CaptureReport) {
	switch {
	case c == nil:
	case rep == nil:
		c.Fail(errors.New("the emulator says nothing of it"))
	default:
		c.Stats = rep.Stats
		if rep.Error != "" {
			c.Fail(errors.New(rep.Error))
		}
	}
}
