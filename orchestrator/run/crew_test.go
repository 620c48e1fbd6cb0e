package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// gated is a parallel back end whose runs end when the test lets them.
type gated struct {
	scripted
	width int
	mu    sync.Mutex
	now   int         // runs in progress
	most  int         // … at once
	begun chan int    // plan positions, as they begin
	gates []chan gate // per plan position
}

type gate struct {
	reasons []string
	err     error
}

func newGated(runs, width int) *gated {
	g := &gated{width: width, begun: make(chan int, 100)}
	for range runs {
		g.gates = append(g.gates, make(chan gate, 5))
	}
	return g
}

func (g *gated) Parallel() int { return g.width }

func (g *gated) Run(ctx context.Context, s *plan.Scenario, tell backend.Progress, _ *backend.Capture) (*store.RunRecord, error) {
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
	}()
	tell(fmt.Sprintf("run %d", s.Index), 1, 2)
	g.begun <- s.Index
	select {
	case x := <-g.gates[s.Index]:
		if x.err != nil {
			return nil, x.err
		}
		one := scripted{script: func(int, *plan.Scenario) ([]string, error) { return x.reasons, nil }}
		return one.Run(ctx, s, tell, nil)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open lets runs end.
func (g *gated) open(at ...int) {
	for _, i := range at {
		g.gates[i] <- gate{}
	}
}

// await returns the positions of the next n runs that begin, sorted.
func (g *gated) await(t *testing.T, n int) []int {
	t.Helper()
	var got []int
	for range n {
		select {
		case i := <-g.begun:
			got = append(got, i)
		case <-time.After(20 * time.Second):
			t.Fatalf("only the runs %v of %d began", got, n)
		}
	}
	slices.Sort(got)
	return got
}

// idle fails when another run begins.
func (g *gated) idle(t *testing.T) {
	t.Helper()
	select {
	case i := <-g.begun:
		t.Errorf("run %d began before it may", i)
	case <-time.After(30 * time.Millisecond):
	}
}

// onlooker writes down what an observer is told.
type onlooker struct {
	Silent
	t    *testing.T
	mu   sync.Mutex // held by nobody else: the calls must not overlap
	said []string
}

func (o *onlooker) note(format string, args ...any) {
	if !o.mu.TryLock() {
		o.t.Error("the observer is called from two goroutines at once")
		return
	}
	defer o.mu.Unlock()
	o.said = append(o.said, fmt.Sprintf(format, args...))
}

func (o *onlooker) RunStarted(r RunInfo)                      { o.note("started %d.%d", r.Index, r.Attempt) }
func (o *onlooker) RunProgress(p string, _, _ vtime.Duration) { o.note("progress %s", p) }
func (o *onlooker) RunDone(r RunInfo, out Outcome) {
	o.note("done %d.%d %s", r.Index, r.Attempt, out.Status)
}
func (o *onlooker) CampaignDone(complete, _, _ int, _ time.Duration) { o.note("end %d", complete) }

type ended struct {
	sum Summary
	err error
}

// launch executes the plan in the background.
func (b *bench) launch(ctx context.Context, be backend.Backend, o Observer) chan ended {
	out := make(chan ended, 1)
	go func() {
		sum, err := Execute(ctx, Options{Plan: b.p, Backend: be, Store: b.st, Observe: o, Version: "test", Host: store.Facts{}})
		out <- ended{sum, err}
	}()
	return out
}

// stored returns the plan positions of the stored runs in the order of storing.
func (b *bench) stored() []int {
	b.t.Helper()
	runs := b.runs()
	slices.SortFunc(runs, func(x, y store.Run) int { return int(x.ID - y.ID) })
	var at []int
	for _, r := range runs {
		i := 2 * (r.Repetition - 1)
		if r.Transport != "hop" {
			i++
		}
		at = append(at, i)
	}
	return at
}

func TestParallelRunsAreStoredAndSeenInPlanOrder(t *testing.T) {
	b, g, o := setUp(t), newGated(6, 3), &onlooker{t: t}
	out := b.launch(t.Context(), g, o)
	if got := g.await(t, 3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Fatalf("the runs %v begin first", got)
	}
	g.idle(t)
	g.open(2, 1) // out of order: two others may begin, nothing is stored
	if got := g.await(t, 2); !slices.Equal(got, []int{3, 4}) {
		t.Fatalf("then the runs %v begin", got)
	}
	g.open(3, 4)
	g.await(t, 1)
	if n := len(b.stored()); n != 0 {
		t.Errorf("%d runs are stored before the first one", n)
	}
	g.open(5, 0)
	e := <-out
	if e.err != nil || !e.sum.OK() || e.sum.Complete != 6 || g.most != 3 {
		t.Fatalf("%+v, %v, %d at once", e.sum, e.err, g.most)
	}
	if got := b.stored(); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("stored in the order %v", got)
	}
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprintf("started %d.1", i), fmt.Sprintf("progress run %d", i), fmt.Sprintf("done %d.1 complete", i))
	}
	if want = append(want, "end 6"); !slices.Equal(o.said, want) {
		t.Errorf("the observer was told\n%v\nwant\n%v", o.said, want)
	}
}

