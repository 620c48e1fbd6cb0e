package pace

import "github.com/hopbed/hopbed/netem/vtime"

// A real-time thread must leave some time to ordinary ones. The kernel gives
// them 50 ms of every second (sched_rt_runtime_us, since Linux 6.12 the fair
// server), and takes those in one piece: measured, a loop that used 95 % of a
// processor had a p99 lateness of 39 ms at a p50 of 15 µs. It also wastes time
// where it is short: at 139,000 frames a second a quarter of it went into
// 55,000 waits.
//
// So a loop that is crowded spaces its turns: it sleeps, deaf to descriptors,
// until a little time has passed since the last turn, and then serves all that
// has come at once.
const (
	loadWindow = 10 * vtime.Millisecond  // between two looks at the load
	crowdedAt  = 75                      // percent of a processor: from here on turns are spaced …
	relaxedAt  = 50                      // … until below this
	spacing    = 100 * vtime.Microsecond // between the beginnings of two turns
	leaveFree  = 10                      // percent of a turn's length slept at least
)

// breath decides when a loop pauses.
type breath struct {
	looked  vtime.Time     // the last look at the load
	cpu     vtime.Duration // the thread's processor time then
	crowded bool
}

// due says whether it is time to look at the load.
func (b *breath) due(now vtime.Time) bool { return now.Sub(b.looked) >= loadWindow }

// look takes the thread's processor time and decides.
func (b *breath) look(now vtime.Time, cpu vtime.Duration) {
	load := (cpu - b.cpu) * 100 / max(1, now.Sub(b.looked))
	switch {
	case load >= crowdedAt:
		b.crowded = true
	case load < relaxedAt:
		b.crowded = false
	}
	b.looked, b.cpu = now, cpu
}

// pause is how long to sleep after a turn of the given length.
func (b *breath) pause(turn vtime.Duration) vtime.Duration {
	if !b.crowded {
		return 0
	}
	return max(spacing-turn, turn*leaveFree/100)
}
