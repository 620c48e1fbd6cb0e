package backend

import (
	"strings"

	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// RadioRows are the rows of all nodes that have a radio; stats gives a node's
// counters of the measured interval.
func RadioRows(t *topology.Topology, stats func(node int) *wifi.NodeStats) []store.NodeStat {
	var rows []store.NodeStat
	for i := range t.Nodes {
		if t.Nodes[i].Radio {
			rows = append(rows, nodeStats(i, stats(i))...)
		}
	}
	return rows
}

// nodeStats are the rows of one node: one per access category that was used,
// and the sum.
func nodeStats(node int, s *wifi.NodeStats) []store.NodeStat {
	dt := s.Until.Sub(s.Since)
	us := func(d vtime.Duration) store.Opt[int64] { return store.Some(int64(d) / 1000) }
	all := store.NodeStat{
		Node: node, AC: store.ACAll,
		AirtimeTxUs: us(s.TxTime), AirtimeRxUs: us(s.RxTime),
		AirtimeBusyUs: us(max(0, s.BusyTime-s.TxTime-s.RxTime)), AirtimeIdleUs: us(max(0, dt-s.BusyTime)),
		DropsLoss: store.Some(int64(s.LossInjected)),
	}
	var rows []store.NodeStat
	for ac := range wifi.NumAC {
		q := &s.AC[ac]
		if q.Enqueued == 0 && q.Attempts == 0 && q.Outcomes[wifi.Overflow] == 0 {
			continue
		}
		row := store.NodeStat{
			Node: node, AC: strings.ToUpper(wifi.AC(ac).String()),
			AirtimeTxUs: us(q.AirTime), Attempts: store.Some(int64(q.Attempts)),
			Successes: store.Some(int64(q.Outcomes[wifi.Acked] + q.Outcomes[wifi.Sent])),
			Retries:   store.Some(int64(q.Retries)), Collisions: store.Some(int64(q.Collisions)),
			InternalColl: store.Some(int64(q.Internal)),
			DropsQueue:   store.Some(int64(q.Outcomes[wifi.Overflow])), DropsRetry: store.Some(int64(q.Outcomes[wifi.RetryLimit])),
			QueueMaxPackets: store.Some(int64(q.MaxQueue)),
		}
		if dt > 0 {
			row.QueueMeanPackets = store.Some(float64(q.QueueTime) / float64(dt))
		}
		rows = append(rows, row)
		add := func(to *store.Opt[int64], v store.Opt[int64]) { *to = store.Some(to.V + v.V) }
		add(&all.Attempts, row.Attempts)
		add(&all.Successes, row.Successes)
		add(&all.Retries, row.Retries)
		add(&all.Collisions, row.Collisions)
		add(&all.InternalColl, row.InternalColl)
		add(&all.DropsQueue, row.DropsQueue)
		add(&all.DropsRetry, row.DropsRetry)
		all.QueueMeanPackets = store.Some(all.QueueMeanPackets.V + row.QueueMeanPackets.V)
	}
	return append(rows, all)
}
