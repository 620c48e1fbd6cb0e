package topology

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// path names the nodes of a route.
func path(t *Topology, src, dst string) string {
	var out []string
	for _, i := range t.Routes.Path(t.index(src), t.index(dst)) {
		out = append(out, t.Nodes[i].Name)
	}
	return strings.Join(out, " ")
}

// wayOf tells the links of each step of a route: r for the radio, p0 for pipe 0,
// with the bridges between.
func wayOf(t *Topology, src, dst string) string {
	var out []string
	route := t.Routes.Path(t.index(src), t.index(dst))
	for k := 1; k < len(route); k++ {
		step := ""
		for _, e := range t.LinkPath(route[k-1], route[k]) {
			if e.Pipe == RadioEgress {
				step += "r"
			} else {
				step += "p" + string(rune('0'+e.Pipe))
			}
			if e.Next != route[k] {
				step += "(" + t.Nodes[e.Next].Name + ")"
			}
		}
		out = append(out, step)
	}
	return strings.Join(out, " ")
}

// accessPoint is two stations on either side of an access point, too far from
// each other to talk, and a server behind a wire.
func accessPoint(ap string) string {
	return "{nodes: [{name: server, radio: false}, {name: s1, at: [-150m, 0m]}, {name: ap, at: [0m, 0m]" + ap + "}, {name: s2, at: [150m, 0m]}],\n" +
		"  pipes: [{ends: [ap, server], rate: 10mbit, delay: 20ms, queue: {packets: 50}, reverse: {delay: 30ms}}]}"
}

const toStation = "{pairs: [{src: server, dst: s2}], transport: tcp/cubic}"

func TestAnAccessPointThatRoutes(t *testing.T) {
	top := build(t, config(t, accessPoint(""), toStation, disk), 0)
	if got := path(top, "server", "s2"); got != "server ap s2" {
		t.Errorf("route %q", got)
	}
	if got := path(top, "s1", "s2"); got != "s1 ap s2" {
		t.Errorf("route between stations %q", got)
	}
	server, ap, s2 := top.index("server"), top.index("ap"), top.index("s2")
	for _, c := range []struct {
		i, via int
		want   Egress
	}{{server, ap, Egress{0, 1, ap}}, {ap, server, Egress{0, 0, server}}, {ap, s2, Egress{RadioEgress, 0, s2}}, {s2, ap, Egress{RadioEgress, 0, ap}}} {
		if got, ok := top.Egress(c.i, c.via); !ok || got != c.want {
			t.Errorf("egress of %d for %d: %+v %v, want %+v", c.i, c.via, got, ok, c.want)
		}
	}
	for _, c := range [][2]int{{server, s2}, {server, server}, {-1, 0}, {0, 9}} {
		if got, ok := top.Egress(c[0], c[1]); ok {
			t.Errorf("egress of %d for %d: %+v, but they are no neighbours", c[0], c[1], got)
		}
	}
	p := top.Pipes[0]
	if p.Interfaces != [2]string{"eth0", "eth0"} || p.Slot != [2]int{0, 0} || p.Ends != [2]int{ap, server} ||
		p.Config[0].Delay != 20*vtime.Millisecond || p.Config[1].Delay != 30*vtime.Millisecond || p.Config[1].Rate != 10*vtime.MbitPerSecond || p.Config[1].Queue.Packets != 50 {
		t.Errorf("pipe %+v", p)
	}
	if top.Nodes[server].Radio || !top.Nodes[ap].Radio || !reflect.DeepEqual(top.Mute(), []int{server}) {
		t.Errorf("nodes %+v, mute %v", top.Nodes, top.Mute())
	}
	for _, l := range top.Links {
		if l.From == server || l.To == server {
			t.Errorf("a wired node has the radio link %+v", l)
		}
	}
	flows, err := top.Flows(config(t, accessPoint(""), toStation, disk), 0)
	if err != nil || flows[0].Hops() != 2 || pathETX(top, flows[0]) != 2 {
		t.Errorf("flows %+v, ETX %v, %v", flows, pathETX(top, flows[0]), err)
	}
}

