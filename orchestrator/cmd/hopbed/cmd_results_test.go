package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// campaign runs an experiment in virtual time.
func campaign(t *testing.T, dir, text string) {
	t.Helper()
	write(t, filepath.Join(dir, "f.yaml"), text)
	if status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim"); status != 0 {
		t.Fatalf("status %d: %s%s", status, out, stderr)
	}
}

func says(t *testing.T, out string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("it does not say %q:\n%s", w, out)
		}
	}
}

func TestResultsOfSizedFlowsAreCompletionTimes(t *testing.T) {
	dir := t.TempDir()
	campaign(t, dir, strings.NewReplacer("transport: $transport}", "transport: $transport, workload: {kind: sized, size: 40KB}}").Replace(tiny))
	_, out, _ := hopbed(t, dir, "results", "--campaign", "1")
	says(t, out, "campaign 1: tiny, back end sim (virtual time; TCP is hopbed’s own model", "completed", "1 (100 %)", "time Q1", "transport=hop", "valid runs  attempts")
	if strings.Contains(out, "below 10 kb/s") || strings.Contains(out, "b/s") {
		t.Errorf("it shows the goodput of sized flows:\n%s", out)
	}
	_, out, _ = hopbed(t, dir, "show", "1")
	says(t, out, "completed after", "parameters: transport=hop", "back end sim (virtual time")
	if strings.Contains(out, "b/s") {
		t.Errorf("show shows the goodput of a sized flow:\n%s", out)
	}
}

func TestResultsKeepTransportsOfOneRunApart(t *testing.T) {
	dir := t.TempDir()
	campaign(t, dir, strings.NewReplacer("transport: $transport}", "transport: hop}\n  - {pairs: [{src: n03, dst: n01}], transport: tcp/cubic}",
		"ack: none}", "ack: none, txop: $txop}", "txop: 8160us, ", "", "matrix: {transport: [hop, tcp/cubic]}", "matrix: {txop: [8160us, 4ms]}").Replace(tiny))
	_, out, _ := hopbed(t, dir, "results", "--campaign", "1")
	says(t, out, "txop=8160us, hop ", "txop=8160us, tcp/cubic ", "txop=4ms, hop ", "txop=4ms, tcp/cubic ", "shared the channel", "txop=4ms, mixed")
	_, out, _ = hopbed(t, dir, "show", "1")
	says(t, out, "parameters: txop=8160us")
}
