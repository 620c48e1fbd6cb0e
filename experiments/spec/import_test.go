package spec

import (
	"fmt"
	"strings"
	"testing"
)

const importing = `hopbed: 1
name: i
topology: {import: {format: meshnet-lab, file: mesh.json%s}}
flows: [{pairs: [{src: %s, dst: b}], transport: hop}]
duration: 10s
`

const meshJSON = `{"nodes": [{"id": "A", "x": 1, "y": 2}, {"id": "b"}, {"id": "c"}, {"id": "d"}],
"links": [{"source": "A", "target": "b", "source_tq": 0.9, "target_tq": 0.7}, {"source": "c", "target": "d"}, {"source": "b", "target": "A2"}]}`

func importFiles(text string) Files {
	return func(path string) ([]byte, error) {
		if path != "mesh.json" {
			return nil, fmt.Errorf("no file %s", path)
		}
		return []byte(text), nil
	}
}

func TestAnImportedNetworkIsListed(t *testing.T) {
	e, err := ParseFiles("x.yaml", []byte(fmt.Sprintf(importing, "", "a")), importFiles(meshJSON))
	if err != nil {
		t.Fatal(err)
	}
	top := &e.Base().Topology
	if len(top.Nodes) != 5 || top.Nodes[0].Name != "a" || top.Nodes[0].At == nil || top.Nodes[0].At.Y != 2 || top.Nodes[1].At != nil || !top.Nodes[4].Radio {
		t.Errorf("nodes %+v", top.Nodes)
	}
	if len(top.Links) != 3 || top.Links[0].Delivery != 0.9 || *top.Links[0].Reverse != 0.7 || top.Links[1].Reverse != nil {
		t.Errorf("links %+v", top.Links)
	}
	if f := e.Files(); len(f) != 1 || f[0].Path != "mesh.json" {
		t.Errorf("files %+v", f)
	}
	e, err = ParseFiles("x.yaml", []byte(fmt.Sprintf(importing, ", part: largest", "a")), importFiles(meshJSON))
	if err != nil {
		t.Fatal(err)
	}
	if top := &e.Base().Topology; len(top.Nodes) != 3 || len(top.Links) != 2 || len(top.Import.Notes) != 1 {
		t.Errorf("the largest part: %+v", top)
	}
	if _, err := ParseFiles("x.yaml", []byte(fmt.Sprintf(importing, "", "a")), Unread); err != nil {
		t.Errorf("left unread: %v", err)
	}
}

func TestImportsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ key, src, file, want string }{
		{"", "q", meshJSON, "no node has this name"},
		{"", "a", `{"links": [` + "\n" + `{"source": "A"}]}`, "x.yaml:3:48: topology.import.file: \"mesh.json\": cannot be imported: mesh.json:2:1: the object has no key \"target\""},
		{", part: biggest", "a", meshJSON, "all, largest"},
	} {
		_, err := ParseFiles("x.yaml", []byte(fmt.Sprintf(importing, c.key, c.src)), importFiles(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.key, err, c.want)
		}
	}
	_, err := ParseFiles("x.yaml", []byte(strings.Replace(fmt.Sprintf(importing, "", "a"), "{import", "{links: [{from: a, to: b}], import", 1)), importFiles(meshJSON))
	if err == nil || !strings.Contains(err.Error(), "the links are in the file") {
		t.Errorf("links beside an import: %v", err)
	}
	_, err = ParseFiles("x.yaml", []byte(strings.Replace(fmt.Sprintf(importing, "", "a"), "duration", "radio: {tx-power: 3dBm}\nduration", 1)), importFiles(meshJSON))
	if err == nil || !strings.Contains(err.Error(), "the links are listed") {
		t.Errorf("a radio model beside imported links: %v", err)
	}
}
