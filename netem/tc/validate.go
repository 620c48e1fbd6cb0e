package tc

import (
	"math"
	"strings"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Bounds of what netem can be told.
const (
	maxJitter = vtime.Duration(math.MaxInt32) // ns: the kernel's sigma has 32 bits
	minRate   = 8 * vtime.BitPerSecond        // one byte per second
	maxLimit  = 1 << 24                       // packets; more than any memory holds
)

// Validate returns what is wrong with the description, naming class, field and
// value.
func (l *Link) Validate() error {
	if l.Interface == "" || len(l.Interface) > 15 {
		return invalid(l, "", 0, "the interface's name %q: want 1 to 15 characters", l.Interface)
	}
	for _, d := range []struct {
		name    string
		classes []Class
	}{{"egress", l.Egress}, {"ingress", l.Ingress}} {
		if len(d.classes) > MaxClasses {
			return invalid(l, "", 0, "%d classes of %s: at most %d", len(d.classes), d.name, MaxClasses)
		}
		for i := range d.classes {
			if err := l.validate(d.name, i, &d.classes[i], len(d.classes)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Link) validate(dir string, i int, c *Class, n int) error {
	bad := func(format string, args ...any) error { return invalid(l, dir, i, format, args...) }
	for _, p := range c.Peers {
		if !p.IsValid() || p != p.Masked() {
			return bad("peer %v: want a network's address and length, such as 10.77.0.2/32", p)
		}
	}
	s := &c.Shape
	// What a pipe has, too, is wrong where a pipe's is.
	p := pipe.Config{Rate: s.Rate, Overhead: s.Overhead, Delay: s.Delay, Jitter: s.Jitter, Loss: s.Loss, Reorder: s.Reorder, Duplicate: s.Duplicate,
		Queue: pipe.Queue{Packets: s.Limit, Bytes: s.LimitBytes}}
	if err := p.Validate(); err != nil {
		return bad("%s", strings.TrimPrefix(err.Error(), "pipe: "))
	}
	switch {
	case s.Rate != 0 && s.Rate < minRate:
		return bad("rate %v: below %v", s.Rate, minRate)
	case s.Limit > maxLimit:
		return bad("limit of %d packets: at most %d", s.Limit, maxLimit)
	case s.LimitBytes > math.MaxUint32:
		return bad("limit of %v: at most 4 GiB", s.LimitBytes)
	case s.Limit > 0 && s.LimitBytes > 0:
		return bad("limit of %d packets beside %v: the kernel's queues are counted in one of them", s.Limit, s.LimitBytes)
	case s.LimitBytes > 0 && s.Rate == 0:
		return bad("limit of %v without a rate: nothing waits", s.LimitBytes)
	case !(s.Corrupt >= 0 && s.Corrupt <= 1):
		return bad("corrupt %v, want 0%% to 100%%", s.Corrupt)
	case s.Overhead > 1<<14:
		return bad("overhead %v: at most 16 KiB", s.Overhead)
	case table(s.Jitter.Distribution).spread(s.Jitter.Spread) > maxJitter:
		return bad("%v jitter of %v: netem takes at most %v of this distribution", s.Jitter.Distribution, s.Jitter.Spread, vtime.Duration(float64(maxJitter)/table(s.Jitter.Distribution).unit()))
	case s.Reorder.Extra > maxJitter:
		return bad("holding back by %v: at most %v", s.Reorder.Extra, maxJitter)
	case s.LossStates != nil && s.Loss != (pipe.Loss{}):
		return bad("loss beside loss_states: one model at a time")
	case s.LossAfterQueue && s.LossStates == nil && s.Loss == (pipe.Loss{}):
		return bad("loss_after_queue without a loss")
	}
	if err := s.validateStates(bad); err != nil {
		return err
	}
	return s.validateTree(bad, n)
}

func (s *Shape) validateStates(bad func(string, ...any) error) error {
	if t := s.LossStates; t != nil {
		for _, f := range []vtime.Fraction{t.P13, t.P31, t.P32, t.P23, t.P14} {
			if !(f >= 0 && f <= 1) {
				return bad("loss_states: a probability of %v, want 0%% to 100%%", f)
			}
		}
		if t.P13+t.P14 > 1 || t.P31+t.P32 > 1 {
			return bad("loss_states: the probabilities to leave a state sum to more than 100%%")
		}
		if t.P13 > 0 && t.P31 == 0 {
			return bad("loss_states: the burst is never left: p31 is 0")
		}
	}
	if t := s.Slots; t != nil {
		switch {
		case t.Min < 0 || t.Max < t.Min || t.Max == 0:
			return bad("slots of %v to %v: want a positive time that does not shrink", t.Min, t.Max)
		case t.Packets < 0 || t.Bytes < 0 || t.Bytes > math.MaxInt32:
			return bad("slots of %d packets, %v: out of range", t.Packets, t.Bytes)
		}
	}
	return nil
}

// validateTree refuses what the kernel's disciplines cannot do together.
func (s *Shape) validateTree(bad func(string, ...any) error, classes int) error {
	switch s.Shaper {
	case AnyShaper:
	case NetemShaper, TBFShaper, HTBShaper:
		if s.Rate == 0 {
			return bad("the shaper %s without a rate", s.Shaper)
		}
	default:
		return bad("the shaper %q is unknown: want netem, tbf or htb", s.Shaper)
	}
	switch {
	case s.Shaper == NetemShaper && s.LimitBytes > 0:
		return bad("the shaper netem counts its queue in packets, not in bytes (%v): choose tbf", s.LimitBytes)
	case s.Shaper == HTBShaper && s.needsNetem():
		return bad("the shaper htb keeps the rate of classes without delay, loss and so on: choose netem or tbf")
	case s.Duplicate > 0 && classes > 1:
		return bad("duplicate %v beside other classes: the kernel duplicates in one netem at a time", s.Duplicate)
	case s.Duplicate > 0 && s.lastStage():
		return bad("duplicate %v beside reordering or loss after the queue: the kernel duplicates in one netem at a time", s.Duplicate)
	case s.Duplicate > 0 && s.Shaper == NetemShaper:
		return bad("duplicate %v with the shaper netem: the kernel duplicates in one netem at a time; choose tbf", s.Duplicate)
	case s.lastStage() && s.Rate > 0 && (s.Shaper == TBFShaper || s.LimitBytes > 0):
		return bad("reordering or loss after the queue needs the shaper netem, with a queue in packets")
	}
	return nil
}

// needsNetem says whether the shape has anything but a rate.
func (s *Shape) needsNetem() bool {
	return s.Delay > 0 || s.Jitter.Spread > 0 || s.Loss != (pipe.Loss{}) || s.LossStates != nil || s.Reorder.Share > 0 || s.Duplicate > 0 || s.Corrupt > 0 || s.Slots != nil
}

// lastStage says whether something happens to packets that have left the queue.
func (s *Shape) lastStage() bool { return s.Reorder.Share > 0 || s.LossAfterQueue }
