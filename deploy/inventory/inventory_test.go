package inventory_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/internal/problem"
)

func parse(t *testing.T, text string) *inventory.Inventory {
	t.Helper()
	v, err := inventory.Parse("lab/lab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDefaultsAndNodes(t *testing.T) {
	v := parse(t, `inventory: 1
defaults:
  user: root
  port: 2222
  identity: [keys/lab, ~/.ssh/lab, /etc/lab]
  tags: lab
  jump: [gate, root@10.0.0.1:2200]
  interface: wlan0
  radio: {driver: nl80211, mode: adhoc, network: hopbed, channel: 6, bssid: 02-11-22-33-44-55}
nodes:
  - name: n01
    address: 192.168.1.11
  - name: n02
    address: fe80::1%eth0
    user: hop
    port: 22
    identity: own
    known-hosts: [a, b]
    sudo: false
    dir: ~/agents
    tags: [roof, lab]
    jump: none
    interface: br-lan
    experiment: 10.66.9.9/16
    radio: {tx-power: 12.5dBm, channel: 11, device: phy1}
  - name: host.of-ssh_config
`)
	power := 12.5
	want := []inventory.Node{
		{Name: "n01", Line: 11, Address: "192.168.1.11", User: "root", Port: 2222, Identity: []string{"lab/keys/lab", "~/.ssh/lab", "/etc/lab"},
			Jump: []string{"gate", "root@10.0.0.1:2200"}, Tags: []string{"lab"}, Interface: "wlan0", Experiment: netip.MustParsePrefix("10.66.0.1/16"),
			Radio: inventory.Radio{Driver: "nl80211", Mode: "adhoc", Network: "hopbed", Channel: 6, BSSID: "02:11:22:33:44:55"}},
		{Name: "n02", Line: 13, Address: "fe80::1%eth0", User: "hop", Port: 22, Identity: []string{"lab/own"}, KnownHosts: []string{"lab/a", "lab/b"},
			Jump: []string{}, Dir: "~/agents", Tags: []string{"lab", "roof"}, Interface: "br-lan", Experiment: netip.MustParsePrefix("10.66.9.9/16"),
			Radio: inventory.Radio{Driver: "nl80211", Mode: "adhoc", Network: "hopbed", Channel: 11, BSSID: "02:11:22:33:44:55", Device: "phy1"}},
		{Name: "host.of-ssh_config", Line: 26, User: "root", Port: 2222, Identity: []string{"lab/keys/lab", "~/.ssh/lab", "/etc/lab"},
			Jump: []string{"gate", "root@10.0.0.1:2200"}, Tags: []string{"lab"}, Interface: "wlan0", Experiment: netip.MustParsePrefix("10.66.0.3/16"),
			Radio: inventory.Radio{Driver: "nl80211", Mode: "adhoc", Network: "hopbed", Channel: 6, BSSID: "02:11:22:33:44:55"}},
	}
	if p := v.Nodes[1].Radio.TxPower; p == nil || float64(*p) != power {
		t.Errorf("power %v", p)
	}
	if s := v.Nodes[1].Sudo; s == nil || *s || v.Nodes[0].Sudo != nil {
		t.Errorf("sudo %v and %v", s, v.Nodes[0].Sudo)
	}
	v.Nodes[1].Radio.TxPower, v.Nodes[1].Sudo = nil, nil
	for i := range want {
		if !reflect.DeepEqual(v.Nodes[i], want[i]) {
			t.Errorf("got  %+v\nwant %+v", v.Nodes[i], want[i])
		}
	}
	if v.Network != netip.MustParsePrefix("10.66.0.0/16") {
		t.Errorf("network %v", v.Network)
	}
}

func TestTags(t *testing.T) {
	v := parse(t, "inventory: 1\nnodes:\n- {name: a, tags: [x, y]}\n- {name: b}\n- {name: c, tags: y}\n- {name: d, tags: z}\n")
	for _, c := range []struct {
		tags []string
		want string
	}{{nil, "a b c d"}, {[]string{"y"}, "a c"}, {[]string{"z", "x"}, "a d"}} {
		got, err := v.Tagged(c.tags)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range got.Nodes {
			names = append(names, n.Name)
		}
		if strings.Join(names, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.tags, names, c.want)
		}
	}
	// The address is that of the place in the file, whatever is chosen.
	if got, _ := v.Tagged([]string{"z"}); got.Nodes[0].Experiment != netip.MustParsePrefix("10.66.0.4/16") {
		t.Errorf("%v", got.Nodes[0].Experiment)
	}
	if _, err := v.Tagged([]string{"w"}); err == nil || !strings.Contains(err.Error(), "no node has the tag w; its tags are x, y, z") {
		t.Errorf("%v", err)
	}
	if n, ok := v.Node("c"); !ok || n.Name != "c" {
		t.Errorf("%v, %v", n, ok)
	}
	if _, ok := v.Node("e"); ok {
		t.Error("a node that is not there")
	}
}

