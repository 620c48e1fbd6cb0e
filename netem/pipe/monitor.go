package pipe

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Step is a moment in a packet's way through a pipe.
type Step uint8

// The steps. Each packet that is sent makes one of the first three; one that
// entered is lost or delivered later. A duplicate is only delivered.
const (
	Entered     Step = iota // the pipe has taken it
	LostAtEntry             // dropped by the loss model before the queue
	QueueFull               // dropped: the queue was full
	LostOnWire              // dropped by the loss model behind the queue
	Arrived                 // delivered
	NodeOff                 // lost because the node at either end is switched off, wherever it was
)

var stepNames = [...]string{"entered", "lost at entry", "queue full", "lost on the wire", "arrived", "node off"}

// String names the step.
func (s Step) String() string {
	if int(s) < len(stepNames) {
		return stepNames[s]
	}
	return fmt.Sprintf("step%d", uint8(s))
}

// Monitor sees every step of every packet (for captures), before the sink does
// and before the pipe goes on. It must not call the pipe, nor keep p.
type Monitor interface {
	Passed(now vtime.Time, p *Packet, s Step)
}

// SetMonitor installs mon; nil removes it. What the pipe does is the same with
// and without.
func (p *Pipe) SetMonitor(mon Monitor) { p.monitor = mon }
