package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Flows that run one after the other do not add up to more than the link has,
// wherever an aggregate is told.
func TestAggregateOfFlowsOneAfterTheOther(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s.yaml"), `hopbed: 1
name: serial
topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], rate: 10mbit, delay: 1ms, queue: {packets: 20}}]}
flows:
  - {pairs: [{src: a, dst: b}], transport: tcp/reno, stop: 3s}
  - {pairs: [{src: a, dst: b}], transport: tcp/reno, start: 3s, stop: 5s}
  - {pairs: [{src: a, dst: b}], transport: tcp/reno, start: 5s}
repeat: 1
warmup: 1s
duration: 6s
`)
	status, out, stderr := hopbed(t, dir, "run", "s.yaml", "--backend", "sim", "--report", "r.json", "--json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, stderr, `"aggregate_bps":9`)
	b, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatal(out, err)
	}
	var r struct {
		Campaigns []struct {
			Groups []struct {
				Transports []struct {
					Aggregate float64 `json:"aggregate_bps"`
				}
			}
		}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Campaigns) != 1 || len(r.Campaigns[0].Groups) != 1 || len(r.Campaigns[0].Groups[0].Transports) != 1 {
		t.Fatalf("%s", b)
	}
	if got := r.Campaigns[0].Groups[0].Transports[0].Aggregate; got < 9e6 || got > 10e6 {
		t.Errorf("aggregate %g b/s over 10 Mb/s", got)
	}
	if status, _, stderr := hopbed(t, dir, "report", "-o", "r.md"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if b, err = os.ReadFile(filepath.Join(dir, "r.md")); err != nil {
		t.Fatal(err)
	}
	says(t, string(b), "Some flows ran in a part of the measured interval only")
}
