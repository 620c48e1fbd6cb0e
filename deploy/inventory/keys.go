package inventory

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/hopbed/hopbed/internal/problem"
	"github.com/hopbed/hopbed/netem/vtime"
)

// key is one key of a node, of a radio, or of both a node and the defaults.
type key struct {
	name    string
	own     bool   // a node's alone: not in defaults
	meaning string // for FORMAT.md
	allowed string
	def     string
	read    func(d *decoder, y *yaml.Node, at string, k key, n *Node)
}

// text is a key whose value is a word that fits.
func text(field func(*Node) *string, ok func(string) bool) func(*decoder, *yaml.Node, string, key, *Node) {
	return func(d *decoder, y *yaml.Node, at string, k key, n *Node) {
		w, good := d.word(y, at, k.allowed)
		if !good {
			return
		}
		if !ok(w) {
			d.bad(y, at, "not allowed here", k.allowed)
			return
		}
		*field(n) = w
	}
}

// number is a key whose value is a whole number within bounds.
func number(field func(*Node) *int, low, high int) func(*decoder, *yaml.Node, string, key, *Node) {
	return func(d *decoder, y *yaml.Node, at string, k key, n *Node) {
		w, good := d.word(y, at, k.allowed)
		if !good {
			return
		}
		x, err := strconv.Atoi(w)
		switch {
		case err != nil && !digits.MatchString(w):
			d.bad(y, at, "not a whole number", k.allowed)
		case err != nil || x < low || x > high:
			d.bad(y, at, "out of range", k.allowed)
		default:
			*field(n) = x
		}
	}
}

var digits = regexp.MustCompile(`^[+-]?[0-9]+$`)

// choice is a key whose value is one of a few words.
func choice(field func(*Node) *string, words ...string) func(*decoder, *yaml.Node, string, key, *Node) {
	return func(d *decoder, y *yaml.Node, at string, k key, n *Node) {
		w, good := d.word(y, at, k.allowed)
		if !good {
			return
		}
		if !slices.Contains(words, w) {
			d.add(y, problem.Problem{Path: at, Value: problem.Quote(w), What: "unknown", Allowed: k.allowed, Hint: problem.Suggest(w, words)})
			return
		}
		*field(n) = w
	}
}

// files is a key whose value is one file or several.
func files(field func(*Node) *[]string) func(*decoder, *yaml.Node, string, key, *Node) {
	return func(d *decoder, y *yaml.Node, at string, k key, n *Node) {
		list := d.words(y, at, k.allowed, isPath)
		for i, p := range list {
			if !filepath.IsAbs(p) && !strings.HasPrefix(p, "~/") {
				list[i] = filepath.Join(d.folder, filepath.FromSlash(p))
			}
		}
		if list != nil && len(list) == 0 {
			d.bad(y, at, "the list is empty", k.allowed)
			return
		}
		*field(n) = list
	}
}

// nodeKeys are the keys of a node and, but for its own, of the defaults.
func nodeKeys() []key {
	return []key{
		{"name", true, "The node's name in experiments, unique in the file", "lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, at most 64", "required",
			text(func(n *Node) *string { return &n.Name }, nameRE.MatchString)},
		{"address", true, "What SSH connects to: a host name, an address, or a Host of ssh_config", "a host name or an IP address, without user and port", "the name",
			(*decoder).address},
		{"user", false, "Who logs in", "a user name", "ssh_config's, else yours", text(func(n *Node) *string { return &n.User }, userRE.MatchString)},
		{"port", false, "The port of its SSH server", "1 to 65535", "ssh_config's, else 22", number(func(n *Node) *int { return &n.Port }, 1, 65535)},
		{"identity", false, "Private keys, offered in this order before those of the agent", "a file, or a list of files; relative to the inventory, or ~/", "ssh_config's, else ssh's",
			files(func(n *Node) *[]string { return &n.Identity })},
		{"jump", false, "Hosts to go through, the nearest to you first; names of nodes here, hosts of ssh_config, or addresses", "[user@]host[:port], a list of them, or none", "ssh_config's",
			(*decoder).jump},
		{"known-hosts", false, "Files with the host's key, in place of ssh_config's", "a file, or a list of files; relative to the inventory, or ~/", "ssh_config's, else ssh's",
			files(func(n *Node) *[]string { return &n.KnownHosts })},
		{"sudo", false, "Whether the agent is run by sudo, which must not ask for a password", "true, false", "where the user is not root", (*decoder).sudo},
		{"dir", false, "Where the agent is kept on the node", "an absolute path, or one that begins with ~/", "~/.cache/hopbed", text(func(n *Node) *string { return &n.Dir }, isDir)},
		{"tags", false, "Words to choose nodes by; those of the defaults are added", "a name, or a list of names", "none", (*decoder).tags},
		{"interface", false, "The interface that experiments use", "the name of an interface, at most 15 bytes, not lo", "none: the node can be checked, not used",
			text(func(n *Node) *string { return &n.Interface }, isInterface)},
		{"experiment", true, "The node's address on that interface in experiments", "an IPv4 address with its network, such as 10.66.0.7/16", "by its place, see below", (*decoder).experiment},
		{"radio", false, "The lab's part of the radio's settings; keys that a node leaves out are those of the defaults", "a mapping", "{driver: none}", (*decoder).radio},
	}
}

