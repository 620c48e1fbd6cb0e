package emulator

import (
	"github.com/hopbed/hopbed/netem/vtime"
)

// Part is the name (argv[0]) under which the emulator's process runs.
const Part = "hopbed-emulator"

// wireVersion is the version of the messages. Both sides are normally the same
// binary; the check is for the case of a binary that was replaced meanwhile.
const wireVersion = 3

// An order is one line on the emulator's standard input, answered by one reply
// with the same sequence number on its standard output. The first order is the
// configuration; the end of the input ends the process.
type order struct {
	Version int     `json:"v"`
	Seq     uint64  `json:"seq"`
	Config  *Config `json:"config,omitempty"`
	Board   int     `json:"board,omitempty"` // with Config: number of descriptors of the board, from 3 on
	// With Config: descriptors of the capture and of its event log behind the
	// board's, in this order.
	Packets bool        `json:"packets,omitempty"`
	Events  bool        `json:"events,omitempty"`
	Begin   *beginOrder `json:"begin,omitempty"`
	Loss    *Loss       `json:"loss,omitempty"`
	Node    *nodeOrder  `json:"node,omitempty"`
	Set     *Set        `json:"set,omitempty"`
	Stop    bool        `json:"stop,omitempty"`
}

type beginOrder struct {
	EpochNS int64      `json:"epoch_ns"` // CLOCK_MONOTONIC of the run's time 0
	From    vtime.Time `json:"from_ns"`
	To      vtime.Time `json:"to_ns"`
}

type nodeOrder struct {
	Node int  `json:"node"`
	Up   bool `json:"up"`
}

// reply answers an order; Seq 0 marks a message that nobody asked for.
type reply struct {
	Version     int     `json:"v"`
	Seq         uint64  `json:"seq"`
	Error       string  `json:"error,omitempty"`
	Unavailable *lack   `json:"unavailable,omitempty"` // the tap.Unavailable behind the error, if it is one
	Ready       *Ready  `json:"ready,omitempty"`
	Report      *Report `json:"report,omitempty"`
	Health      *Health `json:"health,omitempty"`
}

// Ready is what the emulator says of itself once frames flow.
type Ready struct {
	Priority string   `json:"priority"`
	Refused  []string `json:"priority_refused,omitempty"`
	Wait     string   `json:"wait"`
}

// lack carries a tap.Unavailable over the wire.
type lack struct {
	What    string `json:"what"`
	Because string `json:"because"`
	Do      string `json:"do"`
}
