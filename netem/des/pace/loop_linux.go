package pace

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Source is the reader of a descriptor. Ready is called on the loop's thread
// when the descriptor is readable, with the engine run up to now. It must not
// block and should return after a bounded number of reads: the descriptor stays
// ready.
type Source interface {
	Ready(now vtime.Time, arg uint64)
}

// maxWait bounds an idle wait. The runtime cannot stop a thread in a raw system
// call, so a (rare) garbage collection waits as long as this; and a loop that
// wakes now and then notices a stall even when nothing happens.
const maxWait = 20 * vtime.Millisecond

// Stats says how well the loop kept time since the last Reset.
type Stats struct {
	// Late is the lateness of every visible event: wall clock less nominal time
	// when its effect began.
	Late Histogram `json:"late"`
	// Stall is the longest delay of a wake-up: the time between the moment at
	// which the thread asked to run and the moment at which it ran.
	Stall vtime.Duration `json:"stall_ns"`
	// Turn is the longest time between two waits, that is, of computing and
	// writing without looking at the descriptors.
	Turn  vtime.Duration `json:"turn_ns"`
	Wakes uint64         `json:"wakes"` // returns from the wait
	Polls uint64         `json:"polls"` // of these, waits of length zero: the loop had work left
	// Pauses counts the turns after which a crowded loop slept.
	Pauses uint64 `json:"pauses"`
}

// Loop paces one engine. Create it, Watch the descriptors, and Run it; every
// method but Post is for the goroutine that runs it.
type Loop struct {
	eng     *des.Engine
	clock   clock
	wait    waiter
	visible func() vtime.Time
	sources []source
	stats   Stats
	breath  breath
	stopped bool

	wake  int // eventfd
	mu    sync.Mutex
	posts []func()
}

type source struct {
	s   Source
	arg uint64
}

// waiter is the poller's interface: tests have a scripted one.
type waiter interface {
	// add watches fd; ready entries are reported by key.
	add(fd int, key int) error
	// wait returns the keys of readable descriptors, after at most d ns (0: only
	// look). The slice is valid until the next call.
	wait(d vtime.Duration) ([]int32, error)
	// sleep waits for d ns, whatever happens.
	sleep(d vtime.Duration)
	remove(fd int)
	close() error
}

// New returns a loop whose virtual time runs from the engine's Now on. visible
// says when the engine's next effect on the outside may happen (a lower bound
// that is never before the engine's next event); nil wakes for every event.
func New(eng *des.Engine, visible func() vtime.Time) (*Loop, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	return newLoop(eng, visible, newMonotonic(), p)
}

func newLoop(eng *des.Engine, visible func() vtime.Time, c clock, w waiter) (*Loop, error) {
	if visible == nil {
		visible = eng.Next
	}
	l := &Loop{eng: eng, clock: c, wait: w, visible: visible}
	var err error
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("pacing: eventfd: %w", err)
	}
	if err := l.Watch(l.wake, posted{l}, 0); err != nil {
		return nil, err
	}
	return l, nil
}

// Watch calls s.Ready(now, arg) whenever fd is readable. The descriptor must be
// non-blocking and stay open as long as the loop.
func (l *Loop) Watch(fd int, s Source, arg uint64) error {
	if err := l.wait.add(fd, len(l.sources)); err != nil {
		return fmt.Errorf("pacing: watch descriptor %d: %w", fd, err)
	}
	l.sources = append(l.sources, source{s, arg})
	return nil
}

// Unwatch forgets a descriptor, before it is closed or because it is broken.
func (l *Loop) Unwatch(fd int) { l.wait.remove(fd) }

// Method names how the loop waits, for the run's report.
func (l *Loop) Method() string {
	if p, ok := l.wait.(*poller); ok {
		return p.method()
	}
	return "scripted"
}

// Monotonic converts a virtual time to CLOCK_MONOTONIC in nanoseconds.
func (l *Loop) Monotonic(t vtime.Time) int64 { return l.clock.zero() + int64(t) }

