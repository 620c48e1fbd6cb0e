package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hopbed/hopbed/internal/problem"
)

// DefaultNetwork is what experiment addresses are assigned from where the file says
// nothing else: a part of RFC 1918's that neither homes nor hopbed's emulated nodes
// use.
var DefaultNetwork = netip.MustParsePrefix("10.66.0.0/16")

var topKeys = []string{"inventory", "network", "defaults", "nodes"}

// top reads the whole file.
func (d *decoder) top(y *yaml.Node) {
	d.inv = &Inventory{Path: d.file}
	d.places = map[string]*yaml.Node{}
	var version, defaults, nodes *yaml.Node
	d.block(y, "", topKeys, func(key string, _, v *yaml.Node) {
		switch key {
		case "inventory":
			version = v
		case "network":
			d.network = v
		case "defaults":
			defaults = v
		case "nodes":
			nodes = v
		}
	})
	if y.Kind != yaml.MappingNode {
		return
	}
	switch {
	case version == nil:
		d.add(y, problem.Problem{What: "the key inventory is missing", Allowed: "inventory: 1"})
	case version.Kind != yaml.ScalarNode || version.Value != "1":
		d.bad(version, "inventory", "not a version that this hopbed reads", "1")
	}
	base := Node{Radio: Radio{Driver: "none"}}
	if defaults != nil {
		d.node(defaults, "defaults", &base, true)
	}
	switch {
	case nodes == nil:
		d.add(y, problem.Problem{What: "the key nodes is missing", Allowed: "nodes: [{name: n01, address: 192.168.1.11}]"})
		return
	case nodes.Kind != yaml.SequenceNode:
		d.bad(nodes, "nodes", describe(nodes), "a list of nodes")
		return
	case len(nodes.Content) == 0:
		d.bad(nodes, "nodes", "the list is empty", "at least one node")
		return
	case len(nodes.Content) > MaxNodes:
		d.bad(nodes, "nodes", fmt.Sprintf("the list has %d nodes", len(nodes.Content)), fmt.Sprintf("up to %d", MaxNodes))
		return
	}
	for i, item := range nodes.Content {
		n := base
		n.Line = item.Line
		item = deref(item)
		d.places[place(i, "")] = item
		d.node(item, fmt.Sprintf("nodes[%d]", i), &n, false)
		d.inv.Nodes = append(d.inv.Nodes, n)
		d.remember(i, item)
	}
	d.uniqueNames()
	d.uniqueHosts()
	d.circles()
	d.radios()
	d.addresses()
}

// node reads a node, or the defaults, over what is there already.
func (d *decoder) node(y *yaml.Node, at string, n *Node, defaults bool) {
	keys := nodeKeys()
	d.block(y, at, names(keys, defaults), func(name string, _, v *yaml.Node) {
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		keys[i].read(d, v, at+"."+name, keys[i], n)
	})
	if y.Kind == yaml.MappingNode && !defaults && !has(y, "name") {
		d.add(y, problem.Problem{Path: at, What: "the key name is missing", Allowed: "name: n01"})
	}
}

func has(y *yaml.Node, key string) bool {
	for i := 0; i+1 < len(y.Content); i += 2 {
		if deref(y.Content[i]).Value == key {
			return true
		}
	}
	return false
}

// remember keeps the places of values that are compared with those of others.
func (d *decoder) remember(i int, y *yaml.Node) {
	if y.Kind != yaml.MappingNode {
		return
	}
	for k := 0; k+1 < len(y.Content); k += 2 {
		d.places[place(i, deref(y.Content[k]).Value)] = deref(y.Content[k+1])
	}
}

// where is the place of a key of a node, or of the node.
func (d *decoder) where(i int, key string) *yaml.Node {
	if y := d.places[place(i, key)]; y != nil {
		return y
	}
	return d.places[place(i, "")]
}

func (d *decoder) uniqueNames() {
	first := map[string]int{}
	for i, n := range d.inv.Nodes {
		if n.Name == "" {
			continue
		}
		if line, twice := first[n.Name]; twice {
			d.bad(d.where(i, "name"), fmt.Sprintf("nodes[%d].name", i), fmt.Sprintf("the node of line %d has this name", line), "a name for each node")
			continue
		}
		first[n.Name] = n.Line
	}
}

// uniqueHosts refuses two nodes that are the same machine: they would set its
// interface in turns.
func (d *decoder) uniqueHosts() {
	type host struct {
		address string
		port    int
		jump    string
	}
	first := map[host]int{}
	for i, n := range d.inv.Nodes {
		address := n.Address
		if address == "" {
			address = n.Name
		}
		if address == "" {
			continue
		}
		if ip, err := netip.ParseAddr(address); err == nil {
			address = ip.Unmap().String()
		}
		h := host{strings.ToLower(strings.TrimSuffix(address, ".")), n.Port, strings.Join(n.Jump, ",")}
		if other, twice := first[h]; twice {
			o := d.inv.Nodes[other]
			d.bad(d.where(i, "address"), fmt.Sprintf("nodes[%d].address", i), fmt.Sprintf("the node %s of line %d is at this address and port", o.Name, o.Line), "one node for each machine")
			continue
		}
		first[h] = i
	}
}

