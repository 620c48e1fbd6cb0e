package library_test

import (
	"testing"

	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TestPartitionNeverHasAWay: at no moment are two links of the chain with a node in
// common up together, each is up for half of the time, and the route passes all of
// them.
func TestPartitionNeverHasAWay(t *testing.T) {
	for _, p := range load(t, "partition").Points() {
		top, err := topology.Build(p.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		flows, err := top.Flows(p.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		path := flows[0].Path
		if len(flows) != 1 || len(path) != len(top.Nodes) {
			t.Fatalf("%s: the path is %v", p.Label(), path)
		}
		up := make([]bool, len(path)-1)
		for i := range up {
			up[i] = true
		}
		last, total := vtime.Time(0), make([]vtime.Duration, len(up))
		check := func(now vtime.Time) {
			if now == last {
				return
			}
			for i := range up {
				if up[i] {
					total[i] += now.Sub(last)
				}
				if i > 0 && up[i-1] && up[i] {
					t.Fatalf("%s: links %d and %d are both up between %v and %v", p.Label(), i-1, i, vtime.Duration(last), vtime.Duration(now))
				}
			}
			last = now
		}
		for i := range top.Changes {
			c := &top.Changes[i]
			check(c.At)
			up[min(c.Link[0], c.Link[1])] = c.Up
		}
		end := vtime.Time(p.Config.Warmup + p.Config.Duration)
		check(end)
		for i, d := range total {
			if share := float64(d) / float64(end); share < 0.4 || share > 0.6 {
				t.Errorf("%s: link %d is up for %.2f of the time", p.Label(), i, share)
			}
		}
	}
}

// TestNodeDeathHitsARelay in the middle of the path, after the link behind it has gone
// down, and both come back.
func TestNodeDeathHitsARelay(t *testing.T) {
	for _, p := range load(t, "node-death").Points() {
		top, err := topology.Build(p.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := top.Changes
		if len(c) != 4 || c[0].Up || c[1].Up || !c[2].Up || !c[3].Up {
			t.Fatalf("%s: changes %+v", p.Label(), c)
		}
		if n, is := c[1].Node(); !is || n != c[0].Link[0] || n < 2 || n > len(top.Nodes)-3 {
			t.Errorf("%s: the node that dies is %d, the link that goes down %v", p.Label(), n, c[0].Link)
		}
	}
}
