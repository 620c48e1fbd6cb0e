package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// check says what the flows of the points carry: each set of them once.
func TestCheckDescribesFlows(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.yaml")
	err := os.WriteFile(file, []byte(`hopbed: 1
name: x
topology: {generate: {kind: chain, nodes: 3, spacing: 20m}}
flows:
  - {count: 2, pairs: random, transport: $t}
  - {pairs: [{src: n01, dst: n03}], transport: udp, workload: {kind: voip, codec: g711}}
  - {pairs: [{src: n03, dst: n01}], transport: $t, workload: {kind: web, think: $think}}
matrix: {think: [3s, 1s], t: [tcp/reno, hop, tcp/bbr]}
warmup: 1s
duration: 9s
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	status, out, stderr := hopbed(t, dir, "check", "x.yaml")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, out, "flows, think=3s t=tcp/reno:\n"+
		"  2 × tcp/reno: continual\n"+
		"  1 × udp: {kind: voip, codec: g711}, 68.8 kb/s each, about 500 messages each, code point EF\n"+
		"  1 × tcp/reno: web, 144 kb/s each at most, at most about 3 pages each, and a flow for their requests\n"+
		"  likewise over hop and udp, tcp/bbr and udp\n\n"+
		"flows, think=1s t=tcp/reno:\n  2 × tcp/reno: continual\n", "flows by hops: ", "warning: flows[2]: about 3 pages a flow")
	if n := strings.Count(out, "likewise"); n != 2 {
		t.Errorf("%d sets of flows:\n%s", n, out)
	}
}
