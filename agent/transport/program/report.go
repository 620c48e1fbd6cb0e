package program

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// interval is what a program counted between two moments of its own clock, whose
// 0 is the begin of its test.
type interval struct {
	from, to vtime.Duration
	bytes    vtime.Bytes

	// A TCP sender.
	retransmits int64
	cwnd        vtime.Bytes
	rtt, rttvar vtime.Duration

	// UDP: at the receiver datagrams expected, at the sender datagrams sent.
	packets, lost int64
	jitter        vtime.Duration
}

// report is one side's account of its test, as far as it could be read.
type report struct {
	// connected is set when the two sides had begun their test.
	connected bool
	intervals []interval
	// total is the program's own sum, where it gave one.
	total    vtime.Bytes
	hasTotal bool
	// untilEnd is when the test ended by the program's own words, 0 when it did not
	// say; total reaches to it.
	untilEnd vtime.Duration
	cc       string // congestion control that the program read back
	mss      int    // bytes
	// outOfOrder counts the datagrams that came behind a later one.
	outOfOrder int64
	// said is the program's own error, "" when it gave none.
	said string
	// broken says why the text could not be read to its end.
	broken string
	// begin is the best known upper bound of the begin of the test on the run's
	// clock; see arrived. Meaningless while begun is false.
	begin vtime.Time
	begun bool
}

// maxIntervals bounds what is kept of a test.
const maxIntervals = 100_000

// arrived notes that something said of the moment end of the test's clock was
// read now. Nothing can be said before it is over, so that each such pair bounds
// the begin of the test from above; the least is the best.
func (r *report) arrived(now vtime.Time, end vtime.Duration) {
	if at := now.Add(-end); !r.begun || at < r.begin {
		r.begin, r.begun = at, true
	}
}

// add keeps an interval. A repeated one is left out: iperf3 says its last
// interval twice when the other side ends the test. An error is an interval that
// cannot be.
func (r *report) add(i interval) error {
	switch {
	case i.from < 0 || i.to <= i.from || i.bytes < 0 || i.retransmits < 0 || i.packets < 0 || i.lost < 0:
		return fmt.Errorf("the interval from %v to %v with %d bytes cannot be", i.from, i.to, int64(i.bytes))
	case len(r.intervals) >= maxIntervals:
		return fmt.Errorf("more than %d intervals", maxIntervals)
	}
	if n := len(r.intervals); n > 0 {
		last := r.intervals[n-1]
		if i.from == last.from && i.to == last.to {
			return nil
		}
		if i.from < last.to-seam {
			return fmt.Errorf("the interval from %v to %v overlaps the one that ends at %v", i.from, i.to, last.to)
		}
	}
	r.intervals = append(r.intervals, i)
	return nil
}

// seam is how far apart two neighbouring intervals may be, for the rounding of
// the output.
const seam = 2 * vtime.Millisecond

// end is the moment to which the intervals reach.
func (r *report) end() vtime.Duration {
	if n := len(r.intervals); n > 0 {
		return r.intervals[n-1].to
	}
	return 0
}

// reach is the moment to which the number of bytes is known.
func (r *report) reach() vtime.Duration {
	if r.hasTotal {
		return max(r.end(), r.untilEnd)
	}
	return r.end()
}

// sum is what the intervals add up to.
func (r *report) sum() (bytes vtime.Bytes) {
	for i := range r.intervals {
		bytes += r.intervals[i].bytes
	}
	return bytes
}

// verify compares the intervals with the length of one and with the program's own sum. every
// is the length that was asked for.
func (r *report) verify(every vtime.Duration) error {
	at, missing, first := vtime.Duration(0), 0, vtime.Duration(0)
	for i := range r.intervals {
		if gap := r.intervals[i].from - at; gap > max(seam, every/10) {
			if missing == 0 {
				first = at
			}
			missing += max(1, int((gap+every/2)/every))
		}
		at = r.intervals[i].to
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d intervals are missing, the first after %v", missing, missing+len(r.intervals), first)
	}
	// The sum may hold more: what came after the last interval.
	if sum := r.sum(); r.hasTotal && sum > r.total+r.total/100 {
		return fmt.Errorf("its intervals add up to %d bytes, and it says %d", int64(sum), int64(r.total))
	}
	return nil
}
