package emulator_test

import (
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// stream sends a packet every 10 ms from now until a moment of the run's clock, and
// returns when each was handed to the kernel and which arrived within a second.
func stream(tx, rx *net.UDPConn, dst int, epoch int64, until vtime.Duration) (sent []vtime.Duration, arrived map[int]bool) {
	arrived = map[int]bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 2048)
		_ = rx.SetReadDeadline(time.Now().Add(time.Duration(epoch+int64(until)-now()) + time.Second))
		for {
			if _, _, err := rx.ReadFromUDPAddrPort(b); err != nil {
				return
			}
			arrived[int(binary.BigEndian.Uint32(b))] = true
		}
	})
	b := make([]byte, 100)
	for now() < epoch+int64(until) {
		binary.BigEndian.PutUint32(b, uint32(len(sent)))
		_, _ = tx.WriteToUDPAddrPort(b, to(dst, 9000)) // what does not arrive is the test's business
		sent = append(sent, vtime.Duration(now()-epoch))
		time.Sleep(10 * time.Millisecond)
	}
	wg.Wait()
	return sent, arrived
}

// judge compares what arrived with the time in which nothing should. slack is left
// out at either side of each change: frames wait in queues and are sent again.
func judge(t *testing.T, what string, sent []vtime.Duration, arrived map[int]bool, slack vtime.Duration, down ...vtime.Duration) {
	t.Helper()
	up, lost := 0, 0
	for i, at := range sent {
		if slices.ContainsFunc(down, func(d vtime.Duration) bool { return at > d-slack && at < d+slack }) {
			continue
		}
		off := at > down[0] && at < down[1]
		if off == arrived[i] {
			t.Errorf("%s: a packet sent at %v: arrived %v", what, at, arrived[i])
		}
		if off {
			lost++
		} else {
			up++
		}
	}
	if up == 0 || lost == 0 {
		t.Errorf("%s: %d packets while it was up and %d while it was down say nothing", what, up, lost)
	}
}

// TestChangesOfTheAir: a link and a node go down and come up at their moments of the
// run's clock, and nothing else changes.
func TestChangesOfTheAir(t *testing.T) {
	const slack = 60 * ms
	cfg := line(3, 10, 150, 350)
	cfg.MACs[0].Retries = 2 // a frame in vain is given up before the next one comes
	cfg.Changes = []emulator.Change{
		{At: vtime.Time(300 * ms), Link: [2]int{1, 0}}, {At: vtime.Time(600 * ms), Link: [2]int{2, 2}},
		{At: vtime.Time(700 * ms), Link: [2]int{1, 0}, Up: true}, {At: vtime.Time(1000 * ms), Link: [2]int{2, 2}, Up: true},
	}
	l := newLab(t, cfg, emulator.Options{}, nil)
	rx, tx := [2]*net.UDPConn{l.udp(1, 9000, 0), l.udp(2, 9000, 0)}, [2]*net.UDPConn{l.udp(0, 9001, 0), l.udp(1, 9001, 0)}
	epoch := l.begin(20*ms, 0, 2*vtime.Second)
	var sent [2][]vtime.Duration
	var arrived [2]map[int]bool
	var wg sync.WaitGroup
	for i := range 2 { // 0 → 1 over the link, 1 → 2 to the node
		wg.Go(func() { sent[i], arrived[i] = stream(tx[i], rx[i], i+1, epoch, 1300*ms) })
	}
	wg.Wait()
	r := l.stop()
	if r.Changes == nil || r.Changes.Applied != 4 {
		t.Fatalf("changes: %+v", r.Changes)
	}
	if r.Changes.MaxLate > slack/2 || r.Whole.Lateness.Standstill() > slack/2 {
		t.Skipf("the host stood still: changes %v late, standstill %v", r.Changes.MaxLate, r.Whole.Lateness.Standstill())
	}
	judge(t, "the link", sent[0], arrived[0], slack, 300*ms, 700*ms)
	judge(t, "the node", sent[1], arrived[1], slack, 600*ms, 1000*ms)
}

// TestChangesOfAWiredNode: what a node that is switched off is sent stays in the
// other end's queue, what it sends is lost, and the board says so.
func TestChangesOfAWiredNode(t *testing.T) {
	b, views := pairBoard(t)
	l := pairOf(t, &emulator.Config{Seed: 7, Nodes: []emulator.Node{{NoRadio: true}, {NoRadio: true}},
		Changes: []emulator.Change{{At: vtime.Time(100 * ms), Link: [2]int{1, 1}}, {At: vtime.Time(2500 * ms), Link: [2]int{1, 1}, Up: true}}},
		pipe.Config{Rate: 100 * vtime.MbitPerSecond, Queue: pipe.Queue{Packets: 3}}, emulator.Options{Board: b})
	tx, rx := l.udp(0, 9001, 0), l.udp(1, 9000, 0)
	back, answered := l.udp(1, 9001, 0), l.udp(0, 9000, 0)
	epoch := l.begin(20*ms, 0, 10*vtime.Second)
	for end := time.Now().Add(2 * time.Second); views[1].State(board.NumAC).Limit != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the board does not show that the node is off: %+v", views[1].State(board.NumAC))
		}
	}
	l.numbered(0, tx, 1, 9000, 100, 0, 5, views[0])
	l.numbered(1, back, 0, 9000, 100, 0, 5, views[1])
	there, here := views[0].State(board.NumAC), views[1].State(board.NumAC)
	inTime := now() < epoch+int64(2500*ms)
	got := numbers(rx, 3)
	arrived := now()
	if arrived < epoch+int64(2500*ms) {
		t.Errorf("packets reached a node that was off")
	}
	if inTime && (!slices.Equal(got, []int{0, 1, 2}) || there.Queued != 3 || there.Overflow != 2 || here.Queued != 0) {
		t.Errorf("packets %v arrived, want 0 to 2, which the queue held; meanwhile the board said %+v and %+v", got, there, here)
	}
	_ = answered.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, _, err := answered.ReadFromUDPAddrPort(make([]byte, 2048)); err == nil && inTime {
		t.Errorf("a node that was off was heard: %d bytes", n)
	}
	l.numbered(1, back, 0, 9000, 100, 7, 1, views[1])
	if got := numbers(answered, 1); inTime && !slices.Equal(got, []int{7}) {
		t.Errorf("after its return: %v", got)
	}
	if r := l.stop(); r.Changes == nil || r.Changes.Applied != 2 {
		t.Errorf("changes: %+v", r.Changes)
	}
}
