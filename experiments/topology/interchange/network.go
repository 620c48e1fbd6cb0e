package interchange

import (
	"cmp"
	"fmt"
	"slices"
)

// The bounds of a file.
const (
	MaxFile  = 8 << 20 // bytes
	MaxNodes = 1000
	MaxLinks = MaxNodes * (MaxNodes - 1) / 2
)

// Network is what a file says.
type Network struct {
	Nodes []Node
	Links []Link // each pair of nodes once, From before To, in that order
	// Notes say what was left out or had to be assumed.
	Notes []string
}

// Node is a node.
type Node struct {
	// Name is valid in an experiment file, and no other node's; ID is what the file
	// calls the node.
	Name, ID string
	// X and Y are its place in metres, where Placed.
	X, Y   float64
	Placed bool
}

// Link is a link between two nodes, by their indices.
type Link struct {
	From, To int
	// Delivery is the share of frames that arrive from From to To, Reverse that of
	// the other direction.
	Delivery, Reverse float64
}

// Error is why a file cannot be used, with the place where that is known.
type Error struct {
	Line, Col int // from 1; 0 = of the file as a whole
	What      string
}

// Error begins with line and column where they are known.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.What)
}

func refuse(format string, a ...any) error { return &Error{What: fmt.Sprintf(format, a...)} }

// Component returns the network without what is outside its largest component: the
// largest set of nodes that reach each other over links that carry something in
// both directions (of several, that with the first node).
func (n *Network) Component() *Network {
	set := n.largest()
	out := &Network{Notes: slices.Clone(n.Notes)}
	index := make([]int, len(n.Nodes))
	for i := range n.Nodes {
		index[i] = -1
		if set[i] {
			index[i] = len(out.Nodes)
			out.Nodes = append(out.Nodes, n.Nodes[i])
		}
	}
	for _, l := range n.Links {
		if index[l.From] >= 0 && index[l.To] >= 0 {
			l.From, l.To = index[l.From], index[l.To]
			out.Links = append(out.Links, l)
		}
	}
	if left := len(n.Nodes) - len(out.Nodes); left > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of %d nodes are outside the largest component and left out", left, len(n.Nodes)))
	}
	return out
}

// Parts returns the sizes of the components, the largest first.
func (n *Network) Parts() []int {
	of := n.components()
	sizes := map[int]int{}
	for _, c := range of {
		sizes[c]++
	}
	var out []int
	for _, s := range sizes {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b int) int { return b - a })
	return out
}

func (n *Network) largest() []bool {
	of := n.components()
	sizes := make([]int, len(n.Nodes))
	best := 0
	for _, c := range of {
		sizes[c]++
	}
	for c := range sizes {
		if sizes[c] > sizes[best] {
			best = c
		}
	}
	in := make([]bool, len(n.Nodes))
	for i, c := range of {
		in[i] = c == best
	}
	return in
}

// components gives each node the smallest index in its component.
func (n *Network) components() []int {
	of := make([]int, len(n.Nodes))
	for i := range of {
		of[i] = i
	}
	find := func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	for _, l := range n.Links {
		if l.Delivery > 0 && l.Reverse > 0 {
			a, b := find(l.From), find(l.To)
			of[max(a, b)] = min(a, b)
		}
	}
	for i := range of {
		of[i] = find(i)
	}
	return of
}

func sortLinks(links []Link) {
	slices.SortFunc(links, func(a, b Link) int { return cmp.Or(a.From-b.From, a.To-b.To) })
}
