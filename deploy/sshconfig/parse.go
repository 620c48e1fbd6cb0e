package sshconfig

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a configuration; ssh has the depth, too.
const (
	maxDepth = 16
	maxBytes = 1 << 20 // of one file
	maxFiles = 1000
)

// Pos is a line of a file.
type Pos struct {
	File string
	Line int
}

// String writes "file:line".
func (p Pos) String() string { return p.File + ":" + strconv.Itoa(p.Line) }

// SyntaxError is a line that ssh would not take either.
type SyntaxError struct {
	Pos  Pos
	What string
}

// Error writes the place and what is wrong there.
func (e *SyntaxError) Error() string { return e.Pos.String() + ": " + e.What }

// file is a parsed ssh_config.
type file struct{ lines []line }

// line is a keyword with its arguments.
type line struct {
	pos     Pos
	key     string // in lower case
	args    []string
	include []*file
}

// Config is the user's and the system's configuration. It does not change and may
// be used from several goroutines.
type Config struct {
	files []*file // the user's first: the first value of a keyword counts
	env   Env
}

// Env is what values may refer to.
type Env struct {
	Home      string // ~ and %d
	User      string // the local user, %u
	UID       int    // %i
	LocalHost string // %l; %L is its first part
	Lookup    func(string) (string, bool)
	HomeOf    func(user string) (string, error) // ~user
}

// Files are the configurations to read; an empty path is none, and a file that
// does not exist is empty.
type Files struct {
	User, System string
	// Lax accepts a user's file that others may write to, as ssh does of the file
	// of its option -F.
	Lax bool
}

// Load reads the configuration with everything that it includes. The error is a
// *SyntaxError, or says which file cannot be read.
func Load(f Files, env Env) (*Config, error) {
	c := &Config{env: env}
	for _, top := range []struct {
		path  string
		under string // where relative includes are
		check bool
	}{{f.User, filepath.Join(env.Home, ".ssh"), !f.Lax}, {f.System, "/etc/ssh", false}} {
		if top.path == "" {
			continue
		}
		l := loader{env: env, under: top.under, user: top.under != "/etc/ssh"}
		parsed, err := l.read(top.path, 0, top.check)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, parsed)
	}
	return c, nil
}

type loader struct {
	env   Env
	under string
	user  bool // of a user: included files must not be writable by others
	files int
}

func (l *loader) read(path string, depth int, check bool) (*file, error) {
	if l.files++; l.files > maxFiles {
		return nil, fmt.Errorf("%s: ssh_config includes more than %d files", path, maxFiles)
	}
	if st, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return &file{}, nil
	} else if err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s: is a folder, not an ssh_config", path)
	}
	fd, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ssh_config: %w", err)
	}
	defer fd.Close()
	if check {
		if err := safe(fd); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(fd, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("ssh_config: %w", err)
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: an ssh_config of more than %d bytes", path, maxBytes)
	}
	return l.parse(path, string(data), depth)
}

func (l *loader) parse(path, text string, depth int) (*file, error) {
	f := &file{}
	for i, s := range strings.Split(text, "\n") {
		pos := Pos{path, i + 1}
		key, args, err := split(s)
		if err != nil {
			return nil, &SyntaxError{pos, err.Error()}
		}
		if key == "" {
			continue
		}
		ln := line{pos: pos, key: strings.ToLower(key), args: args}
		if len(args) == 0 {
			return nil, &SyntaxError{pos, key + " has no value"}
		}
		if single[ln.key] && len(args) > 1 {
			return nil, &SyntaxError{pos, fmt.Sprintf("%s has %d values; it takes one (in quotes, if it has blanks)", key, len(args))}
		}
		if ln.key == "include" {
			if depth >= maxDepth {
				return nil, &SyntaxError{pos, fmt.Sprintf("included deeper than %d levels: does the file include itself?", maxDepth)}
			}
			if ln.include, err = l.included(args, depth); err != nil {
				return nil, fmt.Errorf("%s: %w", pos, err)
			}
		}
		f.lines = append(f.lines, ln)
	}
	return f, nil
}

func (l *loader) included(patterns []string, depth int) ([]*file, error) {
	var out []*file
	for _, p := range patterns {
		path, err := l.env.tilde(p)
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.under, path)
		}
		matches, err := filepath.Glob(path)
		if err != nil {
			return nil, fmt.Errorf("include %q: %w", p, err)
		}
		slices.Sort(matches)
		for _, m := range matches {
			f, err := l.read(m, depth+1, l.user)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

const blanks = " \t\r\f"

// split takes a line apart as ssh does: a keyword, blanks or one "=", and words,
// which may be quoted; a word that begins with # begins a comment.
func split(s string) (key string, args []string, err error) {
	s = strings.Trim(s, blanks)
	if s == "" || s[0] == '#' {
		return "", nil, nil
	}
	i := strings.IndexAny(s, blanks+"=")
	if i < 0 {
		return s, nil, nil
	}
	key, s = s[:i], s[i:]
	s = strings.TrimLeft(s, blanks)
	if strings.HasPrefix(s, "=") {
		s = strings.TrimLeft(s[1:], blanks)
	}
	args, err = words(s)
	return key, args, err
}

// words splits as OpenSSH's argv_split does.
func words(s string) ([]string, error) {
	var out []string
	for i := 0; i < len(s); {
		if strings.IndexByte(blanks, s[i]) >= 0 {
			i++
			continue
		}
		if s[i] == '#' {
			break
		}
		var w []byte
		var quote byte
		for ; i < len(s); i++ {
			c := s[i]
			switch {
			case c == '\\' && i+1 < len(s) && (s[i+1] == '\'' || s[i+1] == '"' || s[i+1] == '\\' || quote == 0 && s[i+1] == ' '):
				i++
				w = append(w, s[i])
				continue
			case quote == 0 && strings.IndexByte(" \t", c) >= 0:
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				quote = 0
				continue
			default:
				w = append(w, c)
				continue
			}
			break
		}
		if quote != 0 {
			return nil, errors.New("a quote is not closed")
		}
		out = append(out, string(w))
	}
	return out, nil
}
