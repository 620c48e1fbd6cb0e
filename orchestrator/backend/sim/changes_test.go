package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// changing is a chain of which only neighbours hear each other, with changes.
func changing(t *testing.T, nodes int, transport, workload, changes, duration string) []plan.Run {
	t.Helper()
	return parsed(t, fmt.Sprintf(`hopbed: 1
name: changing
topology:
  generate: {kind: chain, nodes: %d, spacing: 20m}
  changes: [%s]
radio: {path-loss: {kind: disk, range: 25m, sense-range: 45m}}
transports: {hop: {block: 64KiB, h: 4}}
flows:
  - {pairs: [{src: n01, dst: n%02d}], transport: %s, workload: %s}
duration: %s
sample: 1s
`, nodes, changes, nodes, transport, workload, duration)).Runs
}

// TestPartition: where no two links of a chain are ever up together Hop delivers a
// transfer, and what needs a way from end to end delivers nothing.
func TestPartition(t *testing.T) {
	const turns = "{path: chain, cycle: {up: 10s, down: 10s, stagger: 10s}}"
	for transport, want := range map[string]bool{"hop": true, "tcp/cubic": false, "udp": false, "hop-by-hop-tcp/cubic": true} {
		workload := "{kind: sized, size: 1MB}"
		if transport == "udp" {
			workload = "continual"
		}
		rec := carryOut(t, changing(t, 4, transport, workload, turns, "200s")[0])
		f := rec.Flows[0]
		if f.Status == store.FlowFailed || want != f.CompletionS.OK || !want && f.Counters["total_bytes"] != 0 || len(rec.Run.InvalidReasons) > 0 {
			t.Errorf("%s: %+v", transport, f)
		}
		// An event for each change, in the order of time.
		kinds := map[string]int{}
		for i, e := range rec.Events {
			kinds[e.Kind]++
			if i > 0 && e.TUs.V < rec.Events[i-1].TUs.V {
				t.Errorf("%s: event %d at %d µs comes after %d µs", transport, i, e.TUs.V, rec.Events[i-1].TUs.V)
			}
		}
		if kinds["link-down"] != 10+10+10 || kinds["link-up"] != 9+10+9 { // the middle one is down at 0 s
			t.Errorf("%s: events %v", transport, kinds)
		}
	}
}

// TestLinksComeBack: a link between nodes that hear nothing of each other changes
// nothing when it is down, and TCP carries as much as the time in which it has a way.
func TestLinksComeBack(t *testing.T) {
	plain := carryOut(t, changing(t, 4, "hop", "continual", "{at: 9999ms, link: [n01, n02], up: false}", "10s")[0])
	back := carryOut(t, changing(t, 4, "hop", "continual", "{at: 0s, link: [n01, n04], up: false}, {at: 9999ms, link: [n01, n02], up: false}", "10s")[0])
	if a, b := plain.Flows[0].Bytes, back.Flows[0].Bytes; a == 0 || a != b {
		t.Errorf("%d bytes, and %d where two nodes that hear nothing of each other do so no more", a, b)
	}
	half := carryOut(t, changing(t, 3, "tcp/cubic", "continual", "{at: 5s, link: [n02, n03], up: false}", "10s")[0])
	whole := carryOut(t, changing(t, 3, "tcp/cubic", "continual", "{at: 9999ms, link: [n02, n03], up: false}", "10s")[0])
	if share := float64(half.Flows[0].Bytes) / float64(whole.Flows[0].Bytes); share < 0.4 || share > 0.55 || half.Flows[0].Status != store.FlowOK {
		t.Errorf("half of the time brings %.2f of the bytes, status %s", share, half.Flows[0].Status)
	}
	if n := half.Nodes[0].Facts["Ip.OutNoRoutes"]; n != "" {
		t.Errorf("%s packets without a route: routes stay", n)
	}
}

