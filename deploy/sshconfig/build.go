package sshconfig

import (
	"errors"
	"fmt"
	"strings"
)

// defaultIdentities are tried where nobody names a key, in ssh's order.
var defaultIdentities = []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_dsa"}

// host turns the values that were found into a Host.
func (r *resolver) host() (*Host, error) {
	h := &Host{
		Alias: r.alias, HostName: strings.ToLower(r.hostName()), User: r.user(), Port: r.over.Port,
		IdentitiesOnly: r.yes("identitiesonly", false), BatchMode: r.yes("batchmode", false), HashKnown: r.yes("hashknownhosts", false),
		HostKeyAlias: strings.ToLower(r.word("hostkeyalias", "")), Attempts: max(1, r.number("connectionattempts", 1)),
		ConnectTimeout: r.duration("connecttimeout"), AliveInterval: r.duration("serveraliveinterval"), AliveCount: r.number("serveralivecountmax", 3),
		HostKeyAlgorithms: r.word("hostkeyalgorithms", ""), KexAlgorithms: r.word("kexalgorithms", ""), Ciphers: r.word("ciphers", ""),
		MACs: r.word("macs", ""), PubkeyAlgorithms: r.word("pubkeyacceptedalgorithms", ""),
	}
	if h.Port == 0 {
		h.Port = 22
		if v, ok := r.values["port"]; ok {
			p, err := parsePort(v.args[0])
			if err != nil {
				r.fail(&SyntaxError{v.pos, err.Error()})
			}
			h.Port = p
		}
	}
	switch f := strings.ToLower(r.word("addressfamily", "any")); f {
	case "any":
		h.Family = "tcp"
	case "inet":
		h.Family = "tcp4"
	case "inet6":
		h.Family = "tcp6"
	default:
		r.fail(&SyntaxError{r.values["addressfamily"].pos, fmt.Sprintf("addressfamily %q: allowed: any, inet, inet6", f)})
	}
	switch v := strings.ToLower(r.word("pubkeyauthentication", "yes")); v {
	case "yes", "true", "unbound", "host-bound":
		h.PublicKey = true
	case "no", "false":
	default:
		r.fail(&SyntaxError{r.values["pubkeyauthentication"].pos, fmt.Sprintf("pubkeyauthentication %q: allowed: yes, no", v)})
	}
	switch v := strings.ToLower(r.word("stricthostkeychecking", "ask")); v {
	case "yes", "true":
		h.StrictHostKey = "yes"
	case "ask", "accept-new":
		h.StrictHostKey = v
	case "no", "false", "off":
		h.StrictHostKey = "no"
		r.warn(r.values["stricthostkeychecking"].pos, "stricthostkeychecking "+v+" is not followed: host keys are always checked")
	default:
		r.fail(&SyntaxError{r.values["stricthostkeychecking"].pos, fmt.Sprintf("stricthostkeychecking %q: allowed: yes, ask, accept-new", v)})
	}
	if v, ok := r.values["revokedhostkeys"]; ok && !strings.EqualFold(v.args[0], "none") {
		return nil, &Unsupported{v.pos, "RevokedHostKeys", "hopbed reads no revocation lists", "write the revoked keys into known_hosts, as \"@revoked * TYPE KEY\", and take the line out for this host"}
	}
	if err := r.proxy(h); err != nil {
		return nil, err
	}
	if err := r.paths(h); err != nil {
		return nil, err
	}
	h.Warnings = r.warnings
	return h, r.err
}

// proxy decides what lies between.
func (r *resolver) proxy(h *Host) error {
	if r.over.Jump != nil {
		for _, s := range r.over.Jump {
			j, err := ParseJump(s)
			if err != nil {
				return err
			}
			h.ProxyJump = append(h.ProxyJump, j.String())
		}
		return nil
	}
	v, ok := r.values["proxy"]
	if !ok {
		return nil
	}
	arg := strings.Join(v.args[1:], " ")
	if strings.EqualFold(arg, "none") {
		return nil
	}
	if v.args[0] == "proxycommand" {
		return &Unsupported{v.pos, "ProxyCommand", "hopbed starts no program to reach a host",
			"use ProxyJump for " + r.alias + ", or name the hosts between in the inventory (jump: [HOST])"}
	}
	for _, s := range strings.Split(arg, ",") {
		j, err := ParseJump(s)
		if err != nil {
			return &SyntaxError{v.pos, err.Error()}
		}
		h.ProxyJump = append(h.ProxyJump, j.String())
	}
	return nil
}

// paths fills in files and sockets, whose tokens need the rest.
func (r *resolver) paths(h *Host) error {
	tokens := r.tokens(h)
	for _, v := range r.files {
		if strings.EqualFold(v.args[0], "none") {
			continue
		}
		p, err := r.path(v.args[0], tokens)
		if err != nil {
			return fmt.Errorf("%s: IdentityFile: %w", v.pos, err)
		}
		h.Identities = append(h.Identities, Identity{File: p})
	}
	if len(r.files) == 0 {
		for _, n := range defaultIdentities {
			h.Identities = append(h.Identities, Identity{File: r.cfg.env.Home + "/.ssh/" + n, Default: true})
		}
	}
	for _, k := range []struct {
		key  string
		into *[]string
		def  []string
	}{
		{"userknownhostsfile", &h.UserKnown, []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}},
		{"globalknownhostsfile", &h.GlobalKnown, []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}},
	} {
		for _, s := range r.list(k.key, k.def...) {
			if strings.EqualFold(s, "none") {
				continue
			}
			p, err := r.path(s, tokens)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", r.values[k.key].pos, k.key, err)
			}
			*k.into = append(*k.into, p)
		}
	}
	return r.agent(h, tokens)
}

func (r *resolver) agent(h *Host, tokens map[byte]string) error {
	socket, _ := r.cfg.env.lookup("SSH_AUTH_SOCK")
	v, ok := r.values["identityagent"]
	switch s := r.word("identityagent", ""); {
	case !ok || s == "SSH_AUTH_SOCK":
		h.Agent = socket
	case strings.EqualFold(s, "none"):
	case strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "${"):
		h.Agent, _ = r.cfg.env.lookup(s[1:])
	default:
		p, err := r.path(s, tokens)
		if err != nil {
			return fmt.Errorf("%s: IdentityAgent: %w", v.pos, err)
		}
		h.Agent = p
	}
	return nil
}

func (r *resolver) path(s string, tokens map[byte]string) (string, error) {
	s, err := r.cfg.env.tilde(s)
	if err != nil {
		return "", err
	}
	if s, err = r.cfg.env.dollar(s); err != nil {
		return "", err
	}
	if s, err = expand(s, tokens); err != nil {
		return "", err
	}
	if strings.ContainsRune(s, 0) {
		return "", errors.New("a path with a zero byte")
	}
	return s, nil
}
