package emulator_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// chain routes along a line of nodes.
func chain(from, to int) int {
	if to > from {
		return from + 1
	}
	return from - 1
}

// The kernel of one node answers the echo requests of another, over one hop and
// over two.
func TestPing(t *testing.T) {
	l := newLab(t, line(3, 100, 150, 350), emulator.Options{}, chain)
	for dst, ttl := range map[int]int{1: 64, 2: 63} {
		rtt, left := l.ping(0, dst)
		if left != ttl {
			t.Errorf("echo of node %d: TTL %d, want %d", dst, left, ttl)
		}
		// DIFS + frame + SIFS + ACK are 0.6 ms a hop at least.
		if hops := 65 - ttl; rtt < time.Duration(hops)*2*500*time.Microsecond {
			t.Errorf("an echo over %d hops took %v: faster than the medium allows", hops, rtt)
		}
	}
	r := l.stop()
	if got := r.Nodes[1].Stats.Delivered; got != 3 {
		t.Errorf("the node between received %d frames, want 3: its own request, and a request and a reply to pass on", got)
	}
}

func echoRequest(seq uint16) []byte {
	m := append([]byte{8, 0, 0, 0, 0x12, 0x34, byte(seq >> 8), byte(seq)}, make([]byte, 56)...)
	var sum uint32
	for i := 0; i < len(m); i += 2 {
		sum += uint32(m[i])<<8 | uint32(m[i+1])
	}
	sum = sum>>16 + sum&0xffff
	m[2], m[3] = byte(^sum>>8), byte(^sum)
	return m
}

// One station at 11 Mb/s delivers 6.1 Mb/s of UDP payload (Bianchi's model for
// n = 1, long preamble, 2 Mb/s ACK). Wide bounds: the machine may be busy.
func TestUDPThroughput(t *testing.T) {
	l := newLab(t, line(2, 10, 150, 350), emulator.Options{}, nil)
	got := l.throughput(0, 1, 0)
	r := l.stop()
	t.Logf("%.2f Mb/s", got)
	if got < 4 || got > 6.4 {
		t.Errorf("UDP over one 802.11b hop: %.2f Mb/s, want about 6.1", got)
	}
	s, d := &r.Nodes[0], &r.Nodes[1]
	if s.Frames.Refused == 0 || s.Stats.AC[wifi.BE].Outcomes[wifi.Overflow] != s.Frames.Refused {
		t.Errorf("an overloaded queue refused %d frames, the medium counts %d", s.Frames.Refused, s.Stats.AC[wifi.BE].Outcomes[wifi.Overflow])
	}
	// The kernel's counts are read beside the pacing thread, on a busy host some
	// milliseconds after the interval began.
	const beside = 32
	if n := d.Frames.Written; n != d.Stats.Delivered || n == 0 || d.Device.Received > n || d.Device.Received+beside < n {
		t.Errorf("delivered by the medium %d, written %d, received by the kernel %d: want equal, the last but for %d", d.Stats.Delivered, n, d.Device.Received, beside)
	}
	if s.Device.Sent-s.Device.TransmitDropped > s.Frames.Read+256 || s.Frames.Read == 0 {
		t.Errorf("the kernel sent %d, dropped %d, the emulator read %d", s.Device.Sent, s.Device.TransmitDropped, s.Frames.Read)
	}
	if len(r.Nodes) != 2 || r.Events == 0 || r.TraceHash == 0 || r.Whole.Host.CPU <= 0 || r.Whole.To <= r.Whole.From {
		t.Errorf("report: %d nodes, %d events, hash %x, cpu %v, from %v to %v", len(r.Nodes), r.Events, r.TraceHash, r.Whole.Host.CPU, r.Whole.From, r.Whole.To)
	}
}

// A stream over two hops whose ends do not hear each other arrives intact.
func TestTCPOverTwoHops(t *testing.T) {
	l := newLab(t, line(3, 100, 150, 150), emulator.Options{}, chain)
	const size = 512 << 10
	n, same, took := l.transfer(0, 2, size, "")
	if !same {
		t.Fatalf("%d of %d bytes arrived, or other ones", n, size)
	}
	t.Logf("%.2f Mb/s", size*8/took.Seconds()/1e6)
	r := l.stop()
	if r.Nodes[1].Stats.Delivered < size/1460 || r.Nodes[1].Frames.Read == 0 {
		t.Errorf("the relay received %d frames and sent %d", r.Nodes[1].Stats.Delivered, r.Nodes[1].Frames.Read)
	}
	hidden := r.Nodes[0].Stats.AC[wifi.BE].Collisions + r.Nodes[2].Stats.AC[wifi.BE].Collisions
	if hidden == 0 {
		t.Error("data and acknowledgements of ends that do not hear each other never collided at the relay")
	}
}

