package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// changing is a chain of four nodes with a wired server behind the last one, into
// which the cases below put changes.
func changing(changes string) string {
	return `hopbed: 1
name: changing
topology:
  generate: {kind: chain, nodes: 4, spacing: 20m}
  nodes: [{name: server, radio: false}]
  pipes: [{ends: [n04, server], rate: 10mbit, queue: {packets: 100}}]
  changes:
` + changes + `
flows: [{pairs: [{src: n01, dst: n04}], transport: hop}]
warmup: 2s
duration: 8s
`
}

// list writes entries as a file does.
func list(entries ...string) string {
	return "    - " + strings.Join(entries, "\n    - ")
}

func (s Switch) text() string {
	what := s.Node
	if s.Node == "" {
		what = s.Link[0] + "-" + s.Link[1]
	}
	return fmt.Sprintf("%s %s %v", seconds(s.At), what, s.Up)
}

func TestSwitches(t *testing.T) {
	for name, c := range map[string]struct{ changes, want string }{
		"moments, in any order": {list("{at: 5s, node: n03, up: true}", "{at: 3s, link: [n02, n01], up: false}", "{at: 4s, node: n03, up: false}", "{at: 5s, link: [n01, n02], up: true}"),
			"3s n01-n02 false, 4s n03 false, 5s n03 true, 5s n01-n02 true"},
		"down before up": {list("{at: 1s, node: n02, up: false}", "{at: 2s, node: n02, up: true}", "{at: 2s, link: [n01, n02], up: false}"),
			"1s n02 false, 2s n01-n02 false, 2s n02 true"},
		"a path at once": {list("{at: 0s, path: [n01, n02, n03], up: false}"), "0s n01-n02 false, 0s n02-n03 false"},
		"a cycle":        {list("{link: [n01, n02], cycle: {up: 3s, down: 2s}}"), "3s n01-n02 false, 5s n01-n02 true, 8s n01-n02 false"},
		"an offset within down": {list("{link: [n01, n02], cycle: {up: 3s, down: 2s, offset: 1s}}"),
			"0s n01-n02 false, 1s n01-n02 true, 4s n01-n02 false, 6s n01-n02 true, 9s n01-n02 false"},
		"an offset within up": {list("{link: [n01, n02], cycle: {up: 3s, down: 2s, offset: 4s}}"),
			"2s n01-n02 false, 4s n01-n02 true, 7s n01-n02 false, 9s n01-n02 true"},
		"a node's cycle": {list("{node: n02, cycle: {up: 6s, down: 6s, offset: 10s}}"), "4s n02 false"},
		"one link after the other": {list("{path: chain, cycle: {up: 4s, down: 4s, stagger: 4s}}"),
			"0s n02-n03 false, 4s n01-n02 false, 4s n03-n04 false, 4s n02-n03 true, 8s n02-n03 false, 8s n01-n02 true, 8s n03-n04 true"},
	} {
		var got []string
		for _, s := range parse(t, changing(c.changes)).Base().Switches() {
			got = append(got, s.text())
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, c.want)
		}
	}
	if s := parse(t, small).Base().Switches(); s != nil {
		t.Errorf("without changes: %v", s)
	}
}

// TestCyclesRepeat: the state of a link at any moment is that of the same moment of
// the next round.
func TestCyclesRepeat(t *testing.T) {
	for _, y := range []Cycle{{Up: 7, Down: 5}, {Up: 1, Down: 9, Offset: 4}, {Up: 5, Down: 5, Offset: 9, Stagger: 7}} {
		for i := range 5 {
			state := make([]bool, 200)
			up, last := true, 0
			fill := func(to int) {
				for ; last < to; last++ {
					state[last] = up
				}
			}
			y.each(i, 200, func(at vtime.Duration, now bool) {
				if now == up {
					t.Fatalf("%+v, link %d: %v at %d, as before", y, i, now, at)
				}
				fill(int(at))
				up = now
			})
			fill(200)
			begin := int(y.Offset) + i*int(y.Stagger)
			for at, got := range state {
				round := int(y.Up + y.Down)
				if want := ((at-begin)%round+round)%round < int(y.Up); got != want {
					t.Fatalf("%+v, link %d, at %d: %v", y, i, at, got)
				}
			}
		}
	}
}

