package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The keys of the document beside those of Config.
const (
	keyMatrix = "matrix"
	keyQuick  = "quick"
)

// quickKeys are what the quick block may replace.
var quickKeys = []string{"repeat", "warmup", "duration", "sample", "transports", keyMatrix}

// maxWork bounds points × values of a document.
const maxWork = 5_000_000

// hasVariables reports whether variables are replaced in the value of a key of
// the document.
func hasVariables(key string) bool {
	if key == keyMatrix || key == keyQuick {
		return false
	}
	for _, f := range fieldsOf(reflect.TypeFor[Config]()) {
		if f.key == key {
			return !f.novar
		}
	}
	return true
}

// resolve decodes every point of a document, the file's own or a selection of
// its points (quick, --set). The result is of use only when the report has no
// problem.
func resolve(root *node, selection bool, files *files, r *report) []Point {
	if root.kind != mapping {
		r.add(&Problem{Pos: root.pos, What: "is " + describe(root), Allowed: "an experiment: a mapping that begins with hopbed: 1"})
		return nil
	}
	mn, _ := root.get(keyMatrix)
	m := parseMatrix(mn, keyMatrix, r)
	var roots []*node
	for i, k := range root.keys {
		if hasVariables(k.text) {
			roots = append(roots, root.items[i])
		}
	}
	declared := mn == nil || mn.kind == mapping && len(m.vars) == len(mn.keys)
	if !declared || !m.check(roots, selection, r) {
		return nil // what follows from a wrong variable is not worth saying
	}
	if size := root.size(); m.count()*size > maxWork {
		r.add(&Problem{Pos: mn.pos, Path: keyMatrix, What: fmt.Sprintf("%d points of %d values each are too many", m.count(), size), Allowed: fmt.Sprintf("up to %d in all", maxWork)})
		return nil
	}
	points := make([]Point, 0, m.count())
	for i := range m.count() {
		p, ok := resolvePoint(root, m, i, files, r)
		if !ok || r.more > 0 {
			return nil
		}
		points = append(points, p)
	}
	if c := points[0].Config; len(points)*c.Repeat > MaxRuns {
		n, _ := root.get("repeat")
		if n == nil {
			n = root
		}
		r.add(&Problem{Pos: n.pos, Path: "repeat", What: fmt.Sprintf("%d repetitions of %d points are too many runs", c.Repeat, len(points)), Allowed: fmt.Sprintf("up to %d", MaxRuns)})
	}
	return points
}

// wired refuses what describes radios in a file none of whose points has one.
func wired(root *node, points []Point, r *report) {
	for _, p := range points {
		all := p.Config.Topology.AllNodes()
		if len(all) == 0 || slices.ContainsFunc(all, func(n Node) bool { return n.Radio }) {
			return
		}
	}
	for _, key := range []string{"radio", "mac"} {
		if n, _ := root.get(key); n != nil {
			r.add(&Problem{Pos: n.pos, Path: key, Value: valueOf(n), What: "has no meaning here: no node has a radio", Allowed: "leave it out"})
		}
	}
}

func (n *node) size() int {
	s := 1 + len(n.keys)
	for _, it := range n.items {
		s += it.size()
	}
	return s
}

func resolvePoint(root *node, m *matrix, i int, files *files, r *report) (Point, bool) {
	x := &expander{binding: m.binding(i), report: r, left: maxNodes}
	doc := *root
	doc.items = make([]*node, len(root.items))
	for j, k := range root.keys {
		if doc.items[j] = root.items[j]; hasVariables(k.text) {
			doc.items[j] = x.expand(root.items[j])
		}
	}
	p := Point{Index: i, Config: new(Config)}
	for _, v := range m.vars {
		p.Params = append(p.Params, Param{v.name, x.label(x.binding[v.name])})
	}
	if x.failed {
		return p, false
	}
	d := &decoder{report: r, set: map[string]*node{}, files: files}
	setDefaults(reflect.ValueOf(p.Config).Elem())
	p.Config.Transports.Exec.Dir = files.folder
	before := len(r.problems) + r.more
	d.block(&doc, "", reflect.ValueOf(p.Config).Elem(), keyMatrix, keyQuick)
	(&check{decoder: d, c: p.Config, root: &doc}).all()
	return p, len(r.problems)+r.more == before || i < 100 // enough to have seen every mistake
}

// applyQuick returns the document with the values of its quick block, or nil
// when that block is wrong.
func applyQuick(root *node, r *report) *node {
	q, _ := root.get(keyQuick)
	if q.kind != mapping || len(q.keys) == 0 {
		r.add(&Problem{Pos: q.pos, Path: keyQuick, What: "is " + describe(q), Allowed: "a mapping with some of " + strings.Join(quickKeys, ", ")})
		return nil
	}
	out := root.clone()
	before := len(r.problems)
	for i, k := range q.keys {
		switch {
		case !slices.Contains(quickKeys, k.text):
			r.add(&Problem{Pos: k.pos, Path: keyQuick, Value: quote(k.text), What: "cannot be changed by quick", Allowed: strings.Join(quickKeys, ", "), Hint: suggest(k.text, quickKeys)})
		case k.text == keyMatrix:
			quickMatrix(out, q.items[i], r)
		case q.items[i].kind == mapping:
			out.merge(k, q.items[i])
		default:
			out.put(k, q.items[i])
		}
	}
	if len(r.problems) > before {
		return nil
	}
	return out
}

