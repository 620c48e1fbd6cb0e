package tc

import (
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// FromPipe returns the shape of the kernel's that does what a pipe does, or an
// *Unlike that says which of its settings has no equal. Alike, in distribution, are
// rate, overhead, queue, delay, loss (bursts included, on entry or after the
// queue), holding back, and the shapes of jitter; jitter precedes the queue
// instead of following it, and copies of duplicated packets pass through the link
// themselves. Draws differ: equal seeds do not lose the same packets.
func FromPipe(c *pipe.Config) (Shape, error) {
	unlike := func(what, because, do string) (Shape, error) {
		return Shape{}, &Unlike{What: what, Because: because, Do: do}
	}
	const own = "use the emulator \"user\" for this link"
	s := Shape{Rate: c.Rate, Overhead: c.Overhead, Delay: c.Delay, Jitter: c.Jitter, Loss: c.Loss, LossAfterQueue: c.LossAfterQueue && c.Rate > 0 && c.Loss != (pipe.Loss{}),
		Reorder: c.Reorder, Duplicate: c.Duplicate, Limit: c.Queue.Packets, LimitBytes: c.Queue.Bytes}
	switch {
	case c.Trace != nil:
		return unlike("trace", "netem has one rate, not delivery opportunities", own)
	case len(c.Schedule) > 0:
		return unlike("schedule", "nothing in the kernel changes a link at a moment", own)
	case c.Queue.Packets > 0 && c.Queue.Bytes > 0:
		return unlike("queue of packets and bytes", "the kernel's queues are counted in one of them", "leave one out, or "+own)
	case c.Queue.Packets > maxLimit:
		s.Limit = maxLimit
	case c.Queue == (pipe.Queue{}):
		s.Limit = 0
		if c.Rate > 0 {
			s.Limit = maxLimit // a pipe's queue without a limit
		}
	}
	if c.Rate == 0 {
		s.Limit, s.LimitBytes = 0, 0 // nothing waits
		s.Overhead = 0
	}
	if s.Jitter.Distribution == pipe.Constant || s.Jitter.Spread == 0 {
		s.Jitter = pipe.Jitter{}
	}
	if s.Reorder.Share == 0 {
		s.Reorder = pipe.Reorder{}
	}
	if t := table(s.Jitter.Distribution); t.spread(s.Jitter.Spread) > maxJitter {
		return unlike("jitter of "+s.Jitter.Spread.String(), "netem's has 32 bits of nanoseconds, which the distribution may reach past", own)
	}
	if s.Reorder.Extra > maxJitter {
		return unlike("holding back by "+s.Reorder.Extra.String(), "netem's delays of single packets have 31 bits of nanoseconds", own)
	}
	if s.Rate > 0 && s.Rate%8 != 0 {
		return unlike("rate of "+s.Rate.String(), "the kernel counts in whole bytes per second", "choose a multiple of 8 bit/s, or "+own)
	}
	last := s.lastStage()
	switch {
	case s.Duplicate > 0 && last:
		return unlike("duplication beside reordering or loss after the queue", "the kernel duplicates in one netem at a time", own)
	case s.LimitBytes > 0 && last:
		return unlike("queue of bytes beside reordering or loss after the queue", "tbf, which has such a queue, must come last", own)
	case s.Delay > maxDelay:
		return unlike("delay of "+s.Delay.String(), "packets would fill the kernel's memory", own)
	}
	return s, nil
}

// maxDelay is the longest that package tc is tried with.
const maxDelay = vtime.Hour
