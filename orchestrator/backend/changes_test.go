package backend

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// TestChangesExcuseABrokenConnection: a connection of a flow whose path the file cut is
// an outcome when it breaks; corrupt data never are, nor is a fault of another flow.
func TestChangesExcuseABrokenConnection(t *testing.T) {
	const file = `hopbed: 1
name: f
topology:
  generate: {kind: chain, nodes: 4, spacing: 20m}
  changes: [CHANGES]
radio: {path-loss: {kind: disk, range: 25m}}
flows: [{pairs: [{src: n01, dst: n04}, {src: n03, dst: n04}], transport: tcp/cubic}]
duration: 10s
`
	broken := &proto.Error{Code: proto.CodeFlow, What: "flow 0", Detail: "connection reset by peer"}
	for _, c := range []struct {
		changes string
		flow    int
		err     *proto.Error
		want    string // empty: it stays a fault
	}{
		{"{at: 3s, node: n02, up: false}", 0, broken, "its relay n02 was switched off at 3s"},
		{"{at: 3s, node: n02, up: false}", 1, broken, ""},
		{"{at: 3s, link: [n03, n02], up: false}", 0, broken, "the link n02 – n03 of its path was down at 3s"},
		{"{at: 3s, link: [n01, n03], up: false}", 0, broken, ""},
		{"{at: 3s, link: [n02, n03], up: false}, {at: 5s, node: n02, up: false}", 0, broken, "its relay n02 was switched off at 5s"},
		{"{at: 3s, node: n02, up: false}", 0, &proto.Error{Code: proto.CodeCorrupt}, ""},
	} {
		s := scenarioOf(t, strings.Replace(file, "CHANGES", c.changes, 1))
		got := excused(s, c.flow, c.err)
		if c.want == "" && got != c.err || c.want != "" && (got.Code != proto.CodeTimeout || !strings.Contains(got.Detail, c.want) || !strings.Contains(got.Detail, c.err.Detail)) {
			t.Errorf("%s, flow %d: %v, want %q", c.changes, c.flow, got, c.want)
		}
	}
	if excused(nil, 0, nil) != nil {
		t.Error("no error is excused")
	}
}

// TestChangeRows: an event of the run for each change, in the order of time.
func TestChangeRows(t *testing.T) {
	s := scenarioOf(t, `hopbed: 1
name: f
topology:
  generate: {kind: chain, nodes: 4, spacing: 20m}
  changes: [{at: 4s, node: n03, up: false}, {at: 2s, link: [n02, n01], up: false}, {at: 3s, link: [n01, n02], up: true}, {at: 5s, node: n03, up: true}]
radio: {path-loss: {kind: disk, range: 25m}}
flows: [{pairs: [{src: n01, dst: n04}], transport: hop}]
duration: 10s
`)
	rec := NewRecord(s, func(int) string { return "" })
	var got []string
	for _, e := range rec.Events {
		got = append(got, e.Kind+" "+e.Text)
	}
	if text := strings.Join(got, ", "); text != "link-down n01 – n02, link-up n01 – n02, node-down n03, node-up n03" {
		t.Errorf("events: %s", text)
	}
	rec.Events = append(rec.Events, store.Event{Kind: "connected", TUs: store.Some(int64(2500000))}, store.Event{Kind: "stderr"})
	SortEvents(rec)
	if rec.Events[0].Kind != "stderr" || rec.Events[2].Kind != "connected" {
		t.Errorf("events %+v", rec.Events)
	}
}
