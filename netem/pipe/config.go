package pipe

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Config describes a pipe. The zero value is a wire without delay, limit or
// loss.
type Config struct {
	// Rate is the capacity; 0 = unlimited. Trace replaces it.
	Rate vtime.BitRate
	// Trace gives the capacity as delivery opportunities (Mahimahi).
	Trace *Trace
	// TraceOffset is where in the trace the run begins.
	TraceOffset vtime.Duration
	// Epoch is the engine's time at which the run begins: the times of Schedule
	// and TraceOffset count from it. It must not lie ahead of New, but may lie
	// before the engine's time 0.
	Epoch vtime.Time `json:",omitempty"`
	// Overhead is added to each packet's length on the link (framing).
	Overhead vtime.Bytes

	// Queue is what waits for the link, the packet in service included; it is
	// drop-tail. Without a rate or a trace nothing waits.
	Queue Queue

	// Delay is the propagation delay, after the queue.
	Delay  vtime.Duration
	Jitter Jitter

	Loss Loss
	// LossAfterQueue lets a lost packet occupy queue and capacity first, as on
	// a noisy line. Otherwise it is lost on entry, as in Dummynet and netem.
	LossAfterQueue bool

	Reorder   Reorder
	Duplicate vtime.Fraction // share of packets delivered twice

	// Schedule changes the pipe while it runs, in ascending order of time. What
	// is due at New already happens then.
	Schedule []Change
}

// Queue limits the waiting packets; a zero field is no limit.
type Queue struct {
	Packets int
	Bytes   vtime.Bytes
}

// Distribution is the shape of a random delay.
type Distribution uint8

// The shapes of jitter.
const (
	Constant    Distribution = iota // no jitter
	Uniform                         // Spread either side of the delay
	Normal                          // standard deviation Spread, cut at 4 of them
	Exponential                     // mean Spread, added to the delay
	Pareto                          // shape 3, mean Spread, added to the delay
)

// String names the shape as experiment files do.
func (d Distribution) String() string {
	names := [...]string{Constant: "constant", Uniform: "uniform", Normal: "normal", Exponential: "exponential", Pareto: "pareto"}
	if int(d) < len(names) {
		return names[d]
	}
	return fmt.Sprintf("distribution %d", uint8(d))
}

// Jitter varies the delay of each packet. A delay never falls below zero.
type Jitter struct {
	Distribution Distribution
	Spread       vtime.Duration
	// Overtake lets packets overtake each other, as netem does. Otherwise a
	// packet waits for the one before it, as on a line.
	Overtake bool
}

// Reorder holds back a share of the packets by Extra, so that those behind
// overtake them.
type Reorder struct {
	Share vtime.Fraction
	Extra vtime.Duration
}

// Loss is a loss model: Bernoulli if only Good is set; else Gilbert–Elliott,
// a two-state chain that moves before each packet (Gilbert 1960, Elliott 1963).
type Loss struct {
	Good, Bad vtime.Fraction // loss probability in either state
	ToBad     vtime.Fraction // probability to move from good to bad, per packet
	ToGood    vtime.Fraction // … from bad to good; 1/ToGood is the mean burst in packets
}

// Mean returns the long-run loss probability.
func (l Loss) Mean() float64 {
	if l.ToBad == 0 {
		return float64(l.Good)
	}
	bad := float64(l.ToBad) / (float64(l.ToBad) + float64(l.ToGood))
	return float64(float64(l.Good)*(1-bad)) + float64(float64(l.Bad)*bad)
}

// Change alters a running pipe at a moment. Nil fields stay as they are.
type Change struct {
	At    vtime.Time
	Up    *bool // a pipe that is down keeps its queue; what has left it arrives
	Rate  *vtime.BitRate
	Delay *vtime.Duration
	Loss  *Loss
	Queue *Queue

	// The following are for a hand that changes a standing link, not for
	// schedules in files; they hold for what leaves the queue from now on.
	Jitter    *Jitter         `json:",omitempty"`
	Reorder   *Reorder        `json:",omitempty"`
	Duplicate *vtime.Fraction `json:",omitempty"`
}

