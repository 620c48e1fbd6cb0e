//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Part is the name (argv[0]) under which a controller re-executes itself as
// the agent.
const Part = "hopbed-agent"

// grace bounds the clean-up after the controller has vanished: stopping takes
// a second, reverting milliseconds; then the agent must be gone, even if its
// standard output is a pipe that nobody reads.
const grace = 3 * time.Second

// Main is the agent's program: it speaks the protocol on standard input and
// output until the controller says bye or vanishes. version is the program's.
// It returns the exit status: 0 after an ordered end, 1 otherwise.
func Main(version string) int {
	// An agent has little to compute, and there may be hundreds on one host:
	// a thread per processor for each would only cost memory and switches.
	if runtime.GOMAXPROCS(0) > 2 {
		runtime.GOMAXPROCS(2)
	}
	raisePriority()
	table, err := Transports()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
		return 1
	}
	// The controller ends its agents; a Ctrl-C at its terminal must not kill
	// them before they have put back what they changed. A closed standard
	// output must not either.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	ctx, cancel := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer cancel()

	in := &watched{File: os.Stdin, ended: make(chan struct{})}
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-in.ended:
		case <-ctx.Done():
		case <-finished:
			return
		}
		select {
		case <-time.After(grace):
			fmt.Fprintf(os.Stderr, "hopbed-agent: the clean-up took longer than %v after the controller had gone; giving up\n", grace)
			os.Exit(1)
		case <-finished:
		}
	}()
	if err := Run(ctx, in, os.Stdout, Options{Version: version, Transports: table}); err != nil {
		fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
		return 1
	}
	return 0
}

// watched is a file that tells when reading from it has ended.
type watched struct {
	*os.File
	ended chan struct{}
}

// Read reads; the first error closes ended.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.File.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		select {
		case <-w.ended:
		default:
			close(w.ended)
		}
	}
	return n, err
}
