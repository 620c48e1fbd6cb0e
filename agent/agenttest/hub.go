//go:build linux

package agenttest

import (
	"container/heap"
	"fmt"
	"math/rand"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Link is what the hub does to frames of one direction. The zero value passes
// everything at once.
type Link struct {
	Down bool
	Loss float64 // share of frames lost
	// BulkLoss is the share of background frames that is lost besides: those
	// have no link-layer repetition where Hop is used.
	BulkLoss float64
	Rate     vtime.BitRate
	Delay    vtime.Duration
	Queue    int // frames that wait for the rate, 0 = 100
}

// device is one interface of a node: its radio, or an end of a wire.
type device struct {
	*tap.Device
	node int
	wire int // −1: the radio
	end  int // of the wire
}

// hub forwards frames between the devices.
type hub struct {
	devs  []device
	radio map[int]int // device of a node's radio
	nodes int
	board *board.Board // may be nil
	watch func(node int, frame []byte)
	wake  [2]int // pipe that ends the loop
	done  chan struct{}

	mu      sync.Mutex
	links   map[[2]int]Link
	rnd     *rand.Rand
	pending frames
	serial  uint64
	free    map[[2]int]time.Time // when the direction's sender is idle
	queued  map[[2]int]int
	held    []int // frames that the queues hold: of the radios, then of the wires' ends
	passed  map[[2]int]int
	lost    map[[2]int]int
	stray   int // frames that no flow can have sent
}

type frame struct {
	at       time.Time
	serial   uint64
	from, to int // devices
	ac       int
	data     []byte
	drop     bool
	last     bool // frees the sender's queue
}

type frames []*frame

func (f frames) Len() int { return len(f) }
func (f frames) Less(i, j int) bool {
	return f[i].at.Before(f[j].at) || f[i].at.Equal(f[j].at) && f[i].serial < f[j].serial
}
func (f frames) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frames) Push(x any)   { *f = append(*f, x.(*frame)) }
func (f *frames) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

func newHub(devs []device, nodes, wires int, b *board.Board, watch func(int, []byte)) (*hub, error) {
	h := &hub{devs: devs, watch: watch, radio: map[int]int{}, nodes: nodes, board: b, done: make(chan struct{}), links: map[[2]int]Link{}, rnd: rand.New(rand.NewSource(1)),
		free: map[[2]int]time.Time{}, queued: map[[2]int]int{}, held: make([]int, nodes*board.NumAC+2*wires), passed: map[[2]int]int{}, lost: map[[2]int]int{}}
	for i, d := range devs {
		if d.wire < 0 {
			h.radio[d.node] = i
		}
	}
	if err := unix.Pipe2(h.wake[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	return h, nil
}

// peer returns the device that takes a frame.
func (h *hub) peer(from int, data []byte) (to int, ok bool) {
	d := h.devs[from]
	if d.wire >= 0 {
		for i, o := range h.devs {
			if o.wire == d.wire && i != from {
				return i, true
			}
		}
		return 0, false
	}
	node, ok := tap.NodeOfHardware(tap.HardwareAddress(data[:6]))
	if !ok {
		return 0, false
	}
	to, ok = h.radio[node]
	return to, ok
}

// queue is the number in held of the queue that a frame waits in.
func (h *hub) queue(from, ac int) int {
	if d := h.devs[from]; d.wire >= 0 {
		return h.nodes*board.NumAC + 2*d.wire + d.end
	}
	return h.devs[from].node*board.NumAC + ac
}

// arrived and left publish a queue's state on the board.
func (h *hub) arrived(from, ac, refused int) {
	held := h.held[h.queue(from, ac)]
	switch d := h.devs[from]; {
	case h.board == nil:
	case d.wire >= 0:
		h.board.PipeArrived(2*d.wire+d.end, 1, refused, held)
	default:
		h.board.Arrived(d.node, ac, 1, refused, held)
	}
}

func (h *hub) left(from, ac int) {
	held := h.held[h.queue(from, ac)]
	switch d := h.devs[from]; {
	case h.board == nil:
	case d.wire >= 0:
		h.board.PipeLeft(2*d.wire+d.end, d.node, 1, held)
	default:
		h.board.Left(d.node, ac, 1, held)
	}
}

func (h *hub) close() {
	unix.Write(h.wake[1], []byte{1})
	<-h.done
	unix.Close(h.wake[0])
	unix.Close(h.wake[1])
	for _, d := range h.devs {
		d.Close()
	}
}

func (h *hub) run() {
	defer close(h.done)
	fds := []unix.PollFd{{Fd: int32(h.wake[0]), Events: unix.POLLIN}}
	for _, d := range h.devs {
		fds = append(fds, unix.PollFd{Fd: int32(d.FD()), Events: unix.POLLIN})
	}
	buf := make([]byte, tap.MaxFrame+64)
	for {
		wait := h.deliver()
		var ts *unix.Timespec
		if wait >= 0 {
			v := unix.NsecToTimespec(int64(wait))
			ts = &v
		}
		if _, err := unix.Ppoll(fds, ts, nil); err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("hub: ppoll: %v", err))
		}
		if fds[0].Revents != 0 {
			return
		}
		for i, d := range h.devs {
			for fds[i+1].Revents != 0 {
				n, err := d.Read(buf)
				if err != nil {
					break
				}
				h.take(i, buf[:n])
			}
		}
	}
}