// Apply returns the description as the change leaves it; At and Up, which is no
// part of it, are ignored.
func (c Config) Apply(ch *Change) Config {
	set(&c.Rate, ch.Rate)
	set(&c.Delay, ch.Delay)
	set(&c.Loss, ch.Loss)
	set(&c.Queue, ch.Queue)
	set(&c.Jitter, ch.Jitter)
	set(&c.Reorder, ch.Reorder)
	set(&c.Duplicate, ch.Duplicate)
	return c
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Validate returns what is wrong with the description, naming the field and
// its value.
func (c *Config) Validate() error {
	switch {
	case c.Rate < 0:
		return fmt.Errorf("pipe: rate %v is negative", c.Rate)
	case c.Trace != nil && c.Rate != 0:
		return fmt.Errorf("pipe: rate %v beside a trace: set one of them", c.Rate)
	case c.Trace == nil && c.TraceOffset != 0:
		return fmt.Errorf("pipe: trace offset %v without a trace", c.TraceOffset)
	case c.TraceOffset < 0:
		return fmt.Errorf("pipe: trace offset %v is negative", c.TraceOffset)
	case c.Delay < 0:
		return fmt.Errorf("pipe: delay %v is negative", c.Delay)
	case c.Overhead < 0:
		return fmt.Errorf("pipe: overhead %v is negative", c.Overhead)
	case c.Jitter.Distribution > Pareto:
		return fmt.Errorf("pipe: jitter distribution %d is unknown", c.Jitter.Distribution)
	case c.Jitter.Spread < 0:
		return fmt.Errorf("pipe: jitter %v is negative", c.Jitter.Spread)
	case c.Jitter.Distribution == Constant && c.Jitter.Spread != 0:
		return fmt.Errorf("pipe: jitter %v without a distribution", c.Jitter.Spread)
	case c.Reorder.Extra < 0 || c.Reorder.Share > 0 && c.Reorder.Extra == 0:
		return fmt.Errorf("pipe: reordering by %v: want a positive time", c.Reorder.Extra)
	}
	if err := c.Queue.validate(); err != nil {
		return err
	}
	if err := c.Loss.validate(); err != nil {
		return err
	}
	if err := fraction("reordering share", c.Reorder.Share); err != nil {
		return err
	}
	if err := fraction("duplication", c.Duplicate); err != nil {
		return err
	}
	last := vtime.Time(0)
	for i, ch := range c.Schedule {
		if ch.At < last {
			return fmt.Errorf("pipe: change %d of the schedule is at %v, before its predecessor at %v", i+1, ch.At, last)
		}
		last = ch.At
		if ch.Rate != nil && (*ch.Rate < 0 || c.Trace != nil) {
			return fmt.Errorf("pipe: change at %v sets the rate to %v: negative, or beside a trace", ch.At, *ch.Rate)
		}
		if ch.Delay != nil && *ch.Delay < 0 {
			return fmt.Errorf("pipe: change at %v sets the delay to %v", ch.At, *ch.Delay)
		}
		if ch.Loss != nil {
			if err := ch.Loss.validate(); err != nil {
				return fmt.Errorf("pipe: change at %v: %w", ch.At, err)
			}
		}
		if ch.Queue != nil {
			if err := ch.Queue.validate(); err != nil {
				return fmt.Errorf("pipe: change at %v: %w", ch.At, err)
			}
		}
	}
	return nil
}

func (q Queue) validate() error {
	if q.Packets < 0 || q.Bytes < 0 {
		return fmt.Errorf("pipe: queue of %d packets, %v: negative", q.Packets, q.Bytes)
	}
	return nil
}

func (l Loss) validate() error {
	for _, f := range []struct {
		name string
		v    vtime.Fraction
	}{{"loss", l.Good}, {"loss in the bad state", l.Bad}, {"probability to the bad state", l.ToBad}, {"probability to the good state", l.ToGood}} {
		if err := fraction(f.name, f.v); err != nil {
			return err
		}
	}
	if l.ToBad > 0 && l.ToGood == 0 {
		return fmt.Errorf("pipe: the bad state is never left: the probability to the good state is 0")
	}
	if l.ToBad == 0 && (l.Bad != 0 || l.ToGood != 0) {
		return fmt.Errorf("pipe: the bad state is never entered: the probability to it is 0")
	}
	return nil
}

func fraction(name string, f vtime.Fraction) error {
	if !(f >= 0 && f <= 1) {
		return fmt.Errorf("pipe: %s is %v, want 0%% to 100%%", name, f)
	}
	return nil
}
