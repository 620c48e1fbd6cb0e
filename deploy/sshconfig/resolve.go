package sshconfig

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is what a keyword was first set to.
type value struct {
	pos  Pos
	args []string
}

// resolver walks the configuration for one host.
type resolver struct {
	cfg      *Config
	alias    string
	over     Override
	final    bool // the second walk, for "Match final"
	again    bool // such a match was met
	values   map[string]value
	files    []value // every IdentityFile
	warnings []Warning
	ignored  []string // patterns of IgnoreUnknown
	err      error
}

// Resolve answers what the configuration says about a host, by the name that one
// would give to ssh. An *Unsupported error says that following it would need what
// hopbed does not do.
func (c *Config) Resolve(alias string, over Override) (*Host, error) {
	r := &resolver{cfg: c, alias: alias, over: over, values: map[string]value{}}
	r.walkAll()
	if r.again {
		r.final = true
		r.walkAll()
	}
	if r.err != nil {
		return nil, r.err
	}
	h, err := r.host()
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (r *resolver) walkAll() {
	for _, f := range r.cfg.files {
		active := true
		r.walk(f, &active, false)
	}
}

func (r *resolver) walk(f *file, active *bool, never bool) {
	for _, l := range f.lines {
		switch l.key {
		case "host":
			*active = !never && MatchAny(r.alias, l.args)
		case "match":
			*active = r.match(l) && !never
		case "include":
			// A file's Host and Match lines end with it.
			for _, inc := range l.include {
				inner := *active
				r.walk(inc, &inner, never || !*active)
			}
		default:
			if *active {
				r.set(l)
			}
		}
	}
}

func (r *resolver) set(l line) {
	switch t, known := keywords[l.key]; {
	case l.key == "ignoreunknown":
		r.ignored = append(r.ignored, strings.Split(strings.ToLower(strings.Join(l.args, ",")), ",")...)
	case !known:
		if !MatchAny(l.key, r.ignored) {
			r.warn(l.pos, fmt.Sprintf("%s: hopbed does not know this keyword, and leaves it out", l.key))
		}
	case t == said:
		if !slices.Contains(same[l.key], strings.ToLower(strings.Join(l.args, " "))) {
			r.warn(l.pos, fmt.Sprintf("%s %s is not followed: %s", l.key, strings.Join(l.args, " "), instead[l.key]))
		}
	case t == harmless:
	case l.key == "identityfile":
		if !slices.ContainsFunc(r.files, func(v value) bool { return v.args[0] == l.args[0] }) {
			r.files = append(r.files, value{l.pos, l.args})
		}
	default:
		key := l.key
		switch key {
		case "pubkeyacceptedkeytypes":
			key = "pubkeyacceptedalgorithms"
		case "proxyjump", "proxycommand":
			key = "proxy" // of these two, the one that comes first counts
			l.args = append([]string{l.key}, l.args...)
		}
		if _, ok := r.values[key]; !ok {
			r.values[key] = value{l.pos, l.args}
		}
	}
}

func (r *resolver) warn(pos Pos, what string) {
	w := Warning{pos, clean(what)}
	if !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}

// clean keeps what is quoted of a file from driving a terminal.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, s)
}

