package capture

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Notes come into a log by their time; one whose time was rounded comes behind
// what happened within the rounding.
func TestMerge(t *testing.T) {
	l := newLab(t, nil)
	_, events, _ := l.record(20)
	const at = vtime.Time(2 * ms) // something happens then
	notes := []Note{
		{At: 0, Node: 0, What: "flow", Text: "0 begins"},
		{At: at, Node: 1, What: "flow", Text: "1 begins"},
		{At: at, Node: 1, What: "flow", Text: "1 connected", Rounded: vtime.Microsecond},
		{At: vtime.Time(vtime.Hour), Node: 3, What: "flow", Text: "1 ends"},
	}
	var out bytes.Buffer
	if err := Merge(&out, bytes.NewReader(events), l.cfg, notes); err != nil {
		t.Fatal(err)
	}
	var lines, rest []string
	place := map[string]int{}
	last := vtime.Time(0)
	for line := range strings.Lines(out.String()) {
		if s := strings.TrimSpace(line); strings.Contains(s, "  flow ") {
			place[s[strings.Index(s, "flow "):]] = len(lines)
		} else {
			rest = append(rest, line)
		}
		lines = append(lines, line)
		if now, ok := timeOf([]byte(line)); ok {
			if now < last {
				t.Fatalf("out of order: %s", line)
			}
			last = now
		}
	}
	if strings.Join(rest, "") != string(events) {
		t.Error("the other lines are not those of the log")
	}
	first := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "   0.002000000") })
	if place["flow 0 begins"] != 2 || place["flow 1 begins"] != first || place["flow 1 ends"] != len(lines)-1 {
		t.Errorf("%v, the first line of 2 ms is %d", place, first)
	}
	if k := place["flow 1 connected"]; !strings.HasPrefix(lines[k-1], "   0.002000000  server:eth0") || strings.HasPrefix(lines[k+1], "   0.002000000") {
		t.Errorf("the note with a rounded time stands between\n%s%s", lines[k-1], lines[k+1])
	}
	if lines[2] != "   0.000000000  a            flow 0 begins\n" {
		t.Errorf("%q", lines[2])
	}
}
