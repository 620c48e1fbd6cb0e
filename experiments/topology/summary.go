package topology

import (
	"fmt"
	"strings"
)

// Stats describes a mesh in numbers.
type Stats struct {
	Nodes       int
	Radios      int     // nodes with a radio
	Usable      int     // directed radio links that may carry a route
	Degree      float64 // usable links per node with a radio
	Sensed      float64 // nodes that a node with a radio senses, on average
	Hidden      float64 // of the nodes that the receiver of a usable link senses, the share that its sender does not
	MeanETX     float64 // of the usable links
	Histogram   []int   // Histogram[h] is the number of ordered pairs whose route has h hops
	Unreachable int     // ordered pairs without a route
}

// Stats returns the figures of the mesh.
func (t *Topology) Stats() Stats {
	n := len(t.Nodes)
	s := Stats{Nodes: n, Radios: n - len(t.Mute())}
	senses := make([][]bool, n) // senses[i][j]: i defers to j
	for i := range senses {
		senses[i] = make([]bool, n)
	}
	for _, l := range t.Links {
		if l.Senses {
			senses[l.To][l.From] = true
			s.Sensed++
		}
		if l.Usable {
			s.Usable++
			s.MeanETX += l.ETX
		}
	}
	around, hidden := 0, 0
	for _, l := range t.Links {
		for w := range n {
			if l.Usable && w != l.From && senses[l.To][w] {
				around++
				if !senses[l.From][w] {
					hidden++
				}
			}
		}
	}
	if s.Usable > 0 {
		s.MeanETX /= float64(s.Usable)
	}
	if s.Radios > 0 {
		s.Degree, s.Sensed = float64(s.Usable)/float64(s.Radios), s.Sensed/float64(s.Radios)
	}
	if around > 0 {
		s.Hidden = float64(hidden) / float64(around)
	}
	for i := range n {
		for j := range n {
			if i == j {
				continue
			}
			h := t.Routes.Hops(i, j)
			if h < 1 {
				s.Unreachable++
				continue
			}
			for len(s.Histogram) <= h {
				s.Histogram = append(s.Histogram, 0)
			}
			s.Histogram[h]++
		}
	}
	return s
}

func (t *Topology) histogramText() string {
	var s []string
	st := t.Stats()
	for h, n := range st.Histogram {
		if n > 0 {
			s = append(s, fmt.Sprintf("%d×%d", n, h))
		}
	}
	if st.Unreachable > 0 {
		s = append(s, fmt.Sprintf("%d without a route", st.Unreachable))
	}
	return strings.Join(s, ", ") + " (pairs × hops)"
}

// Summary describes the network in a few lines for people: its Figures, its
// wires, its bridges and its changes.
func (t *Topology) Summary() string {
	var b strings.Builder
	b.WriteString(t.Figures())
	t.describePipes(&b)
	t.describeChanges(&b)
	return b.String()
}

// Figures describes the network in numbers: links, what hears what, routes.
func (t *Topology) Figures() string {
	s := t.Stats()
	var b strings.Builder
	if s.Radios < s.Nodes {
		fmt.Fprintf(&b, "%d nodes, %d of them without a radio\n", s.Nodes, s.Nodes-s.Radios)
	}
	if s.Radios > 0 {
		fmt.Fprintf(&b, "%s, %d usable links, degree %.1f, mean ETX %.2f\n", s.radios(), s.Usable, s.Degree, s.MeanETX)
		fmt.Fprintf(&b, "a node senses %.1f others; of those around a receiver, %.0f%% are hidden from its sender\n", s.Sensed, 100*s.Hidden)
	}
	fmt.Fprintf(&b, "routes: %s\n", t.histogramText())
	if t.Tries > 1 {
		fmt.Fprintf(&b, "placement %d of seed %d was the first that fitted\n", t.Tries, t.Seed)
	}
	return b.String()
}

func (s *Stats) radios() string {
	if s.Radios == s.Nodes {
		return fmt.Sprintf("%d nodes", s.Nodes)
	}
	return fmt.Sprintf("%d radios", s.Radios)
}
