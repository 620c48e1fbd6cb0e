package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// abruptAfter is how long a command that has nothing to put back may take to
// notice that the user wants it to end: it may hang in a file that nobody
// writes to, or compute.
const abruptAfter = 300 * time.Millisecond

type orderlyKey struct{}

// withSignals returns a context that ends with the first signal to stop. SIGHUP
// (the terminal was closed) ends a campaign as politely as Ctrl-C. A second
// signal ends the program at once; what it leaves is in the journal.
func withSignals() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	orderly := new(atomic.Bool)
	over := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		stop()
		select {
		case <-over:
		case <-time.After(abruptAfter):
			if !orderly.Load() {
				os.Exit(exitInterrupted)
			}
		}
	}()
	return context.WithValue(ctx, orderlyKey{}, orderly), func() { close(over); stop() }
}

// endOrderly says that from now on there is something to put back: a signal no
// longer ends the program before the command has returned.
func endOrderly(ctx context.Context) {
	if o, ok := ctx.Value(orderlyKey{}).(*atomic.Bool); ok {
		o.Store(true)
	}
}

// survivePipes makes a write into a closed pipe an error instead of the end of
// the program, which would leave its nodes to the journal.
func survivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// progressWriter is standard error for progress. Progress that cannot be
// written costs no results; but a reader that has gone (head, a closed
// connection) is taken as a closed terminal is.
type progressWriter struct {
	f    *os.File
	gone func()
}

// Write never fails.
func (p *progressWriter) Write(b []byte) (int, error) {
	if _, err := p.f.Write(b); errors.Is(err, syscall.EPIPE) {
		p.gone()
	}
	return len(b), nil
}