// radioKeys are the keys of a radio.
func radioKeys() []key {
	r := func(f func(*Radio) *string) func(*Node) *string {
		return func(n *Node) *string { return f(&n.Radio) }
	}
	return []key{
		{"driver", false, "How the radio is set", strings.Join(drivers, ", "), "none", choice(r(func(r *Radio) *string { return &r.Driver }), drivers...)},
		{"mode", false, "What the interface is made into", strings.Join(modes, ", "), "as it is", choice(r(func(r *Radio) *string { return &r.Mode }), modes...)},
		{"network", false, "The SSID, or the id of the mesh", "1 to 32 bytes", "as it is", text(r(func(r *Radio) *string { return &r.Network }), isSSID)},
		{"bssid", false, "The BSSID of an ad-hoc network, so that it cannot split", "six bytes such as 02:11:22:33:44:55, not of a group", "as the driver chooses", (*decoder).bssid},
		{"channel", false, "The channel", "1 to 196", "the experiment's, or as it is", number(func(n *Node) *int { return &n.Radio.Channel }, 1, 196)},
		{"tx-power", false, "The transmit power; it precedes the experiment's", "a power from -10dBm to 40dBm", "the experiment's, or as it is", (*decoder).txPower},
		{"device", false, "What the interface belongs to: madwifi's base device, or nl80211's phy", "a name, at most 15 bytes", "wifi0 for madwifi, the interface's own for nl80211",
			text(r(func(r *Radio) *string { return &r.Device }), isInterface)},
	}
}

var (
	drivers = []string{"madwifi", "nl80211", "none"}
	modes   = []string{"adhoc", "ahdemo", "mesh", "station", "ap"}

	// nameRE is that of node names in experiment files.
	nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	userRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}\$?$`)
	hostRE = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?\.?$`)
)

