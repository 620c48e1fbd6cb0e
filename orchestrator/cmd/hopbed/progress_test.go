package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/run"
)

// twoCampaigns tells an observer of two back ends with two runs each, and calls
// look after every step.
func twoCampaigns(o run.Observer, look func()) {
	for part, backend := range []string{"sim", "netns"} {
		c := run.Campaign{ID: int64(part + 1), Name: "x", Backend: backend, Runs: 2, Expected: 10 * time.Second, Part: part + 1, Parts: 2}
		if part == 0 {
			c.Expected, c.Later = 2*time.Second, 12*time.Second // less than it will turn out
		}
		o.CampaignStarted(c)
		for i := range 2 {
			r := run.RunInfo{Index: i, Total: 2, Label: "transport=hop", Repetition: 1, Attempt: 1, Length: time.Second}
			o.RunStarted(r)
			look()
			for at := range vtime.Duration(3) {
				o.RunProgress("measure", at*vtime.Second, 4*vtime.Second)
				look()
			}
			o.RunDone(r, run.Outcome{Status: "complete"})
		}
		o.CampaignDone(2, 0, 0, time.Second)
	}
}

// One bar goes once from the first run on the first back end to the last on the
// last.
func TestOneBarForAllBackEnds(t *testing.T) {
	var out bytes.Buffer
	o := &barObserver{lines: lineObserver{w: &out}, w: &out}
	var seen []float64
	twoCampaigns(o, func() {
		state := o.bar.State()
		seen = append(seen, state.CurrentPercent)
	})
	for i := 1; i < len(seen); i++ {
		if seen[i] < seen[i-1] || seen[i] >= 1 {
			t.Errorf("the bar goes back or is full before the end: %v", seen)
			break
		}
	}
	// The first back end takes 2 of 12 s: after it, the bar is at its sixth.
	if half := seen[len(seen)/2]; half < 0.1 || half > 0.2 {
		t.Errorf("at the begin of the second back end the bar is at %g", half)
	}
	if d := o.bar.State().Description; !strings.HasPrefix(d, "netns, run 2/2") {
		t.Errorf("the bar is called %q", d)
	}
	text := out.String()
	for _, want := range []string{"campaign 1: x on sim, back end 1 of 2", "then about 12s on the next", "campaign 2: x on netns, back end 2 of 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// Programs are told of every run on which back end it is.
func TestJSONProgressNamesTheBackEnd(t *testing.T) {
	var out bytes.Buffer
	twoCampaigns(newJSON(&out), func() {})
	count := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var e struct {
			Event string
			Data  map[string]any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Data["backend"].(string); ok {
			count[e.Event+" "+b]++
		}
	}
	for _, b := range []string{"sim", "netns"} {
		if count["campaign "+b] != 1 || count["run "+b] != 2 || count["done "+b] != 2 || count["finished "+b] != 1 {
			t.Errorf("events: %v", count)
		}
	}
}

// TestNumbersForPeople: three digits, and no exponent.
func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{rate(0), "0 b/s"}, {rate(999.4), "999 b/s"}, {rate(999.6), "1 kb/s"}, {rate(14_640), "14.6 kb/s"}, {rate(999_800), "1 Mb/s"},
		{rate(2.456e6), "2.46 Mb/s"}, {rate(3.5e9), "3500 Mb/s"}, {seconds(0.3061), "0.306 s"}, {seconds(1800), "1800 s"}, {seconds(999.9), "1000 s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// A reason of several lines, such as that of a lost node with what it may have left
// behind, is read line by line.
func TestReasonsOfSeveralLines(t *testing.T) {
	var b bytes.Buffer
	o := &lineObserver{w: &b}
	o.RunDone(run.RunInfo{}, run.Outcome{Status: "failed", Reasons: []string{"node n02: nothing came\nremedy: look\x1b[2J"}})
	if got, want := b.String(), "  failed because: node n02: nothing came\n    remedy: look"; !strings.Contains(got, want) || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

// The last words of an agent are lines: on one line of the progress they are told
// apart, and nothing in them drives the terminal.
func TestLinesOfAnAgentAreOneLine(t *testing.T) {
	if got, want := clean("put back: 2 routes\nthe agent \x1b[31mended\n"), "put back: 2 routes / the agent �[31mended"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
