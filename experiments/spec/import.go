package spec

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/experiments/topology/interchange"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Part says how much of an imported network is taken.
type Part string

// The values of Import.Part.
const (
	PartAll     Part = "all"
	PartLargest Part = "largest"
)

// Import names a topology file of another tool.
type Import struct {
	// Format is the file's format.
	Format string `key:"format" required:"true" enum:"meshnet-lab|olsr-jsoninfo|olsr-txtinfo|batman-adv|netjson"`
	// File is the path, relative to the experiment file.
	File string `key:"file" required:"true" pattern:"path"`
	// Part is what is taken: everything, or the largest set of nodes that reach each other.
	Part Part `key:"part" enum:"all|largest" default:"all"`

	// Notes say what the file was not clear about, and what was left out.
	Notes []string
}

// imported makes the nodes and links of a file those of the topology. It returns
// false where nothing more can be said of them.
func (k *check) imported(t *Topology) bool {
	const at = "topology.import.file"
	k.only("the links are in the file", "topology.links")
	m := t.Import
	if m == nil || m.Format == "" || m.File == "" {
		return false // reported already
	}
	n, err := k.files.network(m.File, m.Format)
	if err != nil {
		k.at(at, Problem{What: err.Error(), Allowed: interchange.What(m.Format)})
		return false
	}
	if n == nil {
		return false // it was left unread
	}
	if m.Part == PartLargest {
		n = n.Component()
	}
	m.Notes = n.Notes
	t.Nodes, t.Links = Imported(n)
	return true
}

// Imported writes a network of another tool as nodes and links of a file.
func Imported(n *interchange.Network) ([]Node, []Link) {
	var nodes []Node
	var links []Link
	for i := range n.Nodes {
		k := Node{Name: n.Nodes[i].Name, Radio: true}
		if n.Nodes[i].Placed {
			k.At = &Position{vtime.Metres(n.Nodes[i].X), vtime.Metres(n.Nodes[i].Y)}
		}
		nodes = append(nodes, k)
	}
	for _, l := range n.Links {
		k := Link{From: n.Nodes[l.From].Name, To: n.Nodes[l.To].Name, Delivery: vtime.Fraction(l.Delivery)}
		if l.Reverse != l.Delivery {
			back := vtime.Fraction(l.Reverse)
			k.Reverse = &back
		}
		links = append(links, k)
	}
	return nodes, links
}

// network returns a file as a network of another tool; nil without an error when
// it is left unread.
func (f *files) network(path, format string) (*interchange.Network, error) {
	l := f.load(named{path, topologyFile, format})
	return l.network, l.err
}

// placed puts the file before the line and column of an error.
func placed(path string, err error) error {
	var e *interchange.Error
	if errors.As(err, &e) && e.Line > 0 {
		return fmt.Errorf("%s:%w", path, err)
	}
	return err
}
