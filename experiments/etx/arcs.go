package etx

// Cost is the cost of a link or a path, in millionths of the metric's unit. It
// is whole, so that it adds up the same in every order.
type Cost int64

// LinkCost returns the cost of a link with the given ETX under a metric; 0 when
// the link carries nothing.
func LinkCost(m Metric, etx float64) Cost { return Cost(linkCost(m, etx)) }

// Arc is one way to get from a node to the next. There may be several between
// the same two.
type Arc struct {
	From, To int
	Cost     Cost // above 0; an arc without a cost is no way
	// Rank decides between paths of the same cost and length: that with the
	// smaller sum is taken.
	Rank int
}

// ShortestOver computes the paths between all nodes over arcs as ShortestPaths
// does. Ties are broken by the number of hops, the sum of the ranks, the
// smaller id of the next hop, and the arc that is listed first.
//
// relays says which nodes pass on what is not for them, and pass by which arcs
// they do so: from the arc in to the arc out, given by their indices; nil lets
// everything through. Every node has one way to each destination, whatever the
// way by which traffic reached it: a path on which some node would not pass on
// what it gets by that one way is none.
func ShortestOver(n int, arcs []Arc, relays []bool, pass func(in, out int) bool) *Table {
	in := make([][]edge, n)
	for i, a := range arcs {
		if a.Cost > 0 {
			in[a.To] = append(in[a.To], edge{int32(a.From), int32(i), min(int64(a.Cost), maxLink), pack(1, int32(a.Rank))})
		}
	}
	return dijkstra(in, relays, pass)
}

// Arc returns the index of the arc by which i sends what is for dst; false when
// no path leads there, i is dst, or the table is not of arcs.
func (t *Table) Arc(i, dst int) (int, bool) {
	if t.arc == nil {
		return -1, false
	}
	a := t.arc[i*t.n+dst]
	return int(a), a >= 0
}

// Rank returns the sum of the ranks along the path from i to dst; 0 without a
// path, or when the table is not of arcs.
func (t *Table) Rank(i, dst int) int {
	if t.arc == nil || t.Hops(i, dst) < 1 {
		return 0
	}
	return int(t.rank[i*t.n+dst])
}

// CostOf returns the cost of the path from i to dst, 0 without a path.
func (t *Table) CostOf(i, dst int) Cost {
	if t.Hops(i, dst) < 1 {
		return 0
	}
	return Cost(float64(t.cost[i*t.n+dst]*micro) + 0.5)
}
