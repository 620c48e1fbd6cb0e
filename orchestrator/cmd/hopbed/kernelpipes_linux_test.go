package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tc"
)

// kernelLink is a file of two wired links with a node between them; keys completes
// the first one.
func kernelLink(keys, transports, more string) string {
	return `hopbed: 1
name: kernel
topology:
  nodes:
    - {name: a, radio: false}
    - {name: m, radio: false` + more + `}
    - {name: b, radio: false}
  pipes:
    - {ends: [a, m], ` + keys + `}
    - {ends: [m, b], rate: 20mbit, queue: {packets: 100}}
flows: [{pairs: [{src: a, dst: b}], transport: ` + transports + `}]
warmup: 1s
duration: 4s
repeat: 1
limits: {reruns: 0}
`
}

// TestKernelPipesInTheLane runs whole experiments on a kernel that has netem: the
// same link by this program's own emulator and by the kernel.
func TestKernelPipesInTheLane(t *testing.T) {
	lanetest.Run(t, lane.Config{Modules: lane.Network, Memory: 2048},
		lanetest.Case{Name: "the same link by either emulator", Run: func(t *testing.T) { byKernel(t, "user, kernel", "") }},
		lanetest.Case{Name: "behind a bridge", Run: func(t *testing.T) { byKernel(t, "auto", ", bridge: true") }},
		lanetest.Case{Name: "who looks at the queue", Run: hopStaysInUserSpace},
	)
}

// byKernel sends a third more than the link carries, over each of the emulators. The
// lane's processors are emulated, so the rates are small and the bounds of what
// arrives wide; the runs may be invalid.
func byKernel(t *testing.T, emulators, more string) {
	dir := liveLab(t)
	write(t, filepath.Join(dir, "f.yaml"), kernelLink("emulator: $emulator, rate: 1mbit, delay: 20ms, loss: 5%, queue: {packets: 20}", "udp", more)+
		"transports: {udp: {rate: 1400kbit}}\nmatrix: {emulator: ["+emulators+"]}\n")
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "netns", "--db", "k.db")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d:\n%s%s", status, out, stderr)
	}
	nothingLeft(t, dir)
	for _, r := range wiredRuns(t, filepath.Join(dir, "k.db")) {
		p, g := r.pipes[0], r.flows[0].GoodputBps.V
		t.Logf("%s%s: %.3f Mb/s, %d lost, %d dropped of %d", r.point, more, g/1e6, p.Lost.V, p.DropsQueue.V, p.Entered.V)
		offered := float64(p.Entered.V)
		if lost := float64(p.Lost.V) / offered; !(math.Abs(lost-0.05) < 5*math.Sqrt(0.05*0.95/offered)) {
			t.Errorf("%s: %d of %.0f packets lost, want 5 %%", r.point, p.Lost.V, offered)
		}
		if drops := float64(p.DropsQueue.V) / offered; drops < 0.02 || drops > 0.7 { // a sender that stood still catches up in bursts
			t.Errorf("%s: %d of %.0f packets dropped by the queue, want about a quarter", r.point, p.DropsQueue.V, offered)
		}
		// What waited when the interval began is delivered in it: up to a queue more, where the processor is late.
		if g > 1.06e6 || g < 0.4e6 {
			t.Errorf("%s: goodput %.0f b/s over 1 Mb/s", r.point, g)
		}
		if r.Params["emulator"] == "user" {
			if p.Setting != "" || r.Facts["pipe_0_emulator"] != "" || !p.BusyUs.OK {
				t.Errorf("this program's own emulator: %q, %+v", r.Facts["pipe_0_emulator"], p)
			}
			continue
		}
		if r.Facts["pipe_0_emulator"] != "kernel" || p.Setting != "emulated by the kernel" || p.BusyUs.OK {
			t.Errorf("%s: %q, %+v", r.point, r.Facts["pipe_0_emulator"], p)
		}
		var c tc.Class
		if err := json.Unmarshal([]byte(r.nodes[0].Facts["shaper_eth0"]), &c); err != nil || c.Limit != 20 || c.Shaper != tc.NetemShaper || c.Seed == 0 {
			t.Errorf("what the kernel took is told as %q (%v)", r.nodes[0].Facts["shaper_eth0"], err)
		}
	}
}