func names(keys []key, defaults bool) []string {
	var out []string
	for _, k := range keys {
		if !defaults || !k.own {
			out = append(out, k.name)
		}
	}
	return out
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func isPath(s string) bool {
	return s != "" && len(s) <= 1024 && printable(s) && (!strings.HasPrefix(s, "~") || strings.HasPrefix(s, "~/"))
}

func isDir(s string) bool {
	return isPath(s) && (strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/")) && !slices.Contains(strings.Split(s, "/"), "..")
}

func isSSID(s string) bool { return len(s) >= 1 && len(s) <= 32 && printable(s) }

// isInterface follows the kernel's dev_valid_name, without names that mean
// something else to sysctl or ip.
func isInterface(s string) bool {
	return s != "" && len(s) <= 15 && printable(s) && !strings.ContainsAny(s, "/: \t") && !strings.HasPrefix(s, "-") &&
		!slices.Contains([]string{".", "..", "lo", "all", "default"}, s)
}

func (d *decoder) address(y *yaml.Node, at string, k key, n *Node) {
	w, good := d.word(y, at, k.allowed)
	if !good {
		return
	}
	if ip, err := netip.ParseAddr(w); err == nil {
		if ip.IsUnspecified() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			d.bad(y, at, "is the address of no single host", k.allowed)
			return
		}
		n.Address = w
		return
	}
	p := problem.Problem{Path: at, Value: problem.Quote(w), What: "neither a host name nor an IP address", Allowed: k.allowed}
	switch host, port, err := net.SplitHostPort(w); {
	case strings.Contains(w, "@"):
		user, rest, _ := strings.Cut(w, "@")
		p.What, p.Allowed = "has a user in it", "user: "+problem.Quote(user)+" and address: "+problem.Quote(rest)
	case err == nil && port != "":
		p.What, p.Allowed = "has a port in it", "address: "+problem.Quote(host)+" and port: "+problem.Quote(port)
	case strings.Contains(w, "/"):
		p.What = "is a network or a path"
	case numeric.MatchString(w):
		p.What = "not an IPv4 address"
	case hostRE.MatchString(w) && !strings.Contains(w, ".."):
		n.Address = w
		return
	}
	d.add(y, p)
}

var numeric = regexp.MustCompile(`^[0-9.]+$`)

func (d *decoder) jump(y *yaml.Node, at string, k key, n *Node) {
	if y.Kind == yaml.ScalarNode && y.Value == "none" {
		n.Jump = []string{}
		return
	}
	n.Jump = d.words(y, at, k.allowed, isJump)
	if n.Jump != nil && len(n.Jump) == 0 && len(y.Content) == 0 {
		d.bad(y, at, "the list is empty", k.allowed)
	}
}

func isJump(s string) bool {
	rest := s
	if user, host, ok := strings.Cut(s, "@"); ok {
		if !userRE.MatchString(user) {
			return false
		}
		rest = host
	}
	if host, port, err := net.SplitHostPort(rest); err == nil {
		p, err := strconv.Atoi(port)
		if err != nil || p < 1 || p > 65535 {
			return false
		}
		rest = host
	}
	_, err := netip.ParseAddr(strings.Trim(rest, "[]"))
	return err == nil || hostRE.MatchString(rest) && !numeric.MatchString(rest) && rest != "none"
}

func (d *decoder) sudo(y *yaml.Node, at string, k key, n *Node) {
	w, good := d.word(y, at, k.allowed)
	if !good {
		return
	}
	if w != "true" && w != "false" {
		d.bad(y, at, "not a truth value", k.allowed)
		return
	}
	yes := w == "true"
	n.Sudo = &yes
}

func (d *decoder) tags(y *yaml.Node, at string, k key, n *Node) {
	for _, t := range d.words(y, at, k.allowed, nameRE.MatchString) {
		if !slices.Contains(n.Tags, t) {
			n.Tags = append(n.Tags[:len(n.Tags):len(n.Tags)], t)
		}
	}
}

func (d *decoder) experiment(y *yaml.Node, at string, k key, n *Node) {
	w, good := d.word(y, at, k.allowed)
	if !good {
		return
	}
	p, err := netip.ParsePrefix(w)
	switch {
	case err != nil || !p.Addr().Is4():
		d.bad(y, at, "not an IPv4 address with its network", k.allowed)
	case p.Bits() < 8 || p.Bits() > 30:
		d.bad(y, at, "the network is too large or too small", "/8 to /30")
	case !usable(p):
		d.bad(y, at, "is not the address of a host in its network", k.allowed)
	default:
		n.Experiment = p
	}
}

func (d *decoder) bssid(y *yaml.Node, at string, k key, n *Node) {
	w, good := d.word(y, at, k.allowed)
	if !good {
		return
	}
	m, err := net.ParseMAC(w)
	if err != nil || len(m) != 6 || m[0]&1 != 0 || m.String() == "00:00:00:00:00:00" {
		d.bad(y, at, "not the hardware address of a single station", k.allowed)
		return
	}
	n.Radio.BSSID = m.String()
}

func (d *decoder) txPower(y *yaml.Node, at string, k key, n *Node) {
	w, good := d.word(y, at, k.allowed)
	if !good {
		return
	}
	p, err := vtime.ParseDBm(w)
	switch {
	case err != nil:
		d.bad(y, at, oneLine(err.Error()), k.allowed)
	case p < -10 || p > 40:
		d.bad(y, at, "out of range", k.allowed)
	default:
		n.Radio.TxPower = &p
	}
}

func (d *decoder) radio(y *yaml.Node, at string, _ key, n *Node) {
	keys := radioKeys()
	d.block(y, at, names(keys, false), func(name string, _, v *yaml.Node) {
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		keys[i].read(d, v, at+"."+name, keys[i], n)
	})
}

// usable reports whether an address is neither the network's nor its broadcast.
func usable(p netip.Prefix) bool {
	return p.Addr() != p.Masked().Addr() && p.Addr() != last(p)
}

// last is the broadcast address of an IPv4 network.
func last(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		a[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(a)
}

func place(i int, key string) string { return fmt.Sprintf("%d.%s", i, key) }
