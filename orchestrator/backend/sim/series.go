package sim

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/store"
)

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

// maxSamples bounds the samples of a run: they lie in memory until the run is
// stored, 512 B each (1 GB), and a campaign may hold twice as many runs as it
// has processors.
const maxSamples = 2_000_000

// tooManySamples returns an error when a series of two sides for each of so many
// flows would be longer than a run may have.
func tooManySamples(flows int, length, every vtime.Duration) error {
	per := func(every vtime.Duration) int64 { return 2 * int64(flows) * (int64(length/every) + 1) }
	n := per(every)
	if n <= maxSamples {
		return nil
	}
	const step = 100 * vtime.Millisecond
	fits := (every/step + 1) * step
	for per(fits) > maxSamples {
		fits += max(step, fits/10/step*step)
	}
	return &backend.ErrUnsupported{Backend: Name, What: fmt.Sprintf("sample: %v", every),
		Because: fmt.Sprintf("%d flows over %v would have %d samples, and a run keeps its samples in memory, %d at most", flows, length, n, int64(maxSamples)),
		Do:      fmt.Sprintf("set sample to %v or more", fits)}
}

func newSeries(flows []proto.Flow, end vtime.Time, every vtime.Duration) (*series, error) {
	if err := tooManySamples(len(flows), vtime.Duration(end), every); err != nil {
		return nil, err
	}
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
	if rows > 2*maxSamples {
		return nil, fmt.Errorf("the flows over %v would have %d samples with those of their relays, more than the %d that are kept in memory: set sample to more than %v", vtime.Duration(end), rows, 2*int64(maxSamples), every)
	}
	s.all = make([]store.Sample, rows)
	return s, nil
}

// region finds the place of a node's samples of one side of a flow; nil: there is
// none.
func (s *series) region(flow int, side proto.Side, node int) *region {
	for _, at := range s.flows[flow] {
		if at.node == node && at.side == side {
			return &s.regions[at.region]
		}
	}
	return nil
}

func (g *region) due(now vtime.Time) bool { return g.from+g.used < g.to && now >= g.next }

// relayDue is simnet.Config.RelayDue.
func (s *series) relayDue(now vtime.Time, flow, node int) bool {
	g := s.region(flow, proto.Relay, node)
	return g != nil && g.due(now)
}

// add implements simnet.Observer.
func (s *series) add(node int, p *proto.Sample) {
	if g := s.region(p.Flow, p.Side, node); g != nil && g.due(p.T) {
		backend.FillSample(&s.all[g.from+g.used], node, p)
		g.used++
		g.next = p.T.Add(g.every)
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