// match evaluates the criteria of a Match line. Those that hopbed cannot evaluate
// make the block not apply, with a warning, unless another one already does.
func (r *resolver) match(l line) bool {
	result, unknown := true, ""
	for args := l.args; len(args) > 0; {
		word := args[0]
		args = args[1:]
		name, arg, hasArg := strings.Cut(strings.ToLower(word), "=")
		if hasArg {
			arg = word[len(name)+1:]
		}
		name, negate := strings.CutPrefix(name, "!")
		var hit bool
		switch name {
		case "all":
			hit = true
		case "final":
			r.again = true
			hit = r.final
		case "canonical":
			hit = r.final // canonicalization is not done; the second walk counts for both
		case "host", "originalhost", "user", "localuser", "exec", "localnetwork", "tagged":
			if !hasArg {
				if len(args) == 0 {
					r.fail(&SyntaxError{l.pos, "Match " + name + " has no value"})
					return false
				}
				arg, args = args[0], args[1:]
			}
			switch name {
			case "host":
				hit = MatchAny(r.hostName(), strings.Split(arg, ","))
			case "originalhost":
				hit = MatchAny(r.alias, strings.Split(arg, ","))
			case "user":
				hit = MatchAny(r.user(), strings.Split(arg, ","))
			case "localuser":
				hit = MatchAny(r.cfg.env.User, strings.Split(arg, ","))
			default:
				unknown = name
				continue
			}
		default:
			unknown = name
			continue
		}
		result = result && hit != negate
	}
	if unknown != "" && result {
		r.warn(l.pos, "Match "+unknown+" is not evaluated: the lines of this block are left out for "+r.alias)
		return false
	}
	return result
}

func (r *resolver) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// hostName is what has been found so far.
func (r *resolver) hostName() string {
	v, ok := r.values["hostname"]
	if !ok {
		return r.alias
	}
	s, err := expand(v.args[0], map[byte]string{'h': r.alias})
	if err != nil {
		r.fail(fmt.Errorf("%s: HostName: %w", v.pos, err))
	}
	return s
}

func (r *resolver) user() string {
	if r.over.User != "" {
		return r.over.User
	}
	if v, ok := r.values["user"]; ok {
		return v.args[0]
	}
	return r.cfg.env.User
}

// The readers of values note the first mistake with its place.

func (r *resolver) word(key, def string) string {
	if v, ok := r.values[key]; ok {
		return v.args[0]
	}
	return def
}

func (r *resolver) list(key string, def ...string) []string {
	if v, ok := r.values[key]; ok {
		return v.args
	}
	return def
}

func (r *resolver) yes(key string, def bool) bool {
	v, ok := r.values[key]
	if !ok {
		return def
	}
	switch strings.ToLower(v.args[0]) {
	case "yes", "true":
		return true
	case "no", "false":
		return false
	}
	r.fail(&SyntaxError{v.pos, fmt.Sprintf("%s %q: allowed: yes, no", key, v.args[0])})
	return def
}

func (r *resolver) number(key string, def int) int {
	v, ok := r.values[key]
	if !ok {
		return def
	}
	n, err := strconv.Atoi(v.args[0])
	if err != nil || n < 0 || n > 1<<30 {
		r.fail(&SyntaxError{v.pos, fmt.Sprintf("%s %q: allowed: a number, 0 or more", key, v.args[0])})
	}
	return n
}

func (r *resolver) duration(key string) time.Duration {
	v, ok := r.values[key]
	if !ok || strings.EqualFold(v.args[0], "none") {
		return 0
	}
	d, err := parseTime(v.args[0])
	if err != nil {
		r.fail(&SyntaxError{v.pos, fmt.Sprintf("%s %q: %v", key, v.args[0], err)})
	}
	return d
}

// parseTime reads ssh's times: "90", "1m30s", "2h".
func parseTime(s string) (time.Duration, error) {
	bad := errors.New("allowed: seconds, or a time like 1m30s")
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if s == "" {
		return 0, bad
	}
	var total time.Duration
	for s != "" {
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		n, err := strconv.Atoi(s[:i])
		if err != nil || n > 1<<30 {
			return 0, bad
		}
		unit := time.Second
		if i < len(s) {
			u, ok := units[s[i]|0x20]
			if !ok {
				return 0, bad
			}
			unit = u
			i++
		}
		d := time.Duration(n) * unit
		if d/unit != time.Duration(n) || total+d < total {
			return 0, bad
		}
		total += d
		s = s[i:]
	}
	return total, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("port %q; allowed: 1 to 65535", s)
	}
	return n, nil
}
