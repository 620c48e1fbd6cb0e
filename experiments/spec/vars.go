package spec

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Variables are declared by the keys of matrix. $name stands for a whole value,
// or for a part of a text; ${name} is the same where a letter follows. Where the
// value is a mapping, $name.key stands for what it holds under a key. A value of
// the matrix may itself refer to other variables. $$ is a dollar sign.

const reference = `[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*`

var (
	varName  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	wholeVar = regexp.MustCompile(`^\$(?:` + reference + `|\{` + reference + `\})$`)
	partVar  = regexp.MustCompile(`\$\$|\$\{` + reference + `\}|\$` + reference + `|\$`)
)

// keyLabel names a mapping that is a value of the matrix.
const keyLabel = "label"

// parseRef splits a reference, "$case.radio.rate", into the variable and the
// keys that are picked from its value.
func parseRef(ref string) (name string, keys []string) {
	parts := strings.Split(strings.Trim(ref, "${}"), ".")
	return parts[0], parts[1:]
}

// variable is one key of the matrix.
type variable struct {
	name   string
	key    *node
	values []*node
}

// matrix is the ordered set of variables of a file.
type matrix struct{ vars []variable }

func (m *matrix) lookup(name string) *variable {
	for i := range m.vars {
		if m.vars[i].name == name {
			return &m.vars[i]
		}
	}
	return nil
}

func (m *matrix) names() []string {
	var out []string
	for _, v := range m.vars {
		out = append(out, v.name)
	}
	return out
}

// parseMatrix reads the block "matrix".
func parseMatrix(n *node, path string, r *report) *matrix {
	m := &matrix{}
	if n == nil {
		return m
	}
	if n.kind != mapping {
		r.add(&Problem{Pos: n.pos, Path: path, What: "is " + n.kind.String(), Allowed: "a mapping of variables to lists: {transport: [hop, tcp/cubic]}"})
		return m
	}
	points := 1
	for i, k := range n.keys {
		v := n.items[i]
		at := path + "." + k.text
		if !varName.MatchString(k.text) {
			r.add(&Problem{Pos: k.pos, Path: path, Value: quote(k.text), What: "not a name of a variable", Allowed: "a lower-case letter, then letters, digits, _ and -, at most 32"})
			continue
		}
		if v.kind != sequence || len(v.items) == 0 {
			r.add(&Problem{Pos: v.pos, Path: at, Value: valueOf(v), What: "not a list of values", Allowed: "a list with at least one value, for example [" + cmp.Or(v.text, "1, 2") + "]"})
			continue
		}
		seen := map[string]bool{}
		for _, it := range v.items {
			l, _ := it.get(keyLabel)
			if l != nil && (l.kind != scalar || l.null || l.text == "" || !patterns["line"].ok(l.text)) {
				r.add(&Problem{Pos: l.pos, Path: at + "." + keyLabel, Value: valueOf(l), What: "not a name for a value", Allowed: "one line of plain text"})
				continue
			}
			s, what := it.String(), "the value is listed twice"
			if l != nil {
				s, what = l.text, "two values have this label"
			}
			if seen[s] {
				r.add(&Problem{Pos: it.pos, Path: at, Value: quote(s), What: what, Allowed: "each value once"})
			}
			seen[s] = true
		}
		m.vars = append(m.vars, variable{k.text, k, v.items})
		if points *= len(v.items); points > MaxPoints {
			r.add(&Problem{Pos: k.pos, Path: path, What: fmt.Sprintf("the matrix has more than %d points", MaxPoints), Allowed: "fewer values or fewer variables"})
			m.vars = nil
			return m
		}
	}
	return m
}

// named returns the value of a variable that a label names, or that is written
// in just this way.
func (v *node) named(text string) *node {
	if v == nil {
		return nil
	}
	for _, it := range v.items {
		if l, _ := it.get(keyLabel); l != nil && l.text == text || it.String() == text {
			return it
		}
	}
	return nil
}

// refs calls f for every variable that the value refers to, with the keys that
// are picked from it, and reports dollar signs that are none.
func (n *node) refs(f func(name string, keys []string, at *node), bad func(at *node)) {
	for _, it := range n.items {
		it.refs(f, bad)
	}
	if n.kind != scalar || !strings.Contains(n.text, "$") {
		return
	}
	for _, s := range partVar.FindAllString(n.text, -1) {
		switch {
		case s == "$":
			bad(n)
		case s != "$$":
			name, keys := parseRef(s)
			f(name, keys, n)
		}
	}
}

