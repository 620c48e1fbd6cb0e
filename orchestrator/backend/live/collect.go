//go:build linux

package live

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/tc"
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
		if d := r.Facts.Standstill; d > 0 {
			f["standstill_ms"] = strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64)
		}
		shapedFacts(f, r.Facts.Shapers)
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
	f["routes"] = strconv.Itoa(r.Routes)
	f["neighbours"] = strconv.Itoa(r.Neighbours)
	var names []string
	for _, i := range r.Interfaces {
		names = append(names, i.Name)
		// All interfaces are configured alike and were compared: the first shows
		// what they have, and others only where they differ.
		for key, value := range interfaceFacts(&i) {
			if have, ok := f[key]; !ok {
				f[key] = value
			} else if have != value {
				f[key+"_"+i.Name] = value
			}
		}
	}
	f["interfaces"] = strings.Join(names, " ")
	var programs []string
	for _, s := range r.Flows {
		if s.Program != "" && !slices.Contains(programs, s.Program) {
			programs = append(programs, s.Program)
		}
	}
	for _, s := range r.Flows {
		if s.Limit != "" {
			f["coop_limit"] = s.Limit
		}
	}
	if len(programs) > 0 {
		f["programs"] = strings.Join(programs, "; ")
	}
	shaperFacts(f, r.Shapers)
	if b := r.Bridge; b != nil {
		f["bridge"] = fmt.Sprintf("%s over %s, %d static entries", b.Name, strings.Join(b.Ports, " "), b.Forward)
	}
}

func interfaceFacts(i *proto.InterfaceState) map[string]string {
	f := map[string]string{"mtu": strconv.Itoa(i.MTU), "tx_queue_len": strconv.Itoa(i.TxQueueLen)}
	for _, o := range i.Offloads {
		f["offload_"+o.Name] = strconv.FormatBool(o.On)
	}
	return f
}

// shapedFacts keeps what the node's kernel did to the packets of links that it
// emulates, over the measured interval.
func shapedFacts(f store.Facts, counters []tc.Counters) {
	for _, c := range counters {
		side := "egress"
		if c.Ingress {
			side = "ingress"
		}
		f[fmt.Sprintf("shaped.%s.%s.%d", c.Interface, side, c.Class)] = fmt.Sprintf("%d passed, %d lost, %d dropped by a full queue", c.Packets, c.Lost, c.Dropped)
	}
}
