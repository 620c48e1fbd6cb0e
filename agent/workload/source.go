package workload

import (
	"iter"
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Source is the sending application of one flow: how much it has ready to
// send, and when it will have more. The moments that its methods are given never
// go back.
type Source struct {
	spec        Spec
	start, stop vtime.Time
	taken       vtime.Bytes

	// Of kinds with messages: the message that the next byte to be taken belongs
	// to, and the first that is not ready.
	at, ahead cursor
	browser   *browser // of the requests of a web exchange
	answered  int      // of its responses: requests that were received whole
}

// NewSource returns the source of a valid spec for a flow that runs in
// [start, stop): no message becomes ready outside.
func NewSource(spec Spec, start, stop vtime.Time) (*Source, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	s := &Source{spec: spec, start: start, stop: stop}
	if spec.HasMessages() {
		s.at, s.ahead = newCursor(spec, start, stop), newCursor(spec, start, stop)
	}
	if spec.Kind == Web && spec.Role == Requests {
		s.browser = newBrowser(spec, start, stop)
	}
	return s, nil
}

// Ready returns how many application bytes the source has ready at now, beyond
// those taken.
func (s *Source) Ready(now vtime.Time) vtime.Bytes {
	switch s.spec.Kind {
	case Continual:
		return math.MaxInt64 - s.taken
	case Sized:
		return s.spec.Size - s.taken
	}
	s.look(now)
	return s.ahead.begin - s.taken
}

// look moves ahead to the first message that is not ready at now.
func (s *Source) look(now vtime.Time) {
	switch {
	case s.browser != nil:
		for n := s.browser.requested(now); s.ahead.k < n; {
			s.ahead.step(0)
		}
	case s.spec.Kind == Web:
		for s.ahead.k < s.answered {
			s.ahead.step(0)
		}
	default:
		for s.ahead.ok && s.ahead.cur.ready <= now {
			s.ahead.step(0)
		}
	}
}

// Piece returns how many of the ready bytes belong to the message that the next
// byte belongs to: up to there a block or a datagram may go. It is Ready for
// kinds without messages.
func (s *Source) Piece(now vtime.Time) vtime.Bytes {
	ready := s.Ready(now)
	if !s.spec.HasMessages() || ready == 0 {
		return ready
	}
	return s.at.begin + s.at.cur.size - s.taken
}

// Message returns the number and the size of the message that the next byte
// belongs to, and the byte's offset in it. It is meaningful while Ready is not 0
// and the kind has messages.
func (s *Source) Message() (k int, offset, size vtime.Bytes) {
	return s.at.k, s.taken - s.at.begin, s.at.cur.size
}

// Take records that the transport accepted n of the bytes that were ready.
// Taking more is a programming error.
func (s *Source) Take(now vtime.Time, n vtime.Bytes) {
	if n < 0 || n > s.Ready(now) {
		panic("workload: more taken than ready")
	}
	s.taken += n
	for s.at.ok && s.taken >= s.at.begin+s.at.cur.size {
		s.at.step(0)
	}
}

// Taken returns how many bytes the transport has accepted.
func (s *Source) Taken() vtime.Bytes { return s.taken }

// Rewind forgets what was taken: the transport found that nothing of it reached
// the other end, and begins again. What is ready stays ready.
func (s *Source) Rewind() {
	s.taken = 0
	if s.spec.HasMessages() {
		s.at = newCursor(s.spec, s.start, s.stop)
	}
}

// Next returns when more bytes become ready than are ready at now, unless Heard
// is called before: vtime.Never for the kinds that have everything ready from
// the start, and where all depends on the other end.
func (s *Source) Next(now vtime.Time) vtime.Time {
	if !s.spec.HasMessages() {
		return vtime.Never
	}
	s.look(now)
	switch {
	case s.browser != nil:
		return s.browser.next()
	case s.spec.Kind == Web || !s.ahead.ok:
		return vtime.Never
	}
	return s.ahead.cur.ready
}

// Finished reports whether everything that the source will ever send was
// taken. A web source ends with its flow only.
func (s *Source) Finished() bool {
	switch s.spec.Kind {
	case Continual, Web:
		return false
	case Sized:
		return s.taken == s.spec.Size
	}
	return !s.at.ok
}

// Heard tells the source of one flow of a web exchange that its node has
// received the first total bytes of the other flow. More may then be ready.
func (s *Source) Heard(now vtime.Time, total vtime.Bytes) {
	switch {
	case s.browser != nil:
		s.browser.heard(now, total)
	case s.spec.Kind == Web:
		s.answered = max(s.answered, int(total/s.spec.Web.Request))
	}
}

// Receipts yields the pages that the client has received whole since the last
// call, and after Close the one that it has not: messages of the responses flow,
// though the requests' source knows them. Other sources yield nothing.
func (s *Source) Receipts() iter.Seq[Receipt] {
	return func(yield func(Receipt) bool) {
		if s.browser != nil {
			s.browser.done.take(yield)
		}
	}
}

// Close ends the exchange at end: a page that was begun before and is not
// complete is lost.
func (s *Source) Close(end vtime.Time) {
	if s.browser != nil {
		s.browser.close(end)
	}
}