// take decides the fate of one frame.
func (h *hub) take(from int, data []byte) {
	if h.watch != nil {
		h.watch(h.devs[from].node, data)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(data) < 34 || data[12] != 8 || data[13] != 0 || data[0]&1 != 0 {
		h.stray++ // ARP, spanning tree and the like: neighbours are permanent
		return
	}
	to, ok := h.peer(from, data)
	if !ok {
		h.stray++
		return
	}
	key := [2]int{h.devs[from].node, h.devs[to].node}
	l := h.links[key]
	// The WMM map of the precedence bits (802.11-2020 §10.2.4.2).
	ac := [8]int{1, 0, 0, 1, 2, 2, 3, 3}[data[15]>>5]
	now := time.Now()
	limit := l.Queue
	if limit == 0 {
		limit = 100
	}
	if h.queued[key] >= limit {
		h.lost[key]++
		h.arrived(from, ac, 1)
		return
	}
	at := now
	if l.Rate > 0 {
		if h.free[key].After(at) {
			at = h.free[key]
		}
		at = at.Add(l.Rate.TxTime(vtime.Bytes(len(data))).Std())
		h.free[key] = at
	}
	h.queued[key]++
	h.held[h.queue(from, ac)]++
	h.arrived(from, ac, 0)
	loss := l.Loss
	if ac == 0 {
		loss += l.BulkLoss
	}
	f := &frame{at: at, serial: h.serial, from: from, to: to, ac: ac, last: true, drop: l.Down || h.rnd.Float64() < loss, data: append([]byte(nil), data...)}
	h.serial++
	heap.Push(&h.pending, f)
	if l.Delay > 0 && !f.drop {
		// Two steps: the frame leaves the sender, and arrives later.
		arrival := *f
		arrival.at, arrival.last, arrival.serial = at.Add(l.Delay.Std()), false, h.serial
		h.serial++
		f.drop, f.data = true, nil
		heap.Push(&h.pending, &arrival)
	}
}

// deliver hands over what is due and returns how long to wait, −1 for ever.
func (h *hub) deliver() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.pending) > 0 {
		f := h.pending[0]
		if d := time.Until(f.at); d > 0 {
			return d
		}
		heap.Pop(&h.pending)
		key := [2]int{h.devs[f.from].node, h.devs[f.to].node}
		if f.last {
			h.queued[key]--
			h.held[h.queue(f.from, f.ac)]--
			h.left(f.from, f.ac)
		}
		if f.drop {
			if f.data != nil {
				h.lost[key]++
			}
			continue
		}
		h.passed[key]++
		if err := h.devs[f.to].Write(f.data); err != nil && err != unix.EIO { // EIO: the interface is down
			h.lost[key]++
		}
	}
	return -1
}
