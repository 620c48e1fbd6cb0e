package emulator_test

import (
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// An echo over a wire takes twice its delay and hardly more, and the kernels
// find each other's hardware addresses through it.
func TestPipePing(t *testing.T) {
	cfg := &emulator.Config{Seed: 1, Nodes: []emulator.Node{{NoRadio: true}, {NoRadio: true}}}
	const delay = 7 * ms
	wired(cfg, 0, 0, 1, 0, pipe.Config{Rate: 100 * vtime.MbitPerSecond, Delay: delay, Queue: pipe.Queue{Packets: 10}})
	l := bareLab(t, cfg, emulator.Options{})
	for i := range 2 {
		l.attach(i, "eth0")
		l.route(i, "eth0", 1-i, 1-i)
	}
	first, _ := l.ping(0, 1)
	if first < 4*delay.Std() {
		t.Errorf("the first echo took %v, but address resolution and echo are two round trips of %v", first, 2*delay.Std())
	}
	best := time.Hour
	for range 20 {
		rtt, ttl := l.ping(0, 1)
		if rtt < 2*delay.Std() || ttl != 64 {
			t.Errorf("an echo took %v with TTL %d, want at least %v and 64", rtt, ttl, 2*delay.Std())
		}
		best = min(best, rtt)
	}
	r := l.stop()
	// The bound is wide on an idle machine and follows a busy one.
	if slack := 2*r.Measured.Lateness.Max.Std() + 10*time.Millisecond; best > 2*delay.Std()+slack {
		t.Errorf("the fastest of 20 echoes took %v, want %v", best, 2*delay.Std())
	}
	// Two or three frames of address resolution (the answering kernel may ask in
	// turn) are packets as well.
	// The kernel's counts are read beside the pacing thread, and so begin a little
	// later.
	for e := range 2 {
		s, end := r.Pipes[0][e], r.PipeEnds[0][e]
		if s.Delivered < 22 || s.Delivered > 24 || s.Entered != s.Delivered || end.Frames.Read != s.Entered || end.Device.Sent > s.Entered || end.Device.Sent < 10 {
			t.Errorf("direction %d: the kernel sent %d, the emulator read %d, entered %d, delivered %d", e, end.Device.Sent, end.Frames.Read, s.Entered, s.Delivered)
		}
		if w := r.PipeEnds[0][1-e]; w.Frames.Written != s.Delivered || w.Device.Received > s.Delivered || w.Device.Received < 10 || w.Interface != "eth0" || w.Node != 1-e {
			t.Errorf("direction %d: delivered %d, the far end is %+v", e, s.Delivered, w)
		}
	}
	// Without a board, what can be seen are the deliveries.
	if r.Measured.Lateness.Events != r.Measured.Frames.Written {
		t.Errorf("%d visible events, %d frames written", r.Measured.Lateness.Events, r.Measured.Frames.Written)
	}
}

// reference is the sequence in which a pipe in virtual time delivers numbered
// packets.
func reference(t *testing.T, seed uint64, name string, cfg pipe.Config, count int) (got []int) {
	t.Helper()
	eng := des.New()
	s := &sequence{}
	p, err := pipe.New(eng, seed, name, cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		k := p.NewPacket()
		k.Len, k.Payload = 100, i
		p.Send(k)
		eng.RunUntil(eng.Now().Add(vtime.Second))
	}
	return s.got
}

type sequence struct{ got []int }

func (s *sequence) Deliver(_ vtime.Time, k *pipe.Packet)      { s.got = append(s.got, k.Payload.(int)) }
func (s *sequence) Drop(vtime.Time, *pipe.Packet, pipe.Cause) {}

// The packets that a live pipe loses and doubles are those that the same pipe
// loses and doubles in virtual time: from the emulator's start, and again from
// the run's time 0 on, whatever was sent before. Their order is kept, whatever
// the jitter.
func TestPipeLossIsThatOfTheModel(t *testing.T) {
	c := pipe.Config{
		Loss: pipe.Loss{Good: 0.05, Bad: 0.7, ToBad: 0.05, ToGood: 0.2}, Duplicate: 0.1,
		Delay: 3 * ms, Jitter: pipe.Jitter{Distribution: pipe.Normal, Spread: ms},
	}
	b, views := pairBoard(t)
	l := pair(t, c, emulator.Options{Board: b})
	tx := [2]*net.UDPConn{l.udp(0, 9001, 0), l.udp(1, 9001, 0)}
	rx := [2]*net.UDPConn{l.udp(0, 9000, 0), l.udp(1, 9000, 0)}
	const count = 400
	check := func(when string, e int) {
		t.Helper()
		want := reference(t, l.cfg.Seed, []string{"pipe/0/0", "pipe/0/1"}[e], c, count)
		read := make(chan []int)
		go func() { read <- numbers(rx[1-e], len(want)) }() // a socket's buffer does not hold all
		l.numbered(e, tx[e], 1-e, 9000, 100, 0, count, views[e])
		if got := <-read; !reflect.DeepEqual(got, want) {
			t.Errorf("%s, direction %d: %d packets arrived, want %d, or other ones:\n%v\n%v", when, e, len(got), len(want), got, want)
		}
	}
	check("before the run", 0)
	epoch := l.begin(20*ms, 0, 60*vtime.Second)
	sleepUntil(epoch, ms)
	for e := range 2 {
		check("in the run", e)
	}
	r := l.stop()
	for e := range 2 {
		s, n := r.Pipes[0][e], len(reference(t, l.cfg.Seed, []string{"pipe/0/0", "pipe/0/1"}[e], c, count))
		if s.Entered != count || s.Delivered != uint64(n) || s.LostPackets != count+s.Duplicates-s.Delivered || s.LostPackets < 20 || s.Duplicates < 20 {
			t.Errorf("direction %d: %+v, want %d entered, %d delivered", e, s, count, n)
		}
		if q := views[e].State(board.NumAC); q.Arrived != q.Left || q.Overflow != 0 || q.Queued != 0 || q.Limit != board.Unlimited {
			t.Errorf("direction %d: the board says %+v of a wire on which nothing waits", e, q)
		}
	}
}

// A rate bounds what passes, its queue what waits; nothing is lost without being
// counted. All of it holds in the engine's time, however busy the machine.
func TestPipeRateAndQueue(t *testing.T) {
	const rate, limit, size, count = 5 * vtime.MbitPerSecond, 20, 1500, 300
	b, views := pairBoard(t)
	l := pair(t, pipe.Config{Rate: rate, Delay: 2 * ms, Queue: pipe.Queue{Packets: limit}}, emulator.Options{Board: b})
	if s := views[0].State(board.PipeQueue(0)); s.Limit != limit || s.Free() != limit {
		t.Errorf("an empty queue shows %+v", s)
	}
	tx, rx := l.udp(0, 9001, 0), l.udp(1, 9000, 0)
	l.numbered(0, tx, 1, 9000, size, 0, count, views[0])
	got := numbers(rx, count-int(views[0].State(board.PipeQueue(0)).Overflow))
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Errorf("packet %d came behind packet %d", got[i], got[i-1])
		}
	}
	r := l.stop()
	s, end := r.Pipes[0][0], r.PipeEnds[0][0]
	if s.Entered != count || s.Delivered != uint64(len(got)) || s.Delivered+s.Overflows != count || s.Overflows == 0 || s.Overflows != end.Frames.Refused {
		t.Errorf("%d arrived; %+v; refused %d", len(got), s, end.Frames.Refused)
	}
	if s.MaxQueued != limit || s.BusyTime != rate.TxTime(size)*vtime.Duration(s.Delivered) || s.DeliveredBytes != size*vtime.Bytes(s.Delivered) {
		t.Errorf("at most %d waited, busy for %v with %v", s.MaxQueued, s.BusyTime.Std(), s.DeliveredBytes)
	}
	q := views[0].State(board.PipeQueue(0))
	if q.Arrived != count || q.Left != count || q.Overflow != uint32(s.Overflows) || q.Queued != 0 {
		t.Errorf("the board says %+v, want %d arrived and left, %d refused", q, count, s.Overflows)
	}
	if q := views[1].State(board.PipeQueue(0)); q.Arrived != 0 {
		t.Errorf("the other direction's queue says %+v", q)
	}
	// Departures can be seen on the board.
	if e := r.Measured.Lateness.Events; e != 2*s.Delivered {
		t.Errorf("%d visible events for %d departures and arrivals", e, s.Delivered)
	}
}

