package render

import "github.com/hopbed/hopbed/reports/dataset"

// airtimeTable sums the nodes up; the figure shows each.
func airtimeTable(g *Group) Table {
	t := Table{Title: "Airtime, mean over nodes", Head: []string{"transport", "sending", "receiving", "sensed busy", "idle", "frames tried", "succeeded", "collisions"}}
	for _, a := range g.Airtime {
		if len(a.Nodes) == 0 {
			continue
		}
		var sum dataset.Airtime
		for _, n := range a.Nodes {
			sum.Tx += n.Tx
			sum.Rx += n.Rx
			sum.Busy += n.Busy
			sum.Idle += n.Idle
			sum.Attempts += n.Attempts
			sum.Successes += n.Successes
			sum.Collisions += n.Collisions
		}
		n := float64(len(a.Nodes))
		t.add("", name(a.Transport), percent(sum.Tx/n), percent(sum.Rx/n), percent(sum.Busy/n), percent(sum.Idle/n),
			decimals(sum.Attempts/n, 1)+"/s", decimals(sum.Successes/n, 1)+"/s", decimals(sum.Collisions/n, 1)+"/s")
	}
	return t
}
