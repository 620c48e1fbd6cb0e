package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/hopbed/hopbed/agent/proto"
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
	results := w.net.Account(w.end)
	backend.CollectFlows(rec, w.s, results)
	w.net.Messages(w.keep)
	rec.Messages = messageRows(w.messages)
	for i, r := range results {
		for _, c := range slices.Concat(r.Facts.Counters, r.Facts.Hop) {
			rec.Nodes[i].Facts[c.Name] = strconv.FormatInt(c.Delta, 10)
		}
	}
	for _, e := range w.net.Events() {
		rec.Events = append(rec.Events, backend.EventRow(e.Node, &e))
	}
	rec.Samples = w.series.rows()
	rec.Run.Events = store.Some(int64(w.eng.Fired()))
	rec.Run.TraceHash = fmt.Sprintf("%016x", w.eng.TraceHash())
	rec.Run.Facts["tcp"] = "model of Linux 6.18 (agent/transport/tcp)"
	return rec
}

// messageRows are the rows of messages, by flow and number.
func messageRows(messages []proto.Message) []store.Message {
	rows := make([]store.Message, len(messages))
	for i := range messages {
		m := &messages[i]
		rows[i] = store.Message{Flow: m.Flow, Message: m.Message, Size: int64(m.Size), ReadyUs: int64(m.Ready) / 1000}
		if !m.Lost {
			rows[i].DelayUs = store.Some(int64(m.Delay) / 1000)
		}
	}
	slices.SortFunc(rows, func(a, b store.Message) int {
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Message, b.Message))
	})
	return rows
}
