package workload

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Source is the sending application of one flow: how much it has ready to
// send, and when it will have more.
type Source struct {
	spec  Spec
	taken vtime.Bytes
}

// NewSource returns the source of a valid spec.
func NewSource(spec Spec) (*Source, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	return &Source{spec: spec}, nil
}

// Ready returns how many application bytes the source has ready at now, beyond
// those taken.
func (s *Source) Ready(vtime.Time) vtime.Bytes {
	if s.spec.Kind == Continual {
		return math.MaxInt64 - s.taken
	}
	return s.spec.Size - s.taken
}

// Take records that the transport accepted n of the bytes that were ready.
// Taking more is a programming error.
func (s *Source) Take(now vtime.Time, n vtime.Bytes) {
	if n < 0 || n > s.Ready(now) {
		panic("workload: more taken than ready")
	}
	s.taken += n
}

// Taken returns how many bytes the transport has accepted.
func (s *Source) Taken() vtime.Bytes { return s.taken }

// Next returns when more bytes become ready than are ready at now:
// vtime.Never for the kinds that have everything ready from the start.
func (s *Source) Next(vtime.Time) vtime.Time { return vtime.Never }

// Finished reports whether everything that the source will ever send was
// taken.
func (s *Source) Finished() bool { return s.spec.Kind == Sized && s.taken == s.spec.Size }
