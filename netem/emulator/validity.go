package emulator

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The bounds of validity. Lateness raises goodput, because it batches
// acknowledgements: with wake-ups rounded to 1, 2 and 5 ms, a TCP flow over
// three 54 Mb/s hops gained 3, 10 and 15 %. Half a millisecond is below what
// was seen to matter.
const (
	ValidP99   = 500 * vtime.Microsecond // up to here a run is valid
	WarnP99    = vtime.Millisecond       // above this it is invalid, between with a warning
	LateBound  = 2 * vtime.Millisecond   // an event later than this …
	MaxLate    = 0.01                    // … may be this share of all
	MinEvents  = 100                     // fewer say nothing about quantiles
	WriteError = 1e-4                    // tolerated share of frames that a node's kernel refused
)

// The bounds of a standstill: the longest time in which the emulator did nothing
// although it had something to do. Few events are late in it, so the quantiles
// do not see it: a flow stands still as well, and a second without traffic is
// three late events in a thousand. It costs goodput in proportion to the
// interval, and from 200 ms on it makes Linux's TCP time out (TCP_RTO_MIN).
const (
	StandstillLimit = 200 * vtime.Millisecond // a run with a longer one is invalid …
	StandstillShare = 0.01                    // … or one of a larger share of the measured interval …
	StandstillFloor = 20 * vtime.Millisecond  // … but not below this, which hosts do now and then
	StandstillWarn  = 0.5                     // share of the limit that is worth a warning
)

// standstillLimit is the bound for a measured interval of the given length over
// wired links of which the shortest queue drains in the given time (0: none). What
// their senders had sent meanwhile comes in one burst at the end of a standstill: one
// of 99 ms before a queue of 60 ms overflowed it, and halved the goodput of a flow of
// 200 ms round trip for the rest of its run.
func standstillLimit(d, drain vtime.Duration) vtime.Duration {
	limit := min(StandstillLimit, vtime.Duration(StandstillShare*float64(d)))
	if drain > 0 {
		limit = min(limit, drain)
	}
	return max(StandstillFloor, limit)
}

// Standstill is the longest time in which the pacing thread did not get to its
// work: it was not woken, it computed without looking up, or an event waited.
func (l *LatenessSummary) Standstill() vtime.Duration { return max(l.Stall, l.Turn, l.Max) }

// rounded is a duration for people.
func rounded(d vtime.Duration) time.Duration {
	if s := d.Std(); s > 10*time.Millisecond {
		return s.Round(time.Millisecond)
	}
	return d.Std().Round(time.Microsecond)
}

// Verdict says whether a run's timing can be trusted.
type Verdict struct {
	Valid    bool     `json:"valid"`
	Reasons  []string `json:"reasons,omitempty"`  // why it is invalid
	Warnings []string `json:"warnings,omitempty"` // what a reader should know
}

// Judge applies the bounds to a report. It is a function of the report alone.
func Judge(r *Report) Verdict {
	var v Verdict
	invalid := func(format string, args ...any) { v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...)) }
	warn := func(format string, args ...any) { v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...)) }

	l := &r.Measured.Lateness
	switch {
	case l.P99 > WarnP99:
		invalid("lateness p99 %v is above %v: the host is too slow or too busy for this experiment (priority %s)", rounded(l.P99), WarnP99.Std(), r.Priority)
	case l.P99 > ValidP99:
		warn("lateness p99 %v is above %v", rounded(l.P99), ValidP99.Std())
	}
	if l.Above2ms > MaxLate {
		invalid("%.2g %% of the events were more than %v late (at most %.2g %%)", l.Above2ms*100, LateBound.Std(), MaxLate*100)
	}
	stood, limit := l.Standstill(), standstillLimit(r.Measured.To.Sub(r.Measured.From), r.ShortestDrain)
	switch {
	case stood > limit:
		invalid("the emulator stood still for %v (at most %v in this run): it was stopped, or the host gave its processor to others", rounded(stood), rounded(limit))
	case stood > vtime.Duration(StandstillWarn*float64(limit)):
		warn("the emulator stood still for %v (invalid above %v)", rounded(stood), rounded(limit))
	}
	if l.Events < MinEvents {
		warn("only %d events: the lateness quantiles mean little", l.Events)
	}
	if r.RingDrops > 0 {
		warn("%d frames were dropped between a node's kernel and the emulator: losses that no link caused", r.RingDrops)
	}
	f := &r.Measured.Frames
	if f.WriteErrors > 0 {
		msg := fmt.Sprintf("%d of %d frames were refused by the receiving node's kernel", f.WriteErrors, f.Written+f.WriteErrors)
		if float64(f.WriteErrors) > WriteError*float64(f.Written+f.WriteErrors) {
			invalid("%s", msg)
		} else {
			warn("%s", msg)
		}
	}
	if f.ReadErrors > 0 {
		invalid("%d reads from the nodes' devices failed", f.ReadErrors)
	}
	if why := judgeChanges(r.Changes); why != "" {
		invalid("%s", why)
	}
	if f.Unknown > 0 {
		warn("%d frames went over the radio to hardware addresses that no radio reaches", f.Unknown)
	}
	for i := range r.Nodes {
		if e := r.Nodes[i].DeviceError; e != "" {
			warn("node %s: no device counters: %s", r.Nodes[i].Name, e)
		}
	}
	for i := range r.PipeEnds {
		for _, end := range r.PipeEnds[i] {
			if end.DeviceError != "" {
				warn("pipe %d, interface %s: no device counters: %s", i, end.Interface, end.DeviceError)
			}
		}
	}
	v.Valid = len(v.Reasons) == 0
	return v
}
