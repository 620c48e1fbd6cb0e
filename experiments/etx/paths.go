package etx

import "math"

// micro is the resolution of costs: millionths of a transmission. Integers add
// up the same in every order and on every architecture, so that equal paths
// are equal.
const micro = 1e6

// maxLink bounds the cost of one link, so that the sum over any path fits.
const maxLink = int64(1) << 42 // 4.4 million transmissions

func linkCost(m Metric, etx float64) int64 {
	if math.IsInf(etx, 1) || math.IsNaN(etx) {
		return 0
	}
	if m == Hops {
		return micro
	}
	return min(int64(math.Round(etx*micro)), maxLink)
}

// label is the quality of a node's path to the destination; less is better in
// the order cost, hops, rank, next hop, arc. The small numbers share words, so
// that comparing is quick.
type label struct {
	cost   int64
	length uint64 // hops, rank
	way    uint64 // next hop, arc
}

func pack(high, low int32) uint64 { return uint64(uint32(high))<<32 | uint64(uint32(low)) }

func (l label) hops() int32 { return int32(l.length >> 32) }
func (l label) rank() int32 { return int32(l.length) }
func (l label) next() int32 { return int32(l.way >> 32) }
func (l label) arc() int32  { return int32(l.way) }

func (a label) less(b label) bool {
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	if a.length != b.length {
		return a.length < b.length
	}
	return a.way < b.way
}

// edge is a way into a node.
type edge struct {
	from, arc int32
	cost      int64
	length    uint64 // one hop, and the rank
}

// ShortestPaths computes the paths between all nodes that minimise the metric:
// Dijkstra's algorithm from each destination backwards, so that following next
// hops from node to node is the path itself. Ties are broken by the number of
// hops, then by the smaller id of the next hop.
func ShortestPaths(g *Graph, m Metric) *Table {
	in := make([][]edge, g.n) // in[v] are the links u → v
	for u := range g.n {
		for v := range g.n {
			if u == v {
				continue
			}
			if c := linkCost(m, g.LinkETX(u, v)); c > 0 {
				in[v] = append(in[v], edge{int32(u), 0, c, pack(1, 0)})
			}
		}
	}
	return dijkstra(in, nil, nil)
}

// dijkstra computes a table; with relays it is one of arcs, see ShortestOver.
func dijkstra(in [][]edge, relays []bool, pass func(in, out int) bool) *Table {
	n := len(in)
	t := &Table{n: n, next: make([]int32, n*n), hops: make([]int32, n*n), cost: make([]float64, n*n)}
	if relays != nil {
		t.arc, t.rank = make([]int32, n*n), make([]int32, n*n)
	}
	none := label{math.MaxInt64, math.MaxUint64, pack(-1, -1)}
	best := make([]label, n)
	var h heap
	for dst := range n {
		for i := range best {
			best[i] = none
		}
		best[dst] = label{way: pack(-1, -1)}
		h = append(h[:0], item{best[dst], int32(dst)})
		for len(h) > 0 {
			it := h.pop()
			if it.label != best[it.node] {
				continue // a better one came after it was put here
			}
			relaying := it.node != int32(dst)
			if relaying && relays != nil && !relays[it.node] {
				continue
			}
			for _, e := range in[it.node] {
				if relaying && pass != nil && !pass(int(e.arc), int(it.label.arc())) {
					continue
				}
				l := label{it.label.cost + e.cost, it.label.length + e.length, pack(it.node, e.arc)}
				if l.less(best[e.from]) {
					best[e.from] = l
					h.push(item{l, e.from})
				}
			}
		}
		for i, l := range best {
			k := i*n + dst
			switch {
			case l.cost == math.MaxInt64:
				t.next[k], t.hops[k], t.cost[k] = -1, Unreachable, math.Inf(1)
			default:
				t.next[k], t.hops[k], t.cost[k] = l.next(), l.hops(), float64(l.cost)/micro
			}
			if t.arc != nil {
				t.arc[k], t.rank[k] = l.arc(), l.rank()
			}
		}
	}
	return t
}

// item is an entry of the priority queue; equal labels come out by node id.
type item struct {
	label label
	node  int32
}

func (a item) less(b item) bool {
	if a.label != b.label {
		return a.label.less(b.label)
	}
	return a.node < b.node
}

// heap is a binary heap of items, least first.
type heap []item

func (h *heap) push(x item) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		p := (i - 1) / 2
		if !s[i].less(s[p]) {
			break
		}
		s[i], s[p] = s[p], s[i]
		i = p
	}
}

func (h *heap) pop() item {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && s[c+1].less(s[c]) {
			c++
		}
		if !s[c].less(s[i]) {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return top
}
