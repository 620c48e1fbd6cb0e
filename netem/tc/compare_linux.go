package tc

import (
	"bytes"
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// comparison collects the first setting that the kernel has otherwise.
type comparison struct {
	what  string
	first *NotApplied
}

func (c *comparison) differs(name, wanted, got string) {
	if c.first == nil {
		c.first = &NotApplied{What: c.what + ": " + name, Wanted: wanted, Got: got}
	}
}

// duration compares with what the kernel's rounding may take off.
func (c *comparison) duration(name string, wanted, got, rounding vtime.Duration) {
	if got > wanted || wanted-got > rounding {
		c.differs(name, wanted.String(), got.String())
	}
}

func (c *comparison) number(name string, wanted, got uint64) {
	if wanted != got {
		c.differs(name, fmt.Sprint(wanted), fmt.Sprint(got))
	}
}

// near compares what the kernel converts through its own fixed-point factors.
func (c *comparison) near(name string, wanted, got uint64, share float64) {
	if d := float64(wanted) - float64(got); d > share*float64(wanted)+2 || -d > share*float64(wanted)+2 {
		c.differs(name, fmt.Sprint(wanted), fmt.Sprint(got))
	}
}

func (c *comparison) bytes(name string, wanted, got []byte) {
	if !bytes.Equal(wanted, got) {
		c.differs(name, fmt.Sprintf("%x", wanted), fmt.Sprintf("%x", got))
	}
}

func (c *comparison) err() error {
	if c.first == nil {
		return nil
	}
	return c.first
}
