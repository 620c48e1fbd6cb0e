package spec

import (
	"errors"
	"strings"
	"testing"
)

const labFile = `inventory: 1
nodes:
  - {name: roof, address: 192.0.2.1, tags: [high]}
  - {name: yard, address: 192.0.2.2}
  - {name: mast, address: 192.0.2.3, tags: [high]}
`

func withLab(t *testing.T, topology, lab string) (*Experiment, error) {
	t.Helper()
	text := "hopbed: 1\nname: x\ntopology: " + topology + "\nflows: [{pairs: [{src: roof, dst: mast}], transport: tcp/reno}]\nduration: 1s\n"
	return ParseFiles("x.yaml", []byte(text), func(path string) ([]byte, error) {
		if path != "lab.yaml" {
			return nil, errors.New("no such file")
		}
		return []byte(lab), nil
	})
}

// The nodes of an inventory are those of the topology, with the names that flows
// and links use; what the inventory was is kept with the results.
func TestInventory(t *testing.T) {
	for topology, want := range map[string]string{
		"{inventory: lab.yaml}":                                                 "roof yard mast",
		"{inventory: lab.yaml, tags: [high]}":                                   "roof mast",
		"{inventory: lab.yaml, links: [{from: roof, to: mast, delivery: 70%}]}": "roof yard mast",
	} {
		e, err := withLab(t, topology, labFile)
		if err != nil {
			t.Errorf("%s: %v", topology, err)
			continue
		}
		if got := strings.Join(e.Base().Topology.NodeNames(), " "); got != want {
			t.Errorf("%s: nodes %s, want %s", topology, got, want)
		}
		if f := e.Files(); len(f) != 1 || f[0].Path != "lab.yaml" || f[0].Bytes != len(labFile) || f[0].SHA256 == "" {
			t.Errorf("%s: files %+v", topology, f)
		}
		for _, n := range e.Base().Topology.AllNodes() {
			if !n.Radio || n.At != nil {
				t.Errorf("%s: node %+v", topology, n)
			}
		}
	}
}

func TestMistakesAboutInventories(t *testing.T) {
	for name, c := range map[string]struct {
		topology, lab string
		want          []string
	}{
		"no such file":    {"{inventory: other.yaml}", labFile, []string{"x.yaml:3:23", "topology.inventory", "no such file"}},
		"no inventory":    {"{inventory: lab.yaml}", "nodes: 7\n", []string{"topology.inventory", "cannot be read as an inventory"}},
		"tag of nobody":   {"{inventory: lab.yaml, tags: [low]}", labFile, []string{"topology.inventory", "low"}},
		"tags of nothing": {"{generate: {kind: chain, nodes: 3, spacing: 20m}, tags: [high]}", labFile, []string{"topology.tags", "tags choose nodes of an inventory"}},
		"two at once":     {"{inventory: lab.yaml, generate: {kind: chain, nodes: 3, spacing: 20m}}", labFile, []string{"says generate and inventory at once"}},
		"unknown node":    {"{inventory: lab.yaml, links: [{from: roof, to: cellar}]}", labFile, []string{"topology.links[0].to", "no node has this name"}},
		"one node":        {"{inventory: lab.yaml}", "inventory: 1\nnodes: [{name: roof, address: 192.0.2.1}]\n", []string{"topology.nodes", "2 to 1000"}},
	} {
		_, err := withLab(t, c.topology, c.lab)
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v lacks %q", name, err, w)
			}
		}
	}
}
