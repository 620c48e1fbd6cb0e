package emulator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/des/pace"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
)

// maxLine bounds an order or reply: the configuration or report of 1,000 nodes
// with dense matrices is some 20 MB.
const maxLine = 256 << 20

// memoryLimit makes the garbage collector run after all, should the steady
// trickle of health messages or an unforeseen leak ever reach it.
const memoryLimit = 2 << 30

// firstFD is the first inherited descriptor behind the standard ones.
const firstFD = 3

// healthEvery is the distance of progress messages.
const healthEvery = time.Second

// Main is the emulator's process: orders on in, replies on out, the board's
// descriptors from 3 on. It returns the exit status: 0 after Stop or at the end
// of the input, 1 after an error.
func Main(in io.Reader, out io.Writer) int {
	// The pacing thread holds its processor while it waits, so there must be
	// others; and a collection would stop it at the wrong moment.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))

	s := &server{out: bufio.NewWriter(out)}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	first, err := readOrder(lines)
	if err == io.EOF {
		return 0
	}
	if err == nil && first.Config == nil {
		err = errors.New("emulator: the first order is not a configuration")
	}
	if err == nil {
		err = s.setUp(first)
	}
	if err != nil {
		s.send(&reply{Seq: first.Seq}, err)
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.core.close()
	if err := s.run(first.Seq, lines); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// server is the process around the core.
type server struct {
	mu  sync.Mutex
	out *bufio.Writer

	core     *core
	priority pace.Priority
	seen     [over + 1]*outside // what the observer read when a phase began
	observed sync.WaitGroup
	whole    Span
	captured *CaptureReport
	stopSeq  uint64
}

func readOrder(lines *bufio.Scanner) (*order, error) {
	o := &order{}
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return o, fmt.Errorf("emulator: read an order: %w", err)
		}
		return o, io.EOF
	}
	if err := json.Unmarshal(lines.Bytes(), o); err != nil {
		return o, fmt.Errorf("emulator: an order that cannot be read: %w", err)
	}
	if o.Version != wireVersion {
		return o, fmt.Errorf("emulator: orders of version %d, want %d: the programs are of different builds", o.Version, wireVersion)
	}
	return o, nil
}

func (s *server) send(r *reply, err error) {
	r.Version = wireVersion
	if err != nil {
		r.Error = err.Error()
		var u *tap.Unavailable
		if errors.As(err, &u) {
			r.Unavailable = &lack{u.What, u.Because, u.Do}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A controller that does not read any more is gone; the end of the input says
	// so too.
	if err := json.NewEncoder(s.out).Encode(r); err != nil {
		fmt.Fprintf(os.Stderr, "emulator: reply: %v\n", err)
	}
	_ = s.out.Flush()
}

func (s *server) setUp(o *order) error {
	var b *board.Board
	if o.Board > 0 {
		var err error
		if b, err = board.Open(firstFD, o.Board); err != nil {
			return err
		}
	}
	var err error
	if s.core, err = newCore(o.Config, b); err != nil || o.Config.Capture == nil {
		return err
	}
	next := firstFD + o.Board
	inherit := func(is bool, name string) (f *os.File) {
		if is {
			f = os.NewFile(uintptr(next), name)
			next++
		}
		return f
	}
	packets, events := inherit(o.Packets, "capture"), inherit(o.Events, "event log")
	r, err := newRecorder(o.Config, packets, events)
	if err == nil {
		s.core.record(r)
	}
	return err
}

// run paces the medium on this goroutine until Stop or the end of the input.
func (s *server) run(seq uint64, lines *bufio.Scanner) error {
	runtime.LockOSThread()
	s.priority = pace.Priority{Policy: "normal"}
	if !s.core.cfg.NormalPriority {
		var err error
		if s.priority, err = pace.Raise(); err != nil {
			return fmt.Errorf("emulator: %w", err)
		}
	}
	marks := make(chan phase, over+1)
	s.core.marks.observe = marks
	s.observed.Go(func() { s.observer(marks) })
	marks <- before

	s.core.loop.Post(func() {
		s.core.marks.start()
		s.send(&reply{Seq: seq, Ready: &Ready{Priority: s.priority.String(), Refused: s.priority.Refused, Wait: s.core.loop.Method()}}, nil)
	})
	if s.core.recorder != nil {
		s.core.recorder.start()
	}
	go s.orders(lines)
	quit := make(chan struct{})
	go s.health(quit)
	err := s.core.loop.Run()
	s.captured = s.core.recorder.end(s.core.eng.Now())
	close(quit)
	close(marks)
	s.observed.Wait()
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	if s.stopSeq != 0 {
		s.send(&reply{Seq: s.stopSeq, Report: s.report()}, nil)
	}
	return nil
}

// observer reads what is too slow for the pacing thread, at ordinary priority.
func (s *server) observer(marks <-chan phase) {
	runtime.LockOSThread()
	if err := pace.Lower(); err != nil {
		fmt.Fprintln(os.Stderr, err) // it is only less polite then
	}
	for p := range marks {
		s.seen[p] = observe(s.core.devs)
	}
}

// orders passes the controller's orders to the pacing thread.
func (s *server) orders(lines *bufio.Scanner) {
	for {
		o, err := readOrder(lines)
		if err == io.EOF {
			s.core.loop.Post(s.core.loop.Stop)
			return
		}
		if err != nil {
			s.send(&reply{Seq: o.Seq}, err)
			continue
		}
		s.core.loop.Post(func() { s.obey(o) })
	}
}

// obey runs on the pacing thread.
func (s *server) obey(o *order) {
	var err error
	switch nodes := s.core.cfg.Nodes; {
	case o.Begin != nil:
		err = s.core.marks.begin(o.Begin)
	case o.Loss != nil && s.core.medium == nil:
		err = errors.New("emulator: a loss on the radio, but no node has one")
	case o.Loss != nil:
		err = s.core.medium.SetLoss(o.Loss.From, o.Loss.To, o.Loss.P)
	case o.Node != nil && (o.Node.Node < 0 || o.Node.Node >= len(nodes)):
		err = fmt.Errorf("emulator: node %d does not exist (there are %d)", o.Node.Node, len(nodes))
	case o.Node != nil && nodes[o.Node.Node].NoRadio:
		err = fmt.Errorf("emulator: node %d (%s) has no radio to switch", o.Node.Node, nodes[o.Node.Node].Name)
	case o.Node != nil:
		s.core.medium.SetNodeUp(o.Node.Node, o.Node.Up)
	case o.Set != nil:
		err = s.core.set(o.Set)
	case o.Stop:
		s.whole = s.core.marks.finish()
		s.stopSeq = o.Seq
		s.core.loop.Stop()
		return // the report is the reply
	default:
		err = errors.New("emulator: an order without content")
	}
	go s.send(&reply{Seq: o.Seq}, err) // never write on the pacing thread
}

func (s *server) health(quit <-chan struct{}) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	got := make(chan Health, 1)
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			s.core.loop.Post(func() {
				s.core.recorder.flush()
				select {
				case got <- s.core.marks.health():
				default: // the last one is still being written
				}
			})
		case h := <-got:
			s.send(&reply{Health: &h}, nil)
		}
	}
}

