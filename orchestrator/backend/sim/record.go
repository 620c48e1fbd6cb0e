package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// record turns the finished run into its record, by the code that also serves
// live runs.
func (w *world) record() *store.RunRecord {
	rec := w.rec
	for i := range w.s.Topology.Nodes {
		rec.NodeStats = append(rec.NodeStats, backend.NodeStats(i, w.med.Stats(i))...)
	}
	results := w.net.Account(w.end)
	backend.CollectFlows(rec, w.s, results)
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

// series holds the samples in the order in which they are stored: by flow,
// side, node, time. Each (flow, side, node) has a region of its own, so that
// nothing has to be sorted.
type series struct {
	flows  [][]place
	length int // rows per region
	all    []store.Sample
	used   []int // rows in use, by region
}

// place is where the samples of one side of a flow go.
type place struct {
	side   proto.Side
	node   int
	region int
}

func newSeries(flows []proto.Flow, length int) *series {
	s := &series{length: length}
	regions := 0
	for i := range flows {
		f := &flows[i]
		places := []place{{side: proto.Destination, node: f.Dst}}
		relays := slices.Clone(f.Path[1 : len(f.Path)-1])
		slices.Sort(relays)
		for _, r := range relays {
			places = append(places, place{side: proto.Relay, node: r})
		}
		places = append(places, place{side: proto.Source, node: f.Src})
		for k := range places {
			places[k].region = regions
			regions++
		}
		s.flows = append(s.flows, places)
	}
	s.all, s.used = make([]store.Sample, regions*length), make([]int, regions)
	return s
}

// add implements simnet.Observer.
func (s *series) add(node int, p *proto.Sample) {
	for _, at := range s.flows[p.Flow] {
		if at.node == node && at.side == p.Side {
			if k := s.used[at.region]; k < s.length {
				backend.FillSample(&s.all[at.region*s.length+k], node, p)
				s.used[at.region]++
			}
			return
		}
	}
}

// rows returns the samples without the gaps.
func (s *series) rows() []store.Sample {
	n := 0
	for region, used := range s.used {
		n += copy(s.all[n:], s.all[region*s.length:region*s.length+used])
	}
	return s.all[:n:n]
}
