package cut

import (
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// DefaultSize is the payload of a bundle where the flow does not say.
const DefaultSize = 1 * vtime.MiB

// Next returns how many bytes of what is ready go into the source's next bundle
// of at most size bytes; 0 when nothing is ready. A bundle of a flow without
// messages is full unless it is the last.
func Next(app *workload.Source, now vtime.Time, size vtime.Bytes) vtime.Bytes {
	return min(app.Piece(now), size)
}

// Sink is the destination's account of a flow.
type Sink struct {
	spec     workload.Spec
	size     vtime.Bytes
	meter    *workload.Meter
	receipts *workload.Receipts // nil: the data are no messages
}

// NewSink returns the account of a flow whose bundles have at most size bytes.
// receipts is nil for a kind without messages.
func NewSink(spec workload.Spec, size vtime.Bytes, meter *workload.Meter, receipts *workload.Receipts) *Sink {
	if receipts != nil {
		receipts.Blocks(size)
	}
	return &Sink{spec: spec, size: size, meter: meter, receipts: receipts}
}

// Part is what a bundle holds: N bytes of the flow's data from the offset At on;
// Message is the number of the message that they belong to, where they do.
type Part struct {
	Message int
	At, N   vtime.Bytes
}

// maxSeq bounds sequence numbers, so that offsets fit.
const maxSeq = 1 << 36

// Part returns what the bundle with a sequence number must hold; ok is false when
// the source cannot have sent it by now.
func (s *Sink) Part(now vtime.Time, seq uint64) (p Part, ok bool) {
	if seq >= maxSeq {
		return p, false
	}
	if s.receipts != nil {
		p.Message, p.At, p.N, ok = s.receipts.Block(now, int(seq))
		return p, ok
	}
	p.At, p.N = vtime.Bytes(seq)*s.size, s.size
	if total := s.spec.Total(); total > 0 {
		p.N = min(p.N, total-p.At)
	}
	return p, p.N > 0
}

// Add counts a bundle that was delivered, whole and once.
func (s *Sink) Add(now vtime.Time, p Part) {
	s.meter.Add(now, p.N)
	if s.receipts != nil {
		s.receipts.AddPart(now, p.Message, p.N)
	}
}

// Whole reports whether everything that the source will ever send has come.
func (s *Sink) Whole() bool {
	if s.receipts != nil {
		return s.spec.Ends() && s.receipts.Complete()
	}
	return s.meter.Finished() != vtime.Never
}
