//go:build linux

package live

import (
	"context"
	"net/netip"
	"os"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// emulated is the fabric of namespaces: the paced medium and the wires, in a
// process of their own, with their queues on a board that the agents read.
type emulated struct {
	b       *Backend
	s       *plan.Scenario
	capture *backend.Capture // nil: none
	board   *board.Board
	emu     *emulator.Proc
	report  *emulator.Report
	// kernel are the wired links that the nodes' kernels emulate, and userSpace
	// that there are to be none.
	kernel    *kernelPipes
	userSpace bool
}

var _ fabric = (*emulated)(nil)

func (e *emulated) addr(node int) netip.Addr { return tap.Addr(node) }

func (e *emulated) driver() (node.Driver, error) { return e.b.opt.NewDriver() }

func (e *emulated) specs() ([]node.Spec, error) {
	t := e.s.Topology
	n := len(t.Nodes)
	e.kernel = &kernelPipes{}
	var err error
	if !e.userSpace {
		if e.kernel, err = e.b.chooseEmulators(e.s, e.capture != nil); err != nil {
			return nil, &backend.Permanent{Err: err}
		}
	}
	if e.board, err = board.Create(n, len(t.Pipes)); err != nil {
		return nil, err
	}
	specs := make([]node.Spec, n)
	for i, nd := range t.Nodes {
		specs[i] = node.Spec{ID: i, Name: nd.Name}
		if e.b.opt.BoardByPID {
			continue
		}
		if specs[i].Files, err = e.board.NodeFiles(i); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

func (e *emulated) order(i int, flows []proto.Flow) (*proto.Configure, error) {
	cfg, err := configureNode(e.s, i, flows)
	if err != nil {
		return nil, err
	}
	cfg.Shapers = e.kernel.shapers(e.s.Topology, i)
	if !e.b.opt.BoardByPID {
		return cfg, nil
	}
	files, err := e.board.NodeFiles(i)
	if err != nil {
		return nil, err
	}
	cfg.Board.PID, cfg.Board.MemFD, cfg.Board.EventFD = os.Getpid(), int(files[0].Fd()), int(files[1].Fd())
	return cfg, nil
}

func (e *emulated) start(ctx context.Context, r *session) error {
	r.tell("start the medium", 0, 0)
	cfg := emulatorConfig(e.s, r.handles)
	for i := range cfg.Pipes {
		cfg.Pipes[i].Kernel = e.kernel.is(i)
	}
	opt := emulator.Options{Board: e.board, Env: e.b.opt.Env, Journal: e.b.opt.Journal}
	if c := e.capture; c != nil {
		cfg.Capture = &emulator.Capture{SnapLen: c.SnapLen, At: c.At, Comment: c.Comment}
		opt.Packets, opt.Events = c.Packets, c.Events
	}
	return e.launch(ctx, r, cfg, opt)
}

// launch starts the emulator, and watches it.
func (e *emulated) launch(ctx context.Context, r *session, cfg *emulator.Config, opt emulator.Options) error {
	var err error
	if e.emu, err = emulator.Start(ctx, cfg, opt); err != nil {
		return err
	}
	go func() {
		<-e.emu.Done()
		if err := e.emu.Err(); err != nil {
			r.gather.fail(err)
		}
	}()
	return nil
}

func (e *emulated) begin(ctx context.Context, epoch int64, from, to vtime.Time) error {
	return e.emu.Begin(ctx, epoch, from, to)
}

func (e *emulated) stop(ctx context.Context) error {
	var err error
	e.report, err = e.emu.Stop(ctx)
	return err
}

func (e *emulated) collect(rec *store.RunRecord) {
	collectMedium(rec, e.s, e.report)
	collectCapture(e.capture, e.report.Capture)
}

func (e *emulated) kill() {
	if e.emu == nil {
		return
	}
	select {
	case <-e.emu.Done():
	default:
		e.emu.Kill()
	}
}

func (e *emulated) close() error {
	if e.board == nil {
		return nil
	}
	err := e.board.Close()
	e.board = nil
	return err
}
