package render

import (
	"slices"
	"strings"
)

// noteList gathers notes, each once, with what it is about: rows of transports.
type noteList struct {
	notes []string
	about map[string][]subject // by note
}

type subject struct {
	transport string
	rows      []string
}

func (n *noteList) add(note, transport, row string) {
	if n.about == nil {
		n.about = map[string][]subject{}
	}
	if !slices.Contains(n.notes, note) {
		n.notes = append(n.notes, note)
	}
	if transport == "" {
		return
	}
	of := n.about[note]
	i := slices.IndexFunc(of, func(s subject) bool { return s.transport == transport })
	if i < 0 {
		i = len(of)
		of = append(of, subject{transport: transport})
	}
	of[i].rows = append(of[i].rows, row)
	n.about[note] = of
}

// lines are the notes: "hop (median, mean); udp (median): …".
func (n *noteList) lines() []string {
	var out []string
	for _, note := range n.notes {
		var about []string
		for _, s := range n.about[note] {
			about = append(about, s.transport+" ("+strings.Join(s.rows, ", ")+")")
		}
		if len(about) > 0 {
			note = strings.Join(about, "; ") + ": " + note
		}
		out = append(out, note)
	}
	return out
}
