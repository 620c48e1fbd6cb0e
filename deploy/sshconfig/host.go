package sshconfig

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Host is what the configuration says about one host, complete: what it leaves out
// has ssh's default.
type Host struct {
	Alias    string // as it was asked for
	HostName string // to connect to
	User     string
	Port     int
	// Family is "tcp", "tcp4" or "tcp6".
	Family string

	Identities     []Identity
	IdentitiesOnly bool
	// Agent is the socket of the agent: "" is none, SSH_AUTH_SOCK's where nothing
	// is configured.
	Agent       string
	PublicKey   bool     // keys may be offered at all
	BatchMode   bool     // nobody is to be asked
	ProxyJump   []string // the nearest to us first, "[user@]host[:port]"
	UserKnown   []string // files
	GlobalKnown []string
	HashKnown   bool
	// StrictHostKey is "yes", "ask", "accept-new" or "no".
	StrictHostKey string
	HostKeyAlias  string

	ConnectTimeout time.Duration // 0 = not configured
	Attempts       int
	AliveInterval  time.Duration // 0 = not configured
	AliveCount     int

	// Algorithm lists as they are configured, with +, - or ^ before; "" = default.
	HostKeyAlgorithms, KexAlgorithms, Ciphers, MACs, PubkeyAlgorithms string

	// Warnings are what the configuration asks for and hopbed does not do.
	Warnings []Warning
}

// Identity is a key file.
type Identity struct {
	File string
	// Default: nobody named it; it need not exist.
	Default bool
}

// Warning is a setting that is not followed.
type Warning struct {
	Pos  Pos
	What string // the line, and what happens instead
}

// String writes the place and the warning.
func (w Warning) String() string { return w.Pos.String() + ": " + w.What }

// Unsupported is a setting without which a connection would go elsewhere, or
// trust another one than the configuration says.
type Unsupported struct {
	Pos     Pos
	Keyword string
	Because string
	Do      string
}

// Error names the place, the reason and the remedy.
func (u *Unsupported) Error() string {
	return fmt.Sprintf("%s: %s is unavailable, because %s; %s", u.Pos, u.Keyword, u.Because, u.Do)
}

// Override is what takes precedence over the configuration, like options of ssh.
type Override struct {
	User string   // "" = the configuration's
	Port int      // 0 = the configuration's
	Jump []string // nil = the configuration's; empty and not nil = none
}

// Jump is a host on the way.
type Jump struct {
	Host, User string
	Port       int // 0 = not given
}

// String writes "user@host:port", without what is not given.
func (j Jump) String() string {
	s := j.Host
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	if j.User != "" {
		s = j.User + "@" + s
	}
	if j.Port != 0 {
		s += ":" + strconv.Itoa(j.Port)
	}
	return s
}

// ParseJump reads "[user@]host[:port]" or "ssh://[user@]host[:port]".
func ParseJump(s string) (Jump, error) {
	text := strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	var j Jump
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		if j.User, text = text[:i], text[i+1:]; j.User == "" {
			return j, fmt.Errorf("jump host %q: the user is missing before @", s)
		}
	}
	port := ""
	switch {
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		if end < 0 || end+1 < len(text) && text[end+1] != ':' {
			return j, fmt.Errorf("jump host %q: an IPv6 address is written [address]:port", s)
		}
		j.Host = text[1:end]
		if end+1 < len(text) {
			if port = text[end+2:]; port == "" {
				return j, fmt.Errorf("jump host %q: the port is missing after the colon", s)
			}
		}
	case strings.Count(text, ":") == 1:
		j.Host, port, _ = strings.Cut(text, ":")
		if port == "" {
			return j, fmt.Errorf("jump host %q: the port is missing after the colon", s)
		}
	default:
		j.Host = text // a name, or an IPv6 address without a port
	}
	if j.Host == "" || strings.ContainsAny(j.Host, " \t\r\n/@,'\"`$\\;&<>|(){}") || strings.HasPrefix(j.Host, "-") {
		return j, fmt.Errorf("jump host %q: not a host name; allowed: [user@]host[:port]", s)
	}
	if port != "" {
		p, err := parsePort(port)
		if err != nil {
			return j, fmt.Errorf("jump host %q: %w", s, err)
		}
		j.Port = p
	}
	return j, nil
}