// circles refuses a node that lies in front of itself.
func (d *decoder) circles() {
	byName := map[string]int{}
	for i, n := range d.inv.Nodes {
		byName[n.Name] = i
	}
	for i, n := range d.inv.Nodes {
		seen := map[string]bool{}
		for queue := slices.Clone(n.Jump); len(queue) > 0; queue = queue[1:] {
			name := queue[0]
			if name == n.Name {
				d.bad(d.where(i, "jump"), fmt.Sprintf("nodes[%d].jump", i), "the way to "+n.Name+" leads through itself", "jump: none for a node that is reached directly")
				break
			}
			if k, ok := byName[name]; ok && !seen[name] {
				seen[name] = true
				queue = append(queue, d.inv.Nodes[k].Jump...)
			}
		}
	}
}

// radios checks keys of the radio that need or exclude each other.
func (d *decoder) radios() {
	for i, n := range d.inv.Nodes {
		r, at := n.Radio, fmt.Sprintf("nodes[%d].radio", i)
		y := d.where(i, "radio")
		switch {
		case r.Driver == "none" && (r != Radio{Driver: "none"}):
			d.add(y, problem.Problem{Path: at, What: "the driver none sets nothing, and other keys are given", Allowed: "driver: madwifi or nl80211, or no other keys"})
		case r.Driver != "none" && n.Interface == "":
			d.add(y, problem.Problem{Path: at, What: "a radio is described, but not its interface", Allowed: "interface: wlan0"})
		case r.Mode == "ahdemo" && r.Driver != "madwifi":
			d.add(y, problem.Problem{Path: at + ".mode", What: "ahdemo is a mode of madwifi alone", Allowed: "adhoc"})
		case r.Mode == "mesh" && r.Driver == "madwifi":
			d.add(y, problem.Problem{Path: at + ".mode", What: "madwifi has no mesh", Allowed: "adhoc or ahdemo"})
		case r.Mode != "" && r.Network == "":
			d.add(y, problem.Problem{Path: at, What: "the mode " + r.Mode + " needs the name of a network", Allowed: "network: hopbed"})
		case r.BSSID != "" && r.Mode != "adhoc" && r.Mode != "ahdemo" && r.Mode != "station":
			d.add(y, problem.Problem{Path: at + ".bssid", What: "a bssid is given, but the mode has none to set", Allowed: "mode: adhoc, ahdemo or station"})
		}
	}
}

// addresses checks the experiment addresses and assigns those that are missing.
func (d *decoder) addresses() {
	network, ok := d.networkOf()
	if !ok {
		return
	}
	d.inv.Network = network
	taken := map[netip.Addr]int{}
	for i, n := range d.inv.Nodes {
		if !n.Experiment.IsValid() {
			continue
		}
		y, at := d.where(i, "experiment"), fmt.Sprintf("nodes[%d].experiment", i)
		if n.Experiment.Masked() != network {
			d.bad(y, at, "is not in the network "+network.String()+" of the others", "one network for all nodes")
			continue
		}
		if other, twice := taken[n.Experiment.Addr()]; twice {
			o := d.inv.Nodes[other]
			d.bad(y, at, fmt.Sprintf("the node %s of line %d has this address", o.Name, o.Line), "an address for each node")
			continue
		}
		taken[n.Experiment.Addr()] = i
	}
	addr := network.Addr()
	for i := range d.inv.Nodes {
		n := &d.inv.Nodes[i]
		addr = addr.Next()
		if !n.Experiment.IsValid() && d.places[place(i, "experiment")] == nil {
			p := netip.PrefixFrom(addr, network.Bits())
			if !network.Contains(addr) || !usable(p) {
				d.add(d.where(i, ""), problem.Problem{Path: fmt.Sprintf("nodes[%d]", i), What: "the network " + network.String() + " has no address for the node's place", Allowed: "a larger network, such as " + DefaultNetwork.String()})
				return
			}
			if other, twice := taken[addr]; twice {
				o := d.inv.Nodes[other]
				d.add(d.where(i, ""), problem.Problem{Path: fmt.Sprintf("nodes[%d]", i), What: fmt.Sprintf("the address %s of the node's place is that of the node %s of line %d", addr, o.Name, o.Line),
					Allowed: "experiment: an address that is free, or one for every node"})
				continue
			}
			n.Experiment = p
		}
		// An experiment's routes must never lead the connection to the node astray.
		if ip, err := netip.ParseAddr(n.Address); err == nil && network.Contains(ip.Unmap()) {
			d.bad(d.where(i, "address"), fmt.Sprintf("nodes[%d].address", i), "lies in the experiments' network "+network.String()+": a run would cut the connection to the node",
				"a network for experiments that is not used otherwise: network: "+DefaultNetwork.String())
		}
	}
}

// networkOf is the network of the experiment addresses: the file's, else that of
// the first address that it gives, else the default.
func (d *decoder) networkOf() (netip.Prefix, bool) {
	const allowed = "an IPv4 network such as 10.66.0.0/16, /8 to /30"
	if d.network != nil {
		w, good := d.word(d.network, "network", allowed)
		if !good {
			return netip.Prefix{}, false
		}
		p, err := netip.ParsePrefix(w)
		if err != nil || !p.Addr().Is4() || p.Bits() < 8 || p.Bits() > 30 || p.Masked() != p {
			d.bad(d.network, "network", "not a network", allowed)
			return netip.Prefix{}, false
		}
		return p, true
	}
	for _, n := range d.inv.Nodes {
		if n.Experiment.IsValid() {
			return n.Experiment.Masked(), true
		}
	}
	return DefaultNetwork, true
}