func hopStaysInUserSpace(t *testing.T) {
	dir := liveLab(t)
	keys := "rate: 1mbit, delay: 20ms, queue: {packets: 20}"
	write(t, filepath.Join(dir, "f.yaml"), kernelLink("emulator: kernel, "+keys, "hop", ""))
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "netns", "--db", "h.db")
	if status == exitOK || !strings.Contains(stderr, "emulator: kernel of topology.pipes[0]") || !strings.Contains(stderr, "hop looks at the queue") {
		t.Errorf("status %d:\n%s%s", status, out, stderr)
	}
	write(t, filepath.Join(dir, "g.yaml"), kernelLink("emulator: auto, "+keys, "hop", ""))
	if status, out, stderr = hopbed(t, dir, "run", "g.yaml", "--backend", "netns", "--db", "g.db"); status != exitOK && status != exitNotValid {
		t.Fatalf("status %d:\n%s%s", status, out, stderr)
	}
	r := wiredRuns(t, filepath.Join(dir, "g.db"))[0]
	if why := r.Facts["pipe_0_emulator"]; !strings.HasPrefix(why, "user: hop looks at the queue") {
		t.Errorf("the emulator was %q", why)
	}
	nothingLeft(t, dir)
}

// Requirement: where the kernel has no netem a link that needs it is refused before
// anything is stored, with the remedy; auto is this program's emulator and says why;
// and a rate alone works.
func TestKernelPipesWithoutNetem(t *testing.T) {
	dir := liveLab(t)
	f, err := tc.Probe()
	if err != nil {
		t.Fatal(err)
	}
	if f.Netem == nil {
		testenv.Need(t, testenv.Because("a kernel without netem", errHasNetem{}))
	}
	write(t, filepath.Join(dir, "f.yaml"), kernelLink("emulator: kernel, rate: 5mbit, delay: 20ms, queue: {packets: 40}", "tcp/cubic", ""))
	status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "netns", "--db", "k.db")
	if status == exitOK || !strings.Contains(stderr, "sch_netem") || !strings.Contains(stderr, "linux-modules-extra-") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if f.TBF != nil {
		testenv.Need(t, testenv.Because("tbf", f.TBF))
	}
	text := strings.Replace(kernelLink("emulator: kernel, rate: 5mbit, queue: {packets: 40}", "tcp/cubic", ""), "{ends: [m, b],", "{ends: [m, b], emulator: auto, delay: 5ms,", 1)
	write(t, filepath.Join(dir, "g.yaml"), text)
	status, out, stderr := hopbed(t, dir, "run", "g.yaml", "--backend", "netns", "--db", "g.db")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d:\n%s%s", status, out, stderr)
	}
	r := wiredRuns(t, filepath.Join(dir, "g.db"))[0]
	if r.Facts["pipe_0_emulator"] != "kernel" || !strings.HasPrefix(r.Facts["pipe_1_emulator"], "user: the kernel has no sch_netem") {
		t.Errorf("emulators %q, %q", r.Facts["pipe_0_emulator"], r.Facts["pipe_1_emulator"])
	}
	// 1,448 of 1,500 bytes are data.
	if g := r.flows[0].GoodputBps.V; r.Valid && (g < 4e6 || g > 4.9e6) {
		t.Errorf("goodput %.0f b/s over a rate of 5 Mb/s", g)
	}
	p := r.pipes[0]
	if p.Delivered.V == 0 || p.Duplicates.OK || p.BusyUs.OK {
		t.Errorf("the kernel's row %+v", p)
	}
	nothingLeft(t, dir)
}

type errHasNetem struct{}

func (errHasNetem) Error() string { return "it has it: the lane is where both are compared" }