// dialHere creates the socket on the calling thread: net.Dial may create it on
// another one, in another namespace.
func dialHere(d *net.Dialer, addr string) (net.Conn, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "tcp")
	defer f.Close()
	sa := &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, new(unix.NsecToTimeval(int64(d.Timeout)))); err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// Two senders that do not hear each other collide at the receiver between them;
// the same two within carrier sense hardly do.
func TestHiddenTerminals(t *testing.T) {
	share := func(sense vtime.Metres) float64 {
		l := newLab(t, line(3, 100, 150, sense), emulator.Options{}, chain)
		rx := l.udp(1, 9000, 0)
		stop := make(chan struct{})
		go blast(l.udp(0, 9001, 0), to(1, 9000), 1500, stop)
		go blast(l.udp(2, 9001, 0), to(1, 9000), 1500, stop)
		receive(rx, time.Now(), time.Now().Add(700*time.Millisecond))
		close(stop)
		r := l.stop()
		var attempts, collisions uint64
		for _, n := range []int{0, 2} {
			attempts += r.Nodes[n].Stats.AC[wifi.BE].Attempts
			collisions += r.Nodes[n].Stats.AC[wifi.BE].Collisions
		}
		if attempts < 100 {
			t.Fatalf("%d attempts only", attempts)
		}
		return float64(collisions) / float64(attempts)
	}
	hidden, heard := share(150), share(350)
	t.Logf("collided attempts: hidden %.0f %%, within carrier sense %.0f %%", hidden*100, heard*100)
	// Two stations with CWmin 31 meet in one slot in about 6 % of the attempts.
	if heard > 0.15 || hidden < 2*heard {
		t.Errorf("collided attempts: hidden %.2f, within carrier sense %.2f", hidden, heard)
	}
}