// quickMatrix keeps some of the values of some variables.
func quickMatrix(root, q *node, r *report) {
	full, _ := root.get(keyMatrix)
	if full == nil || full.kind != mapping || q.kind != mapping {
		r.add(&Problem{Pos: q.pos, Path: "quick.matrix", What: "is not a part of the file's matrix", Allowed: "some of its variables with some of their values"})
		return
	}
	for i, k := range q.keys {
		at := "quick.matrix." + k.text
		all, _ := full.get(k.text)
		if all == nil {
			r.add(&Problem{Pos: k.pos, Path: "quick.matrix", Value: quote(k.text), What: "not a variable of the file", Hint: suggest(k.text, texts(full.keys)), Allowed: strings.Join(texts(full.keys), ", ")})
			continue
		}
		var have []string
		for _, v := range all.items {
			if l, _ := v.get(keyLabel); l != nil {
				have = append(have, l.text)
			} else {
				have = append(have, v.String())
			}
		}
		chosen := *q.items[i]
		chosen.items = slices.Clone(chosen.items)
		for j, v := range chosen.items {
			if it := all.named(v.String()); it != nil {
				chosen.items[j] = it
			} else {
				r.add(&Problem{Pos: v.pos, Path: at, Value: quote(v.String()), What: "not a value of the file's matrix", Allowed: strings.Join(have, ", "), Hint: suggest(v.String(), have)})
			}
		}
		full.put(k, &chosen)
	}
}

func texts(nodes []*node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.text)
	}
	return out
}

// put sets the value of a key.
func (n *node) put(key, value *node) {
	if _, i := n.get(key.text); i >= 0 {
		n.items[i] = value
		return
	}
	n.keys, n.items = append(n.keys, key), append(n.items, value)
}

// merge sets the values of a block's keys, block by block, and keeps those that
// value does not name.
func (n *node) merge(key, value *node) {
	old, _ := n.get(key.text)
	if old == nil || old.kind != mapping || value.kind != mapping {
		n.put(key, value)
		return
	}
	for i, k := range value.keys {
		old.merge(k, value.items[i])
	}
}

// assign carries out one --set on the document, making the blocks around the
// key where the file has none. Whether the key exists is seen when the
// document is decoded.
func assign(root *node, a Assignment, r *report) {
	origin := Pos{Origin: "--set " + a.Key}
	fail := func(what, allowed string) {
		r.add(&Problem{Pos: origin, What: what, Allowed: allowed})
	}
	parts := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(a.Key), ".")
	if len(a.Key) > 256 || slices.Contains(parts, "") {
		fail("not a key", "a dotted path such as radio.rate or flows.0.count")
		return
	}
	switch parts[0] {
	case keyQuick:
		fail("the quick block is applied before --set", "the key itself, for example "+strings.Join(parts[1:], "."))
		return
	case keyMatrix:
		if m, _ := root.get(keyMatrix); len(parts) == 2 && m != nil {
			if v, _ := m.get(parts[1]); v == nil {
				r.add(&Problem{Pos: origin, What: "the file has no such variable", Allowed: strings.Join(texts(m.keys), ", "), Hint: suggest(parts[1], texts(m.keys))})
				return
			}
		}
	}
	value := parseValue(a, r)
	if value == nil {
		return
	}
	if parts[0] == keyMatrix && len(parts) == 2 && value.kind == sequence {
		// Labels stand for the file's own values.
		m, _ := root.get(keyMatrix)
		old, _ := m.get(parts[1])
		for i, it := range value.items {
			if v := old.named(it.text); it.kind == scalar && v != nil {
				value.items[i] = v.clone()
			}
		}
	}
	at := root
	for i, part := range parts {
		last := i == len(parts)-1
		var slot **node
		switch at.kind {
		case sequence:
			k, err := strconv.Atoi(part)
			if err != nil || k < 0 || k >= len(at.items) {
				fail(fmt.Sprintf("%s has no entry %q", strings.Join(parts[:i], "."), part), fmt.Sprintf("0 to %d", len(at.items)-1))
				return
			}
			slot = &at.items[k]
		case mapping:
			if _, k := at.get(part); k < 0 {
				at.put(&node{text: part, pos: origin}, &node{kind: mapping, pos: origin})
			}
			_, k := at.get(part)
			slot = &at.items[k]
		default:
			fail(strings.Join(parts[:i], ".")+" is "+quote(at.text)+", which has no keys", "the key itself: --set "+strings.Join(parts[:i], ".")+"=…")
			return
		}
		if last {
			*slot = value
			return
		}
		at = *slot
	}
}

// parseValue reads the value of an assignment: YAML where it begins like a
// list, a mapping or a quoted text, and the text as it is otherwise (so that
// hops=>=2 needs no quotes of YAML's).
func parseValue(a Assignment, r *report) *node {
	origin := "--set " + a.Key
	if strings.HasPrefix(a.Value, "[") || strings.HasPrefix(a.Value, "{") || strings.HasPrefix(a.Value, `"`) || strings.HasPrefix(a.Value, "'") {
		return parseTree("", origin, []byte(a.Value), r)
	}
	n := &node{text: a.Value, pos: Pos{Origin: origin}, null: a.Value == ""}
	if len(a.Value) > maxText || strings.ContainsFunc(a.Value, func(c rune) bool { return c < ' ' }) {
		r.add(&Problem{Pos: n.pos, Value: quote(a.Value), What: "not a value", Allowed: "a text without control characters"})
		return nil
	}
	return n
}
