package etx

import "math"

// Metric of a path.
type Metric uint8

// The path metrics.
const (
	ETX  Metric = iota // sum of the links' expected transmission counts
	Hops               // number of links
)

// Unreachable is the number of hops between nodes that no path joins.
const Unreachable = -1

// Graph holds the delivery probabilities of all directed links.
type Graph struct {
	n int
	f []float64 // f[i*n+j]: a data frame of i survives at j
	r []float64 // r[i*n+j]: the answer to a frame of i, sent by j, survives at i
}

// NewGraph returns a graph of n nodes without links.
func NewGraph(n int) *Graph {
	return &Graph{n: n, f: make([]float64, n*n), r: make([]float64, n*n)}
}

// N returns the number of nodes.
func (g *Graph) N() int { return g.n }

// Set gives the link from i to j its delivery probabilities: forward of a data
// frame from i to j, reverse of its acknowledgement from j to i.
func (g *Graph) Set(i, j int, forward, reverse float64) {
	g.f[i*g.n+j], g.r[i*g.n+j] = forward, reverse
}

// Forward returns the delivery probability of data frames from i to j.
func (g *Graph) Forward(i, j int) float64 { return g.f[i*g.n+j] }

// Reverse returns the delivery probability of acknowledgements from j to i.
func (g *Graph) Reverse(i, j int) float64 { return g.r[i*g.n+j] }

// Link returns 1/(forward·reverse), the expected number of transmissions until
// a frame and its acknowledgement both survive; +Inf for a link that carries
// nothing.
func Link(forward, reverse float64) float64 {
	p := float64(forward * reverse)
	if !(p > 0) {
		return math.Inf(1)
	}
	return 1 / p
}

// LinkETX returns the ETX of the link from i to j.
func (g *Graph) LinkETX(i, j int) float64 { return Link(g.f[i*g.n+j], g.r[i*g.n+j]) }

// Table holds the shortest paths between all nodes.
type Table struct {
	n    int
	next []int32
	hops []int32
	cost []float64
	arc  []int32 // of a table of arcs, as rank
	rank []int32
}

// NextHop returns the neighbour to which i sends what is for dst; false when
// no path leads there or i is dst.
func (t *Table) NextHop(i, dst int) (int, bool) {
	v := t.next[i*t.n+dst]
	return int(v), v >= 0
}

// Hops returns the number of links from i to dst, Unreachable without a path.
func (t *Table) Hops(i, dst int) int { return int(t.hops[i*t.n+dst]) }

// Cost returns the metric of the path from i to dst, +Inf without a path.
func (t *Table) Cost(i, dst int) float64 { return t.cost[i*t.n+dst] }

// Path returns the nodes from i to dst, both included; nil without a path.
func (t *Table) Path(i, dst int) []int {
	if t.Hops(i, dst) == Unreachable {
		return nil
	}
	p := []int{i}
	for i != dst {
		v, ok := t.NextHop(i, dst)
		if !ok {
			return nil
		}
		p, i = append(p, v), v
	}
	return p
}
