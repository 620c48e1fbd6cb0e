package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"
	"time"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// MediumOptions configure Medium.
type MediumOptions struct {
	Common
	Cells  []int         // numbers of nodes, in cells of two; empty = 16, 32, 64, 128
	Mesh   int           // nodes, and TCP flows, of the mesh; 0 = 100, negative = none
	Wires  []int         // numbers of nodes, wired in pairs; empty = 128
	Warmup time.Duration // 0 = 2 s
	Span   time.Duration // measured; 0 = 5 s
	// NormalPriority leaves the emulator at ordinary priority.
	NormalPriority bool
}

// MediumResult is one row of the table.
type MediumResult struct {
	Name    string
	Nodes   int
	Flows   int
	Goodput float64 // payload bits per second, all flows
	Frames  float64 // frames per second that the emulator delivered to nodes
	Report  *emulator.Report
	Verdict emulator.Verdict
}

// Medium measures how late the live medium is under load, at 54 Mb/s (802.11g):
// two-node cells that do not hear each other, each saturated by UDP, then a
// mesh with as many TCP flows as nodes, and pairs of nodes joined by pipes that
// carry the packets of a cell. It prints a table.
func Medium(ctx context.Context, w io.Writer, o MediumOptions) (all []MediumResult, err error) {
	if o.Cells == nil {
		o.Cells = []int{16, 32, 64, 128}
	}
	if o.Mesh == 0 {
		o.Mesh = 100
	}
	if o.Wires == nil {
		o.Wires = []int{128}
	}
	if o.Warmup == 0 {
		o.Warmup = 2 * time.Second
	}
	if o.Span == 0 {
		o.Span = 5 * time.Second
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// What was measured before an error is worth showing.
	defer func() { err = errors.Join(err, tw.Flush()) }()
	fmt.Fprintln(tw, "scenario\tnodes\tflows\tframes/s\tMb/s\tp50 (µs)\tp99 (µs)\tmax (µs)\t> 1 ms (%)\twakes/s\tCPU (%)\tring drops\tpriority\tvalid\t")
	row := func(r MediumResult, err error) error {
		if err != nil {
			return err
		}
		all = append(all, r)
		m := &r.Report.Measured
		s := m.To.Sub(m.From).Seconds()
		us := func(d vtime.Duration) float64 { return float64(d) / 1e3 }
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%.3f\t%.0f\t%.0f\t%d\t%s\t%v\t\n", r.Name, r.Nodes, r.Flows, r.Frames, r.Goodput/1e6,
			us(m.Lateness.P50), us(m.Lateness.P99), us(m.Lateness.Max), m.Lateness.Above1ms*100, float64(m.Lateness.Wakes)/s,
			m.Host.CPU.Seconds()/s*100, r.Report.RingDrops, r.Report.Priority, r.Verdict.Valid)
		return nil
	}
	for _, n := range o.Cells {
		if err := row(cells(ctx, o, n)); err != nil {
			return all, fmt.Errorf("%d nodes in cells of two: %w", n, err)
		}
	}
	if o.Mesh > 0 {
		if err := row(mesh(ctx, o, o.Mesh)); err != nil {
			return all, fmt.Errorf("mesh of %d nodes: %w", o.Mesh, err)
		}
	}
	for _, n := range o.Wires {
		if err := row(wires(ctx, o, n)); err != nil {
			return all, fmt.Errorf("%d nodes wired in pairs: %w", n, err)
		}
	}
	return all, nil
}

const firstPort = 20000

// cellRate is the packets a second that a cell's sender offers: 802.11g carries
// 2,540 packets of 1500 B a second between two stations.
const cellRate = 2800

func cells(ctx context.Context, o MediumOptions, n int) (MediumResult, error) {
	if n < 2 || n%2 != 0 {
		return MediumResult{}, fmt.Errorf("cells of two need an even number of nodes")
	}
	cfg := config(wifi.DiskRadio(100, 200))
	for i := range n {
		cfg.Positions = append(cfg.Positions, wifi.Position{X: vtime.Metres(i/2) * 1000, Y: vtime.Metres(i%2) * 10})
	}
	return run(ctx, o, "cells", cfg, withinPairs, "udp", pairs(n))
}

// withinPairs is the next hop in a network of pairs.
func withinPairs(from, to int) int {
	if from/2 != to/2 {
		return -1
	}
	return to
}

// pairs has one flow per pair.
func pairs(n int) (flows []flow) {
	for i := 0; i < n; i += 2 {
		flows = append(flows, flow{i, i + 1})
	}
	return flows
}

