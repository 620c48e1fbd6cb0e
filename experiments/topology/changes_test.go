package topology

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

func changing(t *testing.T, changes, flows string) (*spec.Config, *Topology) {
	t.Helper()
	e, err := spec.Parse("f.yaml", []byte(`hopbed: 1
name: f
topology:
  generate: {kind: chain, nodes: 5, spacing: 28m}
  changes: [`+changes+`]
radio: {path-loss: {exponent: 4}}
flows: [`+flows+`]
duration: 10s
`))
	if err != nil {
		t.Fatal(err)
	}
	c := e.Base()
	top, err := Build(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c, top
}

func TestChanges(t *testing.T) {
	_, top := changing(t, "{at: 2s, node: n03, up: false}, {at: 1s, link: [n02, n01], up: false}, {path: [n04, n05], cycle: {up: 4s, down: 4s}}, {at: 3s, link: [n01, n05], up: false}",
		"{pairs: [{src: n01, dst: n05}], transport: hop}")
	var got []string
	for i := range top.Changes {
		c := &top.Changes[i]
		got = append(got, vtime.Duration(c.At).String()+" "+top.Place(c))
	}
	if text := strings.Join(got, ", "); text != "1s n01 – n02, 2s n03, 3s n01 – n05, 4s n04 – n05, 8s n04 – n05" {
		t.Errorf("changes: %s", text)
	}
	if n, is := top.Changes[1].Node(); n != 2 || !is || top.Changes[1].Up {
		t.Errorf("%+v", top.Changes[1])
	}
	if none := top.Unnoticed(); len(none) != 1 || none[0] != "n01 – n05" {
		t.Errorf("links that are none: %v", none)
	}
	want := "change: node n03 down at 2s\nchange: link n02 – n01 down at 1s\nchange: links n04 – n05 up for 4s and down for 4s in turn, up at 0s\nchange: link n01 – n05 down at 3s\n"
	if s := top.Summary(); !strings.HasSuffix(s, want) {
		t.Errorf("summary\n%s\nwant\n%s", s, want)
	}
}

// TestNoRandomFlowEndsAtASwitchedNode, and what is drawn does not depend on links
// that go down.
func TestNoRandomFlowEndsAtASwitchedNode(t *testing.T) {
	const flows = "{count: 60, pairs: random, transport: hop}"
	c, top := changing(t, "{at: 2s, node: n03, up: false}", flows)
	drawn, err := top.Flows(c, 0)
	if err != nil || len(drawn) != 60 {
		t.Fatalf("%d flows, %v", len(drawn), err)
	}
	through := 0
	for _, f := range drawn {
		if f.Src == 2 || f.Dst == 2 {
			t.Errorf("a flow from %d to %d", f.Src, f.Dst)
		}
		if f.Src < 2 != (f.Dst < 2) {
			through++
		}
	}
	if through == 0 {
		t.Error("no flow passes the node")
	}
	c, top = changing(t, "{at: 2s, link: [n02, n03], up: false}", flows)
	linked, err := top.Flows(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Topology.Changes = nil
	if top, err = Build(c, 0); err != nil {
		t.Fatal(err)
	}
	plain, err := top.Flows(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		if plain[i].Src != linked[i].Src || plain[i].Dst != linked[i].Dst {
			t.Fatalf("flow %d: %d to %d, without the change %d to %d", i, linked[i].Src, linked[i].Dst, plain[i].Src, plain[i].Dst)
		}
	}
}
