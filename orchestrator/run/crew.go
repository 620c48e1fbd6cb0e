package run

import (
	"context"
	"sync"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// crew carries out the runs of a campaign, as many at once as the back end
// allows. Only the goroutine that calls work stores results and speaks to the
// observer, and it does both in the order of the plan: whoever looks on sees one
// run after the other, however many go on.
type crew struct {
	o     Options
	c     *store.Campaign
	todo  []plan.Run
	limit int // runs at once
	// window bounds how far the runs may be ahead of the first that is not
	// stored, and with it the results in memory. 1 means that a result is
	// stored before anything else happens: a live run must not be disturbed.
	window int

	next    int     // position of the next run to begin
	head    int     // position of the first run that is not settled
	settled int     // runs whose last attempt is stored
	busy    int     // attempts in progress
	again   attempt // the head's next attempt, if again.number > 0
	results map[int]*result
	reports map[int]*reports
	shown   bool // the observer knows the head's present attempt

	done chan *result
	wake chan struct{} // some run has reported progress
}

func newCrew(o Options, c *store.Campaign, todo []plan.Run) *crew {
	limit := backend.Parallelism(o.Backend)
	w := &crew{o: o, c: c, todo: todo, limit: limit, window: 1,
		results: map[int]*result{}, reports: map[int]*reports{}, done: make(chan *result), wake: make(chan struct{}, 1)}
	if limit > 1 {
		w.window = 2 * limit
	}
	return w
}

// work carries everything out and counts it in sum. An error ends the
// campaign; what was finished by then is stored.
func (w *crew) work(outer context.Context, sum *Summary) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	var failure error
	for {
		if ctx.Err() == nil {
			w.begin(ctx)
		}
		w.show()
		if w.busy == 0 {
			break
		}
		select {
		case r := <-w.done:
			w.busy--
			w.results[r.at] = r
		case <-w.wake:
		}
		for r := w.results[w.head]; r != nil && ctx.Err() == nil; r = w.results[w.head] {
			w.show()
			if failure = w.settle(r, sum); failure != nil {
				cancel() // the others are given up
			}
		}
	}
	// After a stop there may be gaps before what is finished.
	for at := w.head; at < w.next; at++ {
		r := w.results[at]
		if r == nil {
			continue
		}
		w.head, w.shown = at, false
		w.show()
		if err := w.settle(r, sum); failure == nil {
			failure = err
		}
	}
	sum.Interrupted = failure == nil && w.settled < len(w.todo)
	return failure
}

// begin starts what may start: a repeated attempt at the head first.
func (w *crew) begin(ctx context.Context) {
	if w.again.number > 0 && w.busy < w.limit {
		w.start(ctx, w.again)
		w.again = attempt{}
	}
	for w.busy < w.limit && w.next < len(w.todo) && w.next < w.head+w.window && w.again.number == 0 {
		w.start(ctx, attempt{at: w.next, run: w.todo[w.next], number: 1})
		w.next++
	}
}

func (w *crew) start(ctx context.Context, a attempt) {
	w.busy++
	rep := &reports{info: a.info(w.o)}
	w.reports[a.at] = rep
	go func() {
		w.done <- carryOut(ctx, w.o, w.c, a, func(phase string, at, length vtime.Duration) {
			rep.add(phase, at, length)
			select {
			case w.wake <- struct{}{}:
			default: // it will look anyway
			}
		})
	}()
}

// show tells the observer what is new about the head.
func (w *crew) show() {
	rep := w.reports[w.head]
	if rep == nil {
		return
	}
	if !w.shown {
		w.shown = true
		w.o.Observe.RunStarted(rep.info)
	}
	for _, p := range rep.take() {
		w.o.Observe.RunProgress(p.phase, p.at, p.length)
	}
}

// settle stores an attempt's result and decides whether the run is done.
func (w *crew) settle(r *result, sum *Summary) error {
	delete(w.results, r.at)
	delete(w.reports, r.at)
	w.shown = false
	if r.interrupted {
		w.head++
		return nil
	}
	err := r.planErr
	if err == nil {
		err = save(w.o, r.rec)
	}
	if err != nil {
		sum.Failed++
		w.head++
		return err
	}
	w.o.Observe.RunDone(r.info(w.o), outcome(r.rec))
	status := r.rec.Run.Status
	fatal := r.err != nil && backend.IsFatal(r.err)
	if status != store.RunComplete && !fatal && !backend.IsPermanent(r.err) && r.number <= r.run.Config().Limits.Reruns {
		w.again = attempt{at: r.at, run: r.run, number: r.number + 1}
		return nil
	}
	w.head++
	w.settled++
	if r.unkept != nil {
		sum.Unkept++
	}
	switch status {
	case store.RunComplete:
		sum.Complete++
	case store.RunInvalid:
		sum.Invalid++
	case store.RunFailed:
		sum.Failed++
	}
	if fatal {
		return r.err
	}
	return nil
}

// report is how far a run has come.
type report struct {
	phase      string
	at, length vtime.Duration
}

// reports holds what a run has said and nobody has heard yet: of each phase the
// latest, so that no phase is lost and nothing piles up.
type reports struct {
	info RunInfo
	mu   sync.Mutex
	list []report
}

func (r *reports) add(phase string, at, length vtime.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := report{phase, at, length}
	if n := len(r.list); n > 0 && r.list[n-1].phase == phase {
		r.list[n-1] = p
		return
	}
	r.list = append(r.list, p)
}

func (r *reports) take() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.list
	r.list = nil
	return l
}
