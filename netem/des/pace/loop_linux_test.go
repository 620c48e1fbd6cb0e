package pace

import (
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// script is clock and poller in one: every wait ends as the test says, and the
// clock then shows the time that the test says.
type script struct {
	at    vtime.Time
	steps []step
	asked []vtime.Duration
	slept []vtime.Duration
	busy  vtime.Duration // processor time that the thread shows
	keys  map[int]int    // fd → key
	stop  func()
}

type step struct {
	wake  vtime.Time // the clock at the return of the wait
	ready int        // fd that is readable, 0 = none
}

func (s *script) start(at vtime.Time)    { s.at = at }
func (s *script) now() vtime.Time        { return s.at }
func (s *script) zero() int64            { return 0 }
func (s *script) add(fd, key int) error  { s.keys[fd] = key; return nil }
func (s *script) cpu() vtime.Duration    { return s.busy }
func (s *script) sleep(d vtime.Duration) { s.slept = append(s.slept, d); s.at = s.at.Add(d) }
func (s *script) remove(fd int)          { delete(s.keys, fd) }
func (s *script) close() error           { return nil }
func (s *script) wait(d vtime.Duration) ([]int32, error) {
	s.asked = append(s.asked, d)
	st := s.steps[0]
	if s.steps = s.steps[1:]; len(s.steps) == 0 {
		s.stop()
	}
	s.at = st.wake
	if st.ready == 0 {
		return nil, nil
	}
	return []int32{int32(s.keys[st.ready])}, nil
}

type trace struct {
	t   *testing.T
	l   *Loop
	s   *script
	log []string
}

func (tr *trace) Fire(now vtime.Time, arg uint64) {
	tr.l.Visible()
	tr.log = append(tr.log, "event "+strconv.FormatUint(arg, 10)+" at "+now.String())
}

func (tr *trace) Ready(now vtime.Time, arg uint64) {
	if tr.l.eng.Now() != now {
		tr.t.Errorf("Ready(%v) with the engine at %v", now, tr.l.eng.Now())
	}
	tr.log = append(tr.log, "ready "+strconv.FormatUint(arg, 10)+" at "+now.String())
}

func scripted(t *testing.T, visible func() vtime.Time, steps ...step) (*trace, *des.Engine) {
	t.Helper()
	eng := des.New()
	s := &script{steps: steps, keys: map[int]int{}}
	l, err := newLoop(eng, visible, s, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.stop = l.Stop
	tr := &trace{t: t, l: l, s: s}
	if err := l.Watch(1000, tr, 7); err != nil {
		t.Fatal(err)
	}
	return tr, eng
}

const us = vtime.Time(vtime.Microsecond)

// Requirement: events keep their nominal time however late the thread is, what
// a descriptor brings comes after every event up to then, and the lateness of
// each event is recorded.
func TestLateWakesDoNotShiftEvents(t *testing.T) {
	tr, eng := scripted(t, nil,
		step{wake: 130 * us},              // asked for 100
		step{wake: 150 * us, ready: 1000}, // early, for the descriptor
		step{wake: 2200 * us, ready: 1000})
	for i, at := range []vtime.Time{100, 120, 200, 2000} {
		eng.Schedule(at*us, tr, uint64(i))
	}
	if err := tr.l.Run(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"event 0 at 0.000100000s", "event 1 at 0.000120000s",
		"ready 7 at 0.000150000s",
		"event 2 at 0.000200000s", "event 3 at 0.002000000s",
		"ready 7 at 0.002200000s",
	}
	if !reflect.DeepEqual(tr.log, want) {
		t.Errorf("got  %q\nwant %q", tr.log, want)
	}
	if want := []vtime.Duration{100_000, 70_000, 50_000}; !reflect.DeepEqual(tr.s.asked, want) {
		t.Errorf("waits of %v, want %v", tr.s.asked, want)
	}
	st := tr.l.Stats()
	if st.Late.Count() != 4 || st.Late.Max() != 2*vtime.Millisecond || st.Late.Above(vtime.Millisecond) != 0.25 {
		t.Errorf("lateness: %d events, max %v, %v above 1 ms", st.Late.Count(), st.Late.Max(), st.Late.Above(vtime.Millisecond))
	}
	if st.Stall != 2*vtime.Millisecond || st.Wakes != 3 || st.Polls != 0 {
		t.Errorf("stall %v, %d wakes, %d polls", st.Stall, st.Wakes, st.Polls)
	}
	tr.l.Reset()
	if tr.l.Stats().Late.Count() != 0 || tr.l.Stats().Stall != 0 {
		t.Error("Reset left something")
	}
}

// Requirement: the loop sleeps until the next visible event, fires the
// invisible ones before it in order, and bounds an idle wait.
func TestWakesForVisibleEventsOnly(t *testing.T) {
	visible := []vtime.Time{300 * us, vtime.Never, 350 * us}
	next := func() vtime.Time { v := visible[0]; visible = visible[1:]; return v }
	tr, eng := scripted(t, next, step{wake: 300 * us}, step{wake: 20300 * us}, step{wake: 20300 * us})
	eng.Schedule(100*us, tr, 0)
	eng.Schedule(300*us, tr, 1)
	if err := tr.l.Run(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"event 0 at 0.000100000s", "event 1 at 0.000300000s"}; !reflect.DeepEqual(tr.log, want) {
		t.Errorf("got %q, want %q", tr.log, want)
	}
	if want := []vtime.Duration{300_000, maxWait, 0}; !reflect.DeepEqual(tr.s.asked, want) {
		t.Errorf("waits of %v, want %v", tr.s.asked, want)
	}
	if tr.l.Stats().Polls != 1 {
		t.Errorf("%d polls, want 1", tr.l.Stats().Polls)
	}
}

// burner is an event that takes time.
type burner struct {
	s    *script
	l    *Loop
	took vtime.Duration
}

func (b *burner) Fire(vtime.Time, uint64) { b.s.at = b.s.at.Add(b.took); b.s.busy += b.took }

// Requirement: a crowded loop spaces its turns and always leaves some time
// free; a relaxed one never pauses.
func TestCrowdedLoopPauses(t *testing.T) {
	const ms = 1000 * us
	tr, eng := scripted(t, nil,
		step{wake: 2 * ms},     // 9 ms of work until 11 ms: crowded
		step{wake: 11500 * us}, // 30 µs of work
		step{wake: 12 * ms},    // 1 ms of work
		step{wake: 40 * ms},    // nothing for long: relaxed
		step{wake: 41 * ms})    // 30 µs of work
	for _, e := range []struct {
		at   vtime.Time
		took vtime.Duration
	}{{2 * ms, 9 * vtime.Millisecond}, {11200 * us, 30 * vtime.Microsecond}, {11900 * us, vtime.Millisecond}, {41 * ms, 30 * vtime.Microsecond}} {
		eng.Schedule(e.at, &burner{tr.s, tr.l, e.took}, 0)
	}
	if err := tr.l.Run(); err != nil {
		t.Fatal(err)
	}
	// 10 % of 9 ms; up to 100 µs after a turn of 30 µs; 10 % of 1 ms.
	want := []vtime.Duration{900 * vtime.Microsecond, 70 * vtime.Microsecond, 100 * vtime.Microsecond}
	if !reflect.DeepEqual(tr.s.slept, want) || tr.l.Stats().Pauses != 3 {
		t.Errorf("slept %v (%d pauses), want %v", tr.s.slept, tr.l.Stats().Pauses, want)
	}
}

// periodic is an event that repeats itself n times.
type periodic struct {
	l      *Loop
	eng    *des.Engine
	n      int
	period vtime.Duration
}

func (p *periodic) Fire(now vtime.Time, _ uint64) {
	p.l.Visible()
	if p.n--; p.n == 0 {
		p.l.Stop()
		return
	}
	p.eng.Schedule(now.Add(p.period), p, 0)
}

// The real clock: events take as long as they should, within what even a busy
// machine manages, and a descriptor interrupts the wait.
func TestRealClock(t *testing.T) {
	for name, timer := range map[string]bool{"epoll_pwait2": false, "epoll+timerfd": true} {
		t.Run(name, func(t *testing.T) {
			eng := des.New()
			l, err := New(eng, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if p := l.wait.(*poller); timer && p.timerfd < 0 {
				if err := p.useTimer(); err != nil {
					t.Fatal(err)
				}
			} else if !timer && p.timerfd >= 0 {
				testenv.Need(t, testenv.PWait2)
			}
			if l.Method() != name {
				t.Fatalf("method %q", l.Method())
			}
			eng.Schedule(vtime.Time(vtime.Millisecond), &periodic{l, eng, 100, vtime.Millisecond}, 0)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			in := &reader{fd: int(r.Fd()), eng: eng}
			if err := unix.SetNonblock(in.fd, true); err != nil {
				t.Fatal(err)
			}
			if err := l.Watch(in.fd, in, 0); err != nil {
				t.Fatal(err)
			}
			posted := make(chan vtime.Time, 1)
			go func() {
				time.Sleep(20 * time.Millisecond)
				w.Write([]byte("x"))
				l.Post(func() { posted <- eng.Now() })
			}()
			t0 := time.Now()
			if err := l.Run(); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(t0); d < 99*time.Millisecond {
				t.Errorf("100 ms of events took %v", d)
			}
			if in.got != 1 || in.at < vtime.Time(10*vtime.Millisecond) {
				t.Errorf("read %d bytes at %v, want 1 after some 20 ms", in.got, in.at)
			}
			select {
			case at := <-posted:
				if at < vtime.Time(10*vtime.Millisecond) {
					t.Errorf("posted at %v, want some 20 ms", at)
				}
			default:
				t.Error("what was posted did not run")
			}
			if s := l.Stats(); s.Late.Count() != 100 {
				t.Errorf("%d events recorded, want 100", s.Late.Count())
			}
			t.Logf("lateness p50 %v, p99 %v", l.Stats().Late.Quantile(0.5).Std(), l.Stats().Late.Quantile(0.99).Std())
		})
	}
}

type reader struct {
	fd, got int
	at      vtime.Time
	eng     *des.Engine
}

func (r *reader) Ready(now vtime.Time, _ uint64) {
	var b [16]byte
	n, _ := unix.Read(r.fd, b[:])
	r.got, r.at = r.got+max(n, 0), now
}

func TestMonotonicTimeIsThatOfTheKernel(t *testing.T) {
	l, err := New(des.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var lo, hi unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &lo)
	got := l.Monotonic(l.Clock())
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &hi)
	// The calibration is good to a microsecond or so.
	if got < lo.Nano()-10_000 || got > hi.Nano()+10_000 {
		t.Errorf("the loop's clock is at %d, the kernel's between %d and %d", got, lo.Nano(), hi.Nano())
	}
	if v := l.Virtual(got); l.Monotonic(v) != got {
		t.Errorf("conversion there and back: %d became %d", got, l.Monotonic(v))
	}
}

func TestOneProcessorIsRefused(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, err := New(des.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Post(l.Stop)
	if err := l.Run(); err == nil {
		t.Error("ran with GOMAXPROCS=1: other goroutines would starve")
	}
}

func TestTurnsDoNotAllocate(t *testing.T) {
	eng := des.New()
	l, err := New(eng, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// testing.AllocsPerRun would set GOMAXPROCS to 1.
	var m0, m1 runtime.MemStats
	const n = 2000
	run := func(n int) {
		eng.Schedule(eng.Now().Add(vtime.Microsecond), &periodic{l, eng, n, 10 * vtime.Microsecond}, 0)
		if err := l.Run(); err != nil {
			t.Fatal(err)
		}
	}
	run(10)
	runtime.ReadMemStats(&m0)
	run(n)
	runtime.ReadMemStats(&m1)
	if got := m1.Mallocs - m0.Mallocs; got > n/20 { // the runtime itself allocates now and then
		t.Errorf("%d allocations in %d turns", got, n)
	}
}

// The part that raises its priority runs as a process of its own, so that the
// test binary keeps its own priority.
func TestMain(m *testing.M) {
	if os.Args[0] == "pace-test-raise" {
		runtime.LockOSThread()
		p, err := Raise()
		if err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		pol, _, _ := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
		os.Stdout.WriteString(p.String() + " policy " + strconv.Itoa(int(pol)))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestRaise(t *testing.T) {
	out, err := (&exec.Cmd{Path: "/proc/self/exe", Args: []string{"pace-test-raise"}}).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testenv.Need(t, testenv.FIFO)
	if string(out) != "SCHED_FIFO 20 policy 1" {
		t.Errorf("got %q where SCHED_FIFO is permitted", out)
	}
}

// BenchmarkLateness is not pass or fail: it reports how precisely this host
// wakes a locked thread every 200 µs.
func BenchmarkLateness(b *testing.B) {
	eng := des.New()
	l, err := New(eng, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	eng.Schedule(vtime.Time(vtime.Millisecond), &periodic{l, eng, 5000, 200 * vtime.Microsecond}, 0)
	b.ResetTimer()
	if err := l.Run(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(l.Stats().Late.Quantile(0.5))/1e3, "µs-p50")
	b.ReportMetric(float64(l.Stats().Late.Quantile(0.99))/1e3, "µs-p99")
	b.ReportMetric(float64(l.Stats().Late.Max())/1e3, "µs-max")
}
