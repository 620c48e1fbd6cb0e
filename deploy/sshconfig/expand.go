package sshconfig

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// tokens are the %-tokens of ssh_config(5) that files may have. %C is OpenSSH's
// since 9.6; before, jump hosts did not count.
func (r *resolver) tokens(h *Host) map[byte]string {
	env := r.cfg.env
	short, _, _ := strings.Cut(env.LocalHost, ".")
	key := h.HostKeyAlias
	if key == "" {
		key = h.Alias
	}
	port, jump := strconv.Itoa(h.Port), ""
	if n := len(h.ProxyJump); n > 0 {
		jump = h.ProxyJump[n-1]
	}
	sum := sha1.Sum([]byte(env.LocalHost + h.HostName + port + h.User + jump))
	return map[byte]string{
		'C': hex.EncodeToString(sum[:]), 'd': env.Home, 'h': h.HostName, 'i': strconv.Itoa(env.UID), 'j': jump, 'k': key,
		'L': short, 'l': env.LocalHost, 'n': h.Alias, 'p': port, 'r': h.User, 'u': env.User,
	}
}

// expand replaces %-tokens; %% is a percent sign.
func expand(s string, tokens map[byte]string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", fmt.Errorf("%q ends in a single %%; a percent sign is written %%%%", s)
		}
		if s[i] == '%' {
			b.WriteByte('%')
			continue
		}
		t, ok := tokens[s[i]]
		if !ok {
			return "", fmt.Errorf("%q has the token %%%c, which does not stand for anything here", s, s[i])
		}
		b.WriteString(t)
	}
	return b.String(), nil
}

// tilde replaces ~ and ~user at the beginning.
func (e Env) tilde(s string) (string, error) {
	if !strings.HasPrefix(s, "~") {
		return s, nil
	}
	name, rest, slash := strings.Cut(s[1:], "/")
	home := e.Home
	if name != "" {
		if e.HomeOf == nil {
			return "", fmt.Errorf("%q: the home of %s is not known", s, name)
		}
		h, err := e.HomeOf(name)
		if err != nil {
			return "", fmt.Errorf("%q: %w", s, err)
		}
		home = h
	}
	if !slash {
		return home, nil
	}
	return strings.TrimSuffix(home, "/") + "/" + rest, nil
}

// Path replaces ~ and ~user at the beginning of a path, as they stand for homes in
// the configuration's environment.
func (c *Config) Path(path string) (string, error) { return c.env.tilde(path) }

// dollar replaces ${NAME}; a variable that is not set is an error, as for ssh.
func (e Env) dollar(s string) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", fmt.Errorf("%q: ${ is not closed", s)
		}
		name := s[i+2 : i+end]
		v, ok := e.lookup(name)
		if !ok {
			return "", fmt.Errorf("the environment variable %q is not set", name)
		}
		b.WriteString(s[:i])
		b.WriteString(v)
		s = s[i+end+1:]
	}
}

func (e Env) lookup(name string) (string, bool) {
	if e.Lookup == nil {
		return "", false
	}
	return e.Lookup(name)
}

// OfProcess is the environment of this process. Like ssh, it takes the home from
// the user's account rather than from HOME.
func OfProcess() (Env, error) {
	me, err := user.Current()
	if err != nil {
		return Env{}, fmt.Errorf("who runs this program: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return Env{}, err
	}
	return Env{
		Home: me.HomeDir, User: me.Username, UID: os.Getuid(), LocalHost: host, Lookup: os.LookupEnv,
		HomeOf: func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.HomeDir, nil
		},
	}, nil
}

// Default is what ssh reads without options.
func Default(env Env) Files {
	return Files{User: env.Home + "/.ssh/config", System: "/etc/ssh/ssh_config"}
}
