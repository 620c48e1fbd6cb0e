package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
)

// Common are the options of every benchmark.
type Common struct {
	// Tag is the ownership tag and Journal the record of what is created; see
	// netns.Options. Tag is required.
	Tag     string
	Journal func(kind, id string) error
}

// lab is a set of traffic generators on an emulated medium.
type lab struct {
	driver *netns.Driver
	nodes  []*remote
	board  *board.Board
	emu    *emulator.Proc
}

// remote is one generator.
type remote struct {
	h   node.Handle
	out *bufio.Reader
}

// ask gives an order and waits for the answer.
func (r *remote) ask(o order) (answer, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	if _, err := r.h.Conn().Write(append(line, '\n')); err != nil {
		return answer{}, r.explain(err)
	}
	return r.answer()
}

func (r *remote) answer() (answer, error) {
	var a answer
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return a, r.explain(err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("node %s: %w", r.h.Name(), err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("node %s: %s", r.h.Name(), a.Error)
	}
	return a, nil
}

// explain prefers the reason of a generator's death to the broken pipe that it
// causes.
func (r *remote) explain(err error) error {
	select {
	case <-r.h.Done():
	case <-time.After(100 * time.Millisecond):
	}
	if e := r.h.Err(); e != nil {
		return e
	}
	return fmt.Errorf("node %s: %w", r.h.Name(), err)
}

// startNodes starts n generators and waits for their greetings.
func startNodes(ctx context.Context, c Common, n int, b *board.Board) (*lab, error) {
	d, err := netns.New(netns.Options{Part: Part, Tag: c.Tag, Journal: c.Journal})
	if err != nil {
		return nil, err
	}
	l := &lab{driver: d, board: b}
	specs := make([]node.Spec, n)
	for i := range specs {
		specs[i] = node.Spec{ID: i, Name: fmt.Sprintf("n%03d", i+1)}
		if b != nil {
			if specs[i].Files, err = b.NodeFiles(i); err != nil {
				return nil, err
			}
		}
	}
	hs, err := d.Start(ctx, specs)
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	for _, h := range hs {
		l.nodes = append(l.nodes, &remote{h, bufio.NewReader(h.Conn())})
	}
	if err := l.each(func(i int) error { _, err := l.nodes[i].answer(); return err }); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// each runs f for every node at once.
func (l *lab) each(f func(i int) error) error {
	errs := make([]error, len(l.nodes))
	var wg sync.WaitGroup
	for i := range l.nodes {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// startMedium starts nodes and emulator and sets the nodes up. cfg's nodes are
// filled in, or, where there are none, made: one per position.
func startMedium(ctx context.Context, c Common, cfg *emulator.Config, nextHop func(from, to int) int) (*lab, error) {
	if cfg.Nodes == nil {
		cfg.Nodes = make([]emulator.Node, len(cfg.Positions))
	}
	n := len(cfg.Nodes)
	b, err := board.Create(n, len(cfg.Pipes))
	if err != nil {
		return nil, err
	}
	l, err := startNodes(ctx, c, n, b)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	for i, r := range l.nodes {
		cfg.Nodes[i].Name, cfg.Nodes[i].PID = r.h.Name(), r.h.PID()
	}
	l.emu, err = emulator.Start(ctx, cfg, emulator.Options{Board: b, Env: []string{netns.TagVariable + "=" + c.Tag}, Journal: c.Journal})
	if err == nil {
		err = l.each(func(i int) error {
			s := &setUp{Node: i, Wired: cfg.Nodes[i].NoRadio, NextHops: make([]int, n)}
			for j := range n {
				s.NextHops[j] = nextHop(i, j)
			}
			_, err := l.nodes[i].ask(order{SetUp: s})
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// measure lets the traffic run for a warm-up and a measured interval and
// returns the report and the payload bytes received in the interval.
func (l *lab) measure(ctx context.Context, warmup, span time.Duration) (*emulator.Report, uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return nil, 0, err
	}
	const lead = 20 * time.Millisecond // for the order to arrive
	from := vtime.FromStd(warmup)
	if err := l.emu.Begin(ctx, ts.Nano()+int64(lead), vtime.Time(from), vtime.Time(from+vtime.FromStd(span))); err != nil {
		return nil, 0, err
	}
	if err := l.sleep(ctx, lead+warmup); err != nil {
		return nil, 0, err
	}
	begin, err := l.received()
	if err != nil {
		return nil, 0, err
	}
	if err := l.sleep(ctx, span); err != nil {
		return nil, 0, err
	}
	end, err := l.received()
	if err != nil {
		return nil, 0, err
	}
	r, err := l.emu.Stop(ctx)
	return r, end - begin, err
}

// sleep ends early when the context or the emulator does.
func (l *lab) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.emu.Done():
		return l.emu.Err()
	}
}

func (l *lab) received() (uint64, error) {
	got := make([]answer, len(l.nodes))
	err := l.each(func(i int) (err error) { got[i], err = l.nodes[i].ask(order{Count: true}); return err })
	var sum uint64
	for i, a := range got {
		if a.Failed != "" {
			err = errors.Join(err, fmt.Errorf("node %s: a flow failed: %s", l.nodes[i].h.Name(), a.Failed))
		}
		sum += a.Received
	}
	return sum, err
}

// close ends everything, whatever state it is in.
func (l *lab) close() error {
	if l.emu != nil {
		l.emu.Kill() // after Stop it has ended already
	}
	err := l.driver.Close(context.Background())
	if l.board != nil {
		err = errors.Join(err, l.board.Close())
	}
	return err
}