// An agent that waits for its queue is woken when it has drained, and a pause of
// the link shows in the board.
func TestPipeBoardWakes(t *testing.T) {
	b, views := pairBoard(t)
	v, q := views[0], board.PipeQueue(0)
	l := pair(t, pipe.Config{Rate: vtime.MbitPerSecond, Queue: pipe.Queue{Bytes: 30_000}}, emulator.Options{Board: b})
	if got := v.Free(q); got != 20 {
		t.Errorf("an empty queue of 30 kB has room for %d packets, want 20 of 1500 B", got)
	}
	tx := l.udp(0, 9001, 0)
	l.numbered(0, tx, 1, 9000, 1000, 0, 20, v)
	s := v.State(q) // they need 8 ms each
	if s.Arrived != 20 || s.Queued < 1 || s.Free() != (30_000-1000*s.Queued)/1500 {
		t.Fatalf("after 20 packets of 1000 B: %+v", s)
	}
	if v.Watch(q, 2) {
		t.Fatal("the queue is short already")
	}
	if err := v.Event().SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := v.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := v.State(q); s.Queued > 2 || s.Left < 18 {
		t.Errorf("woken with %+v, want at most 2 waiting", s)
	}
	l.stop()
}

// The times of a schedule are the run's, whatever passed before: a link that is
// down holds its packets until it is up again.
func TestPipeScheduleFollowsTheRunsClock(t *testing.T) {
	const down, up = 100 * ms, 1500 * ms
	off, on := false, true
	short := pipe.Queue{Packets: 3}
	b, views := pairBoard(t)
	l := pair(t, pipe.Config{Rate: 100 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 10}, Schedule: []pipe.Change{
		{At: vtime.Time(down), Up: &off, Queue: &short},
		{At: vtime.Time(up), Up: &on},
	}}, emulator.Options{Board: b})
	tx, rx := l.udp(0, 9001, 0), l.udp(1, 9000, 0)
	time.Sleep(2 * down.Std()) // by the emulator's clock the link would be down
	l.numbered(0, tx, 1, 9000, 100, 0, 5, views[0])
	if got := numbers(rx, 5); len(got) != 5 {
		t.Errorf("before the run %d of 5 packets arrived", len(got))
	}
	epoch := l.begin(20*ms, 0, 10*vtime.Second)
	sleepUntil(epoch, down)
	for end := time.Now().Add(5 * time.Second); views[0].State(board.NumAC).Limit != 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the board does not show the shorter queue: %+v", views[0].State(board.NumAC))
		}
	}
	l.numbered(0, tx, 1, 9000, 100, 5, 5, views[0])
	held := views[0].State(board.NumAC)
	inTime := now() < epoch+int64(up)
	got := numbers(rx, 3)
	arrived := now()
	if !reflect.DeepEqual(got, []int{5, 6, 7}) && inTime {
		t.Errorf("packets %v arrived, want 5 to 7, which the queue held", got)
	}
	if arrived < epoch+int64(up) {
		t.Errorf("the packets passed a link that was down, %v before it was up", time.Duration(epoch+int64(up)-arrived))
	}
	if inTime && (held.Queued != 3 || held.Overflow != 2) {
		t.Errorf("while the link is down the board says %+v", held)
	}
	l.stop()
}