// A bridge is no hop: the server is the station's neighbour. From station to
// station it carries nothing by itself, since both are behind its radio.
func TestAnAccessPointThatBridges(t *testing.T) {
	c := config(t, accessPoint(", bridge: true"), toStation, disk)
	top := build(t, c, 0)
	server, ap, s1, s2 := top.index("server"), top.index("ap"), top.index("s1"), top.index("s2")
	if got := path(top, "server", "s2"); got != "server s2" || wayOf(top, "server", "s2") != "p0(ap)r" || wayOf(top, "s2", "server") != "r(ap)p0" {
		t.Errorf("route %q by %q and back by %q", got, wayOf(top, "server", "s2"), wayOf(top, "s2", "server"))
	}
	if got, ok := top.Egress(server, s2); !ok || got != (Egress{0, 1, ap}) {
		t.Errorf("egress of the server: %+v", got)
	}
	if got, ok := top.Egress(s2, server); !ok || got != (Egress{RadioEgress, 0, ap}) {
		t.Errorf("egress of the station: %+v", got)
	}
	if got, ok := top.Egress(ap, s2); !ok || got != (Egress{RadioEgress, 0, s2}) {
		t.Errorf("egress of the bridge: %+v", got)
	}
	// The server, which is no bridge, routes between them.
	if _, ok := top.Egress(s1, s2); ok || path(top, "s1", "s2") != "s1 server s2" {
		t.Errorf("between stations: neighbours %v, route %q", ok, path(top, "s1", "s2"))
	}
	for _, p := range []struct {
		i, via, port, arrival int
	}{{server, s2, 1, 0}, {s2, server, 0, 1}, {ap, server, 1, 1}, {s1, ap, 0, 0}, {server, ap, 1, 1}} {
		port, ok := top.Port(p.i, p.via)
		arrival, ok2 := top.ArrivalPort(p.i, p.via)
		if !ok || !ok2 || port != p.port || arrival != p.arrival {
			t.Errorf("from %s to %s: ports %d and %d, want %d and %d", top.Nodes[p.i].Name, top.Nodes[p.via].Name, port, arrival, p.port, p.arrival)
		}
	}
	// A wire that loses everything carries no route.
	c = config(t, strings.Replace(accessPoint(", bridge: true"), "delay: 20ms", "loss: 100%", 1), "{pairs: [{src: s1, dst: s2}], transport: tcp/cubic}", disk)
	if _, err := build(t, c, 0).Flows(c, 0); err == nil || !strings.Contains(err.Error(), "no route from s1 to s2: the network has only bridges between s1 and s2") {
		t.Errorf("flow between stations: %v", err)
	}
	c = config(t, strings.Replace(accessPoint(", bridge: true"), "delay: 20ms", "loss: 100%", 1), toStation, disk)
	if _, err := build(t, c, 0).Flows(c, 0); err == nil || !strings.Contains(err.Error(), "2 components of 3 (s1 ap s2), 1 (server) nodes") {
		t.Errorf("flow from the server: %v", err)
	}
}

// What is said to help where there is no route follows from what the network is
// made of.
func TestNoRouteHasARemedyThatFits(t *testing.T) {
	const flow = "{pairs: [{src: a, dst: c}], transport: hop}"
	wires := "{nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}, {name: d, radio: false}], pipes: [{ends: [a, b]}, {ends: [c, d]%s}%s]}"
	for _, x := range []struct{ topology, radio, want string }{
		{fmt.Sprintf(wires, "", ""), "", "choose other pairs, or join the parts by a pipe"},
		{fmt.Sprintf(wires, "", ", {ends: [b, c], reverse: {loss: 100%}}"), "", "by a pipe (topology.pipes[2], between b and c, loses every packet in one direction at least and carries no route)"},
		{"{nodes: [{name: a, at: [0m, 0m]}, {name: b, radio: false}, {name: c, at: [5km, 0m]}], pipes: [{ends: [a, b]}]}", disk, "choose other pairs, bring the nodes closer, or join the parts by a pipe"},
		{"{nodes: [{name: a}, {name: b}, {name: c}], links: [{from: a, to: b}]}", "", "choose other pairs, or list a link between them"},
	} {
		c := config(t, x.topology, flow, x.radio)
		if _, err := build(t, c, 0).Flows(c, 0); err == nil || !strings.Contains(err.Error(), "no route from a to c") || !strings.HasSuffix(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q at the end", x.topology, err, x.want)
		}
	}
}

