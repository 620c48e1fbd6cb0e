package live

import (
	"strconv"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// collectNodes keeps each agent's observations as facts of its node, and adds
// up the agents' CPU time.
func collectNodes(rec *store.RunRecord, results []*proto.Results) {
	var cpu float64
	for i, r := range results {
		if r == nil {
			continue
		}
		f := rec.Nodes[i].Facts
		used := r.Facts.CPUUser + r.Facts.CPUSystem
		cpu += used.Seconds()
		f["cpu_s"] = strconv.FormatFloat(used.Seconds(), 'f', 3, 64)
		f["run_delay_s"] = strconv.FormatFloat(r.Facts.RunDelay.Seconds(), 'f', 3, 64)
		f["sample_late_max_ms"] = strconv.FormatFloat(r.Facts.SampleLateMax.Seconds()*1e3, 'f', 1, 64)
		for _, c := range append(append([]proto.Counter(nil), r.Facts.Counters...), r.Facts.Hop...) {
			f[c.Name] = strconv.FormatInt(c.Delta, 10)
		}
	}
	rec.Run.AgentS = store.Some(cpu)
}

// applyReadback keeps what was read back from a node as its facts: the evidence
// that the parameters were applied.
func applyReadback(rec *store.RunRecord, node int, r *proto.Readback) {
	f := rec.Nodes[node].Facts
	f["mtu"] = strconv.Itoa(r.MTU)
	f["tx_queue_len"] = strconv.Itoa(r.TxQueueLen)
	f["routes"] = strconv.Itoa(r.Routes)
	f["neighbours"] = strconv.Itoa(r.Neighbours)
	for _, o := range r.Offloads {
		f["offload_"+o.Name] = strconv.FormatBool(o.On)
	}
}
