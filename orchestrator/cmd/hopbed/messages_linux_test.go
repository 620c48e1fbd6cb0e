package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// messagesOfBoth is a file of messages over a wire whose delay is far above what a
// busy host takes to wake a process.
const messagesOfBoth = `hopbed: 1
name: both
backends: [sim, netns]
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}]
  pipes: [{ends: [a, b], rate: 10mbit, delay: 20ms, queue: {packets: 100}}, {ends: [b, c], rate: 10mbit, delay: 20ms, queue: {packets: 100}}]
flows:
  - {pairs: [{src: a, dst: c}], transport: $case.transport, workload: $case.load}
matrix:
  case:
    - {label: poisson tcp, transport: tcp/cubic, load: {kind: poisson, size: 3kB, interval: 50ms}}
    - {label: poisson udp, transport: udp, load: {kind: poisson, size: 3kB, interval: 50ms, sizes: exponential}}
    - {label: voip relayed, transport: hop-by-hop-tcp/cubic, load: voip}
    - {label: web hop, transport: hop, load: {kind: web, think: 100ms, object-size: 5kB, max-size: 20kB}}
warmup: 500ms
duration: 2s
sample: 200ms
limits: {reruns: 0}
`

// TestMessagesAreAlikeOnBothBackEnds: the same messages at the same moments, and
// delays that are those of the network. What the machine spoils is left out.
func TestMessagesAreAlikeOnBothBackEnds(t *testing.T) {
	dir := liveLab(t)
	write(t, filepath.Join(dir, "f.yaml"), messagesOfBoth)
	if status, _, stderr := hopbed(t, dir, "run", "f.yaml"); status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	db := filepath.Join(dir, "results.db")
	st := reading(t, db)
	defer st.Close()
	model := map[string][]store.Message{}
	for _, r := range runsIn(t, db) {
		var all []store.Message
		if err := st.Messages(t.Context(), r.ID, func(m *store.Message) error { all = append(all, *m); return nil }); err != nil {
			t.Fatal(err)
		}
		name := r.Params["case"]
		if r.Backend == "sim" {
			model[name] = all
			continue
		}
		if r.Status == store.RunFailed {
			t.Errorf("%s failed: %s", name, r.Error)
		}
		if r.Valid {
			compareMessages(t, name, all, model[name])
		}
	}
	nothingLeft(t, dir)
}

// compareMessages compares those of the kernel with those of the model. Pages are
// asked for when the ones before are there, so their moments differ.
func compareMessages(t *testing.T, name string, kernel, model []store.Message) {
	t.Helper()
	pages := name == "web hop"
	if len(model) < 5 || len(kernel) != len(model) && !pages {
		t.Errorf("%s: %d messages, %d in virtual time", name, len(kernel), len(model))
		return
	}
	var ratios []float64
	for i := range min(len(kernel), len(model)) {
		k, m := kernel[i], model[i]
		if k.Message != m.Message || k.Size != m.Size || !pages && k.ReadyUs != m.ReadyUs {
			t.Errorf("%s: message %+v, %+v in virtual time", name, k, m)
		}
		if k.DelayUs.OK && m.DelayUs.OK {
			ratios = append(ratios, float64(k.DelayUs.V)/float64(m.DelayUs.V))
		}
	}
	if len(ratios) < len(model)*3/4 {
		t.Errorf("%s: %d of %d messages arrived on both", name, len(ratios), len(model))
		return
	}
	slices.Sort(ratios)
	if r := ratios[len(ratios)/2]; r < 0.9 || r > 1.3 {
		t.Errorf("%s: the median delay is %.2f of that in virtual time", name, r)
	}
}
