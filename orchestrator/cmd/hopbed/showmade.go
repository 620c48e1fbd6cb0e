package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// showMade says what was made of the settings that hosts may take otherwise than the
// file asks: which emulator a link has, and of each real node who it is, how well
// its clock is known, and what its radio and its kernel's links were read back as.
// Nodes of which there is nothing to say are left out.
func showMade(w io.Writer, r *store.Run, nodes []store.Node) {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(r.Facts)) {
		if link, ok := strings.CutPrefix(k, "pipe_"); ok && strings.HasSuffix(link, "_emulator") {
			lines = append(lines, fmt.Sprintf("wired link %s of the file: emulator %s", clean(strings.TrimSuffix(link, "_emulator")), clean(r.Facts[k])))
		}
	}
	if via := r.Facts["via"]; via != "" {
		lines = append(lines, "nodes reached by "+clean(via))
	}
	for _, n := range nodes {
		if said := madeOf(n.Facts); said != "" {
			lines = append(lines, fmt.Sprintf("node %s: %s", clean(n.Name), clean(said)))
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}

func madeOf(f store.Facts) string {
	var said []string
	if host := f["host"]; host != "" {
		said = append(said, fmt.Sprintf("%s of the inventory (%s), interface %s, radio driver %s", host, f["matched"], f["interface"], f["radio_driver"]))
	}
	switch {
	case f["clock_offset_us"] != "":
		clock := fmt.Sprintf("clock %s µs ± %s µs from this host's", f["clock_offset_us"], f["clock_bound_us"])
		if f["clock_offset_after_us"] != "" {
			clock += fmt.Sprintf(", afterwards %s µs ± %s µs", f["clock_offset_after_us"], f["clock_bound_after_us"])
		}
		if f["clock_drift_ppm"] != "" {
			clock += fmt.Sprintf(", drift %s ppm", f["clock_drift_ppm"])
		}
		said = append(said, clock)
	case f["clock"] != "" && f["host"] != "":
		said = append(said, "clock "+f["clock"])
	}
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if strings.HasPrefix(k, "radio.") || strings.HasPrefix(k, "shaper_") {
			said = append(said, k+" = "+f[k])
		}
	}
	return strings.Join(said, "; ")
}
