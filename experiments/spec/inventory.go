package spec

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/deploy/inventory"
)

// inventory makes the nodes of a lab those of the topology. It returns false where
// nothing more can be said of them.
func (k *check) inventory(t *Topology) bool {
	const at = "topology.inventory"
	inv, err := k.files.inventory(t.Inventory)
	if err == nil && inv != nil && len(t.Tags) > 0 {
		inv, err = inv.Tagged(t.Tags)
	}
	if err != nil {
		k.at(at, Problem{What: oneLine(err), Allowed: "a file that lists real nodes"})
		return false
	}
	if inv == nil {
		return false // it was left unread
	}
	for i := range inv.Nodes {
		name := inv.Nodes[i].Name
		if !patterns["name"].ok(name) {
			k.at(at, Problem{What: fmt.Sprintf("the node in line %d has the name %q, which cannot stand in an experiment", inv.Nodes[i].Line, name), Allowed: patterns["name"].allowed})
			return false
		}
		t.Nodes = append(t.Nodes, Node{Name: name, Radio: true})
	}
	return true
}

// inventory returns a file as a list of real nodes; nil without an error when it is
// left unread.
func (f *files) inventory(path string) (*inventory.Inventory, error) {
	l := f.load(named{path: path, kind: inventoryFile})
	return l.inventory, l.err
}

// readInventory reads one. Its mistakes are told in one line here; hopbed deploy
// check shows them where they stand.
func readInventory(path string, b []byte) (*inventory.Inventory, error) {
	inv, err := inventory.Parse(path, b)
	if err != nil {
		return nil, fmt.Errorf("cannot be read as an inventory: %s", strings.TrimSpace(err.Error()))
	}
	return inv, nil
}
