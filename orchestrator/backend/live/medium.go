//go:build linux

package live

import (
	"fmt"
	"strconv"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// collectMedium turns the emulator's report into the record's lateness, node
// and pipe counters and verdict.
func collectMedium(rec *store.RunRecord, s *plan.Scenario, rep *emulator.Report) {
	run, m := &rec.Run, &rep.Measured
	us := func(d vtime.Duration) store.Opt[float64] { return store.Some(float64(d) / 1e3) }
	run.LatenessP50Us, run.LatenessP99Us, run.LatenessMaxUs = us(m.Lateness.P50), us(m.Lateness.P99), us(m.Lateness.Max)
	run.LateShare, run.StallMaxUs = store.Some(m.Lateness.Above1ms), us(m.Lateness.Stall)
	run.Events = store.Some(int64(rep.Events))
	run.CPUS = store.Some(m.Host.CPU.Seconds())
	if m.Host.Steal >= 0 {
		run.StealS = store.Some(m.Host.Steal.Seconds())
	}
	run.Priority = rep.Priority
	run.TraceHash = fmt.Sprintf("%016x", rep.TraceHash)
	run.Facts["wait"] = rep.Wait
	run.Facts["frames_read"] = strconv.FormatUint(m.Frames.Read, 10)
	run.Facts["frames_written"] = strconv.FormatUint(m.Frames.Written, 10)
	run.Facts["frames_refused"] = strconv.FormatUint(m.Frames.Refused, 10)
	run.Facts["ring_drops"] = strconv.FormatUint(rep.RingDrops, 10)
	run.Facts["wakes"] = strconv.FormatUint(m.Lateness.Wakes, 10)
	if m.Host.RunDelay >= 0 {
		run.Facts["emulator_run_delay_s"] = strconv.FormatFloat(m.Host.RunDelay.Seconds(), 'f', 3, 64)
	}
	if m.Host.Pressure >= 0 {
		run.Facts["cpu_pressure_s"] = strconv.FormatFloat(m.Host.Pressure.Seconds(), 'f', 3, 64)
	}
	for i, refused := range rep.Refused {
		run.Facts[fmt.Sprintf("priority_refused_%d", i+1)] = refused
	}
	rec.NodeStats = backend.RadioRows(s.Topology, func(i int) *wifi.NodeStats { return &rep.Nodes[i].Stats })
	for i := range rep.Nodes {
		if w := rep.Nodes[i].Rewriting; w != nil {
			for _, c := range w.Counters() {
				rec.Nodes[i].Facts[c.Name] = strconv.FormatInt(c.Value, 10)
			}
		}
	}
	rec.Pipes = backend.PipeRows(s, rep.Pipes)
	judgePipes(run, rec.Nodes, rep)
	judgeUnlimited(rec, s)
	judgeChanges(run, s.Topology, rep, vtime.Time(s.Config().Warmup+s.Config().Duration))
	v := emulator.Judge(rep)
	run.InvalidReasons = append(run.InvalidReasons, v.Reasons...)
	run.Warnings = append(run.Warnings, v.Warnings...)
}