// Two bridges in a row, and a router behind: links, neighbours and routes.
func TestBridgesInARow(t *testing.T) {
	top := build(t, config(t, "{nodes: [{name: a, radio: false}, {name: b1, radio: false, bridge: true}, {name: b2, radio: false, bridge: true}, {name: r, radio: false}, {name: z, radio: false}],\n"+
		"  pipes: [{ends: [a, b1]}, {ends: [b1, b2]}, {ends: [b2, r]}, {ends: [r, z]}]}", "{pairs: [{src: a, dst: z}], transport: hop}", ""), 0)
	if got := path(top, "a", "z"); got != "a r z" || wayOf(top, "a", "z") != "p0(b1)p1(b2)p2 p3" || wayOf(top, "z", "a") != "p3 p2(b2)p1(b1)p0" {
		t.Errorf("route %q by %q, back by %q", got, wayOf(top, "a", "z"), wayOf(top, "z", "a"))
	}
	if got := path(top, "b1", "z"); got != "b1 r z" {
		t.Errorf("a bridge as a source: %q", got)
	}
	if got := pathETX(top, Flow{Path: []int{0, 3, 4}}); got != 4 {
		t.Errorf("ETX %v, want 4 for four wires", got)
	}
	if len(top.Links) != 0 || len(top.Mute()) != 5 {
		t.Errorf("links %v, mute %v", top.Links, top.Mute())
	}
}

// A pipe and the radio between the same two nodes: the pipe wins when they are
// equally good, the better one otherwise; a hop is a hop for the metric hops.
func TestAPipeBesideTheRadio(t *testing.T) {
	for _, c := range []struct{ loss, metric, want string }{
		{"", "etx", "p0"}, {", loss: 10%", "etx", "r"}, {", loss: 10%", "hops", "p0"}, {", loss: 100%", "hops", "r"}, {", reverse: {loss: 0.1%}", "etx", "r"},
	} {
		top := build(t, config(t, "{nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [9m, 0m]}], pipes: [{ends: [b, a]"+c.loss+"}]}", "{pairs: [{src: a, dst: b}], transport: hop}", disk+"routing: {metric: "+c.metric+"}\n"), 0)
		if got := wayOf(top, "a", "b"); got != c.want {
			t.Errorf("%s%s: by %s, want %s", c.metric, c.loss, got, c.want)
		}
	}
}

// On equal cost and length the path with fewer radio links is taken, although
// the other neighbour has the smaller id.
func TestWiresWinTiesOfPaths(t *testing.T) {
	const nodes = "{nodes: [{name: a, at: [0m, 0m]}, {name: m1, at: [0m, 200m]}, {name: m2, at: [200m, 0m]}, {name: z, at: [200m, 200m]}]"
	c := "{pairs: [{src: a, dst: z}], transport: hop}"
	if got := path(build(t, config(t, nodes+"}", c, disk), 0), "a", "z"); got != "a m1 z" {
		t.Errorf("radio alone: %q", got)
	}
	if got := path(build(t, config(t, nodes+", pipes: [{ends: [m2, z]}]}", c, disk), 0), "a", "z"); got != "a m2 z" {
		t.Errorf("with a wire: %q", got)
	}
}

