package pipe

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// opportunity is what one line of a trace may deliver (Mahimahi: one packet
// of 1,500 bytes, or several smaller ones, or a part of a larger one).
const opportunity = 1500 * vtime.Byte

// Trace is a series of delivery opportunities in Mahimahi's format: one line
// per opportunity, its time in whole milliseconds, not descending; the trace
// repeats with the period of its last line.
type Trace struct {
	times  []vtime.Time // in (0, period]
	period vtime.Duration
}

// ReadTrace reads a trace. Errors name the line and its value.
func ReadTrace(r io.Reader) (*Trace, error) {
	t := new(Trace)
	sc := bufio.NewScanner(r)
	line := 0
	for sc.Scan() {
		line++
		s := strings.TrimSpace(sc.Text())
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		ms, err := strconv.ParseInt(s, 10, 64)
		if err != nil || ms < 0 || ms > int64(vtime.Hour/vtime.Millisecond)*24 {
			return nil, fmt.Errorf("trace: line %d: %q is not a time in milliseconds (0 to 24 h)", line, s)
		}
		at := vtime.Time(ms) * vtime.Time(vtime.Millisecond)
		if n := len(t.times); n > 0 && at < t.times[n-1] {
			return nil, fmt.Errorf("trace: line %d: %d ms comes before the line above", line, ms)
		}
		t.times = append(t.times, at)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("trace: line %d: %w", line+1, err)
	}
	return newTrace(t)
}

// NewTrace returns a trace of the given opportunities, in milliseconds.
func NewTrace(ms []int64) (*Trace, error) {
	t := new(Trace)
	for i, m := range ms {
		if m < 0 || i > 0 && m < ms[i-1] {
			return nil, fmt.Errorf("trace: opportunity %d at %d ms: negative or descending", i+1, m)
		}
		t.times = append(t.times, vtime.Time(m)*vtime.Time(vtime.Millisecond))
	}
	return newTrace(t)
}

func newTrace(t *Trace) (*Trace, error) {
	if len(t.times) == 0 || t.times[len(t.times)-1] == 0 {
		return nil, fmt.Errorf("trace: no opportunity after 0 ms: the period would be zero")
	}
	t.period = vtime.Duration(t.times[len(t.times)-1])
	return t, nil
}

// Period returns after which time the trace repeats.
func (t *Trace) Period() vtime.Duration { return t.period }

// Rate returns the mean capacity.
func (t *Trace) Rate() vtime.BitRate {
	return vtime.BitRate(float64(int64(len(t.times))*int64(opportunity)*8) / t.period.Seconds())
}

// first returns the number of the first opportunity at or after d.
func (t *Trace) first(d vtime.Duration) int64 {
	n := int64(len(t.times))
	round, in := int64(d/t.period), vtime.Time(d%t.period)
	i := sort.Search(len(t.times), func(i int) bool { return t.times[i] >= in })
	if in == 0 && round > 0 { // also the end of the round before
		j := sort.Search(len(t.times), func(i int) bool { return t.times[i] >= vtime.Time(t.period) })
		return (round-1)*n + int64(j)
	}
	return round*n + int64(i)
}

// at returns the time of an opportunity.
func (t *Trace) at(n int64) vtime.Time {
	l := int64(len(t.times))
	return vtime.Time(n/l)*vtime.Time(t.period) + t.times[n%l]
}
