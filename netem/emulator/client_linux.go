package emulator

import (
	"fmt"
	"os"
	"time"

	"github.com/hopbed/hopbed/netem/board"
)

// Kinds of journal entries.
const (
	KindEmulator = "emulator" // before the start; id = "emulator"
	KindPID      = "pid"      // after the start; id = "PID:START", START as in /proc/PID/stat field 22
)

// Options say how a controller runs the emulator.
type Options struct {
	// Board, if set, is fed by the emulator. The caller keeps it.
	Board *board.Board
	// Packets and Events take the record that Config.Capture asks for: a pcapng
	// file and an event log. Either may be nil. The caller keeps them.
	Packets, Events *os.File
	// Env is added to the process's environment (the ownership tag).
	Env []string
	// Journal, if set, is called before the process is started and once more with
	// its identity. An error of the former aborts the start.
	Journal func(kind, id string) error
	// OnHealth, if set, is called about once a second, one call at a time.
	OnHealth func(Health)
	// Grace is the time that an order may take before the emulator counts as
	// hung; 0 = DefaultGrace.
	Grace time.Duration
}

// DefaultGrace is ample for 1,000 devices on a slow host.
const DefaultGrace = 30 * time.Second

// Exited says that the emulator's process ended although nobody asked it to.
type Exited struct {
	PID    int
	State  string // "exit status 1", "signal: killed"
	Stderr string // the end of its standard error
}

// Error names the process, how it ended and its last words.
func (e *Exited) Error() string {
	s := fmt.Sprintf("the emulator (pid %d) ended unexpectedly: %s", e.PID, e.State)
	if e.Stderr != "" {
		s += "; it said: " + e.Stderr
	}
	return s
}

// Self is what the client executes: this program, under the name Part.
const Self = "/proc/self/exe"

// boardFiles are inherited by the process from descriptor 3 on.
func boardFiles(b *board.Board) []*os.File {
	if b == nil {
		return nil
	}
	return b.Files()
}
