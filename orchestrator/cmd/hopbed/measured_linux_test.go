package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// The links of a mesh of namespaces are measured by the agents' probes over the
// emulated medium: what is found lies about what the file lists, a one-way link is
// known as one, and the flow goes round it.
func TestMeasuredRoutesOnNamespaces(t *testing.T) {
	dir := liveLab(t)
	write(t, filepath.Join(dir, "m.yaml"), `hopbed: 1
name: m
topology:
  nodes: [{name: a}, {name: b}, {name: c}, {name: w, radio: false}]
  links: [{from: a, to: b, delivery: 90%}, {from: c, to: b, delivery: 80%}, {from: a, to: c, delivery: 100%, reverse: 0%}]
  pipes: [{ends: [c, w], delay: 1ms, rate: 10mbit, queue: {packets: 50}}]
routing: {kind: measured, probes: 150, period: 40ms}
flows: [{pairs: [{src: a, dst: w}], transport: $transport}]
matrix: {transport: [hop, tcp/reno]}
limits: {reruns: 20}
warmup: 500ms
duration: 1s
`)
	status, _, stderr := hopbed(t, dir, "run", "m.yaml")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	nothingLeft(t, dir)
	if !strings.Contains(stderr, "3 pairs of nodes heard probes: 2 usable links") || !strings.Contains(stderr, "1 one-way") {
		t.Errorf("the measurement: %s", stderr)
	}
	st, err := store.OpenRead(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	v, err := st.Surveys(t.Context(), 1)
	if err != nil || len(v) != 1 || len(v[0].Mute) != 1 || v[0].Mute[0] != 3 {
		t.Fatalf("%+v, %v", v, err)
	}
	heard := map[[2]int]int{}
	for _, l := range v[0].Links {
		heard[[2]int{l.Src, l.Dst}] = l.Received
	}
	// Five standard deviations below, and a little for what collides.
	for at, p := range map[[2]int]float64{{0, 1}: 0.9, {1, 0}: 0.9, {1, 2}: 0.8, {2, 1}: 0.8, {0, 2}: 1} {
		if got := float64(heard[at]) / 150; got < p-0.25 || got > min(1, p+0.15) {
			t.Errorf("%v: %.3f heard, %v listed", at, got, p)
		}
	}
	if n := heard[[2]int{2, 0}]; n != 0 {
		t.Errorf("%d probes came the way that carries nothing", n)
	}
	flows, err := st.Flows(t.Context(), store.Filter{})
	if err != nil || len(flows) < 2 {
		t.Fatalf("%d flows, %v", len(flows), err)
	}
	for _, f := range flows {
		if len(f.Path) != 4 || f.Path[1] != 1 || f.Path[2] != 2 {
			t.Errorf("%s goes by %v", f.Transport, f.Path)
		}
	}
}

// hopbed topology etx measures without leaving anything, and compares with the
// model.
func TestTopologyMeasuresNamespaces(t *testing.T) {
	dir := liveLab(t)
	write(t, filepath.Join(dir, "l.yaml"), listedLinks)
	status, out, stderr := hopbed(t, dir, "topology", "etx", "--measure", "--set", "routing.probes=100", "--set", "routing.period=40ms", "--set", "limits.reruns=20", "l.yaml")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	nothingLeft(t, dir)
	m := regexp.MustCompile(`(?m)^a +b +(0\.\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no link from a to b:\n%s", out)
	}
	if d, err := strconv.ParseFloat(m[1], 64); err != nil || d < 0.65 || d > 0.99 {
		t.Errorf("a to b delivers %v, 0.9 listed", d)
	}
}

// The links of a lab are measured without an experiment: the nodes of an inventory,
// reached by SSH, over a switch that loses nothing. They are afterwards as they
// were.
func TestTopologyMeasuresALab(t *testing.T) {
	l := newWiredLab(t, 3)
	p := prepare(t, l.dir, "topology", "etx", "--inventory", "lab.yaml", "--agents", builtAgents(t), "--set", "routing.probes=20", "--set", "routing.period=50ms", "--set", "limits.reruns=20")
	l.control.within(t, p.launch)
	if code := p.end(); code != exitOK {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	out := p.stdout.String()
	for _, want := range []string{`(?m)^n01 +n02 +1\.000 +0\.84–1\.00 +1\.000 +0\.84–1\.00 +1\.00 `, `(?m)^n02 +n03 +1\.000`, "20 probes of 134B"} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(p.said(), "3 pairs of nodes heard probes: 3 usable links") {
		t.Errorf("progress:\n%s", p.said())
	}
	if strings.Contains(out, "model") {
		t.Errorf("a model of real nodes:\n%s", out)
	}
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
}
