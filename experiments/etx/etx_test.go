package etx

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// both sets the same delivery in both directions: ETX = 1/p².
func both(g *Graph, i, j int, p float64) {
	g.Set(i, j, p, p)
	g.Set(j, i, p, p)
}

// The two links of the paper's motivation (De Couto et al., section 2): ETX
// prefers two good links (2 transmissions) to one bad one.
func TestETXPrefersTwoGoodLinksToOneBad(t *testing.T) {
	g := NewGraph(3)
	both(g, 0, 1, 1)
	both(g, 1, 2, 1)
	both(g, 0, 2, 0.5) // 1/(0.5·0.5) = 4 > 2
	etx, hops := ShortestPaths(g, ETX), ShortestPaths(g, Hops)
	if p := etx.Path(0, 2); !reflect.DeepEqual(p, []int{0, 1, 2}) || etx.Cost(0, 2) != 2 {
		t.Errorf("ETX: path %v, cost %v; want [0 1 2], 2", p, etx.Cost(0, 2))
	}
	if p := hops.Path(0, 2); !reflect.DeepEqual(p, []int{0, 2}) || hops.Cost(0, 2) != 1 {
		t.Errorf("hops: path %v, cost %v; want [0 2], 1", p, hops.Cost(0, 2))
	}
}

func TestHandComputedCosts(t *testing.T) {
	// 0 --0.9/0.8--> 1 --0.5/1--> 2; 2 → 3 is one-way.
	g := NewGraph(4)
	g.Set(0, 1, 0.9, 0.8) // 1/0.72 = 1.388889
	g.Set(1, 2, 0.5, 1)   // 2
	g.Set(2, 3, 1, 0)     // the acknowledgement never arrives
	tab := ShortestPaths(g, ETX)
	if got := tab.Cost(0, 2); math.Abs(got-3.388889) > 1e-9 {
		t.Errorf("cost 0→2 = %v, want 3.388889", got)
	}
	if tab.Hops(0, 2) != 2 || tab.Hops(0, 0) != 0 {
		t.Errorf("hops %d and %d", tab.Hops(0, 2), tab.Hops(0, 0))
	}
	for _, p := range [][2]int{{1, 0}, {2, 3}, {0, 3}} {
		if tab.Hops(p[0], p[1]) != Unreachable || !math.IsInf(tab.Cost(p[0], p[1]), 1) || tab.Path(p[0], p[1]) != nil {
			t.Errorf("%v is reachable: %v", p, tab.Path(p[0], p[1]))
		}
		if _, ok := tab.NextHop(p[0], p[1]); ok {
			t.Errorf("%v has a next hop", p)
		}
	}
	if _, ok := tab.NextHop(1, 1); ok {
		t.Error("a node is its own next hop")
	}
}

func TestTiesGoToFewerHopsThenToTheSmallerID(t *testing.T) {
	// A square 0-1-3, 0-2-3 of equal links: the path goes over 1.
	g := NewGraph(4)
	for _, l := range [][2]int{{0, 1}, {1, 3}, {0, 2}, {2, 3}} {
		both(g, l[0], l[1], 1)
	}
	if p := ShortestPaths(g, ETX).Path(0, 3); !reflect.DeepEqual(p, []int{0, 1, 3}) {
		t.Errorf("path %v, want over 1", p)
	}
	// A direct link of exactly the same cost (ETX 2) wins by its hop count.
	g.Set(0, 3, 0.5, 1)
	if p := ShortestPaths(g, ETX).Path(0, 3); !reflect.DeepEqual(p, []int{0, 3}) {
		t.Errorf("path %v, want the direct one", p)
	}
}

