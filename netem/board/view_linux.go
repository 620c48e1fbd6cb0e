package board

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// View is the reading side: what the agent of one node sees of its own queues.
// Its queues are numbered: 0 to NumAC−1 are the radio's access categories,
// NumAC+s is the queue of the node's pipe interface number s (PipeQueue).
// State, Free and Watch may be called by any goroutine and cost a few memory
// reads.
type View struct {
	mem   []byte
	cells []*cell
	node  int
	fd    int      // the memory's
	event *os.File // non-blocking, so that the runtime polls it
}

// OpenViewFD maps the board from the descriptors that the agent inherited: the
// shared memory and the node's eventfd (the order of Board.NodeFiles). It takes
// ownership of both. pipes has the board's number of the direction away from
// the node (2·pipe + end) for each of its pipe interfaces, in the order of their
// slots.
func OpenViewFD(memory, event uintptr, node int, pipes []int) (*View, error) {
	// Inherited descriptors must not leak into what the agent executes.
	unix.CloseOnExec(int(memory))
	unix.CloseOnExec(int(event))
	mem, err := mapBoard(int(memory))
	if err != nil {
		return nil, err
	}
	h, all := carve(mem)
	nodes := int(h.nodes.Load())
	if err := checkNode(node, nodes); err != nil {
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	var cells []*cell
	for ac := range NumAC {
		cells = append(cells, &all[node*NumAC+ac])
	}
	for slot, q := range pipes {
		if n := 2 * int(h.pipes.Load()); q < 0 || q >= n {
			err := fmt.Errorf("queue board: pipe interface %d of node %d sends into queue %d, but the board has %d queues of pipes", slot, node, q, n)
			return nil, errors.Join(err, unix.Munmap(mem))
		}
		cells = append(cells, &all[nodes*NumAC+q])
	}
	if err := unix.SetNonblock(int(event), true); err != nil {
		err = fmt.Errorf("queue board: event descriptor %d of node %d: %w", event, node, err)
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	v := &View{mem: mem, cells: cells, node: node, fd: int(memory)}
	v.event = os.NewFile(event, "hopbed-board-event")
	return v, nil
}

// Node is the node whose queues the view shows.
func (v *View) Node() int { return v.node }

// State reads one queue.
func (v *View) State(q int) State { return v.cells[q].state() }

// Free is the number of frames that the queue takes now. It does not know what
// is on its way between a send call and the emulator: see Window.
func (v *View) Free(q int) int { return v.State(q).Free() }

// Watch asks for one wake-up when no more than low frames wait in the queue.
// It returns true, and asks for nothing, if that is so already: otherwise the
// queue could drain between the caller's look and its wish.
func (v *View) Watch(q, low int) bool {
	c := v.cells[q]
	c.watch.Store(uint32(max(0, low)) + 1)
	if int(c.queued.Load()) > low {
		return false
	}
	c.watch.Store(0)
	return true
}

// Wait blocks until the emulator has woken the node at least once since the
// last Wait. It fails with os.ErrClosed after Close and with
// os.ErrDeadlineExceeded after a deadline set through Event.
func (v *View) Wait() error {
	var b [8]byte
	if _, err := io.ReadFull(v.event, b[:]); err != nil {
		return fmt.Errorf("queue board: wait of node %d: %w", v.node, err)
	}
	if binary.NativeEndian.Uint64(b[:]) == 0 {
		return fmt.Errorf("queue board: empty wake-up of node %d", v.node)
	}
	return nil
}

// Event is the eventfd, for callers with their own poll loop or deadline.
func (v *View) Event() *os.File { return v.event }

// Close unmaps the board and ends a pending Wait. The view must not be used
// afterwards.
func (v *View) Close() error {
	err := errors.Join(v.event.Close(), unix.Close(v.fd), unix.Munmap(v.mem))
	v.mem, v.cells = nil, nil
	return err
}
