//go:build linux

package live

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

const chainFile = `hopbed: 1
name: chain
topology:
  nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [10m, 0m]}, {name: c, at: [20m, 0m]}]
  links: [{from: a, to: b, delivery: 100%}, {from: b, to: c, delivery: 90%}]
flows:
  - {pairs: [{src: a, dst: c}], transport: tcp/cubic}
  - {pairs: [{src: c, dst: a}], transport: hop, workload: {kind: sized, size: 1MB}}
warmup: 1s
duration: 10s
`

func scenario(t *testing.T) *plan.Scenario { return scenarioOf(t, chainFile) }

func scenarioOf(t *testing.T, text string) *plan.Scenario {
	t.Helper()
	e, err := spec.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConfigureGivesEveryNodeItsRoutesAndFlows(t *testing.T) {
	s := scenario(t)
	flows := backend.Orders(s, tap.Addr)
	cfg, err := configureNode(s, 0, flows)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Routes) != 2 || cfg.Routes[0].Via.IsValid() || cfg.Routes[1].Via != tap.Addr(1) {
		t.Errorf("routes of a: %+v; want b as a neighbour and c through it", cfg.Routes)
	}
	if len(cfg.Neighbours) != 1 || cfg.Neighbours[0].HardwareAddress != tap.HardwareAddr(1).String() {
		t.Errorf("neighbours of a: %+v; want b alone", cfg.Neighbours)
	}
	if len(cfg.Flows) != 2 || cfg.Flows[1].Workload.Size != 1_000_000 || cfg.Flows[1].Options.BlockSize == 0 {
		t.Errorf("flows of a: %+v", cfg.Flows)
	}
	if b, _ := configureNode(s, 1, flows); len(b.Flows) != 2 {
		t.Errorf("the relay b must know both flows, it knows %d", len(b.Flows))
	}
}

// Two bridges between a station and two hosts: what a frame is addressed to is
// the interface at which it ends, whatever is between.
const bridgedFile = `hopbed: 1
name: bridged
topology:
  nodes:
    - {name: sta, at: [0m, 0m]}
    - {name: ap, at: [10m, 0m], bridge: true}
    - {name: sw, radio: false, bridge: true}
    - {name: host, radio: false}
    - {name: far, radio: false}
  pipes:
    - {ends: [far, host]}
    - {ends: [sw, ap], interfaces: [trunk, uplink], rate: 10mbit, queue: {packets: 10}}
    - {ends: [sw, host]}
radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}}
flows:
  - {pairs: [{src: sta, dst: far}], transport: tcp/cubic}
transports: {tcp: {cwnd-cap: 7}}
warmup: 1s
duration: 10s
`

const sta, ap, sw, host, far = 0, 1, 2, 3, 4

func TestConfigureBridgesAndWiredNodes(t *testing.T) {
	s := scenarioOf(t, bridgedFile)
	flows := backend.Orders(s, tap.Addr)
	configured := func(i int) *proto.Configure {
		t.Helper()
		c, err := configureNode(s, i, flows)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	radio := func(i int) string { return tap.HardwareAddr(i).String() }
	wire := func(i, slot int) string { return tap.PipeHardwareAddr(i, slot).String() }
	check := func(name string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
		}
	}
	c := configured(sta)
	check("interfaces of sta", c.Interfaces, []proto.Interface{{Name: "wlan0", HardwareAddress: radio(sta)}})
	check("neighbours of sta", c.Neighbours, []proto.Neighbour{
		{Interface: "wlan0", Addr: tap.Addr(ap), HardwareAddress: radio(ap)},
		{Interface: "wlan0", Addr: tap.Addr(sw), HardwareAddress: radio(sw)},
		{Interface: "wlan0", Addr: tap.Addr(host), HardwareAddress: wire(host, 1)},
	})
	check("ports of sta", c.Ports, []proto.Port(nil))
	check("routes of sta", c.Routes, []proto.Route{
		{Interface: "wlan0", Dst: netip.PrefixFrom(tap.Addr(ap), 32)},
		{Interface: "wlan0", Dst: netip.PrefixFrom(tap.Addr(sw), 32)},
		{Interface: "wlan0", Dst: netip.PrefixFrom(tap.Addr(host), 32)},
		{Interface: "wlan0", Dst: netip.PrefixFrom(tap.Addr(far), 32), Via: tap.Addr(host), CwndCap: 7},
	})

	c = configured(ap)
	check("interfaces of ap", c.Interfaces, []proto.Interface{{Name: "wlan0", HardwareAddress: radio(ap)}, {Name: "uplink", HardwareAddress: wire(ap, 0)}})
	check("bridge of ap", c.Bridge, &proto.Bridge{Name: "br0", HardwareAddress: radio(ap), Forward: []proto.Forward{
		{HardwareAddress: radio(sta), Interface: "wlan0"},
		{HardwareAddress: radio(sw), Interface: "uplink"},
		{HardwareAddress: wire(host, 1), Interface: "uplink"},
	}})
	check("ports of ap", c.Ports, []proto.Port{{Node: sw, Port: 1}, {Node: host, Port: 1}})
	check("board of ap", c.Board.Pipes, []int{3})
	check("flows of ap", len(c.Flows), 0)
	for _, r := range c.Routes {
		if r.Interface != "br0" || r.CwndCap != 0 {
			t.Errorf("route of ap: %+v", r)
		}
	}

	c = configured(sw)
	check("interfaces of sw", c.Interfaces, []proto.Interface{{Name: "trunk", HardwareAddress: wire(sw, 0)}, {Name: "eth0", HardwareAddress: wire(sw, 1)}})
	check("board of sw", c.Board.Pipes, []int{2, 4})
	check("bridge of sw", c.Bridge.Forward, []proto.Forward{
		{HardwareAddress: radio(sta), Interface: "trunk"},
		{HardwareAddress: radio(ap), Interface: "trunk"},
		{HardwareAddress: wire(host, 1), Interface: "eth0"},
	})

	c = configured(host)
	check("interfaces of host", c.Interfaces, []proto.Interface{{Name: "eth0", HardwareAddress: wire(host, 0)}, {Name: "eth1", HardwareAddress: wire(host, 1)}})
	check("ports of host", c.Ports, []proto.Port{{Node: sta, Port: 2}, {Node: ap, Port: 2}, {Node: sw, Port: 2}, {Node: far, Port: 1}})
	check("flows of host", len(c.Flows), 1) // it routes
}

