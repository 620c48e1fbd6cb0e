package workload

import "github.com/hopbed/hopbed/netem/vtime"

// Receipt is what became of one message.
type Receipt struct {
	// Message is its number in the flow, from 0.
	Message int         `json:"message"`
	Size    vtime.Bytes `json:"size"`
	// Ready is when it became ready to be sent; Delay the time from then until
	// all of it was delivered. Lost messages were not delivered by the end of
	// the run and have no delay.
	Ready vtime.Time     `json:"ready_ns"`
	Delay vtime.Duration `json:"delay_ns,omitempty"`
	Lost  bool           `json:"lost,omitempty"`
}