func TestWrongChanges(t *testing.T) {
	for _, c := range []struct{ changes, want string }{
		{list("{at: 3s, link: [n01, n05], up: false}"), `x.yaml:8:28: topology.changes[0].link[1]: "n05": no node has this name; allowed: n01 … server; did you mean "n01"?`},
		{list("{at: 3s, link: [n01, n01], up: false}"), "topology.changes[0].link[1]: \"n01\": the link joins a node to itself"},
		{list("{at: 3s, link: [n04, server], up: false}"), "topology.changes[0].link[1]: \"server\": the node has no radio; allowed: a radio link; a wire has a schedule of its own"},
		{list("{at: 3s, node: n9, up: false}"), `x.yaml:8:22: topology.changes[0].node: "n9": no node has this name`},
		{list("{at: 3s, node: n01, up: false}"), "x.yaml:8:22: topology.changes[0].node: \"n01\": flows[0].pairs[0] begins or ends at this node"},
		{list("{at: 3s, node: n04, up: false}"), "begins or ends at this node"},
		{list("{at: 10s, node: n03, up: false}"), "x.yaml:8:12: topology.changes[0].at: \"10s\": not before the end of the run; allowed: less than 10s"},
		{list("{at: 3s, node: n03, up: true}"), "x.yaml:8:31: topology.changes[0].up: \"true\": changes nothing: node n03 is up already, from the begin of the run on; allowed: up: false"},
		{list("{at: 3s, node: n03, up: false}", "{at: 4s, node: n03, up: false}"), "x.yaml:9:31: topology.changes[1].up: \"false\": changes nothing: node n03 is down already, since topology.changes[0], at 3s"},
		{list("{at: 3s, link: [n01, n02], up: false}", "{at: 3s, link: [n02, n01], up: true}"), "topology.changes[1].at: \"3s\": topology.changes[0] switches the link n01 – n02 at the same moment"},
		{list("{at: 3s, link: [n01, n02], node: n03, up: false}"), "x.yaml:8:7: topology.changes[0]: \"{at: 3s, link: [n01, n02], node: n03, up: false}\": switches link and node at once"},
		{list("{at: 3s, up: false}"), ": does not say what it switches; allowed: one of link"},
		{list("{node: n03}"), ": does not say what happens, and when"},
		{list("{node: n03, up: false}"), "the key at is missing"},
		{list("{node: n03, at: 3s}"), "the key up is missing"},
		{list("{node: n03, at: 3s, cycle: {up: 1s, down: 1s}}"), "topology.changes[0].at: \"3s\": has no meaning here: the cycle says when"},
		{list("{node: n03, cycle: {up: 1s}}"), "topology.changes[0].cycle: the key down is missing"},
		{list("{node: n03, cycle: {up: 1s, down: 1s, offset: 2s}}"), "topology.changes[0].cycle.offset: \"2s\": not less than a round of the cycle, 2s; allowed: 0s says the same"},
		{list("{node: n03, cycle: {up: 1s, down: 1s, stagger: 1s}}"), "topology.changes[0].cycle.stagger: \"1s\": has no meaning here: a stagger is between the links of a path"},
		{list("{node: n03, cycle: {up: 20s, down: 1s}}"), ": changes nothing in a run of 10s: it is up from 0s on for 20s"},
		{list("{path: [n01], at: 3s, up: false}"), ": not a path of two nodes or more; allowed: [node, node, node]"},
		{list("{path: ring, at: 3s, up: false}"), "topology.changes[0].path: \"ring\": not a path"},
		{list("{path: [n01, n02, n02], at: 3s, up: false}"), "topology.changes[0].path[2]: \"n02\": the link joins a node to itself"},
		{list("{path: chain, cycle: {up: 1s, down: 1s}}", "{at: 5s, link: [n02, n03], up: false}"), "x.yaml:9:7: topology.changes[1]: \"{at: 5s, link: [n02, n03], up: false}\": the link n02 – n03 is switched by topology.changes[0] as well"},
		{list("{path: [n01, n02, n01], cycle: {up: 1s, down: 1s}}"), "the link n01 – n02 is switched by topology.changes[0] as well"},
		{list("{path: chain, cycle: {up: 1ms, down: 1ms}}", "{node: n02, cycle: {up: 1ms, down: 1ms}}", "{node: n03, cycle: {up: 1ms, down: 1ms}}"), ""},
		{list("{at: 3s, node: n03, up: false, upp: 1}"), "\"upp\": unknown key"},
	} {
		_, err := Parse("x.yaml", []byte(changing(c.changes)))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s\n%v", c.changes, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s\ngives\n%v\nwant\n%s", c.changes, err, c.want)
		case c.want != "" && strings.Count(err.Error(), "\n") > 0:
			t.Errorf("%s\ngives more than one problem:\n%v", c.changes, err)
		}
	}
	for old, c := range map[string]struct{ new, changes, want string }{
		"duration: 8s":            {"duration: 100s", list("{path: chain, cycle: {up: 1ms, down: 1ms}}"), "x.yaml:8:5: topology.changes: 306009: too many changes in one run"},
		", queue: {packets: 100}": {"", list("{at: 3s, node: server, up: false}"), "topology.pipes[0] ends at this node, and a link that is down keeps what waits for it: it needs the key queue"},
		"[n04, server]":           {"[n03, n04]", list("{at: 3s, link: [n04, n03], up: false}"), "topology.changes[0].link[1]: \"n03\": topology.pipes[0] joins n04 and n03: which link is meant?; allowed: for the wire, its schedule"},
		"kind: chain":             {"kind: star", list("{path: chain, cycle: {up: 1s, down: 1s}}"), "x.yaml:8:14: topology.changes[0].path: \"chain\": there is no generated chain"},
	} {
		text := strings.Replace(changing(c.changes), old, c.new, 1)
		if old == ", queue: {packets: 100}" {
			text = strings.Replace(text, ", rate: 10mbit", "", 1)
		}
		if _, err := Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: %v\nwant %s", old, c.new, err, c.want)
		}
	}
	listed := strings.Replace(strings.Replace(small, "{generate: {kind: chain, nodes: 3, spacing: 20m}}",
		"{nodes: [{name: a}, {name: b}, {name: c}], links: [{from: b, to: a}], changes: [{at: 1s, link: [CHANGED], up: false}]}", 1), "random", "random", 1)
	if _, err := Parse("x.yaml", []byte(strings.Replace(listed, "CHANGED", "a, b", 1))); err != nil {
		t.Error(err)
	}
	if _, err := Parse("x.yaml", []byte(strings.Replace(listed, "CHANGED", "a, c", 1))); err == nil || !strings.Contains(err.Error(), "topology.links has no link between a and c") {
		t.Error(err)
	}
}
