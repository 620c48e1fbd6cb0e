package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// results turns the finished run into its record, by the code that also serves
// live runs.
func (w *world) results() *store.RunRecord {
	rec := w.rec
	if w.med != nil {
		rec.NodeStats = backend.RadioRows(w.s.Topology, w.med.Stats)
	}
	rec.Pipes = backend.PipeRows(w.s, w.net.PipeStats())
	for i, p := range w.s.Topology.Pipes {
		if p.Emulator != spec.UserEmulator {
			rec.Run.Facts[fmt.Sprintf("pipe_%d_emulator", i)] = "model: in virtual time there is no other"
		}
	}
	results := w.net.Account(w.end)
	backend.CollectFlows(rec, w.s, results)
	w.net.Messages(w.keep)
	w.messages.Finish(rec)
	for i, r := range results {
		for _, c := range slices.Concat(r.Facts.Counters, r.Facts.Hop) {
			rec.Nodes[i].Facts[c.Name] = strconv.FormatInt(c.Delta, 10)
		}
	}
	for _, e := range w.net.Events() {
		rec.Events = append(rec.Events, backend.EventRow(e.Node, &e))
	}
	backend.SortEvents(rec)
	rec.Samples = w.series.rows()
	rec.Run.Events = store.Some(int64(w.eng.Fired()))
	rec.Run.TraceHash = fmt.Sprintf("%016x", w.eng.TraceHash())
	rec.Run.Facts["tcp"] = "model of Linux 6.18 (agent/transport/tcp)"
	return rec
}
