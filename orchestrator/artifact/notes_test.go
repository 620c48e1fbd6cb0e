package artifact

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// TestNotes: the lives of flows and what happened to links and nodes, in the order of
// time.
func TestNotes(t *testing.T) {
	rec := &store.RunRecord{
		Nodes: []store.Node{{Name: "n01"}, {Name: "n02"}},
		Flows: []store.Flow{{Flow: 0, Transport: "hop", Src: 0, Dst: 1, StartS: 0, StopS: 9}},
		Events: []store.Event{
			{Kind: "link-down", TUs: store.Some(int64(2e6)), Node: store.Some(int64(0)), Text: "n01 – n02"},
			{Kind: "connected", TUs: store.Some(int64(1e6)), Node: store.Some(int64(0)), Flow: store.Some(int64(0)), Text: "src"},
			{Kind: "node-up", TUs: store.Some(int64(3e6)), Node: store.Some(int64(1)), Text: "n02"},
			{Kind: "log-warn", TUs: store.Some(int64(3e6)), Node: store.Some(int64(1)), Text: "nothing"},
		},
	}
	var got []string
	for _, n := range flowNotes(rec) {
		got = append(got, fmt.Sprintf("%v %s %s %s", n.At.Seconds(), rec.Nodes[n.Node].Name, n.What, n.Text))
	}
	want := []string{"0 n01 flow 0 begins: hop to n02", "1 n01 flow 0 connected (src)", "2 n01 link n01 – n02 down", "3 n02 node n02 up", "9 n01 flow 0 ends"}
	if !slices.Equal(got, want) {
		t.Errorf("notes %q\nwant %q", got, want)
	}
}
