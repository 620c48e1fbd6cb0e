package site

import (
	"errors"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

const labText = `inventory: 1
defaults: {user: root, interface: wlan0, radio: {driver: nl80211, mode: adhoc, network: mesh, channel: 6, tx-power: 10dBm}}
nodes:
  - {name: roof, address: 192.0.2.1}
  - {name: yard, address: 192.0.2.2}
  - {name: shed, address: 192.0.2.3}
  - {name: barn, address: 192.0.2.4}
`

func labOf(t *testing.T, text string) *inventory.Inventory {
	t.Helper()
	inv, err := inventory.Parse("lab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// line is a line of three by its links; the middle relays.
const line = `hopbed: 1
name: line
topology:
  nodes: [{name: NAMES0}, {name: NAMES1}, {name: NAMES2}]
  links: [{from: NAMES0, to: NAMES1, delivery: 80%}, {from: NAMES1, to: NAMES2}]
flows: [{pairs: [{src: NAMES0, dst: NAMES2}], transport: hop}]
duration: 1s
`

func planOf(t *testing.T, text string, names ...string) *plan.Plan {
	t.Helper()
	for i, n := range names {
		text = strings.ReplaceAll(text, "NAMES"+string(rune('0'+i)), n)
	}
	e, err := spec.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Plan(plan.Build(e))
}

func scenarioOf(t *testing.T, text string, names ...string) *plan.Scenario {
	t.Helper()
	s, err := planOf(t, text, names...).Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMatching(t *testing.T) {
	inv := labOf(t, labText)
	for _, c := range []struct {
		names  []string
		want   string // the inventory's, or a part of the error
		byName bool
		note   string
	}{
		{[]string{"shed", "roof"}, "shed roof", true, ""},
		{[]string{"n01", "n02", "n03"}, "roof yard shed", false, ""},
		{[]string{"shed", "n02"}, "roof yard", false, "matched in the order"},
		{[]string{"n01", "n02", "n03", "n04", "n05"}, "the experiment has 5 nodes and lab.yaml has 4", false, ""},
	} {
		s, err := Match(c.names, inv)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want %q", c.names, err, c.want)
			}
			continue
		}
		var got []string
		for i, n := range s.Nodes {
			got = append(got, n.Name)
			if s.Addr(i) != n.Experiment.Addr() {
				t.Errorf("%v: node %d has the address %v, its inventory says %v", c.names, i, s.Addr(i), n.Experiment)
			}
		}
		if strings.Join(got, " ") != c.want || s.ByName != c.byName || !strings.Contains(s.Note, c.note) || (s.Note == "") != (c.note == "") {
			t.Errorf("%v: %v, by name %v, note %q", c.names, got, s.ByName, s.Note)
		}
	}
	bare := labOf(t, "inventory: 1\nnodes: [{name: a, address: 192.0.2.1}, {name: b, address: 192.0.2.2}]\n")
	if _, err := Match([]string{"a", "b"}, bare); err == nil || !strings.Contains(err.Error(), "node a of lab.yaml has no interface") {
		t.Errorf("without an interface: %v", err)
	}
}

// What the nodes said of themselves decides: neighbours are permanent where every
// next hop's address is known, and an address that is there stays.
func TestOrders(t *testing.T) {
	inv := labOf(t, labText)
	sc := scenarioOf(t, line, "roof", "yard", "shed")
	s, err := Match([]string{"roof", "yard", "shed"}, inv)
	if err != nil {
		t.Fatal(err)
	}
	flows := backend.Orders(sc, s.Addr)
	known := make([]Known, 3)
	for i := range known {
		known[i].Interfaces = []proto.InterfaceState{{Name: "eth0"}, {Name: "wlan0", HardwareAddress: "02:00:00:00:00:0" + string(rune('1'+i)), Addresses: []netip.Prefix{netip.PrefixFrom(s.Addr(i), 24)}}}
		known[i].Protect = []netip.Addr{netip.MustParseAddr("192.0.2.99")}
	}
	cfg, err := s.Order(sc, 0, flows, known)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Routes) != 2 || cfg.Routes[0].Via.IsValid() || cfg.Routes[1].Via != s.Addr(1) || cfg.Routes[1].Interface != "wlan0" {
		t.Errorf("routes %+v", cfg.Routes)
	}
	if len(cfg.Neighbours) != 1 || cfg.Neighbours[0].HardwareAddress != "02:00:00:00:00:02" || cfg.Neighbours[0].Addr != s.Addr(1) {
		t.Errorf("neighbours %+v", cfg.Neighbours)
	}
	if !cfg.KeepAddress || cfg.Address.Bits() != 24 || len(cfg.Protect) != 1 || cfg.Board != nil || cfg.MTU != 0 || cfg.OffloadsOff {
		t.Errorf("order %+v", cfg)
	}
	if len(cfg.Flows) != 1 || len(cfg.Peers) != 3 || len(cfg.NextHops) != 2 {
		t.Errorf("%d flows, %d peers, %d next hops", len(cfg.Flows), len(cfg.Peers), len(cfg.NextHops))
	}
	for _, x := range cfg.Sysctls {
		if strings.Contains(x.Key, "ipv6") || strings.Contains(x.Key, "conf/default") {
			t.Errorf("%s concerns more than the experiment", x.Key)
		}
	}
	// Half a table is none.
	known[1].Interfaces = known[1].Interfaces[:1]
	if cfg, err = s.Order(sc, 0, flows, known); err != nil || cfg.Neighbours != nil {
		t.Errorf("neighbours %+v, %v", cfg.Neighbours, err)
	}
	// An interface that is not there is said before anything is ordered, but where
	// the radio's driver makes it.
	known[0].Interfaces = known[0].Interfaces[:1]
	if _, err = s.Order(sc, 0, flows, known); err != nil {
		t.Errorf("nl80211 may make the interface: %v", err)
	}
	s.Nodes[0].Radio.Driver = radio.None
	if _, err = s.Order(sc, 0, flows, known); err == nil || !strings.Contains(err.Error(), "wlan0") || !strings.Contains(err.Error(), "eth0") {
		t.Errorf("an interface that is not there: %v", err)
	}
}

// The lab says what joins the nodes, the experiment what is compared; the lab's
// power comes first; a variant of a transport is a setting of its queue.
func TestRadioSettings(t *testing.T) {
	inv := labOf(t, labText)
	text := strings.Replace(line, "duration:", "radio: {rate: 5.5mbit, drop: 3%}\nmac: {retries: 3, queues: {bk: {cwmin: 31, ack: none}}}\nduration:", 1)
	c := Radio(scenarioOf(t, strings.Replace(text, "transport: hop", "transport: hop/no-txop", 1), "a", "b", "c"), &inv.Nodes[0])
	switch {
	case c.Driver != radio.NL80211 || c.Mode != radio.ModeAdhoc || c.Network != "mesh" || c.Channel != 6 || *c.TxPower != 10:
		t.Errorf("of the lab: %+v", c)
	case c.Standard != "802.11b" || c.Rate != 5500*vtime.KbitPerSecond || *c.Retries != 3 || *c.RTS != -1 || c.BasicRate != 0:
		t.Errorf("of the experiment: %+v", c)
	}
	if q := c.Queues[0]; q.CWMin == nil || *q.CWMin != 31 || q.NoAck == nil || !*q.NoAck || q.CWMax != nil || q.AIFS != nil {
		t.Errorf("the queue of Hop: %+v", q)
	}
	if c.Queues[1] != (radio.Queue{}) {
		t.Errorf("a queue that nobody speaks of: %+v", c.Queues[1])
	}
	if arq := Radio(scenarioOf(t, strings.Replace(text, "transport: hop", "transport: hop/arq", 1), "a", "b", "c"), &inv.Nodes[0]).Queues[0]; arq.NoAck == nil || *arq.NoAck {
		t.Errorf("hop/arq leaves the queue as %+v", arq)
	}
	// A radio that is left as it is is asked for what the file writes, no more.
	inv.Nodes[3].Radio = inventory.Radio{Driver: radio.None}
	if none := Radio(scenarioOf(t, line, "a", "b", "c"), &inv.Nodes[3]); none != nil {
		t.Errorf("nothing is written, and %+v is wanted", none)
	}
	if none := Radio(scenarioOf(t, text, "a", "b", "c"), &inv.Nodes[3]); none == nil || none.Retries == nil || none.Standard != "" || none.Network != "" {
		t.Errorf("of a radio that is left: %+v", none)
	}
}

// Where wires stand for radios, the links' delivery is their loss: of each next
// hop, whatever lies behind it. What is dropped on arrival is dropped everywhere.
func TestShapers(t *testing.T) {
	inv := labOf(t, strings.ReplaceAll(labText, "driver: nl80211, mode: adhoc, network: mesh, channel: 6, tx-power: 10dBm", "driver: none"))
	sc := scenarioOf(t, strings.Replace(line, "duration:", "radio: {drop: 3%}\nduration:", 1), "a", "b", "c")
	s, err := Match([]string{"a", "b", "c"}, inv)
	if err != nil {
		t.Fatal(err)
	}
	a := s.shapers(sc, 0)
	if len(a) != 1 || len(a[0].Egress) != 1 || len(a[0].Ingress) != 1 || a[0].Interface != "wlan0" {
		t.Fatalf("of a: %+v", a)
	}
	if e := a[0].Egress[0]; len(e.Peers) != 2 || !slices.Contains(e.Peers, netip.PrefixFrom(s.Addr(2), 32)) || e.Loss.Mean() < 0.199 || e.Loss.Mean() > 0.201 {
		t.Errorf("towards b and what is behind it: %+v", e)
	}
	if in := a[0].Ingress[0]; len(in.Peers) != 0 || in.Loss.Mean() != 0.03 {
		t.Errorf("of all that arrives: %+v", in)
	}
	if c := s.shapers(sc, 2); len(c[0].Egress) != 0 || len(c[0].Ingress) != 1 {
		t.Errorf("of c, whose link loses nothing: %+v", c)
	}
	// No command makes them: a dry run says them in words, so that what it prints can
	// be given to a shell.
	text, err := s.text(sc, 0)
	if err != nil || !strings.Contains(text, "\n# by netlink, emulated by the kernel: wlan0 egress, towards ") || !strings.Contains(text, ": loss 20%\n") || strings.Contains(text, "\ntc ") {
		t.Errorf("a dry run prints\n%s\n%v", text, err)
	}
	// On radios the air does that.
	air := labOf(t, labText)
	s, _ = Match([]string{"a", "b", "c"}, air)
	if r := s.shapers(scenarioOf(t, line, "a", "b", "c"), 0); r != nil {
		t.Errorf("on radios: %+v", r)
	}
}

func TestCheckAndWarnings(t *testing.T) {
	inv := labOf(t, labText)
	nodes, err := Check(planOf(t, line, "roof", "yard", "shed"), inv)
	if err != nil || len(nodes) != 3 || nodes[2].Name != "shed" {
		t.Errorf("%v, %v", nodes, err)
	}
	generated := "hopbed: 1\nname: g\ntopology: {generate: {kind: chain, nodes: 3, spacing: 20m}}\nradio: {noise: -90dBm}\nflows: [{count: 1, pairs: random, transport: tcp/reno}]\nduration: 1s\n"
	p := planOf(t, generated)
	if !p.Runs[0].Unmeasured() {
		t.Error("places say nothing of real nodes: their links are to be measured")
	}
	if w := Warnings(p); len(w) != 1 || !strings.Contains(w[0], "radio.noise") || !strings.Contains(w[0], "topology.generate") || strings.Contains(w[0], "sense") {
		t.Errorf("warnings %q", w)
	}
	if w := Warnings(planOf(t, line, "a", "b", "c")); w != nil {
		t.Errorf("warnings %q", w)
	}
	inv.Nodes[1].Radio.Driver = "carrier-pigeon"
	if _, err := Check(planOf(t, line, "roof", "yard", "shed"), inv); err == nil || !strings.Contains(err.Error(), "node yard") || !strings.Contains(err.Error(), "carrier-pigeon") {
		t.Errorf("an unknown driver: %v", err)
	}
}

// What an access point of ours does, real ones do not.
func TestAccessPointsOfOursAreRefused(t *testing.T) {
	file := `hopbed: 1
name: ap
topology: {nodes: [{name: roof, at: [0m, 0m]AP}, {name: yard, at: [10m, 0m]}], links: [{from: roof, to: yard}]}
flows: [{pairs: [{src: roof, dst: yard}], transport: tcp/reno}]
transports: {tcp: {mss: 1024BTCP}}
duration: 1s
`
	for _, c := range []struct{ ap, tcp, want string }{
		{", window-rewriting: {}", "", "window-rewriting"},
		{", queue: 50", "", "queue"},
		{"", ", sack: false", "transports.tcp.sack"},
		{"", ", timestamps: false", "transports.tcp.timestamps"},
		{", window-rewriting: {enabled: false}", ", quick-ack: true", ""},
	} {
		e, err := spec.Parse("f.yaml", []byte(strings.NewReplacer("AP}", c.ap+"}", "TCP}", c.tcp+"}").Replace(file)))
		if err != nil {
			t.Fatal(err)
		}
		err = Unsupported(e.Points()[0].Config)
		var u *backend.ErrUnsupported
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s%s: %v", c.ap, c.tcp, err)
		case c.want != "" && (!errors.As(err, &u) || !strings.Contains(u.What, c.want) || u.Do == ""):
			t.Errorf("%s%s: %v, want that %s is unsupported", c.ap, c.tcp, err, c.want)
		}
	}
}

