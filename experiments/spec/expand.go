package spec

import (
	"fmt"
	"slices"
	"strings"
)

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
		if v, rest := x.pick(n, m); rest == "" {
			c := *v
			c.via = strings.Trim(m, "${}")
			return &c
		}
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
		v, rest := x.pick(n, s)
		if x.failed {
			return s
		}
		if v.kind != scalar || v.null {
			x.fail(n, "the variable "+s+" stands for "+v.kind.String()+", which cannot be a part of a text", "a plain value")
			return s
		}
		if length += len(v.text); length > maxText {
			x.fail(n, fmt.Sprintf("with its variables replaced, the text is longer than %d bytes", maxText), "")
		}
		return v.text + rest
	})
	return &c
}

func (x *expander) fail(at *node, what, allowed string) {
	x.failed = true
	x.report.add(&Problem{Pos: at.pos, Value: quote(at.text), What: what, Allowed: allowed})
}

// pick returns what a reference in n stands for. A dot after a variable that
// stands for a plain value is a dot: rest is the text from there on.
func (x *expander) pick(n *node, ref string) (v *node, rest string) {
	name, keys := parseRef(ref)
	v = x.binding[name]
	for i, key := range keys {
		if v.kind == scalar && wholeVar.MatchString(v.text) {
			if v = x.expand(v); x.failed {
				return n, ""
			}
		}
		if v.kind != mapping {
			if v.kind == scalar && !v.null && !strings.HasPrefix(ref, "${") {
				return x.expand(v), "." + strings.Join(keys[i:], ".")
			}
			x.fail(n, "$"+strings.Join(append([]string{name}, keys[:i]...), ".")+" is "+describe(v)+", which has no keys", "a mapping")
			return n, ""
		}
		inner, _ := v.get(key)
		if inner == nil {
			have := slices.DeleteFunc(texts(v.keys), func(k string) bool { return k == keyLabel })
			x.failed = true
			p := &Problem{Pos: n.pos, Value: quote(n.text), What: "the value of " + x.name(name) + " has no key " + key,
				Allowed: "$" + name + "." + strings.Join(have, ", $"+name+"."), Hint: suggest(key, have)}
			if len(have) == 0 {
				p.What += ": it holds no key but its " + keyLabel
				p.Allowed = "a key " + key + " in that value, beside its " + keyLabel
			}
			x.report.add(p)
			return n, ""
		}
		v = inner
	}
	if _, i := v.get(keyLabel); i >= 0 && len(keys) == 0 {
		c := *v // the label names the value and is no part of it
		c.keys = slices.Delete(slices.Clone(v.keys), i, i+1)
		c.items = slices.Delete(slices.Clone(v.items), i, i+1)
		v = &c
	}
	return x.expand(v), ""
}

// name tells a variable with its value, for messages.
func (x *expander) name(variable string) string {
	return "$" + variable + " in the point " + variable + "=" + quote(x.label(x.binding[variable]))
}

// label is the textual form of a variable's value in names and results.
func (x *expander) label(v *node) string {
	if l, _ := v.get(keyLabel); l != nil {
		return x.expand(l).String()
	}
	if v.kind == scalar && wholeVar.MatchString(v.text) {
		if name, keys := parseRef(v.text); len(keys) == 0 {
			return x.label(x.binding[name])
		}
	}
	return x.expand(v).String()
}
