package dataset

import (
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// times are the flows of a repetition that took so long; 0: not completed.
func times(rep int, s ...float64) Rep {
	r := Rep{Run: store.Run{Repetition: rep, Seed: store.Seed(rep), WarmupS: 5, DurationS: 25}, Sized: true}
	for i, v := range s {
		f := store.Flow{Flow: i, Hops: 1, StartS: 2, StopS: 30, Size: store.Some[int64](1000), GoodputBps: store.Some(0.0)}
		if v > 0 {
			f.CompletionS = store.Some(2 + v)
		}
		r.Flows = append(r.Flows, f)
	}
	return r
}

func TestCompletionTimes(t *testing.T) {
	c := Completions([]Rep{times(1, 4, 0, 10), times(2, 6, 0, 0)})
	// 4, 6, 10, 28, 28, 28: from the start at 2 s to the end at 30 s.
	if c.Flows != 6 || c.Done != 3 || c.Share() != 0.5 || c.Times.Q1 != 7 || c.Times.Median != 19 || c.Times.Max != 28 {
		t.Errorf("%+v", c)
	}
	if c.AtLeast != [3]bool{false, true, true} {
		t.Errorf("at least: %v", c.AtLeast)
	}
}

// A transfer that completed was served, be it in the warm-up and its goodput 0.
func TestCompletedTransfersDoNotStarve(t *testing.T) {
	r := times(1, 2, 0, 4)
	r.Flows = append(r.Flows, store.Flow{Flow: 3, GoodputBps: store.Some(9_999.0)}, store.Flow{Flow: 4, GoodputBps: store.Some(10_000.0)})
	if got := r.StarvedShare(); got != 0.4 { // one that did not complete and the slow continual one, of five
		t.Errorf("starved: %g", got)
	}
	s := Series{Reps: []Rep{times(1, 2, 4)}}
	if sum := s.Summary(); sum.StarvedShare != 0 || sum.Goodput.Max != 0 {
		t.Errorf("all completed: %+v", sum)
	}
}

func TestSpeedUpIsTheBaselinesTimeOverTheOther(t *testing.T) {
	fast := &Series{Transport: "hop", Reps: []Rep{times(1, 2, 4), times(2, 2, 4)}}
	slow := &Series{Transport: "tcp/cubic", Reps: []Rep{times(1, 8, 16), times(2, 8, 16)}}
	r := Compare(fast, slow, 1)
	if !r.Sized || r.Median.Value != 4 || r.PerRepetition.Value != 4 || r.Each[1] != 4 || r.Mean.N != 0 || r.Aggregate.N != 0 {
		t.Errorf("%+v", r)
	}
	g := &Group{Series: []Series{*fast, *slow}, Sized: true}
	rows := ByHops(g, &g.Series[1], 1)
	if len(rows) != 1 || rows[0].Cells[0].Gain.Value != 4 || rows[0].Cells[0].Values.Median != 3 {
		t.Errorf("%+v", rows)
	}
	if !sized(fast.Flows()) || sized(append(fast.Flows(), store.Flow{})) || sized(nil) {
		t.Error("which flows are sized")
	}
}

// A ratio that rests on flows that had not completed says so.
func TestBoundsOfSpeedUps(t *testing.T) {
	done := &Series{Transport: "hop", Reps: []Rep{times(1, 2, 4), times(2, 2, 4)}}
	open := &Series{Transport: "tcp/cubic", Reps: []Rep{times(1, 8, 0), times(2, 8, 0)}}
	for _, c := range []struct {
		a, b *Series
		want Bound
	}{{done, open, AtLeast}, {open, done, AtMost}, {open, open, Unknown}, {done, done, Exact}} {
		r := Compare(c.a, c.b, 1)
		if r.Bounds[1] != c.want || r.PerRepetitionBound != c.want {
			t.Errorf("%s over %s: %q and %q, want %q", c.a.Transport, c.b.Transport, r.Bounds[1], r.PerRepetitionBound, c.want)
		}
	}
	if b := together([]Bound{AtLeast, Exact, AtMost}); b != Unknown {
		t.Errorf("bounds both ways together: %q", b)
	}
}
