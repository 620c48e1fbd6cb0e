package vtime

import (
	"math"
	"time"
)

// Time is a moment of a run: nanoseconds since its start. The wall-clock back
// ends map it to CLOCK_MONOTONIC by one offset per run; the sim back end has
// no other clock.
type Time int64

// Duration is a span of virtual time in nanoseconds. It has the same unit as
// time.Duration but is a type of its own, so that a wall-clock span cannot
// slip into a state machine unnoticed.
type Duration int64

// The units of virtual time.
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
)

// Never is the deadline of a machine that waits for nothing.
const Never Time = math.MaxInt64

// Add returns t+d, saturating at Never, so that "never plus something" stays
// never.
func (t Time) Add(d Duration) Time {
	s := t + Time(d)
	if d > 0 && s < t {
		return Never
	}
	return s
}

// Sub returns t-u.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// Seconds returns t in seconds since the start of the run.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return float64(d) / 1e9 }

// Std converts to the standard library's duration (the same unit).
func (d Duration) Std() time.Duration { return time.Duration(d) }

// FromStd converts from the standard library's duration.
func FromStd(d time.Duration) Duration { return Duration(d) }

// FromSeconds rounds s seconds to the nearest nanosecond.
func FromSeconds(s float64) Duration { return Duration(math.Round(s * 1e9)) }

// Min returns the earlier of two moments.
func Min(a, b Time) Time {
	if a < b {
		return a
	}
	return b
}

// Max returns the later of two moments.
func Max(a, b Time) Time {
	if a > b {
		return a
	}
	return b
}
