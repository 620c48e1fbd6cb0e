package topology

import (
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/pipe"
)

// Wire translates one direction of a wired link for a network that stands.
func Wire(d *spec.Direction) (pipe.Config, error) {
	c, err := direction(d)
	if err != nil {
		return c, err
	}
	return c, c.Validate()
}
