package etx

import "sort"

// Components returns the sets of nodes that can reach each other in both
// directions (strongly connected components), the largest first, then by the
// smallest id; ids ascend within a set.
func (g *Graph) Components() [][]int {
	n := g.n
	reach := func(from int, forward bool) []bool {
		seen := make([]bool, n)
		seen[from] = true
		for stack := []int{from}; len(stack) > 0; {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for v := range n {
				a, b := u, v
				if !forward {
					a, b = v, u
				}
				if !seen[v] && u != v && g.f[a*n+b]*g.r[a*n+b] > 0 {
					seen[v] = true
					stack = append(stack, v)
				}
			}
		}
		return seen
	}
	var sets [][]int
	done := make([]bool, n)
	for i := range n {
		if done[i] {
			continue
		}
		out, in := reach(i, true), reach(i, false)
		var set []int
		for j := i; j < n; j++ {
			if out[j] && in[j] {
				set = append(set, j)
				done[j] = true
			}
		}
		sets = append(sets, set)
	}
	sort.SliceStable(sets, func(a, b int) bool { return len(sets[a]) > len(sets[b]) })
	return sets
}
