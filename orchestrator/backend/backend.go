package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// Progress tells how far a run has come: the phase, and in the traffic phase
// the position in its length.
type Progress func(phase string, at, length vtime.Duration)

// Backend carries out runs.
type Backend interface {
	// Name is the back end's name in results: "sim", "netns" or "ssh". Results
	// of different names are never pooled.
	Name() string
	// Preflight checks, before anything is created or stored, that this host
	// can carry out the plan. The error says what is missing and what to do.
	Preflight(ctx context.Context, p *plan.Plan) error
	// Overhead is the wall time that a run needs beside its length; Speed is
	// how many virtual seconds pass in a wall second (1 for live nodes).
	Overhead() time.Duration
	Speed() float64
	// Run carries out one run (several at once where the back end is Parallel)
	// and returns all that it measured. The record's
	// Run.InvalidReasons and Run.Warnings hold the verdict of the back end's
	// own checks. An error means that there is no result; whatever the run had
	// created is gone when Run returns, or named in the error. c, if not nil, is
	// what to record of the run's packets.
	Run(ctx context.Context, s *plan.Scenario, progress Progress, c *Capture) (*store.RunRecord, error)
	// Close gives back what the back end holds between runs.
	Close() error
}

// Parallel is implemented by back ends whose runs do not disturb each other.
type Parallel interface {
	// Parallel is how many runs may go on at once; at least 1. What a run
	// gives does not depend on it.
	Parallel() int
}

// Parallelism returns how many runs a back end carries out at once: 1 unless it
// says more.
func Parallelism(b Backend) int {
	if p, ok := b.(Parallel); ok {
		return max(1, p.Parallel())
	}
	return 1
}

// Fatal marks an error after which no other run of the plan can succeed
// either: the campaign ends instead of trying the next one.
type Fatal struct{ Err error }

// Error implements error.
func (f *Fatal) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Fatal) Unwrap() error { return f.Err }

// IsFatal says whether err ends a campaign.
func IsFatal(err error) bool {
	var f *Fatal
	return errors.As(err, &f)
}

// Permanent marks an error that another attempt at the same run would meet
// again, such as a congestion control that the kernel lacks. Other runs of the
// plan may succeed.
type Permanent struct{ Err error }

// Error implements error.
func (p *Permanent) Error() string { return p.Err.Error() }

// Unwrap returns the cause.
func (p *Permanent) Unwrap() error { return p.Err }

// IsPermanent says whether repeating the run is pointless.
func IsPermanent(err error) bool {
	var p *Permanent
	return errors.As(err, &p)
}

// ErrUnsupported says that a back end cannot carry out what the file asks for.
type ErrUnsupported struct{ Backend, What, Because, Do string }

// Error gives all parts.
func (e *ErrUnsupported) Error() string {
	return fmt.Sprintf("%s is unavailable on the back end %s: %s; %s", e.What, e.Backend, e.Because, e.Do)
}
