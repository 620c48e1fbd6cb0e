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

// pipeTable shows what the wired links did for each transport.
func pipeTable(g *Group) Table {
	t := Table{Title: "Wired links, mean over repetitions", Head: []string{"transport", "link", "delivered", "lost", "queue full", "busy", "mean queue", "longest"}, Left: map[int]bool{1: true}}
	for _, p := range g.Pipes {
		for _, u := range p.Pipes {
			t.add("", name(p.Transport), name(u.From)+" → "+name(u.To), rate(u.DeliveredBps), percent(u.Lost), percent(u.Dropped), percent(u.Busy),
				decimals(u.QueueMeanPackets, 1), decimals(u.QueueMaxPackets, 0))
		}
	}
	t.Notes = []string{"Delivered: IP packets with their headers, as bits a second. Lost and queue full: shares of the packets that came to the link. Queues in packets."}
	return t
}