// The type of service chooses the queue, and the queue's acknowledgement policy
// decides what the sender learns.
func TestCategoriesAndAckPolicy(t *testing.T) {
	cfg := line(2, 10, 150, 350)
	cfg.MACs[0].Queues[wifi.BK].Ack = wifi.AckNone
	cfg.MACs[0].Queues[wifi.BK].TXOP = 8160 * vtime.Microsecond
	l := newLab(t, cfg, emulator.Options{}, nil)
	rx := l.udp(1, 9000, 0)
	for i, tos := range []int{0x20, 0x00, 0xa0, 0xc0} { // CS1, CS0, CS5, CS6
		tx := l.udp(0, 9001+i, tos)
		for range 10 * (i + 1) {
			if _, err := tx.WriteToUDPAddrPort(make([]byte, 100), to(1, 9000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := receive(rx, time.Now(), time.Now().Add(500*time.Millisecond)); got != 100*100 {
		t.Errorf("%d bytes arrived, want all 10000", got)
	}
	r := l.stop()
	for ac := range wifi.NumAC {
		q := &r.Nodes[0].Stats.AC[ac]
		want := uint64(10 * (ac + 1))
		acked, sent := q.Outcomes[wifi.Acked], q.Outcomes[wifi.Sent]
		if ac == int(wifi.BK) {
			acked, sent = sent, acked
		}
		if q.Enqueued != want || acked != want || sent != 0 {
			t.Errorf("queue %v: %d frames came, outcomes %v; want %d", wifi.AC(ac), q.Enqueued, q.Outcomes, want)
		}
	}
}

// The measured interval begins and ends on the run's clock, injected loss and
// switched nodes take effect, and the health messages come.
func TestOrders(t *testing.T) {
	health := make(chan emulator.Health, 100)
	l := newLab(t, line(2, 10, 150, 350), emulator.Options{OnHealth: func(h emulator.Health) { health <- h }}, nil)
	ctx := context.Background()
	rx := l.udp(1, 9000, 0)
	tx := l.udp(0, 9001, 0)
	send := func(n int) {
		for range n {
			if _, err := tx.WriteToUDPAddrPort(make([]byte, 100), to(1, 9000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := func() int { return receive(rx, time.Now(), time.Now().Add(200*time.Millisecond)) / 100 }
	send(10)
	if n := got(); n != 10 {
		t.Errorf("before the run: %d of 10 packets arrived", n)
	}
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	epoch := ts.Nano() + 50e6
	const from, to = 100 * vtime.Millisecond, 1300 * vtime.Millisecond
	if err := l.proc.Begin(ctx, epoch, vtime.Time(from), vtime.Time(to)); err != nil {
		t.Fatal(err)
	}
	if err := l.proc.Begin(ctx, epoch, vtime.Time(from), vtime.Time(to)); err == nil {
		t.Error("a run began twice")
	}
	time.Sleep(200 * time.Millisecond)
	send(20)
	if n := got(); n != 20 {
		t.Errorf("in the interval: %d of 20 packets arrived", n)
	}
	if err := l.proc.SetLoss(ctx, emulator.Loss{From: 0, To: 1, P: 1}); err != nil {
		t.Fatal(err)
	}
	send(5)
	if n := got(); n != 0 {
		t.Errorf("%d packets survived a loss of 100 %%", n)
	}
	if err := l.proc.SetLoss(ctx, emulator.Loss{From: 0, To: 1}); err != nil {
		t.Fatal(err)
	}
	if err := l.proc.SetNodeUp(ctx, 1, false); err != nil {
		t.Fatal(err)
	}
	send(3)
	if n := got(); n != 0 {
		t.Errorf("%d packets reached a node that is down", n)
	}
	if err := l.proc.SetNodeUp(ctx, 1, true); err != nil {
		t.Fatal(err)
	}
	if err := l.proc.SetNodeUp(ctx, 7, true); err == nil || !strings.Contains(err.Error(), "node 7") {
		t.Errorf("a node that does not exist: %v", err)
	}
	if err := l.proc.SetLoss(ctx, emulator.Loss{From: 0, To: 1, P: 2}); err == nil {
		t.Error("a loss of 200 %")
	}
	time.Sleep(time.Until(time.Now().Add(time.Duration(epoch + int64(to) - now()))))
	send(7)
	if n := got(); n != 7 {
		t.Errorf("after the interval: %d of 7 packets arrived", n)
	}
	r := l.stop()
	if r.Measured.From != vtime.Time(from) || r.Measured.To != vtime.Time(to) {
		t.Errorf("measured from %v to %v, want %v to %v", r.Measured.From, r.Measured.To, from, to)
	}
	n := &r.Nodes[0].Stats
	if n.Until.Sub(n.Since) != to-from || n.AC[wifi.BE].Enqueued != 28 || r.Nodes[0].Frames.Read != 28 {
		t.Errorf("the medium counts %d frames over %v, read %d; want 28 over %v", n.AC[wifi.BE].Enqueued, n.Until.Sub(n.Since).Std(), r.Nodes[0].Frames.Read, (to - from).Std())
	}
	if r.Nodes[1].Stats.LossInjected != 5 || r.Measured.Frames.Written != 20 || r.Whole.Frames.Written != 37 {
		t.Errorf("loss injected %d, written in the interval %d, in all %d; want 5, 20, 37", r.Nodes[1].Stats.LossInjected, r.Measured.Frames.Written, r.Whole.Frames.Written)
	}
	select {
	case h := <-health:
		if h.Frames.Read == 0 && h.Events == 0 {
			t.Errorf("empty health message %+v", h)
		}
	default:
		t.Error("no health message in more than a second")
	}
}

func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// The board shows the free space of a queue while it fills and drains, and
// wakes the one who waits for it.
func TestBoardFollowsTheQueue(t *testing.T) {
	b := newBoard(t, 2, 0)
	l := newLab(t, line(2, 10, 150, 350), emulator.Options{Board: b}, nil)
	v := openView(t, b, 0)
	const bk = int(wifi.BK)
	limit := l.cfg.MACs[0].Queues[wifi.BK].Limit
	if got := v.Free(bk); got != limit {
		t.Fatalf("an empty queue has room for %d frames, want %d", got, limit)
	}
	tx := l.udp(0, 9001, 0x20)
	for range 60 {
		if _, err := tx.WriteToUDPAddrPort(make([]byte, 1400), to(1, 9000)); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(5 * time.Second); v.State(bk).Arrived < 60 && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
	}
	s := v.State(bk)
	if s.Arrived != 60 || s.Queued < 10 || s.Free() != limit-s.Queued {
		t.Fatalf("after 60 frames: %+v", s) // they need some 120 ms to be sent
	}
	if v.Watch(bk, 5) {
		t.Fatal("the queue is short already")
	}
	if err := v.Event().SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := v.Wait(); err != nil {
		t.Fatal(err)
	}
	if q := v.State(bk).Queued; q > 5 {
		t.Errorf("woken with %d frames in the queue, want at most 5", q)
	}
	for end := time.Now().Add(5 * time.Second); v.State(bk).Left < 60 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if s := v.State(bk); s.Left != 60 || s.Queued != 0 || s.Overflow != 0 || v.Free(bk) != limit {
		t.Errorf("in the end: %+v", s)
	}
	if s := v.State(int(wifi.BE)); s.Arrived != 0 {
		t.Errorf("another queue: %+v", s)
	}
	l.stop()
}
