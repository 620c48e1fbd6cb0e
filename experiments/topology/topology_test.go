package topology

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// disk decodes up to 250 m and senses up to 550 m.
const disk = "radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}}\n"

// office is load30's radio.
const office = "radio: {path-loss: {exponent: 3.0, shadowing: 7dB, reference-loss: 40dB}, tx-power: 0dBm, sense: -7dB}\n"

func config(t *testing.T, topology, flows, more string) *spec.Config {
	t.Helper()
	return experiment(t, topology, flows, more).Base()
}

func experiment(t *testing.T, topology, flows, more string) *spec.Experiment {
	t.Helper()
	e, err := spec.Parse("x.yaml", []byte("hopbed: 1\nname: x\nduration: 10s\ntopology: "+topology+"\nflows: ["+flows+"]\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func build(t *testing.T, c *spec.Config, rep int) *Topology {
	t.Helper()
	top, err := Build(c, rep)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

const oneFlow = "{count: 1, pairs: random, transport: hop}"

func TestChain(t *testing.T) {
	top := build(t, config(t, "{generate: {kind: chain, nodes: 5, spacing: 200m}}", oneFlow, disk), 0)
	for i, n := range top.Nodes {
		if n.ID != i || n.Name != fmt.Sprintf("n%02d", i+1) || n.Position != (wifi.Position{X: vtime.Metres(200 * i)}) {
			t.Errorf("node %d: %+v", i, n)
		}
	}
	if p := top.Routes.Path(0, 4); !reflect.DeepEqual(p, []int{0, 1, 2, 3, 4}) {
		t.Errorf("path %v", p)
	}
	// Each of the 8 neighbour links is perfect; 14 directed pairs are within 550 m.
	usable := 0
	for _, l := range top.Links {
		if l.Usable {
			usable++
			if l.ETX != 1 || l.Distance != 200 || !l.Senses {
				t.Errorf("link %+v", l)
			}
		} else if l.Distance != 400 || !l.Senses {
			t.Errorf("sensed only: %+v", l)
		}
	}
	if usable != 8 || len(top.Links) != 14 {
		t.Errorf("%d usable of %d links", usable, len(top.Links))
	}
	if s := top.Stats(); !reflect.DeepEqual(s.Histogram, []int{0, 8, 6, 4, 2}) || s.Unreachable != 0 || s.Degree != 1.6 || s.MeanETX != 1 {
		t.Errorf("%+v", s)
	}
	// Of the nodes that the receiver of a link senses (two places along the chain
	// or less), the hidden ones are three places from its sender.
	around, hidden := 0, 0
	for i := range 5 {
		for _, j := range []int{i - 1, i + 1} {
			for w := range 5 {
				if j < 0 || j > 4 || w == i || w == j {
					continue
				}
				if abs(w-j) <= 2 {
					around++
					if abs(w-i) > 2 {
						hidden++
					}
				}
			}
		}
	}
	if s := top.Stats(); s.Hidden != float64(hidden)/float64(around) || hidden == 0 {
		t.Errorf("hidden %v, want %d of %d", s.Hidden, hidden, around)
	}
	if !strings.Contains(top.Summary(), "5 nodes, 8 usable links") || !strings.Contains(top.Summary(), "8×1, 6×2, 4×3, 2×4") {
		t.Errorf("summary:\n%s", top.Summary())
	}
}

func abs(x int) int { return max(x, -x) }

func TestGridAndStar(t *testing.T) {
	top := build(t, config(t, "{generate: {kind: grid, nodes: 7, spacing: 200m}}", oneFlow, disk), 0)
	if p := top.Nodes[5].Position; p != (wifi.Position{X: 400, Y: 200}) { // 3 columns: the smallest square that holds 7
		t.Errorf("node 5 is at %v", p)
	}
	if h := top.Routes.Hops(0, 5); h != 3 {
		t.Errorf("%d hops over the grid, want 3", h)
	}
	top = build(t, config(t, "{generate: {kind: grid, nodes: 8, spacing: 200m, columns: 4}}", oneFlow, disk), 0)
	if p := top.Nodes[7].Position; p != (wifi.Position{X: 600, Y: 200}) {
		t.Errorf("node 7 is at %v", p)
	}
	top = build(t, config(t, "{generate: {kind: star, nodes: 7, spacing: 240m}}", oneFlow, disk), 0)
	hub := top.Nodes[0].Position
	for _, n := range top.Nodes[1:] {
		if d := float64(n.Position.Distance(hub)); math.Abs(d-240) > 0.02 || top.Routes.Hops(0, n.ID) != 1 {
			t.Errorf("leaf %v is %v m from the hub, %d hops", n, d, top.Routes.Hops(0, n.ID))
		}
	}
	if top.Routes.Hops(1, 4) != 2 { // opposite leaves
		t.Errorf("opposite leaves are %d hops apart", top.Routes.Hops(1, 4))
	}
}

const mesh = "{generate: {kind: random-mesh, nodes: 20, area: [240m, 60m], min-hops: 4}}"

func TestRandomMeshFollowsFromSeedAndRepetition(t *testing.T) {
	c := config(t, mesh, oneFlow, office+"seed: 2009\n")
	a, b := build(t, c, 3), build(t, c, 3)
	if !reflect.DeepEqual(a.Nodes, b.Nodes) || !reflect.DeepEqual(a.Links, b.Links) || a.ChannelSeed != b.ChannelSeed || a.Tries != b.Tries {
		t.Error("the same seed and repetition give two meshes")
	}
	if other := build(t, c, 4); reflect.DeepEqual(a.Nodes, other.Nodes) || a.ChannelSeed == other.ChannelSeed {
		t.Error("two repetitions have the same placement")
	}
	if other := build(t, config(t, mesh, oneFlow, office+"seed: 2010\n"), 3); reflect.DeepEqual(a.Nodes, other.Nodes) {
		t.Error("two seeds have the same placement")
	}
	// The generator's own seed keeps the mesh whatever the experiment's is.
	own := strings.Replace(mesh, "min-hops", "seed: 5, min-hops", 1)
	if x, y := build(t, config(t, own, oneFlow, office+"seed: 1\n"), 0), build(t, config(t, own, oneFlow, office+"seed: 2\n"), 0); !reflect.DeepEqual(x.Nodes, y.Nodes) {
		t.Error("topology.generate.seed does not decide the placement")
	}
	never := strings.Replace(mesh, "min-hops", "vary: never, min-hops", 1)
	if x, y := build(t, config(t, never, oneFlow, office), 0), build(t, config(t, never, oneFlow, office), 7); !reflect.DeepEqual(x.Nodes, y.Nodes) || x.ChannelSeed != y.ChannelSeed {
		t.Error("vary: never varies")
	}
	// What flows carry and how many there are does not move the nodes.
	if other := build(t, config(t, mesh, "{count: 9, pairs: random, transport: tcp/reno}, "+oneFlow, office+"seed: 2009\n"), 3); !reflect.DeepEqual(a.Nodes, other.Nodes) {
		t.Error("the flows move the nodes")
	}
}

func TestRandomMeshIsWhatWasAskedFor(t *testing.T) {
	for seed := range 20 {
		c := config(t, mesh, oneFlow, office+fmt.Sprintf("seed: %d\n", seed))
		top := build(t, c, 0)
		s := top.Stats()
		if s.Unreachable != 0 || len(s.Histogram)-1 < 4 || top.Tries < 1 {
			t.Errorf("seed %d: %+v", seed, s)
		}
		for _, n := range top.Nodes {
			if n.Position.X < 0 || n.Position.X > 240 || n.Position.Y < 0 || n.Position.Y > 60 {
				t.Errorf("seed %d: %v is outside the area", seed, n)
			}
		}
		for _, l := range top.Links {
			if want := 1 / (l.Delivery * l.Reverse); l.Usable && math.Abs(l.ETX-want) > 1e-9*want {
				t.Errorf("link %+v: ETX should be %v", l, want)
			}
			if l.Usable != (l.Delivery >= 0.1 && l.Reverse >= 0.1) {
				t.Errorf("link %+v: usable from 10 %% in both directions", l)
			}
			if l.Delivery != top.Channel.Delivery(l.From, l.To, DataFrame, 11*vtime.MbitPerSecond) || l.Senses != top.Channel.Senses(l.To, l.From) {
				t.Errorf("link %+v is not what the channel says", l)
			}
		}
		// The medium can be made again from what the topology holds.
		again, err := wifi.NewChannel(top.ChannelSeed, top.Radio, top.MAC, top.Positions())
		if err != nil {
			t.Fatal(err)
		}
		for i := range top.Nodes {
			for j := range top.Nodes {
				if i != j && again.SNR(i, j) != top.Channel.SNR(i, j) {
					t.Fatalf("seed %d: the channel made again differs at %d→%d", seed, i, j)
				}
			}
		}
	}
}

func TestErrorsSayWhatToChange(t *testing.T) {
	cases := []struct {
		name, topology, flows, radio string
		want                         []string
	}{
		{"chain too wide", "{generate: {kind: chain, nodes: 3, spacing: 251m}}", oneFlow, disk,
			[]string{"the chain is disconnected: 3 components of 1 (n01), 1 (n02), 1 (n03) nodes", "smaller spacing than 251m"}},
		{"mesh too wide", "{generate: {kind: random-mesh, nodes: 5, area: [90km, 90km], tries: 20}}", oneFlow, disk,
			[]string{"no random mesh of 5 nodes on 90000m × 90000m in 20 placements fits", "20 were disconnected", "5 components", "shrink topology.generate.area"}},
		{"mesh too small", "{generate: {kind: random-mesh, nodes: 5, area: [10m, 10m], tries: 20, min-hops: 2}}", oneFlow, disk,
			[]string{"20 had no route of min-hops (the longest had 1)", "enlarge the area"}},
		{"class missing", "{generate: {kind: random-mesh, nodes: 5, area: [10m, 10m], tries: 20}}", "{count: 2, pairs: random, hops: {1: 50%, 3: 50%}, transport: hop}", disk,
			[]string{"20 had fewer pairs than flows in a class of flows[].hops (the last one: 3 hops)"}},
	}
	for _, c := range cases {
		_, err := Build(config(t, c.topology, c.flows, c.radio), 0)
		if err == nil {
			t.Errorf("%s: built", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: the message lacks %q:\n%v", c.name, w, err)
			}
		}
	}
	// A chain has the routes it has: the flows are what fails.
	c := config(t, "{generate: {kind: grid, nodes: 4, spacing: 200m}}", "{count: 2, pairs: random, hops: 3, transport: hop}", disk)
	if _, err := build(t, c, 0).Flows(c, 0); err == nil || !strings.Contains(err.Error(), "flows[0]: no two nodes are 3 hops apart; the routes are 8×1, 4×2") {
		t.Errorf("flows: %v", err)
	}
}

func TestListedNodes(t *testing.T) {
	c := config(t, "{nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [200m, 0m]}, {name: c, at: [5km, 0m]}]}", "{pairs: [{src: b, dst: a}], transport: hop}", disk)
	top := build(t, c, 0)
	flows, err := top.Flows(c, 0)
	if err != nil || len(flows) != 1 || !reflect.DeepEqual(flows[0].Path, []int{1, 0}) || flows[0].Hops() != 1 {
		t.Errorf("flows %+v, %v", flows, err)
	}
	c = config(t, "{nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [200m, 0m]}, {name: c, at: [5km, 0m]}]}", "{pairs: [{src: a, dst: c}], transport: hop}", disk)
	if _, err := build(t, c, 0).Flows(c, 0); err == nil || !strings.Contains(err.Error(), "no route from a to c: the network has 2 components of 2 (a b), 1 (c) nodes; choose other pairs, or bring the nodes closer") {
		t.Errorf("flows: %v", err)
	}
}

func TestListedLinks(t *testing.T) {
	c := config(t, "{nodes: [{name: a}, {name: b}, {name: c}], links: [{from: a, to: b, delivery: 90%, reverse: 80%}, {from: b, to: c, delivery: 50%}, {from: a, to: c, delivery: 5%}]}",
		"{pairs: [{src: a, dst: c}], transport: hop}", "")
	top := build(t, c, 0)
	want := [][]float64{{0, .9, .05}, {.8, 0, .5}, {.05, .5, 0}}
	if !reflect.DeepEqual(top.Delivery, want) {
		t.Errorf("delivery %v", top.Delivery)
	}
	flows, err := top.Flows(c, 0)
	if err != nil || !reflect.DeepEqual(flows[0].Path, []int{0, 1, 2}) {
		t.Fatalf("flows %+v, %v", flows, err)
	}
	// 1/(0.9·0.8) + 1/(0.5·0.5)
	if etx := pathETX(top, flows[0]); math.Abs(etx-5.388889) > 1e-6 {
		t.Errorf("path ETX %v", etx)
	}
}

func TestPairsAreTheSameForAllTransports(t *testing.T) {
	e := experiment(t, mesh, "{count: 12, pairs: random, hops: {1: 50%, 2-3: 50%}, transport: $transport}", office+"matrix: {transport: [hop, tcp/cubic, hop/arq]}\n")
	var first []Flow
	for _, p := range e.Points() {
		flows, err := build(t, p.Config, 1).Flows(p.Config, 1)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = flows
		} else if !reflect.DeepEqual(flows, first) {
			t.Errorf("%s has other pairs", p.Label())
		}
	}
	other, err := build(t, e.Base(), 2).Flows(e.Base(), 2)
	if err != nil || reflect.DeepEqual(pairsOf(other), pairsOf(first)) {
		t.Errorf("two repetitions have the same pairs (%v)", err)
	}
	classes := map[bool]int{}
	seen := map[[2]int]bool{}
	for i, f := range first {
		if f.ID != i || f.Group != 0 || f.Path[0] != f.Src || f.Path[len(f.Path)-1] != f.Dst {
			t.Errorf("flow %+v", f)
		}
		classes[f.Hops() == 1]++
		seen[[2]int{f.Src, f.Dst}] = true
	}
	if classes[true] != 6 || classes[false] != 6 || len(seen) != 12 {
		t.Errorf("classes %v, %d different pairs", classes, len(seen))
	}
}

func pairsOf(flows []Flow) (out [][2]int) {
	for _, f := range flows {
		out = append(out, [2]int{f.Src, f.Dst})
	}
	return out
}

func TestAGroupDoesNotChangeTheDrawsOfAnother(t *testing.T) {
	const a = "{count: 7, pairs: random, transport: hop}"
	one := config(t, mesh, a, office)
	two := config(t, mesh, a+", {count: 5, pairs: random, hops: 2, transport: tcp/cubic}", office)
	x, err := build(t, one, 0).Flows(one, 0)
	if err != nil {
		t.Fatal(err)
	}
	y, err := build(t, two, 0).Flows(two, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(y) != 12 || !reflect.DeepEqual(x, y[:7]) || y[7].Group != 1 || y[7].ID != 7 || y[7].Hops() != 2 {
		t.Errorf("%v\n%v", x, y)
	}
}

func TestNoPairComesTwiceBeforeAllCameOnce(t *testing.T) {
	// A chain of 3 has 6 ordered pairs: 20 flows use each 3 or 4 times.
	c := config(t, "{generate: {kind: chain, nodes: 3, spacing: 200m}}", "{count: 20, pairs: random, transport: hop}", disk)
	flows, err := build(t, c, 0).Flows(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := map[[2]int]int{}
	for _, p := range pairsOf(flows) {
		n[p]++
	}
	for p, k := range n {
		if k < 3 || k > 4 {
			t.Errorf("pair %v comes %d times", p, k)
		}
	}
	if len(n) != 6 {
		t.Errorf("%d pairs", len(n))
	}
}

func TestTheMACOfAFile(t *testing.T) {
	const flows = "{count: 1, pairs: random, transport: $t}"
	e := experiment(t, "{generate: {kind: chain, nodes: 3, spacing: 200m}}", flows, disk+
		"mac: {retries: 4, rts: 500B, queues: {bk: {txop: 8160us, ack: none, aifs: 5, limit: 30}, vo: {cwmin: 15, cwmax: 31}}}\nmatrix: {t: [hop, hop/arq, hop/no-txop, hop/arq+no-txop, tcp/cubic]}\n")
	for i, want := range []struct {
		ack  wifi.AckPolicy
		txop vtime.Duration
	}{{wifi.AckNone, 8160 * vtime.Microsecond}, {wifi.AckNormal, 8160 * vtime.Microsecond}, {wifi.AckNone, 0}, {wifi.AckNormal, 0}, {wifi.AckNone, 8160 * vtime.Microsecond}} {
		m := build(t, e.Points()[i].Config, 0).MAC
		bk := m.Queues[wifi.BK]
		if bk.Ack != want.ack || bk.TXOP != want.txop || bk.AIFSN != 5 || bk.Limit != 30 || bk.CWmin != 31 || bk.CWmax != 1023 {
			t.Errorf("%s: %+v", e.Points()[i].Label(), bk)
		}
		if vo := m.Queues[wifi.VO]; vo.CWmin != 15 || vo.CWmax != 31 || vo.AIFSN != 2 {
			t.Errorf("vo %+v", vo)
		}
		if m.Retries != 4 || m.RTSThreshold != 500 || m.Rate != 11*vtime.MbitPerSecond || m.BasicRate != 2*vtime.MbitPerSecond {
			t.Errorf("mac %+v", m)
		}
	}
	// What the file leaves out is the medium's default.
	c := config(t, "{generate: {kind: chain, nodes: 3, spacing: 20m}}", oneFlow, "radio: {standard: 802.11g, rate: 36mbit}\n")
	m, err := MAC(c)
	want := wifi.DefaultMAC(wifi.StandardG)
	want.Rate = 36 * vtime.MbitPerSecond
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("mac %+v, want %+v", m, want)
	}
}

func TestTheRadioOfAFile(t *testing.T) {
	chain := "{generate: {kind: chain, nodes: 2, spacing: 2m}}"
	r, err := Radio(config(t, chain, oneFlow, "radio: {tx-power: 3dBm, noise: -90dBm, sense: 2dB, capture: 6dB, path-loss: {exponent: 2.5, shadowing: 4dB, reference-loss: 41dB}}\n"))
	if err != nil || r.TxPower != 3 || r.Noise != -90 || r.Sense != 2 || r.Capture != 6 || r.Exponent != 2.5 || r.Shadowing != 4 || r.ReferenceLoss != 41 || r.Range != 0 {
		t.Errorf("radio %+v, %v", r, err)
	}
	r, err = Radio(config(t, chain, oneFlow, disk))
	if err != nil || r.Range != 250 || r.SenseRange != 550 || r.Capture != wifi.DiskRadio(1, 1).Capture {
		t.Errorf("radio %+v, %v", r, err)
	}
	if r, err = Radio(config(t, chain, oneFlow, "")); err != nil || r != wifi.DefaultRadio() {
		t.Errorf("radio %+v, %v", r, err)
	}
}

func TestAThousandNodes(t *testing.T) {
	c := config(t, "{generate: {kind: grid, nodes: 1000, spacing: 200m}}", oneFlow, disk)
	top := build(t, c, 0)
	if top.Nodes[999].Name != "n1000" || top.Nodes[0].Name != "n0001" || top.Routes.Hops(0, 999) != 31+7 {
		t.Errorf("%+v, %d hops", top.Nodes[999], top.Routes.Hops(0, 999))
	}
}
