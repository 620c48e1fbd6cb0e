//go:build linux

package live

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// The bounds of what a run may lose to a starved host on the agents' side; the
// medium's own are in netem/emulator. An agent that waits for a processor sends
// late, and what it runs in user space (Hop, relays) falls behind the kernel's
// TCP, whose work is done in the medium's own time: the comparison would be
// between schedulers.
const (
	warnRunDelay    = 0.05 // share of the run that an agent's threads waited for a processor
	invalidRunDelay = 0.15
	missingSamples  = 0.05 // share of a flow's samples that may be missing at its destination

	// Share of the frames towards a pipe that the ring before it may lose. A pipe
	// has the queue and the loss that the file says; to these the ring adds losses
	// of its own, which congestion control takes for the pipe's.
	invalidPipeDrops = 0.001

	// How late the latest sample may be: an agent that stands still takes none,
	// and what it runs in user space stands still with it. The bound is a share of
	// the measured interval, between two limits.
	invalidSampleShare = 0.02
	invalidSampleMin   = 250 * vtime.Millisecond // ordinary schedulers on busy hosts do this
	invalidSampleMax   = 2 * vtime.Second

	// The same where an agent handles messages: all that are due in a standstill are
	// late by what is left of it. At 1 % of the interval that is what the 99th
	// percentile of the delays begins to show, and a telephone call's jitter buffer
	// before it; so the bounds are those of the medium's own standstill, except that
	// below 50 ms nothing is made of it.
	invalidMessageShare = 0.01
	invalidMessageMin   = 50 * vtime.Millisecond
	invalidMessageMax   = 200 * vtime.Millisecond
)

// sampleBounds returns from where on a late sample is worth a warning, and from
// where on the run is invalid.
func sampleBounds(measured float64) (warn, invalid vtime.Duration) {
	share := vtime.FromSeconds(invalidSampleShare * measured)
	invalid = min(invalidSampleMax, max(invalidSampleMin, share))
	return min(invalidSampleMin, invalid/2), invalid
}

// messageBounds is sampleBounds for the standstill of an agent that handles messages.
func messageBounds(measured float64) (warn, invalid vtime.Duration) {
	share := vtime.FromSeconds(invalidMessageShare * measured)
	invalid = min(invalidMessageMax, max(invalidMessageMin, share))
	return invalid / 2, invalid
}

// judgeAgents adds the agents' part of the verdict, each reason once with the
// worst node.
func judgeAgents(run *store.Run, names []string, results []*proto.Results) {
	var delay, late, still struct {
		node  int
		share float64
		d     vtime.Duration
	}
	for i, r := range results {
		if r == nil {
			continue
		}
		if r.Facts.Wall > 0 && r.Facts.RunDelay > 0 {
			if s := float64(r.Facts.RunDelay) / float64(r.Facts.Wall); s > delay.share {
				delay.node, delay.share = i, s
			}
		}
		if r.Facts.SampleLateMax > late.d {
			late.node, late.d = i, r.Facts.SampleLateMax
		}
		if r.Facts.Standstill > still.d {
			still.node, still.d = i, r.Facts.Standstill
		}
	}
	if delay.share > warnRunDelay {
		text := fmt.Sprintf("host starved: the agent of node %s waited for a processor for %.0f %% of the run, its threads together (worst of all nodes; warning above %.0f %%, invalid above %.0f %%)",
			names[delay.node], delay.share*100, warnRunDelay*100, invalidRunDelay*100)
		note(run, delay.share > invalidRunDelay, text)
	}
	if warn, invalid := messageBounds(run.DurationS); still.d > warn {
		text := fmt.Sprintf("the agent of node %s, which handles messages, stood still for %v (worst of all nodes; warning above %v, invalid above %v): their delays have it in them; it was stopped, or the host is starved",
			names[still.node], still.d.Std().Round(time.Millisecond), warn, invalid)
		note(run, still.d > invalid, text)
	}
	if warn, invalid := sampleBounds(run.DurationS); late.d > warn {
		text := fmt.Sprintf("the agent of node %s stood still for %v (worst of all nodes; warning above %v, invalid above %v): it was stopped, or the host is starved",
			names[late.node], late.d.Std().Round(time.Millisecond), warn, invalid)
		note(run, late.d > invalid, text)
	}
}

// judgePipes adds the verdict on what the kernel lost on the way into a pipe, once
// with the worst end.
func judgePipes(run *store.Run, nodes []store.Node, rep *emulator.Report) {
	var worst struct {
		share    float64
		dropped  uint64
		at, name string
	}
	for i := range rep.PipeEnds {
		for _, end := range rep.PipeEnds[i] {
			dropped := end.Device.TransmitDropped
			if dropped == 0 {
				continue
			}
			if share := float64(dropped) / float64(dropped+end.Frames.Read); share > worst.share {
				worst.share, worst.dropped, worst.at, worst.name = share, dropped, nodes[end.Node].Name, end.Interface
			}
		}
	}
	if worst.dropped == 0 {
		return
	}
	text := fmt.Sprintf("%d frames (%.2g %%) were lost between node %s and its interface %s before they reached the pipe (worst of all pipes; invalid above %.2g %%): the host is too slow or too busy, or a sender's burst is longer than the ring",
		worst.dropped, worst.share*100, worst.at, worst.name, invalidPipeDrops*100)
	note(run, worst.share > invalidPipeDrops, text)
}

// judgeSamples warns about flows whose series has holes.
func judgeSamples(rec *store.RunRecord, interval vtime.Duration) {
	if interval <= 0 {
		return
	}
	got := map[int]int{}
	for i := range rec.Samples {
		if s := &rec.Samples[i]; s.Side == store.SideDst {
			got[s.Flow]++
		}
	}
	want := int(vtime.FromSeconds(rec.Run.WarmupS+rec.Run.DurationS) / interval)
	holes, worst := 0, want
	for _, f := range rec.Flows {
		n := got[f.Flow]
		// A destination that nothing ever reached has nobody to sample.
		if f.Status != store.FlowOK || f.CompletionS.OK || n == 0 && f.Bytes == 0 {
			continue
		}
		if float64(n) < (1-missingSamples)*float64(want) {
			holes++
			worst = min(worst, n)
		}
	}
	if holes > 0 {
		rec.Run.Warnings = append(rec.Run.Warnings, fmt.Sprintf("the series of %d flows have holes: the worst has %d of %d samples", holes, worst, want))
	}
}

func note(run *store.Run, invalid bool, text string) {
	if invalid {
		run.InvalidReasons = append(run.InvalidReasons, text)
	} else {
		run.Warnings = append(run.Warnings, text)
	}
}