// check reports unknown, unused and cyclic variables. The roots are the values
// of the document in which variables may stand. In a selection of the file's
// points (quick, --set) a variable that those do not need may stand with one
// value.
func (m *matrix) check(roots []*node, selection bool, r *report) bool {
	ok := true
	bad := func(at *node) {
		ok = false
		r.add(&Problem{Pos: at.pos, Value: quote(at.text), What: "a $ that begins no variable", Allowed: "$name or ${name} in lower-case letters for a variable, $$ for a dollar sign"})
	}
	// What is picked from each variable; "" stands for the whole.
	picked := map[string]map[string]bool{}
	known := func(then func(string)) func(string, []string, *node) {
		return func(name string, keys []string, at *node) {
			if m.lookup(name) != nil {
				if picked[name] == nil {
					picked[name] = map[string]bool{}
				}
				picked[name][strings.Join(keys[:min(1, len(keys))], "")] = true
				then(name)
				return
			}
			ok = false
			p := &Problem{Pos: at.pos, Value: quote(at.text), What: "the variable $" + name + " is not declared in matrix", Hint: suggest(name, m.names())}
			if p.Allowed = "$" + strings.Join(m.names(), ", $"); len(m.vars) == 0 {
				p.Allowed = "matrix: {" + name + ": [value, …]} declares it"
			}
			r.add(p)
		}
	}
	used := map[string]bool{}
	edges := map[string][]string{}
	for _, n := range roots {
		n.refs(known(func(name string) { used[name] = true }), bad)
	}
	for _, v := range m.vars {
		for _, it := range v.values {
			it.refs(known(func(name string) {
				if !slices.Contains(edges[v.name], name) {
					edges[v.name] = append(edges[v.name], name)
				}
			}), bad)
		}
	}
	if cycle := m.cycle(edges); cycle != nil {
		r.add(&Problem{Pos: m.lookup(cycle[0]).key.pos, Path: "matrix", What: "variables refer to each other in a cycle: $" + strings.Join(cycle, " → $"), Allowed: "variables that end in plain values"})
		return false
	}
	// A variable is used by the document, or by one that is.
	var reach func(name string)
	reach = func(name string) {
		used[name] = true
		for _, next := range edges[name] {
			if !used[next] {
				reach(next)
			}
		}
	}
	for _, v := range m.vars {
		if used[v.name] {
			reach(v.name)
		}
	}
	for _, v := range m.vars {
		if selection && len(v.values) == 1 && !used[v.name] {
			continue
		}
		if !used[v.name] {
			ok = false
			r.add(&Problem{Pos: v.key.pos, Path: "matrix." + v.name, What: "the variable is never used: every point would run the same thing again",
				Allowed: "$" + v.name + " where it belongs; to fix a variable give it one value, matrix." + v.name + ": [" + v.values[0].String() + "]"})
		} else if !picked[v.name][""] {
			v.allPicked(picked[v.name], r)
		}
	}
	return ok
}

// allPicked reports keys of a variable's values that nothing picks.
func (v *variable) allPicked(picked map[string]bool, r *report) {
	for _, it := range v.values {
		for _, k := range it.keys {
			if k.text != keyLabel && !picked[k.text] {
				r.add(&Problem{Pos: k.pos, Path: "matrix." + v.name, Value: quote(k.text), What: "the key is never used",
					Allowed: "$" + v.name + "." + k.text + " where it belongs; " + keyLabel + " for the name of the value", Hint: suggest(k.text, append(slices.Sorted(maps.Keys(picked)), keyLabel))})
			}
		}
	}
}

// cycle returns the names along one cycle, the first repeated at the end, or
// nil.
func (m *matrix) cycle(edges map[string][]string) []string {
	const grey, black = 1, 2
	colour := map[string]int{}
	var stack []string
	var visit func(name string) []string
	visit = func(name string) []string {
		colour[name] = grey
		stack = append(stack, name)
		for _, next := range edges[name] {
			switch colour[next] {
			case grey:
				i := slices.Index(stack, next)
				return append(slices.Clone(stack[i:]), next)
			case black:
			default:
				if c := visit(next); c != nil {
					return c
				}
			}
		}
		stack = stack[:len(stack)-1]
		colour[name] = black
		return nil
	}
	for _, v := range m.vars {
		if colour[v.name] == 0 {
			if c := visit(v.name); c != nil {
				return c
			}
		}
	}
	return nil
}

// count returns the number of points.
func (m *matrix) count() int {
	n := 1
	for _, v := range m.vars {
		n *= len(v.values)
	}
	return n
}

// binding returns the value of every variable in point i: the last variable
// runs fastest.
func (m *matrix) binding(i int) map[string]*node {
	b := make(map[string]*node, len(m.vars))
	for k := len(m.vars) - 1; k >= 0; k-- {
		v := m.vars[k]
		b[v.name] = v.values[i%len(v.values)]
		i /= len(v.values)
	}
	return b
}

func valueOf(n *node) string {
	if n.null {
		return "(nothing)"
	}
	return quote(n.String())
}