// TestARelayDies: what Hop's relay held is sent again by its predecessor alone, on a
// token, and the counters say so; TCP end to end waits; hop by hop it breaks, which
// is an outcome.
func TestARelayDies(t *testing.T) {
	// The link behind the relay is down first, so that it holds what it may.
	const death = "{at: 2s, link: [n04, n05], up: false}, {at: 3s, node: n04, up: false}, {at: 6s, node: n04, up: true}, {at: 6s, link: [n04, n05], up: true}"
	count := func(rec *store.RunRecord, node int, name string) int {
		n, _ := strconv.Atoi(rec.Nodes[node].Facts[name])
		return n
	}
	rec := carryOut(t, changing(t, 6, "hop", "{kind: sized, size: 3MB}", death, "180s")[0])
	f := rec.Flows[0]
	if f.Status != store.FlowOK || f.CorruptBlocks.V != 0 || f.Counters["hop_tokens"] == 0 || f.Counters["hop_data_again"] == 0 || f.Counters["hop_data_redundant"] != 0 {
		t.Errorf("hop: %+v", f)
	}
	again := 0
	for i := range rec.Nodes {
		n := count(rec, i, "hop_data_again")
		again += n
		if n > 0 && i != 2 {
			t.Errorf("node %d sent %d data packets again; only the one before the dead relay may", i, n)
		}
		if count(rec, i, "hop_data_redundant") != 0 {
			t.Errorf("node %d was sent what it had", i)
		}
	}
	if int64(again) != f.Counters["hop_data_again"] || count(rec, 0, "hop_tokens") == 0 || count(rec, 3, "hop_data_sent") == 0 {
		t.Errorf("the nodes sent %d data packets again, the flow counts %v; facts %v", again, f.Counters, rec.Nodes[3].Facts)
	}
	// What a relay counted before it died is kept.
	last := map[int]int64{}
	for _, s := range rec.Samples {
		if s.DataFrames.OK {
			if s.DataFrames.V < last[s.Node] {
				t.Errorf("node %d: data frames fall from %d to %d", s.Node, last[s.Node], s.DataFrames.V)
			}
			last[s.Node] = s.DataFrames.V
		}
	}
	if want := int64(count(rec, 3, "hop_data_sent")); last[3] != want || want < 3_000_000/1400 {
		t.Errorf("the relay's samples end with %d data frames, its facts say %d", last[3], want)
	}
	kinds := []string{}
	for _, e := range rec.Events {
		if strings.HasPrefix(e.Kind, "node") {
			kinds = append(kinds, fmt.Sprintf("%s %s %d", e.Kind, e.Text, e.TUs.V/1000))
		}
	}
	if !slices.Equal(kinds, []string{"node-down n04 3000", "node-up n04 6000"}) {
		t.Errorf("events %v", kinds)
	}

	if f := carryOut(t, changing(t, 6, "tcp/reno", "{kind: sized, size: 3MB}", death, "120s")[0]).Flows[0]; f.Status != store.FlowOK || !f.CompletionS.OK {
		t.Errorf("tcp: %+v", f)
	}
	for name, c := range map[string]struct {
		transport, workload, text string
	}{
		"sized":     {"hop-by-hop-tcp/reno", "{kind: sized, size: 30MB}", "its relay n04 was switched off at 3s"},
		"continual": {"hop-by-hop-tcp/reno", "continual", "its relay n04 was switched off at 3s"},
	} {
		f := carryOut(t, changing(t, 6, c.transport, c.workload, death, "60s")[0]).Flows[0]
		if f.Status != store.FlowTimeout || !strings.Contains(f.Error, c.text) || !f.GoodputBps.OK || f.Bytes == 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// A relay that stays away, and one that dies before the flow comes to it.
	if f := carryOut(t, changing(t, 4, "hop-by-hop-tcp/reno", "continual", "{at: 3s, node: n03, up: false}", "30s")[0]).Flows[0]; f.Status == store.FlowFailed || f.Bytes == 0 {
		t.Errorf("a relay that stays away: %+v", f)
	}
	if f := carryOut(t, changing(t, 4, "hop-by-hop-tcp/reno", "{kind: sized, size: 1MB}", "{at: 0s, node: n03, up: false}, {at: 5s, node: n03, up: true}", "60s")[0]).Flows[0]; f.Status != store.FlowOK {
		t.Errorf("a relay that is off at first: %+v", f)
	}
}

// TestAWiredNodeDies: over wires and a bridge, the ends keep what they have queued.
func TestAWiredNodeDies(t *testing.T) {
	const file = `hopbed: 1
name: wired
topology:
  nodes: [{name: a, radio: false}, {name: r, radio: false, bridge: BRIDGE}, {name: b, radio: false}]
  pipes:
    - {ends: [a, r], rate: 10mbit, delay: 5ms, queue: {packets: 50}}
    - {ends: [r, b], rate: 10mbit, delay: 5ms, queue: {packets: 50}}
  changes: [{at: 3s, node: r, up: false}, {at: 5s, node: r, up: true}]
transports: {hop: {block: 64KiB, h: 2}}
flows: [{pairs: [{src: a, dst: b}], transport: TRANSPORT, workload: {kind: sized, size: 8MB}}]
duration: 120s
`
	for _, transport := range []string{"hop", "tcp/cubic"} {
		for _, bridge := range []string{"false", "true"} {
			p := parsed(t, strings.NewReplacer("TRANSPORT", transport, "BRIDGE", bridge).Replace(file))
			rec := carryOut(t, p.Runs[0])
			if f := rec.Flows[0]; f.Status != store.FlowOK || f.CompletionS.V < 8 {
				t.Errorf("%s, bridge %s: %+v", transport, bridge, f)
			}
		}
	}
}

// TestChangesAreReproducible, with and without an event log, in which they are lines.
func TestChangesAreReproducible(t *testing.T) {
	r := changing(t, 5, "hop", "continual", "{path: chain, cycle: {up: 2s, down: 3s, stagger: 1s}}, {node: n03, cycle: {up: 7s, down: 4s}}", "40s")[0]
	first := carryOut(t, r)
	log, err := os.Create(filepath.Join(t.TempDir(), "events.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	again, err := New().Run(t.Context(), scenario(t, r), silent, &backend.Capture{Events: log})
	if err != nil {
		t.Fatal(err)
	}
	if first.Run.TraceHash != again.Run.TraceHash || first.Flows[0].Bytes != again.Flows[0].Bytes {
		t.Errorf("trace hashes %s and %s", first.Run.TraceHash, again.Run.TraceHash)
	}
}
