package spec

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Variables are declared by the keys of matrix. $name stands for a whole value,
// or for a part of a text; ${name} is the same where a letter follows. A value
// of the matrix may itself refer to other variables. $$ is a dollar sign.

var (
	varName  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	wholeVar = regexp.MustCompile(`^\$(?:[a-z][a-z0-9_-]*|\{[a-z][a-z0-9_-]*\})$`)
	partVar  = regexp.MustCompile(`\$\$|\$\{[a-z][a-z0-9_-]*\}|\$[a-z][a-z0-9_-]*|\$`)
)

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
			s := it.String()
			if seen[s] {
				r.add(&Problem{Pos: it.pos, Path: at, Value: quote(s), What: "the value is listed twice", Allowed: "each value once"})
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

// bare strips a reference to the name.
func bare(ref string) string { return strings.Trim(ref, "${}") }

// refs calls f for every variable that the value refers to, and reports
// dollar signs that are none.
func (n *node) refs(f func(name string, at *node), bad func(at *node)) {
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
			f(bare(s), n)
		}
	}
}

// check reports unknown, unused and cyclic variables. The roots are the values
// of the document in which variables may stand.
func (m *matrix) check(roots []*node, r *report) bool {
	ok := true
	bad := func(at *node) {
		ok = false
		r.add(&Problem{Pos: at.pos, Value: quote(at.text), What: "a $ that begins no variable", Allowed: "$name or ${name} in lower-case letters for a variable, $$ for a dollar sign"})
	}
	known := func(then func(string)) func(string, *node) {
		return func(name string, at *node) {
			if m.lookup(name) != nil {
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
		if !used[v.name] {
			ok = false
			r.add(&Problem{Pos: v.key.pos, Path: "matrix." + v.name, What: "the variable is never used: every point would run the same thing again",
				Allowed: "$" + v.name + " where it belongs; to fix a variable give it one value, matrix." + v.name + ": [" + v.values[0].String() + "]"})
		}
	}
	return ok
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

// expander replaces variables; left bounds the size of the result, since a
// variable may stand for a mapping that holds variables.
type expander struct {
	binding map[string]*node
	report  *report
	left    int
	failed  bool
}

func (x *expander) expand(n *node) *node {
	if x.failed {
		return n
	}
	if x.left--; x.left < 0 {
		x.failed = true
		x.report.add(&Problem{Pos: n.pos, What: fmt.Sprintf("with its variables replaced, the file stands for more than %d values", maxNodes), Allowed: "fewer"})
		return n
	}
	if n.kind != scalar {
		c := *n
		c.items = make([]*node, len(n.items))
		for i, it := range n.items {
			c.items[i] = x.expand(it)
		}
		return &c
	}
	if !strings.Contains(n.text, "$") {
		return n
	}
	if m := wholeVar.FindString(n.text); m != "" {
		name := bare(m)
		c := *x.expand(x.binding[name])
		c.via = name
		return &c
	}
	c := *n
	length := 0
	c.text = partVar.ReplaceAllStringFunc(n.text, func(s string) string {
		if x.failed {
			return s
		}
		if s == "$$" {
			return "$"
		}
		name := bare(s)
		v := x.expand(x.binding[name])
		if v.kind != scalar || v.null {
			x.failed = true
			x.report.add(&Problem{Pos: n.pos, Value: quote(n.text), What: "the variable $" + name + " stands for " + v.kind.String() + ", which cannot be a part of a text", Allowed: "a plain value"})
			return s
		}
		if length += len(v.text); length > maxText {
			x.failed = true
			x.report.add(&Problem{Pos: n.pos, Value: quote(n.text), What: fmt.Sprintf("with its variables replaced, the text is longer than %d bytes", maxText)})
		}
		return v.text
	})
	return &c
}

func valueOf(n *node) string {
	if n.null {
		return "(nothing)"
	}
	return quote(n.String())
}