// The results that wait for an earlier run are bounded.
func TestParallelRunsDoNotPileUp(t *testing.T) {
	b, g := setUp(t), newGated(6, 2)
	out := b.launch(t.Context(), g, Silent{})
	g.await(t, 2)
	for _, i := range []int{1, 2} {
		g.open(i)
		g.await(t, 1)
	}
	g.open(3) // 1, 2 and 3 wait for 0: a fourth beside them would be too many
	g.idle(t)
	g.open(0, 4, 5)
	if e := <-out; e.err != nil || e.sum.Complete != 6 {
		t.Errorf("%+v, %v", e.sum, e.err)
	}
}

func TestParallelInterruptionKeepsWhatIsFinished(t *testing.T) {
	b, g := setUp(t), newGated(6, 2)
	ctx, cancel := context.WithCancel(t.Context())
	out := b.launch(ctx, g, Silent{})
	g.await(t, 2)
	g.open(1)
	g.await(t, 1)
	cancel() // 0 and 2 are in progress, 1 waits to be stored
	e := <-out
	if e.err != nil || !e.sum.Interrupted || e.sum.Complete != 1 || !slices.Equal(b.stored(), []int{1}) {
		t.Fatalf("%+v, %v, stored %v; want run 1 alone", e.sum, e.err, b.stored())
	}
	again := newGated(6, 2)
	again.open(0, 2, 3, 4, 5)
	sum, err := b.execute(t.Context(), again, true)
	if err != nil || !sum.OK() || sum.Complete != 6 || sum.CampaignID != e.sum.CampaignID {
		t.Errorf("resume: %+v, %v", sum, err)
	}
}

func TestParallelRunIsRepeatedInItsTurn(t *testing.T) {
	b, g, o := setUp(t), newGated(6, 2), &onlooker{t: t}
	out := b.launch(t.Context(), g, o)
	g.gates[0] <- gate{reasons: []string{"late"}}
	g.gates[0] <- gate{err: errors.New("lost")}
	g.open(0, 1, 2, 3, 4, 5)
	e := <-out
	if e.err != nil || !e.sum.OK() || e.sum.Complete != 6 {
		t.Fatalf("%+v, %v", e.sum, e.err)
	}
	if got := b.stored(); !slices.Equal(got, []int{0, 0, 0, 1, 2, 3, 4, 5}) || g.most > 2 {
		t.Errorf("stored %v, %d at once", got, g.most)
	}
	if i := slices.Index(o.said, "started 1.1"); i < slices.Index(o.said, "done 0.3 complete") {
		t.Errorf("run 1 is shown before run 0 is done: %v", o.said)
	}
}

func TestParallelFatalStopsTheOthers(t *testing.T) {
	b, g := setUp(t), newGated(6, 3)
	boom := errors.New("no memory")
	out := b.launch(t.Context(), g, Silent{})
	g.await(t, 3)
	g.open(1)
	g.await(t, 1)
	g.gates[0] <- gate{err: &backend.Fatal{Err: boom}}
	e := <-out
	if !errors.Is(e.err, boom) || e.sum.Interrupted || e.sum.Failed != 1 || e.sum.Complete != 1 {
		t.Errorf("%+v, %v", e.sum, e.err)
	}
	if got := b.stored(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("stored %v; want the failed run and the finished one", got)
	}
}
