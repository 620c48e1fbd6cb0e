package sshclient

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshconfig"
)

// hop is one host on the way to a node; the last is the node itself.
type hop struct {
	node   *inventory.Node
	conf   *sshconfig.Host
	jump   bool     // not the node itself
	first  bool     // reached directly
	before []string // "user@host:port" of those in front
	// must: the inventory names the keys, so that one that is missing is a mistake.
	must bool
}

// maxHops bounds the hosts between, those of ssh_config's jump hosts included.
const maxHops = 8

func (h *hop) String() string { return h.conf.User + "@" + hostPort(h.conf.HostName, h.conf.Port) }

func (h *hop) fail(r Reason, what, do string, err error) *Error {
	return &Error{Reason: r, Node: h.node.Name, Host: h.String(), Jump: h.jump, What: what, Do: do, Err: err}
}

// timeout bounds connecting and authenticating at this host.
func (h *hop) timeout(o *Options) time.Duration {
	switch {
	case o.Timeout > 0:
		return o.Timeout
	case h.conf.ConnectTimeout > 0:
		return h.conf.ConnectTimeout
	}
	return defaultTimeout
}

// route finds the hosts on the way to a node, as ssh does: the jump hosts of the
// node's, in their order, and in front of the first one those that it needs itself.
func (d *dialer) route(n *inventory.Node) ([]*hop, error) {
	if d.err != nil {
		return nil, &Error{Reason: Settings, Node: n.Name, What: d.err.Error(), Err: d.err}
	}
	hops, err := d.expand(n, n, nil, nil)
	if err != nil {
		return nil, err
	}
	for i, h := range hops {
		h.first = i == 0
		for _, b := range hops[:i] {
			h.before = append(h.before, b.String())
		}
	}
	return hops, nil
}

// expand resolves a host that is on the way to a node, and what lies in front of
// it. override is nil for a host that is to be reached as the inventory says.
func (d *dialer) expand(n, as *inventory.Node, jump *sshconfig.Jump, seen []string) ([]*hop, error) {
	h, err := d.resolve(n, as, jump)
	if err != nil {
		return nil, err
	}
	if id := h.String(); slices.Contains(seen, id) {
		return nil, h.fail(Settings, "the jump hosts go round in a circle: "+strings.Join(append(seen, id), " → "), "correct ProxyJump or jump", nil)
	} else if len(seen) >= maxHops {
		return nil, h.fail(Settings, fmt.Sprintf("more than %d jump hosts: %s", maxHops, strings.Join(append(seen, id), " → ")), "correct ProxyJump or jump", nil)
	} else {
		seen = append(slices.Clone(seen), id)
	}
	var out []*hop
	for i, s := range h.conf.ProxyJump {
		j, err := sshconfig.ParseJump(s)
		if err != nil {
			return nil, h.fail(Settings, err.Error(), "", err)
		}
		via, name := n, &j
		if k := slices.IndexFunc(d.o.Nodes, func(o inventory.Node) bool { return o.Name == j.Host }); k >= 0 && j.User == "" && j.Port == 0 {
			via, name = &d.o.Nodes[k], nil
		}
		if i == 0 {
			front, err := d.expand(n, via, name, seen)
			if err != nil {
				return nil, err
			}
			out = append(out, front...)
			continue
		}
		next, err := d.resolve(n, via, name)
		if err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	for _, o := range out {
		o.jump = true
	}
	return append(out, h), nil
}

// resolve asks ssh_config about one host: a node of the inventory, or one that
// jump names.
func (d *dialer) resolve(n, as *inventory.Node, jump *sshconfig.Jump) (*hop, error) {
	alias, over := as.Address, sshconfig.Override{User: as.User, Port: as.Port, Jump: as.Jump}
	if alias == "" {
		alias = as.Name
	}
	if jump != nil {
		alias, over = jump.Host, sshconfig.Override{User: jump.User, Port: jump.Port}
	}
	conf, err := d.cfg.Resolve(alias, over)
	if err != nil {
		return nil, &Error{Reason: Settings, Node: n.Name, Host: alias, Jump: jump != nil, What: err.Error(), Err: err}
	}
	for _, w := range conf.Warnings {
		d.warn(n.Name, w.String())
	}
	h := &hop{node: n, conf: conf}
	// What the inventory says about a node holds for the hosts in front of it as
	// well, as far as ssh_config is silent about them.
	named := slices.ContainsFunc(conf.Identities, func(i sshconfig.Identity) bool { return !i.Default })
	identity, err := d.paths(h, as.Identity)
	if err != nil {
		return nil, err
	}
	known, err := d.paths(h, as.KnownHosts)
	if err != nil {
		return nil, err
	}
	if len(identity) > 0 && (jump == nil || !named) {
		conf.Identities = nil
		for _, f := range identity {
			conf.Identities = append(conf.Identities, sshconfig.Identity{File: f})
		}
		h.must = true
	}
	if len(known) > 0 {
		if jump == nil {
			conf.UserKnown, conf.GlobalKnown = known, nil
		} else {
			conf.UserKnown = append(known, conf.UserKnown...)
		}
	}
	return h, nil
}

func (d *dialer) paths(h *hop, in []string) ([]string, error) {
	var out []string
	for _, p := range in {
		full, err := d.cfg.Path(p)
		if err != nil {
			return nil, h.fail(Settings, err.Error(), "correct the path in the inventory", err)
		}
		out = append(out, full)
	}
	return out, nil
}
