package live

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/store"
)

func emulatorMACs(t *topology.Topology) []wifi.MAC { return []wifi.MAC{t.MAC} }

// collectMedium turns the emulator's report into the record's lateness, node
// counters and verdict.
func collectMedium(rec *store.RunRecord, rep *emulator.Report) {
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
	for i := range rep.Nodes {
		rec.NodeStats = append(rec.NodeStats, nodeStats(i, &rep.Nodes[i].Stats)...)
	}
	v := emulator.Judge(rep)
	run.InvalidReasons = append(run.InvalidReasons, v.Reasons...)
	run.Warnings = append(run.Warnings, v.Warnings...)
}

// nodeStats are the rows of one node: one per access category that was used,
// and the sum.
func nodeStats(node int, s *wifi.NodeStats) []store.NodeStat {
	dt := s.Until.Sub(s.Since)
	us := func(d vtime.Duration) store.Opt[int64] { return store.Some(int64(d) / 1000) }
	all := store.NodeStat{
		Node: node, AC: store.ACAll,
		AirtimeTxUs: us(s.TxTime), AirtimeRxUs: us(s.RxTime),
		AirtimeBusyUs: us(max(0, s.BusyTime-s.TxTime-s.RxTime)), AirtimeIdleUs: us(max(0, dt-s.BusyTime)),
		DropsLoss: store.Some(int64(s.LossInjected)),
	}
	var rows []store.NodeStat
	for ac := range wifi.NumAC {
		q := &s.AC[ac]
		if q.Enqueued == 0 && q.Attempts == 0 && q.Outcomes[wifi.Overflow] == 0 {
			continue
		}
		row := store.NodeStat{
			Node: node, AC: strings.ToUpper(wifi.AC(ac).String()),
			AirtimeTxUs: us(q.AirTime), Attempts: store.Some(int64(q.Attempts)),
			Successes: store.Some(int64(q.Outcomes[wifi.Acked] + q.Outcomes[wifi.Sent])),
			Retries:   store.Some(int64(q.Retries)), Collisions: store.Some(int64(q.Collisions)),
			InternalColl: store.Some(int64(q.Internal)),
			DropsQueue:   store.Some(int64(q.Outcomes[wifi.Overflow])), DropsRetry: store.Some(int64(q.Outcomes[wifi.RetryLimit])),
			QueueMaxPackets: store.Some(int64(q.MaxQueue)),
		}
		if dt > 0 {
			row.QueueMeanPackets = store.Some(float64(q.QueueTime) / float64(dt))
		}
		rows = append(rows, row)
		add := func(to *store.Opt[int64], v store.Opt[int64]) { *to = store.Some(to.V + v.V) }
		add(&all.Attempts, row.Attempts)
		add(&all.Successes, row.Successes)
		add(&all.Retries, row.Retries)
		add(&all.Collisions, row.Collisions)
		add(&all.InternalColl, row.InternalColl)
		add(&all.DropsQueue, row.DropsQueue)
		add(&all.DropsRetry, row.DropsRetry)
		all.QueueMeanPackets = store.Some(all.QueueMeanPackets.V + row.QueueMeanPackets.V)
	}
	return append(rows, all)
}