// The opportunities of a trace come at the run's times, from its offset on.
func TestPipeTraceFollowsTheRunsClock(t *testing.T) {
	tr, err := pipe.NewTrace([]int64{2000})
	if err != nil {
		t.Fatal(err)
	}
	b, views := pairBoard(t)
	l := pair(t, pipe.Config{Trace: tr, TraceOffset: 800 * ms, Queue: pipe.Queue{Packets: 10}}, emulator.Options{Board: b})
	time.Sleep(300 * time.Millisecond) // opportunities would be 300 ms earlier by the emulator's clock
	tx, rx := l.udp(0, 9001, 0), l.udp(1, 9000, 0)
	epoch := l.begin(20*ms, 0, 10*vtime.Second)
	sleepUntil(epoch, ms)
	l.numbered(0, tx, 1, 9000, 1500, 0, 1, views[0])
	sent := now()
	if got := numbers(rx, 1); len(got) != 1 {
		t.Fatal("the packet did not arrive")
	}
	if at := now(); sent < epoch+int64(1200*ms) && at < epoch+int64(1200*ms) {
		t.Errorf("the packet arrived %v after time 0, want 1.2 s", time.Duration(at-epoch))
	}
	l.stop()
}

// The counters of a pipe are those of the measured interval.
func TestPipeCountersAreOfTheInterval(t *testing.T) {
	const from, to = 500 * ms, 1500 * ms
	// A host that stands still makes packets miss their part of the run.
	for range 5 {
		b, views := pairBoard(t)
		l := pair(t, pipe.Config{Rate: 10 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 50}}, emulator.Options{Board: b})
		tx, rx := l.udp(0, 9001, 0), l.udp(1, 9000, 0)
		send := func(first, n int) {
			t.Helper()
			l.numbered(0, tx, 1, 9000, 1500, first, n, views[0])
			if got := numbers(rx, n); len(got) != n {
				t.Fatalf("%d of %d packets arrived", len(got), n)
			}
		}
		send(0, 30)
		epoch := l.begin(20*ms, from, to)
		sleepUntil(epoch, ms)
		send(30, 40)
		inTime := now() < epoch+int64(from)
		sleepUntil(epoch, from)
		send(70, 6)
		inTime = inTime && now() < epoch+int64(to)
		sleepUntil(epoch, to)
		send(80, 20)
		r := l.stop()
		if !inTime {
			continue
		}
		s := r.Pipes[0][0]
		if s.Entered != 6 || s.Delivered != 6 || s.MaxQueued > 6 || s.BusyTime != 6*1200*vtime.Microsecond || r.PipeEnds[0][0].Frames.Read != 6 || r.PipeEnds[0][1].Frames.Written != 6 {
			t.Errorf("in the interval: %+v, ends %+v; want 6 packets", s, r.PipeEnds[0])
		}
		if r.Whole.Frames.Written != 96 {
			t.Errorf("%d frames in all, want 96", r.Whole.Frames.Written)
		}
		return
	}
	t.Fatal("the host stood still in each of five runs of 1.5 s")
}