// TestWiredNodesBesideAMesh: the mesh is where it would be without them.
func TestWiredNodesBesideAMesh(t *testing.T) {
	const mesh = "generate: {kind: random-mesh, nodes: 12, area: [120m, 80m], min-hops: 2}"
	flows := "{count: 5, pairs: random, transport: hop}"
	plain := build(t, config(t, "{"+mesh+"}", flows, office), 2)
	c := config(t, "{"+mesh+", nodes: [{name: server, radio: false, at: [5m, 5m]}, {name: far, radio: false}], pipes: [{ends: [n01, server]}, {ends: [server, far]}]}", flows, office)
	wired := build(t, c, 2)
	for i, n := range plain.Nodes {
		if wired.Nodes[i] != n {
			t.Errorf("node %+v is %+v beside wired nodes", n, wired.Nodes[i])
		}
	}
	if plain.Tries != wired.Tries || !reflect.DeepEqual(plain.Links, wired.Links) {
		t.Errorf("%d tries and %d links, without wired nodes %d and %d", wired.Tries, len(wired.Links), plain.Tries, len(plain.Links))
	}
	if n := wired.Nodes[12]; n.Name != "server" || n.Position.X != 5 || n.Radio {
		t.Errorf("server %+v", n)
	}
	if got := wired.Routes.Hops(1, 13); got != plain.Routes.Hops(1, 0)+2 {
		t.Errorf("%d hops from n02 to far", got)
	}
	if _, err := wired.Flows(c, 2); err != nil {
		t.Error(err)
	}
}

func TestTheConfigurationOfAPipe(t *testing.T) {
	c := config(t, "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], rate: 5mbit, overhead: 38B, delay: 2ms, jitter: {distribution: pareto, spread: 1ms, overtake: true},\n"+
		"  loss: {good: 1%, bad: 50%, to-bad: 2%, to-good: 25%, after-queue: true}, queue: {bytes: 64KiB}, reorder: {share: 3%, extra: 4ms}, duplicate: 5%,\n"+
		"  schedule: [{at: 3s, up: false, loss: 7%, queue: {packets: 9}}, {at: 4s, rate: 6mbit, up: true}]}]}", "{pairs: [{src: a, dst: b}], transport: hop}", "")
	got := build(t, c, 0).Pipes[0]
	up, down, rate := true, false, 6*vtime.MbitPerSecond
	want := pipe.Config{
		Rate: 5 * vtime.MbitPerSecond, Overhead: 38, Queue: pipe.Queue{Bytes: 64 * vtime.KiB}, Delay: 2 * vtime.Millisecond,
		Jitter: pipe.Jitter{Distribution: pipe.Pareto, Spread: vtime.Millisecond, Overtake: true},
		Loss:   pipe.Loss{Good: 0.01, Bad: 0.5, ToBad: 0.02, ToGood: 0.25}, LossAfterQueue: true,
		Reorder: pipe.Reorder{Share: 0.03, Extra: 4 * vtime.Millisecond}, Duplicate: 0.05,
		Schedule: []pipe.Change{
			{At: vtime.Time(3 * vtime.Second), Up: &down, Loss: &pipe.Loss{Good: 0.07}, Queue: &pipe.Queue{Packets: 9}},
			{At: vtime.Time(4 * vtime.Second), Up: &up, Rate: &rate},
		},
	}
	if !reflect.DeepEqual(got.Config, [2]pipe.Config{want, want}) {
		t.Errorf("configuration %+v\nwant %+v", got.Config, want)
	}
	loss := 0.01*25/27 + 0.5*2/27
	if e := got.ETX(); math.Abs(e-1/((1-loss)*(1-loss))) > 1e-9 {
		t.Errorf("ETX %v", e)
	}
	text := "hopbed: 1\nname: x\nduration: 10s\ntopology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], queue: {packets: 5}, trace: {file: t}}]}\nflows: [" + oneFlow + "]\n"
	e, err := spec.ParseFiles("x.yaml", []byte(text), spec.Unread)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(e.Base(), 0); err == nil || !strings.Contains(err.Error(), "topology.pipes[0], from a to b: the trace t was left unread") {
		t.Errorf("a trace left unread: %v", err)
	}
}

