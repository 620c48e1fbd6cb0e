package site

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/netem/tap"
)

// Site is an experiment's nodes on those of an inventory.
type Site struct {
	// Nodes are the inventory's, in the order of the experiment's.
	Nodes []*inventory.Node
	// ByName: every node of the experiment has the name of its node in the
	// inventory; otherwise they were matched in order.
	ByName bool
	// Note, where not empty, is what a careful user should know of the matching.
	Note string

	addresses []netip.Prefix
}

// Match gives each node of an experiment, by their names in its order, one of an
// inventory: the one of the same name where the inventory has all names, else the
// next one in the order of the file.
func Match(names []string, inv *inventory.Inventory) (*Site, error) {
	place := make(map[string]int, len(inv.Nodes))
	for i := range inv.Nodes {
		place[inv.Nodes[i].Name] = i
	}
	s := &Site{ByName: true}
	var known, strange []string
	for _, n := range names {
		if _, ok := place[n]; ok {
			known = append(known, n)
		} else {
			strange = append(strange, n)
		}
	}
	if len(strange) > 0 {
		s.ByName = false
		if len(inv.Nodes) < len(names) {
			return nil, &Problem{What: fmt.Sprintf("the experiment has %d nodes and %s has %d", len(names), source(inv), len(inv.Nodes)),
				Do: "add nodes to the inventory, take fewer in the experiment, or leave out --tags"}
		}
		if len(known) > 0 {
			s.Note = fmt.Sprintf("%d of the experiment's nodes have names of the inventory (%s) and %d have not (%s): all are matched in the order of the two files, not by name",
				len(known), some(known), len(strange), some(strange))
		}
	}
	for i, n := range names {
		at := i
		if s.ByName {
			at = place[n]
		}
		node := &inv.Nodes[at]
		if node.Interface == "" {
			return nil, &Problem{What: fmt.Sprintf("node %s of %s has no interface", node.Name, source(inv)), Do: "give the interface that experiments may use there, such as interface: wlan0"}
		}
		address := node.Experiment
		if !address.IsValid() {
			address = netip.PrefixFrom(tap.Addr(at), 32)
		}
		for k := range i {
			if s.addresses[k].Addr() == address.Addr() {
				return nil, &Problem{What: fmt.Sprintf("nodes %s and %s of %s have the same experiment address %v", s.Nodes[k].Name, node.Name, source(inv), address.Addr()), Do: "give each its own"}
			}
		}
		s.Nodes, s.addresses = append(s.Nodes, node), append(s.addresses, address)
	}
	return s, nil
}

// Addr is the address of a node in the experiment.
func (s *Site) Addr(i int) netip.Addr { return s.addresses[i].Addr() }

// Problem says that an experiment and an inventory do not fit.
type Problem struct{ What, Do string }

// Error gives both parts.
func (p *Problem) Error() string { return p.What + ": " + p.Do }

func source(inv *inventory.Inventory) string {
	if inv.Path == "" {
		return "the inventory"
	}
	return inv.Path
}

// some lists a few names.
func some(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], " ") + " …"
	}
	return strings.Join(names, " ")
}
