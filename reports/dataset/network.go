package dataset

import (
	"context"
	"sort"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// Airtime is how a node of a series spent its time, as shares of what was
// accounted for; the mean over repetitions.
type Airtime struct {
	Node                 int
	Name                 string
	Tx, Rx, Busy, Idle   float64
	Attempts, Successes  float64 // frames a second
	Collisions, QueueMax float64 // frames a second; packets
}

// AirtimeOf reads the airtime of every node of a series, in the order of the
// nodes. It is empty when the back end does not account for airtime.
func (s *Set) AirtimeOf(ctx context.Context, ser *Series) ([]Airtime, error) {
	var ids []int64
	seconds := map[int64]float64{}
	for i := range ser.Reps {
		ids = append(ids, ser.Reps[i].Run.ID)
		seconds[ser.Reps[i].Run.ID] = ser.Reps[i].Run.DurationS
	}
	if len(ids) == 0 {
		return nil, nil
	}
	f := store.Filter{RunIDs: ids}
	st, err := s.st.NodeStats(ctx, f)
	if err != nil {
		return nil, err
	}
	names, err := s.nodeNames(ctx, f)
	if err != nil {
		return nil, err
	}
	type acc struct {
		Airtime
		n float64
	}
	nodes := map[int]*acc{}
	for _, x := range st {
		total := float64(x.AirtimeTxUs.Or(0) + x.AirtimeRxUs.Or(0) + x.AirtimeBusyUs.Or(0) + x.AirtimeIdleUs.Or(0))
		if x.AC != store.ACAll || total <= 0 || seconds[x.RunID] <= 0 {
			continue
		}
		a := nodes[x.Node]
		if a == nil {
			a = &acc{Airtime: Airtime{Node: x.Node, Name: names[x.Node]}}
			nodes[x.Node] = a
		}
		a.n++
		a.Tx += float64(x.AirtimeTxUs.Or(0)) / total
		a.Rx += float64(x.AirtimeRxUs.Or(0)) / total
		a.Busy += float64(x.AirtimeBusyUs.Or(0)) / total
		a.Idle += float64(x.AirtimeIdleUs.Or(0)) / total
		a.Attempts += float64(x.Attempts.Or(0)) / seconds[x.RunID]
		a.Successes += float64(x.Successes.Or(0)) / seconds[x.RunID]
		a.Collisions += float64(x.Collisions.Or(0)) / seconds[x.RunID]
		a.QueueMax = max(a.QueueMax, float64(x.QueueMaxPackets.Or(0)))
	}
	var out []Airtime
	for _, a := range nodes {
		a.Tx /= a.n
		a.Rx /= a.n
		a.Busy /= a.n
		a.Idle /= a.n
		a.Attempts /= a.n
		a.Successes /= a.n
		a.Collisions /= a.n
		out = append(out, a.Airtime)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Node < out[j].Node })
	return out, nil
}

func (s *Set) nodeNames(ctx context.Context, f store.Filter) (map[int]string, error) {
	nodes, err := s.st.Nodes(ctx, f)
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, n := range nodes {
		names[n.Node] = n.Name
	}
	return names, nil
}

// Topology is the network of one run.
type Topology struct {
	Repetition int
	Nodes      []store.Node
	Links      []store.Link
	Flows      []store.Flow
}

// TopologyOf reads the network of the first valid repetition of a group, or of
// its first run when none is valid. Other repetitions may differ in flows and
// losses. It is empty when the group has no nodes.
func (s *Set) TopologyOf(ctx context.Context, g *Group) (*Topology, error) {
	var best *store.Run
	for i := range g.Series {
		for j := range g.Series[i].Reps {
			r := &g.Series[i].Reps[j].Run
			if best == nil || r.Repetition < best.Repetition {
				best = r
			}
		}
	}
	if best == nil {
		for i := range s.Runs {
			if r := &s.Runs[i]; r.Backend == g.Backend && Point(r).Key() == g.Condition.Key() {
				best = r
				break
			}
		}
	}
	if best == nil {
		return &Topology{}, nil
	}
	t := &Topology{Repetition: best.Repetition}
	f := store.Filter{RunIDs: []int64{best.ID}}
	var err error
	if t.Nodes, err = s.st.Nodes(ctx, f); err != nil {
		return nil, err
	}
	if t.Links, err = s.st.Links(ctx, f); err != nil {
		return nil, err
	}
	t.Flows, err = s.st.Flows(ctx, f)
	return t, err
}
