package artifact

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Everywhere in Wanted.At stands for every interface.
const Everywhere = "all"

// sight is a place where a packet is recorded on its way.
type sight struct {
	place string
	node  int // whose interface it is; on the air, who sends
}

// connection is what the analysis of TCP looks at as one: that of a flow or, for
// a transport that acts at every hop, of one hop.
type connection struct {
	flow        *topology.Flow
	there, back []sight
}

// connections lists the connections of a scenario's flows.
func connections(s *plan.Scenario) (all []connection) {
	t := s.Topology
	for i := range s.Flows {
		f := &s.Flows[i]
		switch family(s, f) {
		case spec.FamilyHop, spec.FamilyHopByHopTCP, spec.FamilyBundle:
			for k := 1; k < len(f.Path); k++ {
				u, v := f.Path[k-1], f.Path[k]
				all = append(all, connection{f, sights(t, []int{u, v}), sights(t, []int{v, u})})
			}
		default:
			all = append(all, connection{f, sights(t, f.Path), sights(t, t.Routes.Path(f.Dst, f.Src))})
		}
	}
	return all
}

func family(s *plan.Scenario, f *topology.Flow) string {
	return s.Config().Flows[f.Group].Transport.Family()
}

// sights returns where a packet is seen on a path, in the order of its way: on
// the air once for each radio hop, on a wire at both ends.
func sights(t *topology.Topology, path []int) (out []sight) {
	for i := 1; i < len(path); i++ {
		at := path[i-1]
		for _, e := range t.LinkPath(at, path[i]) {
			if e.Pipe == topology.RadioEgress {
				out = append(out, sight{capture.Air, at})
			} else {
				p := &t.Pipes[e.Pipe]
				for _, end := range []int{e.End, 1 - e.End} {
					out = append(out, sight{t.Nodes[p.Ends[end]].Name + ":" + p.Interfaces[end], p.Ends[end]})
				}
			}
			at = e.Next
		}
	}
	return out
}

// at returns the interfaces that a scenario's capture holds; nil: all.
//
// If nobody says which, they are the air, and of wired links those that each
// connection leaves its source by and comes back to. A packet is at both ends of
// a wire, and Wireshark takes the second for a repeat of the first; at the
// source it sees what the sender's counters count.
func (f *Files) at(s *plan.Scenario) []string {
	switch {
	case slices.Contains(f.want.At, Everywhere):
		return nil
	case len(f.want.At) > 0:
		return f.want.At
	}
	chosen := map[string]bool{capture.Air: true}
	for _, c := range connections(s) {
		if n := len(c.there); n > 0 {
			chosen[c.there[0].place] = true
		}
		if n := len(c.back); n > 0 {
			chosen[c.back[n-1].place] = true
		}
	}
	cfg := (&backend.Capture{}).Config(s)
	return slices.DeleteFunc(cfg.Interfaces(), func(name string) bool { return !chosen[name] })
}

// Hint says how to get at one view of a connection where a scenario's capture
// has the packets of TCP more than once, which Wireshark's analysis takes for
// repeats; "" where it does not.
func (f *Files) Hint(s *plan.Scenario, on string) string {
	if f == nil || f.want.Packets == "" {
		return ""
	}
	at := f.at(s)
	recorded := func(way []sight) []sight {
		return slices.DeleteFunc(way, func(x sight) bool { return at != nil && !slices.Contains(at, x.place) })
	}
	repeated := func(way []sight) bool {
		return len(way) > 1 || len(way) == 1 && way[0].place == capture.Air // whose link layer repeats
	}
	for _, c := range connections(s) {
		if k := family(s, c.flow); k != spec.FamilyTCP && k != spec.FamilyCoopTCP && k != spec.FamilyHopByHopTCP && k != spec.FamilyBundle {
			continue
		}
		there, back := recorded(c.there), recorded(c.back)
		if repeated(there) || repeated(back) {
			return f.hint(s, on, c.flow, append(there, back...))
		}
	}
	return ""
}

func (f *Files) hint(s *plan.Scenario, on string, flow *topology.Flow, seen []sight) string {
	var places []string
	for _, x := range seen {
		name := x.place
		if name == capture.Air {
			name = "on the air with every hop and repetition"
		}
		if !slices.Contains(places, name) {
			places = append(places, name)
		}
	}
	first := seen[0]
	filter, rather := fmt.Sprintf("frame.interface_name == %q", first.place), ""
	if first.place == capture.Air {
		filter = fmt.Sprintf("wlan.fc.retry == 0 && wlan.addr == %s", tap.HardwareAddr(first.node))
	} else {
		rather = ", or run with --trace-at " + first.place
	}
	path := f.path(f.want.Packets, s.Run, on)
	view := insert(path, "-"+s.Topology.Nodes[first.node].Name)
	return fmt.Sprintf("%s has packets of flow %d more than once (%s), which Wireshark's analysis of TCP takes for retransmissions; for one view: tshark -r %s -Y '%s' -w %s%s",
		path, flow.ID, strings.Join(places, ", "), quoted(path), filter, quoted(view), rather)
}

// quoted is a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
