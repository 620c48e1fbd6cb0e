package board

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/vtime"
)

// childPart is the other process of the tests: an agent that maps the board.
const childPart = "board-test-agent"

func TestMain(m *testing.M) {
	if os.Args[0] == childPart {
		os.Exit(agent())
	}
	os.Exit(m.Run())
}

// agent waits until queue 1 of node 2 has drained to two frames, reports what
// it sees and ends.
func agent() int {
	v, err := OpenViewFD(3, 4, 2, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if v.Watch(1, 2) {
		fmt.Println("drained already:", v.State(1))
		return 1
	}
	fmt.Println("watching", v.Free(1))
	if err := v.Wait(); err != nil {
		fmt.Println(err)
		return 1
	}
	s := v.State(1)
	fmt.Println("woken", s.Queued, s.Arrived, s.Left, s.Overflow, s.Limit, v.Free(1))
	return 0
}

func create(t *testing.T, nodes int) *Board {
	t.Helper()
	b, err := Create(nodes, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestTwoProcesses(t *testing.T) {
	b := create(t, 3)
	b.SetLimit(2, 1, 10)
	b.Arrived(2, 1, 7, 2, 5)
	files, err := b.NodeFiles(2)
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{childPart}, ExtraFiles: files, Stderr: os.Stderr}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	var free int
	if _, err := fmt.Fscanf(out, "watching %d\n", &free); err != nil || free != 5 {
		t.Fatalf("the agent sees %d free frames (%v), want 5", free, err)
	}
	b.Left(2, 1, 1, 4)
	b.Left(2, 1, 1, 3)
	b.Left(1, 1, 1, 0) // somebody else's queue
	b.Left(2, 0, 1, 0) // another queue of the node
	b.Left(2, 1, 1, 2)
	var line [6]int
	if _, err := fmt.Fscanf(out, "woken %d %d %d %d %d %d\n", &line[0], &line[1], &line[2], &line[3], &line[4], &line[5]); err != nil {
		t.Fatal(err)
	}
	if want := [6]int{2, 7, 5, 2, 10, 8}; line != want {
		t.Errorf("the agent saw queued, arrived, left, overflow, limit, free = %v, want %v", line, want)
	}
}

// A watch is used up by one wake-up and does not outlive a queue that was short
// already.
func TestWatchIsOneShot(t *testing.T) {
	b := create(t, 1)
	files, err := b.NodeFiles(0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := OpenViewFD(dup(t, files[0]), dup(t, files[1]), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	waits := func() bool {
		t.Helper()
		if err := v.Event().SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		err := v.Wait()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		return err != nil
	}
	b.SetLimit(0, 0, 4)
	b.Arrived(0, 0, 3, 0, 3)
	b.Left(0, 0, 1, 0)
	if !waits() {
		t.Error("woken without a watch")
	}
	b.Arrived(0, 0, 3, 0, 3)
	if v.Watch(0, 1) {
		t.Error("three frames wait, yet the watch says that one or none does")
	}
	b.Left(0, 0, 1, 2)
	if !waits() {
		t.Error("woken above the low-water mark")
	}
	b.Left(0, 0, 1, 1)
	b.Left(0, 0, 1, 0)
	if waits() {
		t.Error("not woken at the low-water mark")
	}
	b.Left(0, 0, 1, 0)
	if !waits() {
		t.Error("woken twice for one watch")
	}
	if !v.Watch(0, 1) {
		t.Error("the queue is empty, yet the watch waits")
	}
	b.Left(0, 0, 1, 0)
	if !waits() {
		t.Error("woken for a watch that was answered at once")
	}
}

// The queues of a node's pipes follow those of its radio, in the order of its
// interfaces, and wake the sender alone.
func TestPipeQueues(t *testing.T) {
	b, err := Create(3, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	view := func(node int, pipes ...int) *View {
		t.Helper()
		files, err := b.NodeFiles(node)
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenViewFD(dup(t, files[0]), dup(t, files[1]), node, pipes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.Close() })
		return v
	}
	v, far := view(1, 2*3+1, 2*0), view(0, 2*0+1)
	if len(v.cells) != NumAC+2 || len(far.cells) != NumAC+1 {
		t.Errorf("%d and %d queues, want %d and %d", len(v.cells), len(far.cells), NumAC+2, NumAC+1)
	}
	b.SetLimit(1, NumAC-1, 9)
	b.SetPipeLimit(7, 10)
	b.PipeArrived(7, 6, 1, 5)
	for q, want := range map[int]State{NumAC - 1: {Limit: 9}, PipeQueue(0): {Arrived: 6, Left: 1, Overflow: 1, Queued: 5, Limit: 10}, PipeQueue(1): {}} {
		if got := v.State(q); got != want {
			t.Errorf("queue %d: %+v, want %+v", q, got, want)
		}
	}
	if got := b.PipeState(7); got != v.State(PipeQueue(0)) || v.Free(PipeQueue(0)) != 5 {
		t.Errorf("the board's own view: %+v; free %d", got, v.Free(PipeQueue(0)))
	}
	if v.Watch(PipeQueue(0), 3) {
		t.Error("five packets wait, yet the watch says three or fewer")
	}
	b.PipeLeft(1, 0, 1, 0) // the other direction of another pipe
	b.PipeLeft(7, 1, 1, 4)
	b.PipeLeft(7, 1, 1, 3)
	if err := v.Event().SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := v.Wait(); err != nil {
		t.Errorf("not woken at the low-water mark: %v", err)
	}
	if s := v.State(PipeQueue(0)); s.Left != 3 || s.Queued != 3 {
		t.Errorf("in the end %+v", s)
	}
	if s := far.State(PipeQueue(0)); s.Left != 1 || s.Arrived != 0 {
		t.Errorf("the other end's queue: %+v", s)
	}
	for _, q := range []int{-1, 8} {
		if _, err := OpenViewFD(dup(t, b.files[0]), dup(t, b.files[1]), 0, []int{q}); err == nil || !strings.Contains(err.Error(), "8 queues of pipes") {
			t.Errorf("a view of queue %d: %v", q, err)
		}
	}
	if _, err := Create(1, -1); err == nil {
		t.Error("a board of -1 pipes")
	}
}

// dup gives the view descriptors of its own, as inheritance would.
func dup(t *testing.T, f *os.File) uintptr {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return uintptr(fd)
}

func TestOpenRefusesWhatIsNotABoard(t *testing.T) {
	b := create(t, 2)
	mem, event := b.files[0].Fd(), b.files[1].Fd()
	if _, err := OpenViewFD(mem, event, 2, nil); err == nil || !strings.Contains(err.Error(), "node 2") {
		t.Errorf("a node that does not exist: %v", err)
	}
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := OpenViewFD(f.Fd(), event, 0, nil); err == nil {
		t.Error("an empty file was taken for a board")
	}
	if err := f.Truncate(int64(size(2, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenViewFD(f.Fd(), event, 0, nil); err == nil || !strings.Contains(err.Error(), "not a board") {
		t.Errorf("a file of zeros was taken for a board: %v", err)
	}
	if _, err := Open(int(mem), 2); err == nil {
		t.Error("a board of two nodes was opened with one event descriptor")
	}
	if _, err := OpenViewFD(1<<20, event, 0, nil); err == nil {
		t.Error("a descriptor that is not open")
	}
	if _, err := Create(0, 0); err == nil {
		t.Error("a board without nodes")
	}
	if _, err := b.NodeFiles(-1); err == nil {
		t.Error("files of node -1")
	}
	b.head.version.Store(99)
	if _, err := OpenViewFD(mem, event, 0, nil); err == nil || !strings.Contains(err.Error(), "99") {
		t.Errorf("another layout: %v", err)
	}
	b.head.version.Store(version)
}

// The agents make their eventfds non-blocking; starting another process must
// not undo that, or an agent could not be interrupted in its wait.
func TestStartingAProcessLeavesViewsPollable(t *testing.T) {
	b := create(t, 1)
	v, err := OpenViewFD(dup(t, b.files[0]), dup(t, b.files[1]), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&exec.Cmd{Path: "/proc/self/exe", Args: []string{"x", "-test.run=^$"}, ExtraFiles: b.Files()}).Run(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- v.Wait() }()
	time.Sleep(time.Millisecond)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("Wait ended with %v, want os.ErrClosed", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Close did not end a Wait")
	}
}

func TestUpdatesDoNotAllocate(t *testing.T) {
	b := create(t, 4)
	c := b.cell(3, 2)
	if n := testing.AllocsPerRun(1000, func() {
		c.watch.Store(5)
		b.Arrived(3, 2, 1, 0, 6)
		b.Left(3, 2, 1, 3)
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// fake is a board in a test's hands.
type fake State

func (f *fake) State(int) State { return State(*f) }

func TestWindowCountsFramesOnTheirWay(t *testing.T) {
	f := &fake{Arrived: ^uint32(0) - 3, Limit: 10} // the counter wraps within the test
	w := NewWindow(f, 0)
	if got := w.Free(0); got != 10 {
		t.Fatalf("free %d, want 10", got)
	}
	w.Sent(0, 6)
	if got := w.Free(0); got != 4 {
		t.Errorf("six frames on their way: free %d, want 4", got)
	}
	f.Arrived += 5
	f.Queued = 5
	if got := w.Free(vtime.Time(vtime.Millisecond)); got != 4 {
		t.Errorf("five have arrived: free %d, want 4 (10-5-1)", got)
	}
	f.Arrived++
	f.Queued = 1
	if got := w.Free(vtime.Time(2 * vtime.Millisecond)); got != 9 {
		t.Errorf("all have arrived, one waits: free %d, want 9", got)
	}
}

func TestWindowForgetsLostFrames(t *testing.T) {
	f := &fake{Limit: 10}
	w := NewWindow(f, 0)
	w.Sent(0, 4)
	f.Arrived, f.Queued = 1, 1
	at := vtime.Time(10 * vtime.Millisecond)
	if got := w.Free(at); got != 6 {
		t.Errorf("free %d, want 6", got)
	}
	at = at.Add(ResyncAfter)
	if got := w.Free(at); got != 6 || w.Lost() != 0 {
		t.Errorf("at the bound: free %d, lost %d, want 6, 0", got, w.Lost())
	}
	if got := w.Free(at + 1); got != 9 || w.Lost() != 3 {
		t.Errorf("past the bound: free %d, lost %d, want 9, 3", got, w.Lost())
	}
	// A pause does not count as a wait.
	at = at.Add(vtime.Second)
	w.Sent(at, 1)
	if got := w.InFlight(at + 1); got != 1 {
		t.Errorf("a frame sent after a pause: %d in flight, want 1", got)
	}
}

func TestWindowSurvivesAnotherSender(t *testing.T) {
	f := &fake{Limit: 10}
	w := NewWindow(f, 0)
	w.Sent(0, 2)
	f.Arrived, f.Queued = 7, 3 // five frames of somebody else
	if got, lost := w.Free(1), w.Lost(); got != 7 || lost != 0 {
		t.Errorf("free %d, lost %d, want 7, 0", got, lost)
	}
	w.Sent(2, 3)
	if got := w.InFlight(2); got != 3 {
		t.Errorf("in flight %d, want 3", got)
	}
}