// report puts the marks and the observations together, after the loop's end.
func (s *server) report() *Report {
	m := &s.core.marks
	r := &Report{
		Priority: s.priority.String(), Refused: s.priority.Refused, Wait: s.core.loop.Method(),
		Measured: m.measured, Whole: s.whole,
		TraceHash: s.core.eng.TraceHash(), Events: s.core.eng.Fired(), Capture: s.captured,
		ShortestDrain: shortestDrain(s.core.cfg),
	}
	if len(s.core.cfg.Changes) > 0 {
		r.Changes = &s.core.changes.report
	}
	end := s.seen[over]
	from, to := s.seen[measuring], s.seen[after]
	if from == nil { // without Begin the interval is the whole run
		from = s.seen[before]
	}
	if to == nil {
		to = end
	}
	r.Whole.Host.Pressure, r.Whole.Host.Steal = diff(end.pressure, s.seen[before].pressure), diff(end.steal, s.seen[before].steal)
	r.Measured.Host.Pressure, r.Measured.Host.Steal = diff(to.pressure, from.pressure), diff(to.steal, from.steal)
	device := func(i int) (c tap.Counters, lack string) {
		if err := errors.Join(from.errs[i], to.errs[i]); err != nil {
			return c, err.Error()
		}
		c = to.devices[i].Sub(from.devices[i])
		r.RingDrops += c.TransmitDropped
		return c, ""
	}
	for i, n := range s.core.cfg.Nodes {
		nr := NodeReport{Name: n.Name, Stats: m.stats[i], Frames: m.frames[i], Queues: m.queues[i]}
		nr.Device, nr.DeviceError = device(i)
		if w := s.core.rewriters[i]; w != nil {
			nr.Rewriting = new(w.Stats())
		}
		r.Nodes = append(r.Nodes, nr)
	}
	for i, p := range s.core.cfg.Pipes {
		r.Pipes = append(r.Pipes, [2]pipe.Stats(m.pipes[2*i:]))
		var ends [2]EndReport
		for e, end := range p.Ends {
			dev := len(s.core.cfg.Nodes) + 2*i + e
			ends[e] = EndReport{Node: end.Node, Interface: end.Interface, Frames: m.frames[dev]}
			ends[e].Device, ends[e].DeviceError = device(dev)
		}
		r.PipeEnds = append(r.PipeEnds, ends)
	}
	return r
}
