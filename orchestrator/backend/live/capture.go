//go:build linux

package live

import (
	"errors"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/backend"
)

// collectCapture takes over what the emulator says of its capture.
func collectCapture(c *backend.Capture, rep *emulator.CaptureReport) {
	if c == nil {
		return
	}
	if rep == nil { // it was asked for one
		rep = &emulator.CaptureReport{PacketsError: "the emulator says nothing of it", EventsError: "the emulator says nothing of it"}
	}
	c.Stats = rep.Stats
	if rep.PacketsError != "" {
		c.PacketsErr = errors.New(rep.PacketsError)
	}
	if rep.EventsError != "" {
		c.EventsErr = errors.New(rep.EventsError)
	}
}