// mistakes are files with the place and words of what is wrong in each.
var mistakes = []struct{ name, text, want string }{
	{"empty", "", "f:1:1: the file is empty"},
	{"a word", "hello", `f:1:1: "hello": is a value`},
	{"no version", "nodes: [{name: a}]", "f:1:1: the key inventory is missing; allowed: inventory: 1"},
	{"version", "inventory: 2\nnodes: [{name: a}]", `f:1:12: inventory: "2": not a version`},
	{"no nodes", "inventory: 1", "f:1:1: the key nodes is missing"},
	{"nodes empty", "inventory: 1\nnodes: []", "f:2:8: nodes: the list is empty"},
	{"nodes a mapping", "inventory: 1\nnodes: {name: a}", "f:2:8: nodes: is a mapping; allowed: a list"},
	{"node a word", "inventory: 1\nnodes: [a]", `f:2:9: nodes[0]: "a": is a value; allowed: a mapping with the keys name, address`},
	{"no name", "inventory: 1\nnodes: [{address: a}]", "f:2:9: nodes[0]: the key name is missing"},
	{"unknown key", "inventory: 1\nnode: [{name: a}]", `f:2:1: "node": unknown key; allowed: inventory, network, defaults, nodes; did you mean "nodes"?`},
	{"key twice", "inventory: 1\nnodes: [{name: a, name: b}]", `f:2:19: nodes[0]: "name": the key is given twice; first at line 2`},
	{"merge", "inventory: 1\ndefaults: &d {user: x}\nnodes: [{name: a, <<: *d}]", "f:3:19: nodes[0]: \"<<\": merge keys are not part of the format"},
	{"name in defaults", "inventory: 1\ndefaults: {name: a}\nnodes: [{name: a}]", `f:2:12: defaults: "name": unknown key`},
	{"names twice", "inventory: 1\nnodes:\n- {name: a, address: x}\n- {name: a, address: y}", `f:4:10: nodes[1].name: "a": the node of line 3 has this name`},
	{"name", "inventory: 1\nnodes: [{name: Node}]", `f:2:16: nodes[0].name: "Node": not allowed here; allowed: lower-case letters`},
	{"long name", "inventory: 1\nnodes: [{name: " + strings.Repeat("a", 65) + "}]", "f:2:16: nodes[0].name: "},
	{"name empty", "inventory: 1\nnodes: [{name: }]", "f:2:16: nodes[0].name: is empty"},
	{"name a list", "inventory: 1\nnodes: [{name: [a]}]", "f:2:16: nodes[0].name: is a list"},
	{"tag", "inventory: 1\nnodes: [{name: !!binary aGk=}]", "the tag \"!!binary\" is not part of the format"},
	{"user in address", "inventory: 1\nnodes: [{name: a, address: root@b}]", `has a user in it; allowed: user: "root" and address: "b"`},
	{"port in address", "inventory: 1\nnodes: [{name: a, address: \"b:22\"}]", `has a port in it; allowed: address: "b" and port: "22"`},
	{"bad IPv4", "inventory: 1\nnodes: [{name: a, address: 192.168.1.256}]", "f:2:28: nodes[0].address: \"192.168.1.256\": not an IPv4 address"},
	{"network as address", "inventory: 1\nnodes: [{name: a, address: 192.168.1.1/24}]", "is a network or a path"},
	{"option as address", "inventory: 1\nnodes: [{name: a, address: -oProxyCommand=x}]", "neither a host name nor an IP address"},
	{"multicast", "inventory: 1\nnodes: [{name: a, address: 224.0.0.1}]", "the address of no single host"},
	{"same address", "inventory: 1\nnodes:\n- {name: a, address: 10.0.0.1}\n- {name: b, address: \"::ffff:10.0.0.1\"}", "f:4:22: nodes[1].address: \"::ffff:10.0.0.1\": the node a of line 3 is at this address and port"},
	{"same host", "inventory: 1\nnodes:\n- {name: a}\n- {name: b, address: A.}", "the node a of line 3 is at this address and port"},
	{"user", "inventory: 1\nnodes: [{name: a, user: \"x;reboot\"}]", "f:2:25: nodes[0].user: \"x;reboot\": not allowed here"},
	{"port 0", "inventory: 1\nnodes: [{name: a, port: 0}]", `f:2:25: nodes[0].port: "0": out of range; allowed: 1 to 65535`},
	{"port big", "inventory: 1\nnodes: [{name: a, port: 99999999999999999999}]", "out of range"},
	{"port word", "inventory: 1\nnodes: [{name: a, port: ssh}]", "not a whole number"},
	{"identity empty", "inventory: 1\nnodes: [{name: a, identity: []}]", "nodes[0].identity: the list is empty"},
	{"identity twice", "inventory: 1\nnodes: [{name: a, identity: [x, x]}]", "nodes[0].identity[1]: \"x\": is in the list twice"},
	{"identity of another", "inventory: 1\nnodes: [{name: a, identity: ~bob/key}]", "nodes[0].identity: \"~bob/key\": not allowed here"},
	{"identities", "inventory: 1\nnodes: [{name: a, identity: [" + strings.Repeat("x, ", 40) + "y]}]", "the list has 41 entries; allowed: up to 32"},
	{"jump", "inventory: 1\nnodes: [{name: a, jump: \"x y\"}]", "nodes[0].jump: \"x y\": not allowed here"},
	{"jump port", "inventory: 1\nnodes: [{name: a, jump: [\"x:70000\"]}]", "nodes[0].jump[0]: \"x:70000\""},
	{"jump empty", "inventory: 1\nnodes: [{name: a, jump: []}]", "nodes[0].jump: the list is empty"},
	{"jump itself", "inventory: 1\ndefaults: {jump: g}\nnodes:\n- {name: g, address: x}\n- {name: n, address: y}", "f:4:3: nodes[0].jump: the way to g leads through itself; allowed: jump: none"},
	{"jump circle", "inventory: 1\nnodes:\n- {name: a, jump: b}\n- {name: b, jump: a}", "f:3:19: nodes[0].jump: \"b\": the way to a leads through itself"},
	{"sudo", "inventory: 1\nnodes: [{name: a, sudo: yes}]", "nodes[0].sudo: \"yes\": not a truth value; allowed: true, false"},
	{"dir", "inventory: 1\nnodes: [{name: a, dir: tmp}]", "nodes[0].dir: \"tmp\": not allowed here; allowed: an absolute path"},
	{"dir up", "inventory: 1\nnodes: [{name: a, dir: ~/../x}]", "nodes[0].dir: \"~/../x\": not allowed here"},
	{"tags", "inventory: 1\nnodes: [{name: a, tags: [B]}]", "nodes[0].tags[0]: \"B\": not allowed here"},
	{"interface long", "inventory: 1\nnodes: [{name: a, interface: wlan0123456789ab}]", "nodes[0].interface: \"wlan0123456789ab\": not allowed here; allowed: the name of an interface, at most 15 bytes, not lo"},
	{"interface lo", "inventory: 1\nnodes: [{name: a, interface: lo}]", "nodes[0].interface: \"lo\""},
	{"interface slash", "inventory: 1\nnodes: [{name: a, interface: ../x}]", "nodes[0].interface: \"../x\""},
	{"experiment", "inventory: 1\nnodes: [{name: a, experiment: 10.66.0.1}]", "not an IPv4 address with its network"},
	{"experiment v6", "inventory: 1\nnodes: [{name: a, experiment: \"fd00::1/64\"}]", "not an IPv4 address with its network"},
	{"experiment large", "inventory: 1\nnodes: [{name: a, experiment: 10.66.0.1/7}]", "the network is too large or too small; allowed: /8 to /30"},
	{"experiment network", "inventory: 1\nnodes: [{name: a, experiment: 10.66.0.0/16}]", "is not the address of a host in its network"},
	{"experiment broadcast", "inventory: 1\nnodes: [{name: a, experiment: 10.66.255.255/16}]", "is not the address of a host in its network"},
	{"experiment twice", "inventory: 1\nnodes:\n- {name: a, experiment: 10.66.0.7/16}\n- {name: b, experiment: 10.66.0.7/16}", "f:4:25: nodes[1].experiment: \"10.66.0.7/16\": the node a of line 3 has this address"},
	{"experiment networks", "inventory: 1\nnodes:\n- {name: a, experiment: 10.66.0.7/16}\n- {name: b, experiment: 10.67.0.7/16}", "f:4:25: nodes[1].experiment: \"10.67.0.7/16\": is not in the network 10.66.0.0/16 of the others"},
	{"experiment and network", "inventory: 1\nnetwork: 10.1.0.0/16\nnodes: [{name: a, experiment: 10.66.0.7/16}]", "is not in the network 10.1.0.0/16"},
	{"place taken", "inventory: 1\nnodes:\n- {name: a, experiment: 10.66.0.2/16}\n- {name: b}", "f:4:3: nodes[1]: the address 10.66.0.2 of the node's place is that of the node a of line 3"},
	{"places", "inventory: 1\nnetwork: 10.66.0.0/30\nnodes: [{name: a}, {name: b}, {name: c}]", "f:3:31: nodes[2]: the network 10.66.0.0/30 has no address for the node's place"},
	{"network", "inventory: 1\nnetwork: 10.66.0.1/16\nnodes: [{name: a}]", "f:2:10: network: \"10.66.0.1/16\": not a network"},
	{"network empty", "inventory: 1\nnetwork:\nnodes: [{name: a}]", "network: is empty"},
	{"own way cut", "inventory: 1\nnodes: [{name: a, address: 10.66.3.4}]", "f:2:28: nodes[0].address: \"10.66.3.4\": lies in the experiments' network 10.66.0.0/16"},
	{"driver", "inventory: 1\nnodes: [{name: a, radio: {driver: nl80221}}]", `nodes[0].radio.driver: "nl80221": unknown; allowed: madwifi, nl80211, none; did you mean "nl80211"?`},
	{"mode", "inventory: 1\nnodes: [{name: a, radio: {mode: ad-hoc}}]", `did you mean "adhoc"?`},
	{"radio key", "inventory: 1\nnodes: [{name: a, radio: {power: 3dBm}}]", `nodes[0].radio: "power": unknown key`},
	{"none and keys", "inventory: 1\nnodes: [{name: a, radio: {channel: 6}}]", "the driver none sets nothing, and other keys are given"},
	{"no interface", "inventory: 1\nnodes: [{name: a, radio: {driver: nl80211}}]", "a radio is described, but not its interface"},
	{"madwifi mesh", "inventory: 1\nnodes: [{name: a, interface: ath0, radio: {driver: madwifi, mode: mesh, network: x}}]", "madwifi has no mesh"},
	{"nl80211 ahdemo", "inventory: 1\nnodes: [{name: a, interface: w0, radio: {driver: nl80211, mode: ahdemo, network: x}}]", "ahdemo is a mode of madwifi alone"},
	{"no network", "inventory: 1\nnodes: [{name: a, interface: w0, radio: {driver: nl80211, mode: adhoc}}]", "the mode adhoc needs the name of a network"},
	{"channel", "inventory: 1\nnodes: [{name: a, radio: {channel: 197}}]", "out of range; allowed: 1 to 196"},
	{"bssid", "inventory: 1\nnodes: [{name: a, radio: {bssid: 01:11:22:33:44:55}}]", "not the hardware address of a single station"},
	{"power unit", "inventory: 1\nnodes: [{name: a, radio: {tx-power: 15}}]", "needs the unit dBm"},
	{"power", "inventory: 1\nnodes: [{name: a, radio: {tx-power: 41dBm}}]", "out of range"},
	{"ssid", "inventory: 1\nnodes: [{name: a, radio: {network: " + strings.Repeat("x", 33) + "}}]", "1 to 32 bytes"},
	{"tabs", "inventory: 1\nnodes:\n\t- name: a", "f:3:2: not YAML"},
	{"unclosed", "inventory: 1\nnodes: [{name: a}", "not YAML"},
	{"two documents", "inventory: 1\nnodes: [{name: a}]\n---\ninventory: 1\n", "a second document begins here"},
	{"not UTF-8", "inventory: 1\nnodes: [{name: \xff}]", "f:2:16: not valid UTF-8"},
	{"huge", "inventory: 1\n#" + strings.Repeat("x", inventory.MaxBytes), "larger than an inventory can be"},
	{"many nodes", "inventory: 1\nnodes: [" + strings.Repeat("{name: a}, ", 1000) + "{name: b}]", "the list has 1001 nodes; allowed: up to 1000"},
	{"self anchor", "inventory: 1\nnodes: &a [*a]", "is a list; allowed: a mapping"},
	{"bomb", "inventory: 1\ndefaults: {tags: &a [x,y,z]}\nnodes: &b [" + strings.Repeat("*c, ", 3) + "*a]\n", "not YAML: unknown anchor 'c' referenced"},
	{"bomb of tags", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\ninventory: 1\nnodes: [{name: a, tags: *c}]", "nodes[0].tags[0]: is a list"},
}

func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		v, err := inventory.Parse("f", []byte(c.text))
		var es *problem.Errors
		if v != nil || !errors.As(err, &es) {
			t.Errorf("%s: %v, %v", c.name, v, err)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

// All mistakes of a file are told at once, in its order, up to a bound.
func TestManyMistakes(t *testing.T) {
	var b strings.Builder
	b.WriteString("inventory: 1\nnodes:\n")
	for i := range 900 {
		fmt.Fprintf(&b, "- {name: N%d, port: 0, user: \"\"}\n", i)
	}
	_, err := inventory.Parse("f", []byte(b.String()))
	var es *problem.Errors
	if !errors.As(err, &es) || len(es.Problems) != problem.Max || es.More != 2700-problem.Max {
		t.Fatalf("%v", err)
	}
	if es.Problems[0].Pos.Line != 3 || es.Problems[19].Pos.Line != 9 {
		t.Errorf("%v", err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(file, []byte("inventory: 1\nnodes: [{name: a, identity: key}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := inventory.Read(file)
	if err != nil || v.Nodes[0].Identity[0] != filepath.Join(dir, "key") {
		t.Errorf("%+v, %v", v, err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := inventory.Read(bad); err == nil || !strings.Contains(err.Error(), "inventory") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// What an inventory calls a node, an experiment may call it, and nothing else.
func TestNamesAreThoseOfExperiments(t *testing.T) {
	for _, name := range []string{"a", "n01", "0", "a.b", "a_b", "a-b", "A", "-a", ".a", "_a", "a b", "é", strings.Repeat("x", 64), strings.Repeat("x", 65)} {
		_, mine := inventory.Parse("f", fmt.Appendf(nil, "inventory: 1\nnodes: [{name: %q}]\n", name))
		_, theirs := spec.Parse("f", fmt.Appendf(nil, "hopbed: 1\nname: x\ntopology: {nodes: [{name: %q, at: [0m, 0m]}, {name: zz, at: [1m, 1m]}]}\nflows: [{count: 1, pairs: random, transport: hop}]\nduration: 60s\n", name))
		if (mine == nil) != (theirs == nil) {
			t.Errorf("%q: inventory %v, experiment %v", name, mine, theirs)
		}
	}
	if inventory.MaxNodes != spec.MaxNodes {
		t.Errorf("%d nodes here, %d in experiments", inventory.MaxNodes, spec.MaxNodes)
	}
}

// The drivers are those of the agent, but the emulator's.
func TestDriversAreTheAgents(t *testing.T) {
	names := radio.Names()
	for _, n := range names {
		if n == radio.Emulated {
			continue
		}
		text := "inventory: 1\nnodes: [{name: a, interface: w0, radio: {driver: " + n + "}}]\n"
		if _, err := inventory.Parse("f", []byte(text)); err != nil {
			t.Errorf("driver %s: %v", n, err)
		}
	}
	for _, n := range []string{"madwifi", "nl80211", "none"} {
		if !slices.Contains(names, n) {
			t.Errorf("the agent has no driver %s: %v", n, names)
		}
	}
}
