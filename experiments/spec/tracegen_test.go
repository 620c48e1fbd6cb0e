package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/celltrace"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

func cellular(t *testing.T, down, up string) *Pipe {
	t.Helper()
	c := parse(t, wires(", queue: {packets: 300}, trace: "+down+", reverse: {trace: "+up+"}")).Base()
	return &c.Topology.Pipes[0]
}

// A generated trace is what the model makes of the file's values, and needs no
// folder that a file could be in.
func TestGeneratedTraces(t *testing.T) {
	p := cellular(t, "{generate: hsdpa, seed: 5, length: 20s, sinr: 6dB, other-users: 0.5, outage-every: 10s, outage-mean: 2s}", "{generate: e-dch, seed: 5, length: 20s, random-offset: true}")
	c := celltrace.DefaultHSDPA()
	c.SINR, c.Others, c.Outages = 6, 0.5, celltrace.Outages{Every: 10 * vtime.Second, Mean: 2 * vtime.Second}
	ms, err := celltrace.Downlink(c, 5, 20*vtime.Second)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := pipe.NewTrace(ms); err != nil || !reflect.DeepEqual(p.Trace.Capacity, want) {
		t.Errorf("the downlink is not the model's: %v, %v", p.Trace.Capacity.Rate(), err)
	}
	if ms, err = celltrace.Uplink(celltrace.DefaultEDCH(), 5, 20*vtime.Second); err != nil {
		t.Fatal(err)
	}
	if want, err := pipe.NewTrace(ms); err != nil || !reflect.DeepEqual(p.Reverse.Trace.Capacity, want) || !p.Reverse.Trace.RandomOffset {
		t.Errorf("the uplink is not the model's: %+v, %v", p.Reverse.Trace, err)
	}
}

// The defaults of the keys are those of the model.
func TestDefaultsOfGeneratedTraces(t *testing.T) {
	p := cellular(t, "{generate: hsdpa, length: 10s}", "{generate: e-dch, length: 10s, outage-every: 0s}")
	ms, err := celltrace.Downlink(celltrace.DefaultHSDPA(), 1, 10*vtime.Second)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := pipe.NewTrace(ms); !reflect.DeepEqual(p.Trace.Capacity, want) {
		t.Error("the defaults of the file are not those of the model")
	}
	if n := p.Reverse.Trace; n.OutageEvery != 0 || n.Seed != 1 {
		t.Errorf("%+v", n)
	}
}

// Points of an experiment share a trace that is described alike.
func TestGeneratedOnce(t *testing.T) {
	e := parse(t, wires(", queue: {packets: $q}, trace: {generate: hsdpa, length: 10s, offset: $o}")+"matrix: {q: [100, 300], o: [0s, 5s]}\n")
	first := e.Points()[0].Config.Topology.Pipes[0].Trace.Capacity
	for _, p := range e.Points() {
		if got := p.Config.Topology.Pipes[0].Trace.Capacity; got != first {
			t.Errorf("%s has a trace of its own", p.Label())
		}
	}
}

func TestWrongGeneratedTraces(t *testing.T) {
	for trace, want := range map[string]string{
		"{}":                            "neither a file nor a model",
		"{random-offset: true}":         "neither a file nor a model",
		"{generate: hsdpa, file: x}":    "trace.generate: beside a file; allowed: one of file and generate",
		"{generate: lte}":               "unknown; allowed: hsdpa, e-dch",
		"{generate: hsdpa, length: 1h}": "out of range; allowed: a duration such as 20s from 10s to 30min",
		"{generate: e-dch, sinr: 3dB}":  "power control",
		"{generate: hsdpa, outage-every: 0s, outage-mean: 1s}":                 "there are no outages",
		"{generate: hsdpa, random-offset: true, offset: 1s}":                   "random-offset chooses it",
		"{generate: hsdpa, other-users: 21}":                                   "out of range",
		"{generate: hsdpa, outage-every: 10ms, outage-mean: 60s, length: 10s}": "no opportunity",
	} {
		_, err := Parse("x.yaml", []byte(wires(", queue: {packets: 9}, trace: "+trace)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", trace, err, want)
		}
	}
	if _, err := ParseFiles("x.yaml", []byte(wires(", queue: {packets: 9}, trace: {file: umts.down, seed: 3}")), memory("1\n2\n")); err == nil || !strings.Contains(err.Error(), "the trace is that of a file") {
		t.Errorf("a seed beside a file: %v", err)
	}
}
