//go:build linux

package live

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// A starved host must not produce a run that looks sound.
func TestStarvedAgentsSpoilARun(t *testing.T) {
	judge := func(delay, late vtime.Duration) store.Run {
		run := store.Run{DurationS: 100}
		healthy := &proto.Results{Facts: proto.NodeFacts{Wall: 100 * vtime.Second, RunDelay: vtime.Second, SampleLateMax: vtime.Millisecond}}
		other := &proto.Results{Facts: proto.NodeFacts{Wall: 100 * vtime.Second, RunDelay: delay, SampleLateMax: late}}
		judgeAgents(&run, []string{"n01", "n02"}, []*proto.Results{healthy, other})
		return run
	}
	if r := judge(vtime.Second, vtime.Millisecond); len(r.Warnings)+len(r.InvalidReasons) != 0 {
		t.Errorf("a healthy run: %v %v", r.Warnings, r.InvalidReasons)
	}
	if r := judge(8*vtime.Second, vtime.Millisecond); len(r.Warnings) != 1 || len(r.InvalidReasons) != 0 {
		t.Errorf("8 %% of delay: %v %v", r.Warnings, r.InvalidReasons)
	}
	if r := judge(40*vtime.Second, vtime.Millisecond); len(r.InvalidReasons) != 1 || !strings.Contains(r.InvalidReasons[0], "n02") {
		t.Errorf("40 %% of delay: %v", r.InvalidReasons)
	}
	if r := judge(vtime.Second, 3*vtime.Second); len(r.InvalidReasons) != 1 || !strings.Contains(r.InvalidReasons[0], "n02 stood still for 3s") {
		t.Errorf("a sample 3 s late: %v", r.InvalidReasons)
	}
}

// A standstill that a long run bears spoils a short one.
func TestStandstillIsJudgedByTheInterval(t *testing.T) {
	for _, c := range []struct {
		measured      float64
		warn, invalid vtime.Duration
	}{
		{1, 125 * vtime.Millisecond, 250 * vtime.Millisecond},
		{5, 125 * vtime.Millisecond, 250 * vtime.Millisecond},
		{30, 250 * vtime.Millisecond, 600 * vtime.Millisecond},
		{300, 250 * vtime.Millisecond, 2 * vtime.Second},
	} {
		if w, i := sampleBounds(c.measured); w != c.warn || i != c.invalid {
			t.Errorf("%g s: warning above %v, invalid above %v; want %v, %v", c.measured, w, i, c.warn, c.invalid)
		}
	}
}

// Delays of messages are spoiled by less than goodput is.
func TestStandstillBesideMessages(t *testing.T) {
	for _, c := range []struct {
		measured          float64
		still             vtime.Duration
		warnings, invalid int
	}{
		{8, 39 * vtime.Millisecond, 0, 0}, {8, 70 * vtime.Millisecond, 1, 0}, {8, 81 * vtime.Millisecond, 0, 1},
		{1, 24 * vtime.Millisecond, 0, 0}, {1, 51 * vtime.Millisecond, 0, 1},
		{300, 99 * vtime.Millisecond, 0, 0}, {300, 190 * vtime.Millisecond, 1, 0}, {300, 300 * vtime.Millisecond, 0, 1},
	} {
		run := store.Run{DurationS: c.measured}
		judgeAgents(&run, []string{"n01"}, []*proto.Results{{Facts: proto.NodeFacts{Standstill: c.still}}})
		if len(run.Warnings) != c.warnings || len(run.InvalidReasons) != c.invalid {
			t.Errorf("%v in %g s: %q %q", c.still, c.measured, run.Warnings, run.InvalidReasons)
		}
	}
}

// What the ring before a pipe loses is no loss of the pipe's.
func TestLossesBeforeAPipeSpoilARun(t *testing.T) {
	nodes := []store.Node{{Name: "a"}, {Name: "b"}}
	judge := func(read, dropped uint64) store.Run {
		var run store.Run
		end := emulator.EndReport{Node: 1, Interface: "eth3"}
		end.Frames.Read, end.Device.TransmitDropped = read, dropped
		judgePipes(&run, nodes, &emulator.Report{PipeEnds: [][2]emulator.EndReport{{}, {{}, end}}})
		return run
	}
	if r := judge(1000, 0); len(r.Warnings)+len(r.InvalidReasons) != 0 {
		t.Errorf("no losses: %v %v", r.Warnings, r.InvalidReasons)
	}
	if r := judge(9_999, 1); len(r.Warnings) != 1 || len(r.InvalidReasons) != 0 {
		t.Errorf("1 of 10,000: %v %v", r.Warnings, r.InvalidReasons)
	}
	if r := judge(9_900, 100); len(r.InvalidReasons) != 1 || !strings.Contains(r.InvalidReasons[0], "100 frames (1 %)") || !strings.Contains(r.InvalidReasons[0], "node b and its interface eth3") {
		t.Errorf("1 %%: %v %v", r.Warnings, r.InvalidReasons)
	}
}

func TestHolesInASeriesAreSaid(t *testing.T) {
	rec := &store.RunRecord{Run: store.Run{WarmupS: 1, DurationS: 9}, Flows: []store.Flow{{Flow: 0, Status: store.FlowOK, Bytes: 1}, {Flow: 1, Status: store.FlowOK}}}
	for i := range 100 {
		rec.Samples = append(rec.Samples, store.Sample{Flow: 0, Side: store.SideDst, TUs: int64(i) * 100_000})
	}
	if judgeSamples(rec, 100*vtime.Millisecond); len(rec.Run.Warnings) != 0 {
		t.Errorf("a full series, and a flow that nothing reached: %v", rec.Run.Warnings)
	}
	rec.Samples = rec.Samples[:80]
	if judgeSamples(rec, 100*vtime.Millisecond); len(rec.Run.Warnings) != 1 {
		t.Errorf("80 of 100 samples: %v", rec.Run.Warnings)
	}
}