// TestAgainstFloydWarshall: an independent algorithm gives the same costs, and
// following next hops costs what the table says.
func TestAgainstFloydWarshall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		n := 2 + rng.IntN(25)
		g := NewGraph(n)
		for i := range n {
			for j := range n {
				if i != j && rng.Float64() < 0.2 {
					g.Set(i, j, 0.1+0.9*rng.Float64(), 0.1+0.9*rng.Float64())
				}
			}
		}
		d := make([][]int64, n)
		for i := range d {
			d[i] = make([]int64, n)
			for j := range d[i] {
				d[i][j] = math.MaxInt64 / 4
				if i == j {
					d[i][j] = 0
				} else if c := linkCost(ETX, g.LinkETX(i, j)); c > 0 {
					d[i][j] = c
				}
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					d[i][j] = min(d[i][j], d[i][k]+d[k][j])
				}
			}
		}
		tab := ShortestPaths(g, ETX)
		for i := range n {
			for j := range n {
				if d[i][j] == math.MaxInt64/4 {
					if tab.Hops(i, j) != Unreachable {
						t.Fatalf("%d→%d should be unreachable", i, j)
					}
					continue
				}
				path := tab.Path(i, j)
				sum := int64(0)
				for k := 1; k < len(path); k++ {
					sum += linkCost(ETX, g.LinkETX(path[k-1], path[k]))
				}
				if sum != d[i][j] || len(path)-1 != tab.Hops(i, j) || tab.Cost(i, j) != float64(sum)/micro {
					t.Fatalf("%d→%d: path %v costs %d, want %d, %d hops", i, j, path, sum, d[i][j], tab.Hops(i, j))
				}
			}
		}
	}
}

func TestComponents(t *testing.T) {
	g := NewGraph(6)
	both(g, 1, 2, 1)
	both(g, 2, 5, 1)
	g.Set(0, 3, 1, 1) // one direction only: two components
	want := [][]int{{1, 2, 5}, {0}, {3}, {4}}
	if got := g.Components(); !reflect.DeepEqual(got, want) {
		t.Errorf("components %v, want %v", got, want)
	}
}

func BenchmarkShortestPaths400(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 400
	g := NewGraph(n)
	for i := range n {
		for range 8 {
			if j := rng.IntN(n); j != i {
				both(g, i, j, 0.3+0.7*rng.Float64())
			}
		}
	}
	for b.Loop() {
		ShortestPaths(g, ETX)
	}
}

// TestArcs: of two ways between the same nodes the cheaper one counts, ranks
// break ties of cost and length, and only relays pass on, by the arcs that they
// may.
func TestArcs(t *testing.T) {
	arcs := []Arc{
		{0, 1, 1e6, 1}, {0, 1, 1e6, 0}, {0, 1, 2e6, 0}, // 0: by arc 1
		{1, 3, 1e6, 1}, {0, 2, 1e6, 0}, {2, 3, 1e6, 0}, {1, 4, 1e6, 0}, {0, 4, 5e6, 3}, {3, 4, 0, 0},
	}
	all := []bool{true, true, true, true, true}
	tab := ShortestOver(5, arcs, all, nil)
	for _, c := range []struct{ i, dst, arc, hops, rank, cost int }{
		{0, 1, 1, 1, 0, 1e6}, {0, 3, 4, 2, 0, 2e6}, {0, 4, 1, 2, 0, 2e6}, {1, 3, 3, 1, 1, 1e6},
	} {
		if a, ok := tab.Arc(c.i, c.dst); !ok || a != c.arc || tab.Hops(c.i, c.dst) != c.hops || tab.Rank(c.i, c.dst) != c.rank || tab.CostOf(c.i, c.dst) != Cost(c.cost) {
			t.Errorf("%d→%d by arc %d, %d hops, rank %d, cost %d; want %+v", c.i, c.dst, a, tab.Hops(c.i, c.dst), tab.Rank(c.i, c.dst), tab.CostOf(c.i, c.dst), c)
		}
	}
	for _, p := range [][2]int{{3, 4}, {4, 0}, {2, 2}} {
		if a, ok := tab.Arc(p[0], p[1]); ok || tab.CostOf(p[0], p[1]) != 0 || tab.Rank(p[0], p[1]) != 0 {
			t.Errorf("%v by arc %d", p, a)
		}
	}
	// Node 1 does not relay, node 2 not from arc 4 to arc 5: 3 is out of reach, and
	// 4 is reached directly.
	tab = ShortestOver(5, arcs, []bool{true, false, true, true, true}, func(in, out int) bool { return !(in == 4 && out == 5) })
	if a, _ := tab.Arc(0, 4); a != 7 || tab.Hops(0, 3) != Unreachable || tab.Hops(1, 3) != 1 {
		t.Errorf("0→4 by arc %d, %d hops to 3, %d from 1", a, tab.Hops(0, 3), tab.Hops(1, 3))
	}
	g := NewGraph(2)
	g.Set(0, 1, 1, 1)
	if _, ok := ShortestPaths(g, ETX).Arc(0, 1); ok || ShortestPaths(g, ETX).Rank(0, 1) != 0 {
		t.Error("a table that is not of arcs has arcs")
	}
}
