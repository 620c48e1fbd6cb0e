package undo

import (
	"encoding/json"
	"fmt"
)

// Record says how one change is taken back. It is data, so that another process
// can do it, later.
type Record struct {
	// Kind chooses from the table of what is able to undo ("sysctl", "command").
	Kind string `json:"kind"`
	// What names the change to people ("mtu of wlan0").
	What string `json:"what"`
	// Data is the kind's own.
	Data json.RawMessage `json:"data"`
}

// Push takes a record before the change that it undoes is made. When it fails
// the change must not be made.
type Push func(Record) error

// KindCommand undoes by running a program; Data is its argv, a JSON list of
// words. No shell reads it.
const KindCommand = "command"

// Command is the record that runs a program.
func Command(what string, argv ...string) Record {
	return New(KindCommand, what, argv)
}

// New makes a record; data must be what encoding/json can write.
func New(kind, what string, data any) Record {
	b, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("undo: record %s: %v", kind, err)) // a type that no caller has
	}
	return Record{Kind: kind, What: what, Data: b}
}
