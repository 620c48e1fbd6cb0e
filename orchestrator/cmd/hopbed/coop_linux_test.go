package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/coop"
	"github.com/hopbed/hopbed/agent/coop/clamp"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// TestCoop: three stations in namespaces hear each other over the emulated radio,
// and what each has under way follows the cap, by either way to bound a live window.
func TestCoop(t *testing.T) {
	t.Run("queue", func(t *testing.T) { coopRun(t, "queue") })
	t.Run("bpf", func(t *testing.T) {
		c, err := clamp.New()
		if err != nil {
			testenv.Need(t, testenv.Because("BPF at sockets (sockops)", err))
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		coopRun(t, "bpf")
	})
}

func coopRun(t *testing.T, limit string) {
	dir := liveLab(t)
	write(t, filepath.Join(dir, "f.yaml"), `hopbed: 1
name: cell
topology:
  nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m], bridge: true}, {name: a, at: [10m, 0m]}, {name: b, at: [0m, 10m]}, {name: c, at: [10m, 10m]}]
  pipes: [{ends: [ap, server], rate: 20mbit, delay: 50ms, queue: {packets: 100}}]
radio: {standard: 802.11b, rate: 11mbit, path-loss: {kind: disk, range: 250m, sense-range: 550m}}
transports: {coop-tcp: {trigger: always, bandwidth: 2mbit, limit: `+limit+`}}
flows:
  - {pairs: [{src: a, dst: server}, {src: b, dst: server}, {src: c, dst: server}], transport: coop-tcp/cubic}
warmup: 1s
duration: 5s
`)
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "netns", "--db", "r.db")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d:\n%s%s", status, out, stderr)
	}
	nothingLeft(t, dir)
	runs := wiredRuns(t, filepath.Join(dir, "r.db"))
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	r := runs[0]
	for _, n := range r.nodes {
		if station := len(n.Name) == 1; station != strings.HasPrefix(n.Facts["coop_limit"], limit) {
			t.Errorf("node %s: windows are bounded by %q", n.Name, n.Facts["coop_limit"])
		}
	}
	st := reading(t, filepath.Join(dir, "r.db"))
	defer st.Close()
	events, err := st.Events(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
	if err != nil {
		t.Fatal(err)
	}
	most, since := map[int]int{}, map[int]int64{} // of a flow: its largest cap, and when it was first capped
	all := map[int]bool{}
	for _, e := range events {
		if e.Kind != "window" {
			continue
		}
		c, err := coop.ParseChange(e.Text)
		if err != nil {
			t.Fatal(err)
		}
		flow := int(e.Flow.V)
		all[flow] = all[flow] || c.Stations == 3
		if c.Cap == 0 {
			continue
		}
		if most[flow] == 0 {
			since[flow] = e.TUs.V
		}
		most[flow] = max(most[flow], c.Cap)
		if bound := coop.IdealCwnd(2*vtime.MbitPerSecond, c.MinRTT, 2); c.Cap > bound {
			t.Errorf("flow %d: %v is more than the share of one of two stations, %d", flow, c, bound)
		}
	}
	for flow, samples := range r.samples {
		checked := 0
		for _, s := range samples {
			// A second after the first cap what was under way before has arrived.
			if s.Side != "src" || since[flow] == 0 || s.TUs < since[flow]+1_000_000 {
				continue
			}
			checked++
			if s.InFlightPackets.V > float64(most[flow]) {
				t.Errorf("flow %d at %d µs: %v segments under way (a window of %v), capped at %d", flow, s.TUs, s.InFlightPackets.V, s.CwndPackets.V, most[flow])
			}
		}
		if !all[flow] || most[flow] == 0 || checked == 0 && r.Valid {
			t.Errorf("flow %d: all three stations known %v, cap %d, %d samples of it", flow, all[flow], most[flow], checked)
		}
	}
	for _, f := range r.flows {
		t.Logf("flow %d: %.2f Mb/s, cap %d", f.Flow, f.GoodputBps.V/1e6, most[f.Flow])
	}
}
