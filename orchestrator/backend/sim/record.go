package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
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
	flows   [][]place
	all     []store.Sample
	regions []region
}

// region is the part of a series that belongs to one side of a flow.
type region struct {
	from, to int            // rows reserved
	used     int            // rows in use
	every    vtime.Duration // least time between two samples
	next     vtime.Time     // when the next one is due
}

// place is where the samples of one side of a flow go.
type place struct {
	side   proto.Side
	node   int
	region int
}

// relayEvery is the least time between two samples at a relay, as agents have
// it: relays outnumber a flow's ends, and their queues matter over seconds.
const relayEvery = vtime.Second

func newSeries(flows []proto.Flow, end vtime.Time, every vtime.Duration) *series {
	s := &series{}
	rows := 0
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
			g := region{from: rows, every: every}
			if places[k].side == proto.Relay {
				g.every = max(every, relayEvery)
			}
			g.to = g.from + int(end/vtime.Time(g.every)) + 1
			rows = g.to
			places[k].region = len(s.regions)
			s.regions = append(s.regions, g)
		}
		s.flows = append(s.flows, places)
	}
	s.all = make([]store.Sample, rows)
	return s
}

// add implements simnet.Observer.
func (s *series) add(node int, p *proto.Sample) {
	for _, at := range s.flows[p.Flow] {
		if at.node == node && at.side == p.Side {
			g := &s.regions[at.region]
			if k := g.from + g.used; k < g.to && p.T >= g.next {
				backend.FillSample(&s.all[k], node, p)
				g.used++
				g.next = p.T.Add(g.every)
			}
			return
		}
	}
}

// rows returns the samples without the gaps.
func (s *series) rows() []store.Sample {
	n := 0
	for _, g := range s.regions {
		n += copy(s.all[n:], s.all[g.from:g.from+g.used])
	}
	return s.all[:n:n]
}
