package bench

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
)

func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{
		Part:          NodeMain,
		emulator.Part: func() int { return emulator.Main(os.Stdin, os.Stdout) },
	})
	os.Exit(m.Run())
}

// A small medium of both kinds carries what it should, and the table shows it.
func TestMedium(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	var out strings.Builder
	rs, err := Medium(context.Background(), &out, MediumOptions{
		Common: Common{Tag: "bench-test-medium"}, Cells: []int{4}, Mesh: 9, Wires: []int{4}, Warmup: 500 * time.Millisecond, Span: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	nothingLeft(t, "bench-test-medium")
	if len(rs) != 3 || strings.Count(out.String(), "\n") != 4 {
		t.Fatalf("%d results, table:\n%s", len(rs), out.String())
	}
	// Two cells that do not hear each other carry 29.9 Mb/s each, and so much at
	// most in the engine's time; a busy machine's senders offer less.
	if c := rs[0]; c.Goodput == 0 || c.Frames*payload*8 > 60e6 || c.Nodes != 4 || c.Flows != 2 {
		t.Errorf("cells: %.1f Mb/s in %.0f frames/s over %d nodes and %d flows, want about 60 Mb/s over 4 and 2", c.Goodput/1e6, c.Frames, c.Nodes, c.Flows)
	}
	if m := rs[1]; m.Goodput < 1e6 || m.Goodput > 35e6 || m.Flows != 9 || m.Frames < m.Goodput/8/1500 {
		t.Errorf("mesh: %.1f Mb/s of %d flows, %.0f frames/s", m.Goodput/1e6, m.Flows, m.Frames)
	}
	w := rs[2]
	if w.Goodput == 0 || w.Nodes != 4 || w.Flows != 2 || len(w.Report.Pipes) != 2 {
		t.Fatalf("wires: %.1f Mb/s over %d nodes, %d flows and %d pipes, want about 58 Mb/s over 4, 2 and 2", w.Goodput/1e6, w.Nodes, w.Flows, len(w.Report.Pipes))
	}
	for i, p := range w.Report.Pipes {
		if p[0].Delivered == 0 || p[0].Delivered > 2501 || p[1].Entered != 0 { // 30 Mb/s are 2,500 packets of 1500 B
			t.Errorf("pipe %d delivered %d packets in a second and took %d on the way back", i, p[0].Delivered, p[1].Entered)
		}
	}
	for _, r := range rs {
		if r.Report.Measured.To.Sub(r.Report.Measured.From) != vtime.Second {
			t.Errorf("%s: measured over %v", r.Name, r.Report.Measured.To.Sub(r.Report.Measured.From).Std())
		}
	}
}

func TestMediumRefuses(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	if _, err := Medium(context.Background(), io.Discard, MediumOptions{Common: Common{Tag: "bench-test-refuses"}, Cells: []int{3}}); err == nil {
		t.Error("three nodes in cells of two")
	}
	if _, err := Medium(context.Background(), io.Discard, MediumOptions{Cells: []int{2}}); err == nil {
		t.Error("no ownership tag")
	}
}

// nothingLeft looks for processes with the ownership tag, and for our device's
// name in our own namespace.
func nothingLeft(t *testing.T, tag string) {
	t.Helper()
	pids, err := procfs.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if has, err := procfs.HasEnv(pid, netns.TagVariable+"="+tag); err == nil && has && procfs.Running(pid) {
			t.Errorf("process %d (%s) is left", pid, procfs.Name(pid))
		}
	}
	if b, err := os.ReadFile("/proc/self/net/dev"); err != nil || strings.Contains(string(b), tap.Interface) {
		t.Errorf("an interface %s in our own namespace (%v)", tap.Interface, err)
	}
}

// Cancelling ends a benchmark early and leaves nothing.
func TestMediumCanBeInterrupted(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	t0 := time.Now()
	_, err := Medium(ctx, io.Discard, MediumOptions{Common: Common{Tag: "bench-test-cancel"}, Cells: []int{2}, Warmup: time.Hour})
	if err == nil || time.Since(t0) > 10*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(t0))
	}
	nothingLeft(t, "bench-test-cancel")
}

func TestNodes(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	var out strings.Builder
	rs, err := Nodes(context.Background(), &out, NodesOptions{Common: Common{Tag: "bench-test-nodes"}, Counts: []int{2, 5}, Repeat: 1})
	if err != nil || len(rs) != 2 || rs[1].Nodes != 5 || rs[0].Up <= 0 || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%+v, %v\n%s", rs, err, out.String())
	}
}

// Next hops lead to every destination, over links only.
func TestNextHops(t *testing.T) {
	cfg := config(wifi.DiskRadio(150, 300))
	for i := range 5 {
		cfg.Positions = append(cfg.Positions, wifi.Position{X: vtime.Metres(i) * 100})
	}
	cfg.Positions = append(cfg.Positions, wifi.Position{X: 10_000})
	next, err := nextHops(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		for j := range 6 {
			want := i + 1
			switch {
			case i == j || i == 5 || j == 5:
				want = -1
			case j < i:
				want = i - 1
			}
			if next[i][j] != want {
				t.Errorf("from %d to %d by way of %d, want %d", i, j, next[i][j], want)
			}
		}
	}
}