func TestEmulatorIsToldOfWiresAndBridges(t *testing.T) {
	s := scenarioOf(t, bridgedFile)
	var handles []node.Handle
	for i := range s.Topology.Nodes {
		handles = append(handles, fakeHandle{name: s.Topology.Nodes[i].Name, pid: 100 + i})
	}
	c := emulatorConfig(s, handles)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Nodes[ap].NoRadio || !c.Nodes[sw].NoRadio || !c.Nodes[host].NoRadio || c.Nodes[far].PID != 100+far {
		t.Errorf("nodes %+v", c.Nodes)
	}
	if want := map[int]int{sw: ap, host: ap}; !reflect.DeepEqual(c.Nodes[sta].Via, want) || len(c.Nodes[ap].Via) != 0 {
		t.Errorf("sta sends via %v, want %v; ap via %v", c.Nodes[sta].Via, want, c.Nodes[ap].Via)
	}
	trunk := emulator.PipeEnd{Node: sw, Interface: "trunk", HardwareAddress: tap.PipeHardwareAddr(sw, 0)}
	if len(c.Pipes) != 3 || c.Pipes[1].Ends[0] != trunk || c.Pipes[1].Config[0].Rate != 10*vtime.MbitPerSecond {
		t.Errorf("pipes %+v", c.Pipes)
	}
}

// The kernel has one cap per pair of nodes: flows of which only one has it, and
// that would share it, are refused before anything runs.
func TestCapsThatFlowsWouldShare(t *testing.T) {
	const mixed = `hopbed: 1
name: mixed
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}]
  pipes: [{ends: [a, b]}, {ends: [b, c]}]
flows:
  - {pairs: [{src: a, dst: b}], transport: tcp/cubic}
  - {pairs: [{src: a, dst: c}], transport: hop-by-hop-tcp/cubic}
transports: {tcp: {cwnd-cap: 7}}
warmup: 1s
duration: 10s
`
	s := scenarioOf(t, mixed)
	_, err := configureNode(s, 0, backend.Orders(s, tap.Addr))
	e := proto.AsError(err, "")
	if e == nil || e.Code != proto.CodeOrder {
		t.Fatalf("%v, want an order that is refused", err)
	}
	for _, part := range []string{"flows 0 (tcp/cubic) and 1 (hop-by-hop-tcp/cubic)", "7 and none", "tcp_metrics", "--backend sim"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	// The relay's own connection leads elsewhere.
	if _, err := configureNode(s, 1, backend.Orders(s, tap.Addr)); err != nil {
		t.Error(err)
	}
}

type fakeHandle struct {
	node.Handle
	name string
	pid  int
}

func (h fakeHandle) Name() string { return h.name }
func (h fakeHandle) PID() int     { return h.pid }

// Options of TCP that a namespace has are told to all nodes, and read back by the agents.
func TestConfigureTellsNodesOfTCP(t *testing.T) {
	s := scenarioOf(t, strings.Replace(strings.Replace(chainFile, "  - {pairs: [{src: c, dst: a}], transport: hop, workload: {kind: sized, size: 1MB}}\n", "", 1),
		"warmup: 1s", "transports: {tcp: {sack: false, timestamps: false, quick-ack: true}}\nwarmup: 1s", 1))
	cfg, err := configureNode(s, 1, backend.Orders(s, tap.Addr))
	if err != nil {
		t.Fatal(err)
	}
	n := len(cfg.Sysctls)
	if want := []proto.Sysctl{{Key: "net.ipv4.tcp_sack", Value: "0"}, {Key: "net.ipv4.tcp_timestamps", Value: "0"}}; !reflect.DeepEqual(cfg.Sysctls[n-2:], want) {
		t.Errorf("settings %+v", cfg.Sysctls)
	}
	for _, r := range cfg.Routes {
		if !r.QuickAck {
			t.Errorf("route %+v delays acknowledgements", r)
		}
	}
	if cfg, err = configureNode(scenario(t), 1, nil); err != nil {
		t.Fatal(err)
	}
	for _, x := range cfg.Sysctls {
		if strings.HasPrefix(x.Key, "net.ipv4.tcp_") && x.Value == "0" && (x.Key == "net.ipv4.tcp_sack" || x.Key == "net.ipv4.tcp_timestamps") {
			t.Errorf("by default: %+v", x)
		}
	}
}
