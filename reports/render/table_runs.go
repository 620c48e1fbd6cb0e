package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/safetext"
)

// leftOutTable lists every run that is not valid, with its reason.
func leftOutTable(s *Section) Table {
	t := Table{Title: "Runs that are not valid", Head: []string{"run", "repetition", "point", "attempt", "status"}, Left: map[int]bool{2: true, 4: true}}
	for i := range s.Set.Runs {
		r := &s.Set.Runs[i]
		if r.Valid {
			continue
		}
		reason := strings.Join(r.InvalidReasons, "; ")
		if r.Error != "" {
			if reason != "" {
				reason += "; "
			}
			reason += r.Error
		}
		t.add("bad", fmt.Sprint(r.ID), strconv.Itoa(r.Repetition), point(r), strconv.Itoa(r.Attempt), string(r.Status))
		t.Rows[len(t.Rows)-1].Below = safetext.Line(reason, 400)
	}
	return t
}

func point(r *store.Run) string {
	if len(r.Params) == 0 {
		return name(r.Transport)
	}
	return safetext.Line(r.Params.String(), 120)
}

// runTable lists every run with how punctual and how busy its host was.
// Columns that no run has are left out: in virtual time there is no lateness.
func runTable(s *Section) Table {
	t := Table{Title: "All runs: lateness, load and trace", Left: map[int]bool{}}
	cols := []struct {
		head string
		left bool
		cell func(*store.Run) string
	}{
		{"run", false, func(r *store.Run) string { return fmt.Sprint(r.ID) }},
		{"repetition", false, func(r *store.Run) string { return strconv.Itoa(r.Repetition) }},
		{"point", true, point},
		{"valid", true, func(r *store.Run) string {
			if r.Valid {
				return "yes"
			}
			return string(r.Status)
		}},
		{"lateness p50\u00a0/\u00a0p99\u00a0/\u00a0max", false, func(r *store.Run) string {
			if !r.LatenessP99Us.OK {
				return nothing
			}
			return opt(r.LatenessP50Us, 0, "") + "\u00a0/\u00a0" + opt(r.LatenessP99Us, 0, "") + "\u00a0/\u00a0" + opt(r.LatenessMaxUs, 0, "") + "\u00a0µs"
		}},
		{"late", false, func(r *store.Run) string {
			if !r.LateShare.OK {
				return nothing
			}
			return percent(r.LateShare.V)
		}},
		{"longest stall", false, func(r *store.Run) string { return opt(r.StallMaxUs, 0, "\u00a0µs") }},
		{"CPU of medium", false, func(r *store.Run) string { return opt(r.CPUS, 1, "\u00a0s") }},
		{"of agents", false, func(r *store.Run) string { return opt(r.AgentS, 1, "\u00a0s") }},
		{"steal", false, func(r *store.Run) string { return opt(r.StealS, 2, "\u00a0s") }},
		{"wall time", false, func(r *store.Run) string { return decimals(r.WallS, 1) + "\u00a0s" }},
		{"priority", true, func(r *store.Run) string { return orNothing(name(r.Priority)) }},
		{"trace hash", true, func(r *store.Run) string { return orNothing(safetext.Line(r.TraceHash, 17)) }},
	}
	for i := range s.Set.Runs {
		mark := ""
		if !s.Set.Runs[i].Valid {
			mark = "bad"
		}
		t.add(mark)
		if w := s.Set.Runs[i].Warnings; len(w) > 0 {
			t.Rows[i].Below = safetext.Line("warnings: "+strings.Join(w, "; "), 400)
		}
	}
	for _, c := range cols {
		var cells []string
		empty := true
		for i := range s.Set.Runs {
			cells = append(cells, c.cell(&s.Set.Runs[i]))
			empty = empty && cells[i] == nothing
		}
		if empty {
			continue
		}
		t.Left[len(t.Head)] = c.left
		t.Head = append(t.Head, c.head)
		for i := range t.Rows {
			t.Rows[i].Cells = append(t.Rows[i].Cells, cells[i])
		}
	}
	return t
}

func orNothing(s string) string {
	if s == "" {
		return nothing
	}
	return s
}
