package emulator

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
)

// Pipe is a wired link between two nodes: a TAP device at either end and a
// netem/pipe for each direction.
type Pipe struct {
	Ends [2]PipeEnd `json:"ends"`
	// Config describes either direction: Config[0] from Ends[0] to Ends[1]. The
	// times of a schedule and the offset of a trace count from the run's time 0,
	// which comes with Begin. Until then the pipe is up, as Config says without
	// its schedule, and a trace runs from the emulator's start.
	Config [2]pipe.Config `json:"config"`
	// Kernel leaves the link to the kernel: its ends are a pair of virtual Ethernet
	// devices, and what Config asks for is done at them by whoever configures the
	// nodes (netem/tc). No frame of it passes through here.
	Kernel bool `json:"kernel,omitempty"`
}

// PipeEnd is one end of a pipe: an interface that the emulator creates.
type PipeEnd struct {
	Node            int                 `json:"node"`
	Interface       string              `json:"interface"`
	HardwareAddress tap.HardwareAddress `json:"hardware_address"`
}

// maxInterface is the length of an interface's name (IFNAMSIZ less the
// terminating zero).
const maxInterface = 15

// validatePipes reports the first mistake in the pipes.
func (c *Config) validatePipes() error {
	type place struct {
		node int
		name string
	}
	used := map[place]int{}
	for i := range c.Pipes {
		p := &c.Pipes[i]
		for e, end := range p.Ends {
			at := place{end.Node, end.Interface}
			switch {
			case end.Node < 0 || end.Node >= len(c.Nodes):
				return fmt.Errorf("emulator: pipe %d, end %d: node %d does not exist (there are %d)", i, e, end.Node, len(c.Nodes))
			case end.Interface == "" || len(end.Interface) > maxInterface:
				return fmt.Errorf("emulator: pipe %d, end %d: interface %q: want a name of 1 to %d characters", i, e, end.Interface, maxInterface)
			case end.Interface == tap.Interface:
				return fmt.Errorf("emulator: pipe %d, end %d: interface %s is the radio's", i, e, end.Interface)
			case end.HardwareAddress == tap.HardwareAddress{} || end.HardwareAddress.Multicast():
				return fmt.Errorf("emulator: pipe %d, end %d: %v is no address of an interface", i, e, end.HardwareAddress)
			}
			if other, ok := used[at]; ok {
				return fmt.Errorf("emulator: pipes %d and %d both use interface %s of node %d (%s)", other, i, end.Interface, end.Node, c.Nodes[end.Node].Name)
			}
			used[at] = i
			if p.Config[e].Epoch != 0 {
				return fmt.Errorf("emulator: pipe %d, end %d: epoch %v: want 0, it comes with Begin", i, e, p.Config[e].Epoch)
			}
			if err := p.Config[e].Validate(); err != nil {
				return fmt.Errorf("emulator: pipe %d from %s to %s: %w", i, c.Nodes[end.Node].Name, c.Nodes[p.Ends[1-e].Node].Name, err)
			}
		}
		if p.Kernel && (len(p.Config[0].Schedule) > 0 || len(p.Config[1].Schedule) > 0) {
			return fmt.Errorf("emulator: pipe %d is the kernel's and has a schedule, which nobody would follow", i)
		}
		if p.Ends[0].Node == p.Ends[1].Node {
			return fmt.Errorf("emulator: pipe %d joins node %d to itself", i, p.Ends[0].Node)
		}
	}
	return nil
}
