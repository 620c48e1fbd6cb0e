package plan

import (
	"fmt"
	"strings"
)

// changeWarnings tells of links that are switched although their nodes do not notice
// each other: mostly another link was meant. A network that cannot be laid out has
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
		if none := s.Topology.Unnoticed(); len(none) > 0 {
			w = append(w, fmt.Sprintf("topology.changes: %s: the radios do not notice each other (in the network of the first repetition): nothing happens there", strings.Join(none, ", ")))
		}
	}
	return w
}