// TCP CUBIC of the kernel fills 10 Mb/s with 20 ms one way and 100 packets of
// queue, and what it sends arrives intact.
func TestTCPOverPipe(t *testing.T) {
	testenv.Need(t, testenv.CC("cubic"))
	const rate = 10 * vtime.MbitPerSecond
	l := pair(t, pipe.Config{Rate: rate, Delay: 20 * ms, Queue: pipe.Queue{Packets: 100}}, emulator.Options{})
	n, same, took := l.transfer(0, 1, 3<<20, "cubic")
	r := l.stop()
	goodput := float64(n) * 8 / took.Seconds()
	t.Logf("%.2f Mb/s; %+v", goodput/1e6, r.Pipes[0][0])
	if n != 3<<20 || !same {
		t.Errorf("%d of %d bytes arrived, or other ones", n, 3<<20)
	}
	if most := float64(rate) * 1448 / 1500; goodput > most*1.001 {
		t.Errorf("%.2f Mb/s over a link that carries %.2f Mb/s of payload", goodput/1e6, most/1e6)
	}
	s := r.Pipes[0][0]
	if s.MaxQueued > 100 {
		t.Errorf("%d packets in a queue of 100", s.MaxQueued)
	}
	if emulator.Judge(r).Valid && (goodput < float64(rate)/2 || s.MaxQueued < 20) { // a host that keeps time
		t.Errorf("%.2f Mb/s of 10, with at most %d packets waiting", goodput/1e6, s.MaxQueued)
	}
}

// A wire whose far end has died does not disturb the rest, and the report says
// so.
func TestDeadEndOfPipe(t *testing.T) {
	cfg := &emulator.Config{Seed: 1, Nodes: []emulator.Node{{NoRadio: true}, {NoRadio: true}, {NoRadio: true}}}
	wired(cfg, 0, 0, 1, 0, pipe.Config{Delay: ms})
	wired(cfg, 0, 1, 2, 0, pipe.Config{Delay: ms})
	l := bareLab(t, cfg, emulator.Options{})
	l.attach(0, "eth0")
	l.attach(1, "eth0")
	l.route(0, "eth0", 1, 1)
	l.route(0, "eth1", 2, 2)
	l.neighbour(0, "eth1", 2, tap.PipeHardwareAddr(2, 0))
	l.route(1, "eth0", 0, 0)
	l.kill(2)
	tx := l.udp(0, 9001, 0)
	for range 10 {
		if _, err := tx.WriteToUDPAddrPort(make([]byte, 100), to(2, 9000)); err != nil {
			t.Fatal(err)
		}
	}
	l.ping(0, 1)
	r := l.stop()
	if s := r.Pipes[1][0]; s.Delivered != 10 {
		t.Errorf("%d packets to the dead node", s.Delivered)
	}
	if r.PipeEnds[1][1].DeviceError == "" || r.PipeEnds[1][0].DeviceError != "" || r.PipeEnds[0][1].DeviceError != "" {
		t.Errorf("device errors: %+v", r.PipeEnds)
	}
}
