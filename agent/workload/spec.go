package workload

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Kind names a traffic source.
type Kind string

// The kinds of workload.
const (
	// Continual always has data to send ("30 concurrent continual flows",
	// Hop, NSDI 2009, section 5.3).
	Continual Kind = "continual"
	// Sized sends Size bytes once and reports how long that took (the 10 MB
	// file of the single-hop experiments).
	Sized Kind = "sized"
)

// Kinds lists every kind, in the order in which messages name them.
func Kinds() []Kind { return []Kind{Continual, Sized} }

// Spec is one flow's workload as the experiment file declares it.
type Spec struct {
	Kind Kind `json:"kind"`
	// Size is the amount that a sized source sends, in application bytes; it
	// must be zero for a continual source.
	Size vtime.Bytes `json:"size,omitempty"`
}

// Validate reports what is wrong with the spec.
func (s Spec) Validate() error {
	switch s.Kind {
	case Continual:
		if s.Size != 0 {
			return fmt.Errorf("workload continual has the size %v: a continual source has none; use kind sized", s.Size)
		}
	case Sized:
		if s.Size <= 0 {
			return fmt.Errorf("workload sized has the size %v: it must be positive", s.Size)
		}
	default:
		return fmt.Errorf("workload kind %q is unknown, want one of %v", s.Kind, Kinds())
	}
	return nil
}