// What --dry-run prints is typed into shells, and Linux lets the name of an interface
// hold nearly everything: each word of each command stays one word.
func TestCommandsCanBeTyped(t *testing.T) {
	testenv.Need(t, testenv.Program("sh"))
	for _, driver := range []string{"madwifi, mode: adhoc", "nl80211, mode: adhoc", "none"} {
		text := strings.NewReplacer("wlan0", `"a;b$(id)"`, "radio: {driver: nl80211, mode: adhoc", "radio: {driver: "+driver).Replace(labText)
		if driver == "none" {
			text = strings.NewReplacer("driver: none, network: mesh, channel: 6, tx-power: 10dBm", "driver: none").Replace(text)
		}
		var out strings.Builder
		if err := Print(&out, planOf(t, line, "roof", "yard", "shed"), labOf(t, text)); err != nil {
			t.Fatalf("%s: %v", driver, err)
		}
		if !strings.Contains(out.String(), "ip address add 10.66.0.1/16 dev 'a;b$(id)'") {
			t.Errorf("%s: no address in\n%s", driver, out.String())
		}
		// Every program is one that prints its words.
		script := "show() { for w; do printf '<%s>' \"$w\"; done; echo; }\n"
		for _, p := range []string{"ip", "iw", "iwconfig", "iwpriv", "wlanconfig", "sysctl", "ethtool", "cat"} {
			script += p + "() { show \"$@\"; }\n"
		}
		cmd := exec.Command("sh", "-c", script+out.String())
		cmd.Env = []string{"PATH=/nowhere"}
		said, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(said), "not found") || strings.Contains(string(said), "uid=") {
			t.Errorf("%s: %v: a shell made of it\n%s", driver, err, said)
		}
	}
}
