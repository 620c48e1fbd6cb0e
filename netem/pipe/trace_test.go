package pipe

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func mustTrace(t *testing.T, s string) *Trace {
	t.Helper()
	tr, err := ReadTrace(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestTrace: one packet per opportunity, several small ones, one large one in
// parts; the trace repeats with the period of its last line.
func TestTrace(t *testing.T) {
	tr := mustTrace(t, "# a comment\n2\n5\n5\n10\n")
	if tr.Period() != 10*vtime.Millisecond || tr.Rate() != vtime.BitRate(4*1500*8*100) {
		t.Errorf("period %v, rate %v", tr.Period(), tr.Rate())
	}
	for _, tc := range []struct {
		n    vtime.Bytes
		want []int64 // ms
	}{
		{1500, []int64{2, 5, 5, 10, 12, 15, 15, 20, 22}},
		{500, []int64{2, 2, 2, 5, 5, 5, 5, 5, 5, 10}},
		{3000, []int64{5, 10, 15, 20}},
		{2000, []int64{5, 5, 10, 15}}, // 2,000 = 1,500 + 500; 500 + 1,000 …
	} {
		eng, p, c := build(t, 1, Config{Trace: tr})
		feed(eng, p, tc.n, 0, len(tc.want))
		for i, w := range tc.want {
			if at := vtime.Time(w) * vtime.Time(vtime.Millisecond); c.at[i] != at {
				t.Errorf("%v: packet %d at %v, want %v", tc.n, i, c.at[i], at)
			}
		}
	}
}

// TestTraceIdle: opportunities without a packet are wasted; one at the moment
// of arrival is used.
func TestTraceIdle(t *testing.T) {
	tr := mustTrace(t, "2\n5\n10\n")
	eng, p, c := build(t, 1, Config{Trace: tr})
	feed(eng, p, 1500, 5*vtime.Millisecond, 4) // at 0, 5, 10, 15 ms
	for i, w := range []int64{2, 5, 10, 15} {
		if at := vtime.Time(w) * vtime.Time(vtime.Millisecond); c.at[i] != at {
			t.Errorf("packet %d at %v, want %v", i, c.at[i], at)
		}
	}
}

// TestTraceOffset: a run may begin anywhere in the trace.
func TestTraceOffset(t *testing.T) {
	tr := mustTrace(t, "2\n5\n10\n")
	for off, want := range map[int64][]int64{0: {2, 5, 10, 12}, 3: {2, 7, 9, 12}, 5: {0, 5, 7, 10}, 23: {2, 7, 9, 12}} {
		eng, p, c := build(t, 1, Config{Trace: tr, TraceOffset: vtime.Duration(off) * vtime.Millisecond})
		feed(eng, p, 1500, 0, 4)
		for i, w := range want {
			if at := vtime.Time(w) * vtime.Time(vtime.Millisecond); c.at[i] != at {
				t.Errorf("offset %d ms: packet %d at %v, want %v", off, i, c.at[i], at)
			}
		}
	}
}

func TestTraceErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":         "no opportunity",
		"0\n":      "no opportunity",
		"5\n3\n":   "line 2: 3 ms comes before",
		"5\nx\n":   `line 2: "x"`,
		"5\n-1\n":  `line 2: "-1"`,
		"5\n1e3\n": `line 2: "1e3"`,
	} {
		if _, err := ReadTrace(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
	if _, err := NewTrace([]int64{5, 4}); err == nil {
		t.Error("a descending trace was taken")
	}
}

// TestValidate: each impossible description is refused, naming the value.
func TestValidate(t *testing.T) {
	tr := mustTrace(t, "1\n")
	for want, cfg := range map[string]Config{
		"rate":               {Rate: -1},
		"beside a trace":     {Rate: 1, Trace: tr},
		"without a trace":    {TraceOffset: 1},
		"delay":              {Delay: -1},
		"overhead":           {Overhead: -1},
		"distribution":       {Jitter: Jitter{Spread: 1}},
		"reordering":         {Reorder: Reorder{Share: 0.1}},
		"queue":              {Queue: Queue{Packets: -1}},
		"loss is 150%":       {Loss: Loss{Good: 1.5}},
		"never left":         {Loss: Loss{ToBad: 0.1}},
		"never entered":      {Loss: Loss{Bad: 0.1}},
		"duplication":        {Duplicate: -0.1},
		"before its predece": {Schedule: []Change{{At: 5}, {At: 4}}},
		"change at":          {Schedule: []Change{{At: 5, Delay: ptr(vtime.Duration(-1))}}},
	} {
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
