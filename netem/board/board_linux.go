package board

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Board is the writing side: the controller creates it and passes its files to
// the emulator, which opens and feeds it, and to the agents (View).
//
// The update methods are for one thread only (the emulator's) and do not
// allocate.
type Board struct {
	mem   []byte
	head  *header
	cells []cell
	nodes int
	pipes int
	fds   []int      // the nodes' eventfds
	files []*os.File // memory and eventfds, with Create only
}

// Create makes the shared memory for the radios of so many nodes and for the
// two directions of so many pipes, and one eventfd per node. Nothing is created
// in a file system; everything vanishes with the last descriptor.
func Create(nodes, pipes int) (*Board, error) {
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("queue board for %d nodes: want 1 to %d", nodes, MaxNodes)
	}
	if pipes < 0 || pipes > MaxPipes {
		return nil, fmt.Errorf("queue board for %d pipes: want 0 to %d", pipes, MaxPipes)
	}
	fd, err := unix.MemfdCreate("hopbed-board", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("queue board: memfd_create: %w (needs Linux 3.17 or newer)", err)
	}
	file := os.NewFile(uintptr(fd), "hopbed-board")
	if err := unix.Ftruncate(fd, int64(size(nodes, pipes))); err != nil {
		file.Close()
		return nil, fmt.Errorf("queue board: %d bytes of shared memory: %w", size(nodes, pipes), err)
	}
	// A mapping whose file shrinks raises SIGBUS; nobody may do that to another.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, fmt.Errorf("queue board: seal the shared memory: %w", err)
	}
	files := []*os.File{file}
	for i := range nodes {
		// Blocking, because os.File.Fd, which starting a process calls, makes a
		// non-blocking descriptor blocking, for all processes that share it.
		// OpenViewFD makes it non-blocking in the end.
		efd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("queue board: eventfd of node %d: %w (raise the limit of open files, ulimit -n)", i, err)
		}
		files = append(files, os.NewFile(uintptr(efd), fmt.Sprintf("hopbed-board-event-%d", i)))
	}
	mem, err := mapFile(fd, size(nodes, pipes))
	if err != nil {
		closeAll(files)
		return nil, err
	}
	h := (*header)(unsafe.Pointer(&mem[0]))
	h.magic.Store(magic)
	h.version.Store(version)
	h.nodes.Store(uint32(nodes))
	h.pipes.Store(uint32(pipes))
	b := build(mem)
	b.files = files
	for _, f := range files[1:] {
		b.fds = append(b.fds, int(f.Fd()))
	}
	return b, nil
}

// Open maps a board in another process, from n inherited descriptors, first and
// up, in the order of Files. The descriptors stay open as long as the process.
func Open(first, n int) (*Board, error) {
	if n < 2 {
		return nil, fmt.Errorf("queue board: %d descriptors, want the memory and one per node", n)
	}
	mem, err := mapBoard(first)
	if err != nil {
		return nil, err
	}
	b := build(mem)
	if n-1 != b.nodes {
		err := fmt.Errorf("queue board: %d event descriptors for %d nodes", n-1, b.nodes)
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	for i := range n {
		unix.CloseOnExec(first + i)
		if i > 0 {
			b.fds = append(b.fds, first+i)
		}
	}
	return b, nil
}

func build(mem []byte) *Board {
	h, cells := carve(mem)
	return &Board{mem: mem, head: h, cells: cells, nodes: int(h.nodes.Load()), pipes: int(h.pipes.Load())}
}

// Nodes is the number of nodes of the board.
func (b *Board) Nodes() int { return b.nodes }

// Pipes is the number of pipes of the board.
func (b *Board) Pipes() int { return b.pipes }

// Files returns the shared memory followed by the eventfd of every node, to be
// inherited by the emulator (exec.Cmd.ExtraFiles). The board keeps them. Only
// the process that created the board has any.
func (b *Board) Files() []*os.File { return b.files }

// NodeFiles returns what the agent of one node inherits: the shared memory and
// the node's eventfd, for OpenViewFD. The board keeps them.
func (b *Board) NodeFiles(node int) ([]*os.File, error) {
	if err := checkNode(node, b.nodes); err != nil {
		return nil, err
	}
	return []*os.File{b.files[0], b.files[node+1]}, nil
}

// SetLimit publishes how many frames a radio's queue holds.
func (b *Board) SetLimit(node, ac, limit int) { b.cell(node, ac).limit.Store(uint32(max(0, limit))) }

// Arrived publishes that n frames came for a radio's queue, of which refused
// were turned away because it was full, and that queued frames wait in it now.
func (b *Board) Arrived(node, ac, n, refused, queued int) {
	b.cell(node, ac).arrive(n, refused, queued)
}

// Left publishes that n frames left a radio's queue and that queued wait in it
// now. It wakes the agent if it waits for a queue as short as that; the wish is
// then used up.
func (b *Board) Left(node, ac, n, queued int) {
	if b.cell(node, ac).leave(n, queued) {
		b.wake(node)
	}
}

// State reads one queue of a radio.
func (b *Board) State(node, ac int) State { return b.cell(node, ac).state() }

var one = func() (b [8]byte) { *(*uint64)(unsafe.Pointer(&b)) = 1; return }()

func (b *Board) wake(node int) {
	// It cannot block: the counter has room for 2^64-2 wakes. It cannot fail
	// either, short of a closed descriptor.
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(b.fds[node]), uintptr(unsafe.Pointer(&one)), 8)
}

func (b *Board) cell(node, ac int) *cell { return &b.cells[node*NumAC+ac] }

func (b *Board) pipe(q int) *cell { return &b.cells[b.nodes*NumAC+q] }

// Close unmaps the memory and, with Create, closes the descriptors.
func (b *Board) Close() error {
	err := unix.Munmap(b.mem)
	b.mem, b.head, b.cells = nil, nil, nil
	return errors.Join(err, closeAll(b.files))
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func mapFile(fd, n int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("queue board: map %d bytes: %w", n, err)
	}
	return mem, nil
}

// mapBoard maps an inherited board and checks that it is one of this version.
func mapBoard(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("queue board: descriptor %d: %w", fd, err)
	}
	if st.Size < int64(size(1, 0)) || st.Size > int64(size(MaxNodes, MaxPipes)) {
		return nil, fmt.Errorf("queue board: descriptor %d has %d bytes: not a board", fd, st.Size)
	}
	mem, err := mapFile(fd, int(st.Size))
	if err != nil {
		return nil, err
	}
	h := (*header)(unsafe.Pointer(&mem[0]))
	switch {
	case h.magic.Load() != magic:
		err = errors.New("queue board: the inherited memory is not a board")
	case h.version.Load() != version:
		err = fmt.Errorf("queue board: layout version %d, want %d: the programs are of different builds", h.version.Load(), version)
	case size(int(h.nodes.Load()), int(h.pipes.Load())) != len(mem):
		err = fmt.Errorf("queue board: %d bytes do not fit %d nodes and %d pipes", len(mem), h.nodes.Load(), h.pipes.Load())
	default:
		return mem, nil
	}
	return nil, errors.Join(err, unix.Munmap(mem))
}

func carve(mem []byte) (*header, []cell) {
	h := (*header)(unsafe.Pointer(&mem[0]))
	n := int(h.nodes.Load())*NumAC + 2*int(h.pipes.Load())
	return h, unsafe.Slice((*cell)(unsafe.Pointer(&mem[cellSize])), n)
}
