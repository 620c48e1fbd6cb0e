package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/plan"
)

func TestTopologyShowsWires(t *testing.T) {
	dir := t.TempDir()
	status, out, stderr := hopbed(t, dir, "topology", "show", "--set", "matrix.bridge=[true]", "access-point")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{
		`(?m)^server +– +– +eth0$`, `(?m)^ap +0.0 m +0.0 m +br0 \(wlan0, uplink\)$`, `(?m)^sta2 +-10.0 m +0.0 m +wlan0$`,
		`(?m)^0 +ap uplink +server eth0 +20mbit, 10ms, queue 66 packets$`, `(?m)^0 +server eth0 +ap uplink `, `5 nodes, 1 of them without a radio`, `flows by hops: 4 × 1`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if stderr != "" {
		t.Errorf("standard error: %q", stderr)
	}
	status, out, stderr = hopbed(t, dir, "topology", "show", "access-point")
	if status != 0 || !strings.Contains(stderr, "the network of the point bridge=false transport=hop; others have another one: choose by --set 'matrix.bridge=[…]'") || !strings.Contains(out, "flows by hops: 4 × 2") {
		t.Errorf("status %d, %q\n%s", status, stderr, out)
	}
}

func TestTopologyExportsWires(t *testing.T) {
	status, out, stderr := hopbed(t, t.TempDir(), "topology", "export", "--set", "matrix.bridge=[true]", "access-point")
	var got struct {
		Nodes []struct {
			Name          string
			X             *float64 `json:"x_m"`
			Radio, Bridge bool
			Interfaces    []string
		}
		Pipes []struct {
			From, To  int
			Interface string
			Rate      int64   `json:"rate_bps"`
			Delay     float64 `json:"delay_s"`
			ETX       float64
		}
	}
	if err := json.Unmarshal([]byte(out), &got); status != 0 || err != nil {
		t.Fatalf("status %d, %v: %s", status, err, stderr)
	}
	if len(got.Nodes) != 5 || got.Nodes[0].Radio || !got.Nodes[1].Bridge || strings.Join(got.Nodes[1].Interfaces, " ") != "wlan0 uplink" {
		t.Errorf("nodes %+v", got.Nodes)
	}
	if got.Nodes[0].X != nil || got.Nodes[1].X == nil || *got.Nodes[1].X != 0 {
		t.Errorf("places %+v", got.Nodes)
	}
	if len(got.Pipes) != 2 || got.Pipes[1].From != 0 || got.Pipes[1].To != 1 || got.Pipes[0].Interface != "uplink" || got.Pipes[0].Rate != 20e6 || got.Pipes[0].Delay != 0.01 || got.Pipes[0].ETX != 1 {
		t.Errorf("pipes %+v", got.Pipes)
	}
}

func TestTopologyOfWiresAlone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "w.yaml"), "hopbed: 1\nname: w\nrepeat: 1\nduration: 1s\ntopology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b]}]}\nflows: [{pairs: [{src: a, dst: b}], transport: hop}]\n")
	status, out, stderr := hopbed(t, dir, "topology", "export", "w.yaml")
	if status != 0 || !strings.Contains(out, `"links": []`) || !strings.Contains(out, `"x_m": null`) {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

// A file that names the back end of virtual time is checked for what it lacks.
func TestCheckTellsWhatSimLacks(t *testing.T) {
	dir := t.TempDir()
	text := "hopbed: 1\nname: w\n%srepeat: 1\nduration: 1s\ntopology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b]}]}\nflows: [{pairs: [{src: a, dst: b}], transport: tcp/dctcp}]\n"
	write(t, filepath.Join(dir, "both.yaml"), fmt.Sprintf(text, "backends: [netns, sim]\n"))
	write(t, filepath.Join(dir, "one.yaml"), fmt.Sprintf(text, ""))
	if status, _, stderr := hopbed(t, dir, "check", "both.yaml"); status != 1 || !strings.Contains(stderr, "the model TCP has no congestion control dctcp") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, _, stderr := hopbed(t, dir, "check", "one.yaml"); status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestCheckShowsEveryNetwork: of points that differ, once each, whatever the
// number of repetitions that have it.
func TestCheckShowsEveryNetwork(t *testing.T) {
	dir := t.TempDir()
	status, out, stderr := hopbed(t, dir, "check", "access-point")
	if status != 0 || strings.Count(out, "wire ap (uplink) – server (eth0): 20mbit, 10ms, queue 66 packets") != 2 ||
		!strings.Contains(out, "\nrepetitions 1 to 5:\n") || !strings.Contains(out, "\nrepetitions 1 to 5, bridge=true transport=hop:\n") || !strings.Contains(out, "bridges: ap (wlan0 uplink)") {
		t.Errorf("status %d: %s\n%s", status, stderr, out)
	}
	write(t, filepath.Join(dir, "w.yaml"), strings.Replace(tiny, "repeat:", "backends: [sim, netns]\nrepeat:", 1))
	e, err := read("access-point")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	note := layingOut(&b, plan.Build(e), 0)
	note(7)
	note(8) // at once: not worth another line
	if got := b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "7 of 30") {
		t.Errorf("while it lasts: %q", got)
	}
	if _, out, _ := hopbed(t, dir, "check", "--repeat", "7", "w.yaml"); !strings.Contains(out, "… and repetitions 6 to 7") || !strings.Contains(out, "back ends: sim, then netns") {
		t.Errorf("seven repetitions:\n%s", out)
	}
}
