package emulator

import (
	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Capture asks for a record of the packets from the run's time 0 on, in the files
// of Options.
type Capture struct {
	SnapLen vtime.Bytes `json:"snaplen,omitempty"` // of each packet; 0 = all
	At      []string    `json:"at,omitempty"`      // interfaces; none: all
	Comment string      `json:"comment,omitempty"` // describes the run
}

// CaptureReport says what became of a capture.
type CaptureReport struct {
	capture.Stats
	PacketsError string `json:"packets_error,omitempty"` // why the capture is incomplete
	EventsError  string `json:"events_error,omitempty"`  // why the event log is
}

// captureConfig describes the network to a capture.
func (c *Config) captureConfig() capture.Config {
	out := capture.Config{SnapLen: c.Capture.SnapLen, At: c.Capture.At, Comment: c.Capture.Comment, Packets: capture.Ethernet{}}
	for i := range c.Nodes {
		out.Nodes = append(out.Nodes, c.Nodes[i].Name)
	}
	if c.HasRadio() {
		out.MACs = c.MACs
	}
	for i := range c.Pipes {
		var l capture.Link
		for e, end := range c.Pipes[i].Ends {
			l.Ends[e], l.Interfaces[e] = end.Node, end.Interface
			l.Rate[e] = capture.SteadyRate(&c.Pipes[i].Config[e])
		}
		out.Links = append(out.Links, l)
	}
	return out
}
