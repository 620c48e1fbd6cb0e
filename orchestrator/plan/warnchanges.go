package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/topology"
)

// changeWarnings tells of links that are switched although their nodes do not notice
// each other, or no flow passes them: mostly another link was meant, or another radio. A network that cannot be laid out has
// none; Scenario says why.
func (p *Plan) changeWarnings() []string {
	var w []string
	for _, r := range p.Runs {
		if r.Repetition > 1 || len(r.Config().Topology.Changes) == 0 {
			continue
		}
		s, err := r.Scenario()
		if err != nil {
			continue
		}
		none := s.Topology.Unnoticed()
		if len(none) > 0 {
			w = append(w, fmt.Sprintf("topology.changes: %s: the radios do not notice each other (in the network of the first repetition): nothing happens there", strings.Join(none, ", ")))
		}
		if idle := slices.DeleteFunc(s.unused(), func(p string) bool { return slices.Contains(none, p) }); len(idle) > 0 {
			w = append(w, fmt.Sprintf("topology.changes: %s: no flow passes there (in the network of the first repetition): only carrier sense and interference change", strings.Join(idle, ", ")))
		}
	}
	return w
}

// unused are the links that are switched and on no flow's path: mostly the radios reach
// further than was thought.
func (s *Scenario) unused() []string {
	var out []string
	for i := range s.Topology.Changes {
		c := &s.Topology.Changes[i]
		if _, node := c.Node(); node {
			continue
		}
		passes := slices.ContainsFunc(s.Flows, func(f topology.Flow) bool {
			for k := 1; k < len(f.Path); k++ {
				if a, b := f.Path[k-1], f.Path[k]; c.Link == [2]int{a, b} || c.Link == [2]int{b, a} {
					return true
				}
			}
			return false
		})
		if place := s.Topology.Place(c); !passes && !slices.Contains(out, place) {
			out = append(out, place)
		}
	}
	return out
}
