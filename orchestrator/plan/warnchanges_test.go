package plan

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

// TestChangesOfLinksThatNobodyUses: radios that reach further than the neighbour make a
// partition of none; nodes that hear nothing of each other have no link.
func TestChangesOfLinksThatNobodyUses(t *testing.T) {
	for radio, want := range map[string]string{
		"{path-loss: {kind: disk, range: 25m}}": "topology.changes: n01 – n04: the radios do not notice each other (in the network of the first repetition): nothing happens there",
		"{path-loss: {kind: disk, range: 65m}}": "topology.changes: n02 – n03, n03 – n04: no flow passes there (in the network of the first repetition): only carrier sense and interference change",
	} {
		e, err := spec.Parse("f.yaml", []byte(`hopbed: 1
name: f
topology:
  generate: {kind: chain, nodes: 4, spacing: 20m}
  changes:
    - {path: [n02, n03, n04], cycle: {up: 2s, down: 2s}}
    - {at: 5s, link: [n01, n04], up: false}
radio: `+radio+`
flows: [{pairs: [{src: n01, dst: n04}], transport: hop}]
warmup: 1s
duration: 10s
`))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range Build(e).Warnings() {
			if strings.HasPrefix(w, "topology.changes") {
				got = append(got, w)
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s:\n%q\nwant %q", radio, got, want)
		}
	}
}
