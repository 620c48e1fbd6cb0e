package program

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The bounds of what a program of the transport exec may say.
const (
	maxBytes    = 1 << 53 // of a total: what a float64 holds exactly
	maxCounters = 32
)

var counterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// reserved are counters of every flow.
var reserved = []string{"source_bytes", "total_bytes", "connect_attempts"}

// saying is one line of a program: a JSON object with the total of the bytes so
// far, the moment at which that was so, and counters.
type saying struct {
	bytes    vtime.Bytes
	hasBytes bool
	// t is in seconds of CLOCK_MONOTONIC; 0 = when the line was read.
	t        float64
	counters []proto.Counter
}

// parseSaying reads one line.
func parseSaying(line []byte) (saying, error) {
	var s saying
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return s, fmt.Errorf("%.80q is no JSON object: %s", line, oneLine([]byte(err.Error())))
	}
	for name, raw := range fields {
		var f float64
		if err := json.Unmarshal(raw, &f); err != nil {
			if name == "bytes" || name == "t" {
				return s, fmt.Errorf("%q is %.40s and must be a number", name, raw)
			}
			continue // a text of the program's own
		}
		switch name {
		case "bytes":
			if f < 0 || f > maxBytes || f != math.Trunc(f) {
				return s, fmt.Errorf("\"bytes\" is %.40s and must be a whole number from 0", raw)
			}
			s.bytes, s.hasBytes = vtime.Bytes(f), true
		case "t":
			if f <= 0 {
				return s, fmt.Errorf("\"t\" is %.40s and must be a moment of CLOCK_MONOTONIC in seconds", raw)
			}
			s.t = f
		default:
			if slices.Contains(reserved, name) {
				return s, fmt.Errorf("the counter %s has a meaning of its own in the results: choose another name", name)
			}
			if !counterName.MatchString(name) {
				return s, fmt.Errorf("the counter %.50q: its name must be of small letters, digits and _, at most 40", name)
			}
			if f < -maxBytes || f > maxBytes {
				return s, fmt.Errorf("the counter %s is %.40s, beyond 2^53", name, raw)
			}
			s.counters = append(s.counters, proto.Counter{Name: name, Delta: int64(math.Round(f))})
		}
	}
	return s, nil
}

// listen reads the lines of a program, and hands each to take. It returns what
// was wrong with the output, nil when nothing was. lines counts those that were
// understood.
func listen(in io.Reader, take func(saying) error) (lines int, err error) {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		if len(sc.Bytes()) == 0 {
			continue
		}
		s, err := parseSaying(sc.Bytes())
		if err == nil {
			err = take(s)
		}
		if err != nil {
			// The last line before a broken read is a part of one.
			if broken := sc.Err(); broken != nil {
				return lines, broken
			}
			return lines, fmt.Errorf("line %d of its output: %w", lines+1, err)
		}
		lines++
	}
	if errors.Is(sc.Err(), bufio.ErrTooLong) {
		return lines, fmt.Errorf("line %d of its output is longer than %d KiB", lines+1, maxLine>>10)
	}
	return lines, sc.Err()
}

// counters keeps the last value of each counter that a program names.
type counters []proto.Counter

func (c *counters) set(more []proto.Counter) error {
	for _, m := range more {
		i := slices.IndexFunc(*c, func(have proto.Counter) bool { return have.Name == m.Name })
		switch {
		case i >= 0:
			(*c)[i].Delta = m.Delta
		case len(*c) >= maxCounters:
			return fmt.Errorf("more than %d counters", maxCounters)
		default:
			*c = append(*c, m)
		}
	}
	return nil
}