// TestFollowingTheTablesArrives: in random networks of routers, bridges, wires
// and radios, every route is followed link by link as the nodes would do it: a
// node looks its next hop up, sends by its Egress, and whoever takes the frame
// is a bridge that passes it on by its own Egress, or the next hop itself.
func TestFollowingTheTablesArrives(t *testing.T) {
	s := des.NewStream(5, "networks")
	routes := 0
	for round := range 60 {
		n := 4 + int(s.Uint64()%9)
		top := &Topology{Graph: etx.NewGraph(n)}
		for i := range n {
			top.Nodes = append(top.Nodes, Node{ID: i, Radio: s.Bool(0.6), Bridge: s.Bool(0.4)})
		}
		joined := make([]int, n) // a forest of bridges: no loops, as the file's check sees to
		for i := range joined {
			joined[i] = i
		}
		var find func(int) int
		find = func(i int) int {
			if joined[i] != i {
				joined[i] = find(joined[i])
			}
			return joined[i]
		}
		radio := -1
		for i, k := range top.Nodes {
			if k.Bridge && k.Radio {
				if radio >= 0 {
					joined[find(i)] = find(radio)
				}
				radio = i
			}
		}
		for i := range n {
			for j := range n {
				if a, b := &top.Nodes[i], &top.Nodes[j]; i != j && a.Radio && b.Radio && s.Bool(0.5) {
					p := 0.5 + 0.5*s.Float64()
					top.Links = append(top.Links, Link{From: i, To: j, Delivery: p, Reverse: p, ETX: etx.Link(p, p), Usable: true})
					top.Graph.Set(i, j, p, p)
				}
				if i < j && s.Bool(0.4) {
					if top.Nodes[i].Bridge && top.Nodes[j].Bridge {
						if find(i) == find(j) {
							continue
						}
						joined[find(i)] = find(j)
					}
					top.Pipes = append(top.Pipes, Pipe{ID: len(top.Pipes), Ends: [2]int{i, j}, Config: [2]pipe.Config{{Loss: pipe.Loss{Good: vtime.Fraction(0.3 * s.Float64())}}}})
				}
			}
		}
		metric := []etx.Metric{etx.ETX, etx.Hops}[round%2]
		top.connect(metric)
		for i := range n {
			for dst := range n {
				if i == dst || top.Routes.Hops(i, dst) == etx.Unreachable {
					continue
				}
				routes++
				at, hops, cost := i, 0, 0.0
				for at != dst {
					via, ok := top.Routes.NextHop(at, dst)
					if !ok || at != i && top.Nodes[at].Bridge {
						t.Fatalf("round %d: %d→%d ends at %d", round, i, dst, at)
					}
					byRadio := false
					for links := 0; at != via; links++ {
						e, ok := top.Egress(at, via)
						if !ok || links > n {
							t.Fatalf("round %d: %d→%d: no way from %d to the neighbour %d", round, i, dst, at, via)
						}
						if links > 0 && (!top.Nodes[at].Bridge || byRadio && e.Pipe == RadioEgress) {
							t.Fatalf("round %d: %d→%d: node %d passes on what it does not", round, i, dst, at)
						}
						if byRadio = e.Pipe == RadioEgress; byRadio {
							cost += top.Graph.LinkETX(at, e.Next)
						} else if p := top.Pipes[e.Pipe]; p.Ends[e.End] != at || p.Ends[1-e.End] != e.Next {
							t.Fatalf("round %d: node %d sends by a pipe that it has not: %+v", round, at, e)
						} else {
							cost += p.ETX()
						}
						at = e.Next
					}
					hops++
				}
				if hops != top.Routes.Hops(i, dst) || metric == etx.ETX && math.Abs(cost-top.Routes.Cost(i, dst)) > 1e-4 {
					t.Fatalf("round %d: %d→%d: %d hops, cost %v; the table says %d, %v", round, i, dst, hops, cost, top.Routes.Hops(i, dst), top.Routes.Cost(i, dst))
				}
			}
		}
	}
	if routes < 1000 {
		t.Errorf("%d routes only", routes)
	}
}

// pathETX is the sum of the expected transmissions along a flow's route.
func pathETX(t *Topology, f Flow) float64 {
	sum := 0.0
	for i := 1; i < len(f.Path); i++ {
		at := f.Path[i-1]
		for _, e := range t.LinkPath(at, f.Path[i]) {
			if e.Pipe == RadioEgress {
				sum += t.Graph.LinkETX(at, e.Next)
			} else {
				sum += t.Pipes[e.Pipe].ETX()
			}
			at = e.Next
		}
	}
	return sum
}
