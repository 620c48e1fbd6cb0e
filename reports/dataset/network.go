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

// measured returns a filter for the runs of a series, and the length of each one's
// measured interval in seconds by its ID.
func (ser *Series) measured() (f store.Filter, seconds map[int64]float64) {
	seconds = map[int64]float64{}
	for i := range ser.Reps {
		r := &ser.Reps[i].Run
		f.RunIDs = append(f.RunIDs, r.ID)
		seconds[r.ID] = r.DurationS
	}
	return f, seconds
}

// AirtimeOf reads the airtime of every node of a series, in the order of the
// nodes. It is empty when the back end does not account for airtime.
func (s *Set) AirtimeOf(ctx context.Context, ser *Series) ([]Airtime, error) {
	f, seconds := ser.measured()
	if len(seconds) == 0 {
		return nil, nil
	}
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

// Topology is the network of one repetition.
type Topology struct {
	Repetition int
	Nodes      []store.Node
	Links      []store.Link
	Pipes      []store.Pipe // both directions of each wired link
	Flows      []store.Flow
}

// Networks reads the network of the repetitions of a group: of the first one
// only when every repetition has its nodes in the same places, else of each.
// All transports of a repetition share it. Repetitions that have a valid run
// come before others; there is none when no run has nodes.
func (s *Set) Networks(ctx context.Context, g *Group) ([]Topology, error) {
	byRep := map[int]*store.Run{}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Backend != g.Backend || Point(r).Key() != g.Condition.Key() {
			continue
		}
		if old := byRep[r.Repetition]; old == nil || r.Valid && !old.Valid {
			byRep[r.Repetition] = r
		}
	}
	var runs []*store.Run
	for _, r := range byRep {
		runs = append(runs, r)
	}
	sort.Slice(runs, func(i, j int) bool {
		if runs[i].Valid != runs[j].Valid {
			return runs[i].Valid
		}
		return runs[i].Repetition < runs[j].Repetition
	})
	var out []Topology
	for _, r := range runs {
		f := store.Filter{RunIDs: []int64{r.ID}}
		t := Topology{Repetition: r.Repetition}
		var err error
		if t.Nodes, err = s.st.Nodes(ctx, f); err != nil {
			return nil, err
		}
		if len(t.Nodes) == 0 || len(out) > 0 && samePlaces(out[0].Nodes, t.Nodes) {
			continue
		}
		if t.Links, err = s.st.Links(ctx, f); err != nil {
			return nil, err
		}
		if t.Pipes, err = s.st.Pipes(ctx, f); err != nil {
			return nil, err
		}
		if t.Flows, err = s.st.Flows(ctx, f); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func samePlaces(a, b []store.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].XM != b[i].XM || a[i].YM != b[i].YM || a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}
