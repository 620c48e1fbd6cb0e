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

// hub forwards frames between the devices.
type hub struct {
	devs  []*tap.Device
	board *board.Board // may be nil
	wake  [2]int       // pipe that ends the loop
	done  chan struct{}

	mu      sync.Mutex
	links   map[[2]int]Link
	rnd     *rand.Rand
	pending frames
	serial  uint64
	free    map[[2]int]time.Time // when the direction's sender is idle
	queued  map[[2]int]int
	held    []int // per node: frames that its board's queues hold
	passed  map[[2]int]int
	lost    map[[2]int]int
}

type frame struct {
	at       time.Time
	serial   uint64
	from, to int
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

func newHub(devs []*tap.Device, b *board.Board) (*hub, error) {
	h := &hub{devs: devs, board: b, done: make(chan struct{}), links: map[[2]int]Link{}, rnd: rand.New(rand.NewSource(1)),
		free: map[[2]int]time.Time{}, queued: map[[2]int]int{}, held: make([]int, len(devs)*board.NumAC), passed: map[[2]int]int{}, lost: map[[2]int]int{}}
	if err := unix.Pipe2(h.wake[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	go h.run()
	return h, nil
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
	if len(data) < 34 || data[12] != 8 || data[13] != 0 {
		return // ARP and the like: neighbours are permanent
	}
	var mac tap.HardwareAddress
	copy(mac[:], data)
	to, ok := tap.NodeOfHardware(mac)
	if !ok || to >= len(h.devs) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]int{from, to}
	l := h.links[key]
	// The WMM map of the precedence bits (802.11-2020 §10.2.4.2).
	ac := [8]int{1, 0, 0, 1, 2, 2, 3, 3}[data[15]>>5]
	now := time.Now()
	limit := l.Queue
	if limit == 0 {
		limit = 100
	}
	q := from*board.NumAC + ac
	if h.queued[key] >= limit {
		h.lost[key]++
		if h.board != nil {
			h.board.Arrived(from, ac, 1, 1, h.held[q])
		}
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
	h.held[q]++
	if h.board != nil {
		h.board.Arrived(from, ac, 1, 0, h.held[q])
	}
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
		key := [2]int{f.from, f.to}
		if f.last {
			h.queued[key]--
			q := f.from*board.NumAC + f.ac
			h.held[q]--
			if h.board != nil {
				h.board.Left(f.from, f.ac, 1, h.held[q])
			}
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