// wires joins pairs of nodes by pipes that carry a little less than a cell's
// sender offers, so that their queues are full as those of the radios are.
func wires(ctx context.Context, o MediumOptions, n int) (MediumResult, error) {
	if n < 2 || n%2 != 0 {
		return MediumResult{}, fmt.Errorf("pairs need an even number of nodes")
	}
	cfg := &emulator.Config{Seed: 1, Nodes: make([]emulator.Node, n)}
	c := pipe.Config{Rate: 30 * vtime.MbitPerSecond, Delay: 5 * vtime.Millisecond, Queue: pipe.Queue{Packets: 50}}
	for i := range cfg.Nodes {
		cfg.Nodes[i].NoRadio = true
	}
	for i := 0; i < n; i += 2 {
		p := emulator.Pipe{Config: [2]pipe.Config{c, c}}
		for e := range p.Ends {
			p.Ends[e] = emulator.PipeEnd{Node: i + e, Interface: wire, HardwareAddress: tap.PipeHardwareAddr(i+e, 0)}
		}
		cfg.Pipes = append(cfg.Pipes, p)
	}
	return run(ctx, o, "wires", cfg, withinPairs, "udp", pairs(n))
}

type flow struct{ src, dst int }

// mesh places nodes on a jittered grid, so that it is connected without a
// search, and draws one flow per node between random pairs.
func mesh(ctx context.Context, o MediumOptions, n int) (MediumResult, error) {
	if n < 2 {
		return MediumResult{}, fmt.Errorf("a mesh needs two nodes, not %d", n)
	}
	cfg := config(wifi.DiskRadio(250, 550))
	s := des.NewStream(1, "bench/mesh")
	side := 1
	for side*side < n {
		side++
	}
	for i := range n {
		jitter := func() vtime.Metres { return vtime.Metres(s.Float64()*60 - 30) }
		cfg.Positions = append(cfg.Positions, wifi.Position{X: vtime.Metres(i%side)*180 + jitter(), Y: vtime.Metres(i/side)*180 + jitter()})
	}
	next, err := nextHops(cfg)
	if err != nil {
		return MediumResult{}, err
	}
	var flows []flow
	for len(flows) < n {
		f := flow{s.IntN(n), s.IntN(n)}
		if f.src != f.dst && next[f.src][f.dst] >= 0 {
			flows = append(flows, f)
		}
	}
	return run(ctx, o, "mesh", cfg, func(from, to int) int { return next[from][to] }, "tcp", flows)
}

func config(r wifi.Radio) *emulator.Config {
	return &emulator.Config{Seed: 1, MACs: []wifi.MAC{wifi.DefaultMAC(wifi.StandardG)}, Radio: r}
}

// nextHops finds paths of the fewest hops: a breadth-first search towards every
// destination. Ties go to the lowest index.
func nextHops(cfg *emulator.Config) ([][]int, error) {
	ch, err := cfg.Channel()
	if err != nil {
		return nil, err
	}
	n := len(cfg.Positions)
	next := make([][]int, n)
	for i := range next {
		next[i] = make([]int, n)
		for j := range next[i] {
			next[i][j] = -1
		}
	}
	for dst := range n {
		queue := []int{dst}
		for len(queue) > 0 {
			via := queue[0]
			queue = queue[1:]
			for i := range n {
				if i != dst && next[i][dst] < 0 && ch.Delivery(i, via, 1500, cfg.MACs[0].Rate) > 0.5 {
					next[i][dst] = via
					queue = append(queue, i)
				}
			}
		}
	}
	return next, nil
}

func run(ctx context.Context, o MediumOptions, name string, cfg *emulator.Config, next func(from, to int) int, network string, flows []flow) (res MediumResult, err error) {
	cfg.NormalPriority = o.NormalPriority
	l, err := startMedium(ctx, o.Common, cfg, next)
	if err != nil {
		return res, err
	}
	defer func() {
		if e := l.close(); err == nil {
			err = e
		}
	}()
	for i, f := range flows {
		if _, err := l.nodes[f.dst].ask(order{Sink: &sink{network, firstPort + i}}); err != nil {
			return res, err
		}
	}
	for i, f := range flows {
		to := netip.AddrPortFrom(tap.Addr(f.dst), uint16(firstPort+i))
		if _, err := l.nodes[f.src].ask(order{Send: &source{network, to, cellRate}}); err != nil {
			return res, err
		}
	}
	rep, bytes, err := l.measure(ctx, o.Warmup, o.Span)
	if err != nil {
		return res, err
	}
	m := &rep.Measured
	s := m.To.Sub(m.From).Seconds()
	return MediumResult{Name: name, Nodes: len(cfg.Nodes), Flows: len(flows), Goodput: float64(bytes) * 8 / s,
		Frames: float64(m.Frames.Written) / s, Report: rep, Verdict: emulator.Judge(rep)}, nil
}