// Virtual converts a CLOCK_MONOTONIC time in nanoseconds to virtual time.
func (l *Loop) Virtual(mono int64) vtime.Time { return vtime.Time(mono - l.clock.zero()) }

// Clock reads the wall clock as virtual time.
func (l *Loop) Clock() vtime.Time { return l.clock.now() }

// Visible records that an event's effect on the outside begins now. A handler
// calls it before the effect; the nominal time is the engine's.
func (l *Loop) Visible() { l.stats.Late.Add(l.clock.now().Sub(l.eng.Now())) }

// Stats returns what was recorded since the last Reset. The pointer is to the
// live record: copy it to keep it.
func (l *Loop) Stats() *Stats { return &l.stats }

// Reset forgets what was recorded, at the beginning of a measured interval.
func (l *Loop) Reset() { l.stats = Stats{} }

// Stop ends Run after the current turn.
func (l *Loop) Stop() { l.stopped = true }

// Post runs f on the loop's thread soon, with the engine run up to the time of
// the call. It may be called from any goroutine.
func (l *Loop) Post(f func()) {
	l.mu.Lock()
	l.posts = append(l.posts, f)
	l.mu.Unlock()
	b := [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // any count that is neither zero nor all ones
	_, _ = unix.Write(l.wake, b[:])      // a full counter means that the loop is awake anyway
}

// posted is the source of the loop's own eventfd.
type posted struct{ l *Loop }

func (p posted) Ready(vtime.Time, uint64) {
	var b [8]byte
	_, _ = unix.Read(p.l.wake, b[:]) // empty it; what is queued counts
	p.l.mu.Lock()
	todo := p.l.posts
	p.l.posts = nil
	p.l.mu.Unlock()
	for _, f := range todo {
		f()
	}
}

// Run paces the engine on the calling goroutine, locked to its thread, until
// Stop. It needs GOMAXPROCS of at least 2, because the thread keeps its
// processor while it waits.
func (l *Loop) Run() error {
	if runtime.GOMAXPROCS(0) < 2 {
		return fmt.Errorf("pacing: GOMAXPROCS is %d, needs at least 2: the waiting thread would block every other goroutine", runtime.GOMAXPROCS(0))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.clock.start(l.eng.Now())
	now := l.eng.Now()
	for l.stopped = false; !l.stopped; {
		wake := l.visible()
		before := l.clock.now()
		turn := before.Sub(now)
		l.stats.Turn = max(l.stats.Turn, turn)
		if l.breath.due(before) {
			l.breath.look(before, l.clock.cpu())
		}
		if d := l.breath.pause(turn); d > 0 {
			l.wait.sleep(d)
			l.stats.Pauses++
			after := l.clock.now()
			l.stats.Stall = max(l.stats.Stall, after.Sub(before)-d)
			before = after
		}
		d := min(max(wake.Sub(before), 0), maxWait)
		if wake == vtime.Never {
			d = maxWait
		}
		ready, err := l.wait.wait(d)
		if err != nil {
			return fmt.Errorf("pacing: wait: %w", err)
		}
		now = l.clock.now()
		l.stats.Wakes++
		if d == 0 {
			l.stats.Polls++
		}
		// Returning early for a descriptor gives a negative delay.
		l.stats.Stall = max(l.stats.Stall, now.Sub(before)-d)
		// Everything up to now happens before what the descriptors bring, at its
		// own time: a late turn never shifts the medium.
		l.eng.RunUntil(now)
		for _, key := range ready {
			s := &l.sources[key]
			s.s.Ready(now, s.arg)
		}
	}
	return nil
}

// Close releases the loop's own descriptors, not the watched ones.
func (l *Loop) Close() error {
	err := l.wait.close()
	if e := unix.Close(l.wake); err == nil {
		err = e
	}
	return err
}
