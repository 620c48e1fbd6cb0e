package spec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/hopbed/hopbed/netem/vtime"
)

// field is one key of a block, from the tags of the Go type.
type field struct {
	index     []int  // for reflect's FieldByIndex
	owner     string // the type that declares it
	key       string
	required  bool
	novar     bool    // variables are not replaced here
	off       bool    // the word off stands for no value
	min, max  string  // as in a file
	low, high float64 // the same in the type's unit
	def       string
	enum      []string
	pattern   string
}

// fieldsOf returns the keys of a struct type, read from its tags once.
func fieldsOf(t reflect.Type) []field {
	if f, ok := fieldCache.Load(t); ok {
		return f.([]field)
	}
	f, _ := fieldCache.LoadOrStore(t, readFields(t))
	return f.([]field)
}

var fieldCache sync.Map // reflect.Type → []field

func readFields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key := tag.Get("key")
		if t.Field(i).Anonymous {
			for _, f := range fieldsOf(t.Field(i).Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		}
		if key == "" {
			continue
		}
		f := field{index: []int{i}, owner: t.Name(), key: key, required: tag.Get("required") != "", novar: tag.Get("novar") != "", off: tag.Get("off") != "",
			min: tag.Get("min"), max: tag.Get("max"), def: tag.Get("default"), pattern: tag.Get("pattern")}
		if e := tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, "|")
		}
		f.low, f.high = f.limit(t.Field(i).Type, f.min, math.Inf(-1)), f.limit(t.Field(i).Type, f.max, math.Inf(1))
		out = append(out, f)
	}
	return out
}

// setDefaults fills a block with the values of the tags "default".
func setDefaults(v reflect.Value) {
	if v.Kind() == reflect.Struct {
		v.Set(defaultsOf(v.Type()))
	}
}

var defaultCache sync.Map // reflect.Type → reflect.Value; shallow copies share nothing, since defaults hold no pointers

func defaultsOf(t reflect.Type) reflect.Value {
	if v, ok := defaultCache.Load(t); ok {
		return v.(reflect.Value)
	}
	v := reflect.New(t).Elem()
	for _, f := range fieldsOf(t) {
		fv := v.FieldByIndex(f.index)
		if f.def == "" {
			setDefaults(fv)
			continue
		}
		d := &decoder{report: &report{}, set: map[string]*node{}}
		if d.value(&node{text: f.def}, f.key, fv, f); len(d.report.problems) > 0 {
			panic("spec: default of " + f.key + ": " + d.report.problems[0].Error())
		}
	}
	got, _ := defaultCache.LoadOrStore(t, v)
	return got.(reflect.Value)
}

func keysOf(fields []field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.key)
	}
	return out
}

// nodeDecoder is implemented by types that are more than a mapping of keys.
type nodeDecoder interface {
	decodeNode(d *decoder, n *node, at string)
}

// decoder fills a Config from a tree without variables and remembers where
// each value stood, for the checks that concern several values.
type decoder struct {
	report *report
	set    map[string]*node // by path
	files  *files           // what the file names; nil where defaults are decoded
}

func (d *decoder) problem(n *node, at string, p Problem) {
	p.Pos, p.Path = n.pos, at
	if n.via != "" {
		p.Path += " (through $" + n.via + ")"
	}
	d.report.add(&p)
}

// bad reports a value that is wrong by itself.
func (d *decoder) bad(n *node, at, what, allowed string) {
	d.problem(n, at, Problem{Value: valueOf(n), What: what, Allowed: allowed})
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// block decodes a mapping into a struct. extra are keys that the caller reads
// itself.
func (d *decoder) block(n *node, at string, v reflect.Value, extra ...string) {
	fields := fieldsOf(v.Type())
	if n.kind != mapping {
		d.bad(n, at, "is "+describe(n), "a mapping with the keys "+strings.Join(keysOf(fields), ", "))
		return
	}
	all := append(keysOf(fields), extra...)
	given := map[string]bool{}
next:
	for i, k := range n.keys {
		given[k.text] = true
		for _, f := range fields {
			if f.key == k.text {
				d.value(n.items[i], join(at, f.key), v.FieldByIndex(f.index), f)
				continue next
			}
		}
		for _, e := range extra {
			if e == k.text {
				continue next
			}
		}
		d.problem(k, at, Problem{Value: quote(k.text), What: "unknown key", Allowed: strings.Join(all, ", "), Hint: suggest(k.text, all)})
	}
	for _, f := range fields {
		if f.required && !given[f.key] {
			d.problem(n, at, Problem{What: "the key " + f.key + " is missing", Allowed: example(f, v.FieldByIndex(f.index).Type())})
		}
	}
}

// example says what a missing key could hold.
func example(f field, t reflect.Type) string {
	if len(f.enum) > 0 {
		return f.key + ": " + strings.Join(f.enum, " or ")
	}
	if e, ok := map[string]string{"hopbed": "hopbed: 1", "name": "name: my-experiment", "duration": "duration: 60s",
		"flows": "flows: [{count: 1, pairs: random, transport: hop}]", "pairs": "pairs: random", "transport": "transport: hop",
		"topology": "topology: {generate: {kind: chain, nodes: 3, spacing: 20m}}"}[f.key]; ok {
		return e
	}
	return f.key + ": " + kindName(t)
}

func kindName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[vtime.Duration]():
		return "a duration such as 20s"
	case reflect.TypeFor[vtime.BitRate]():
		return "a rate such as 11mbit"
	case reflect.TypeFor[vtime.Bytes]():
		return "a size such as 256KiB"
	case reflect.TypeFor[vtime.Decibel]():
		return "a ratio such as -7dB"
	case reflect.TypeFor[vtime.DBm]():
		return "a power such as 15dBm"
	case reflect.TypeFor[vtime.Metres]():
		return "a distance such as 20m"
	case reflect.TypeFor[vtime.Fraction]():
		return "a share such as 30%"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "a mapping"
}

func describe(n *node) string {
	if n.null {
		return "empty"
	}
	return n.kind.String()
}

// value decodes one value of any type of the format.
func (d *decoder) value(n *node, at string, v reflect.Value, f field) {
	d.set[at] = n
	if v.CanAddr() {
		if c, ok := v.Addr().Interface().(nodeDecoder); ok {
			c.decodeNode(d, n, at)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.off && n.kind == scalar && n.text == "off" {
			v.SetZero()
			return
		}
		p := reflect.New(v.Type().Elem())
		setDefaults(p.Elem())
		d.value(n, at, p.Elem(), f)
		v.Set(p)
		return
	case reflect.Struct:
		d.block(n, at, v)
		return
	case reflect.Slice:
		d.list(n, at, v, f)
		return
	}
	if n.kind != scalar || n.null {
		d.bad(n, at, "is "+describe(n), allowed(f, v.Type()))
		return
	}
	if f.novar {
		d.novar(n, at, v, f)
		return
	}
	d.scalar(n, at, v, f)
}

func (d *decoder) novar(n *node, at string, v reflect.Value, f field) {
	if wholeVar.MatchString(n.text) && f.pattern != "line" && f.pattern != "text" {
		d.bad(n, at, "a variable cannot stand here: the value is the same for all points", allowed(f, v.Type()))
		return
	}
	d.scalar(n, at, v, f)
}

func (d *decoder) list(n *node, at string, v reflect.Value, f field) {
	if n.kind != sequence {
		d.bad(n, at, "is "+describe(n), "a list")
		return
	}
	if len(n.items) == 0 {
		d.bad(n, at, "the list is empty", "at least one entry")
		return
	}
	if len(n.items) > MaxFlows {
		d.bad(n, at, fmt.Sprintf("the list has %d entries", len(n.items)), fmt.Sprintf("up to %d", MaxFlows))
		return
	}
	var of field // a list of names: each is one of the list's own
	if v.Type().Elem().Kind() == reflect.String {
		of = field{key: f.key, enum: f.enum, pattern: f.pattern, novar: f.novar}
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, it := range n.items {
		e := out.Index(i)
		setDefaults(e)
		d.value(it, fmt.Sprintf("%s[%d]", at, i), e, of)
	}
	v.Set(out)
}

// allowed describes what a key takes.
func allowed(f field, t reflect.Type) string {
	if f.off {
		f.off = false
		return "off, or " + allowed(f, t)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case len(f.enum) > 0:
		return strings.Join(f.enum, ", ")
	case f.pattern != "":
		return patterns[f.pattern].allowed
	case f.min != "" && f.min == f.max:
		return f.min
	case f.min != "" && f.max != "":
		return kindName(t) + " from " + f.min + " to " + f.max
	}
	return kindName(t)
}

func (d *decoder) scalar(n *node, at string, v reflect.Value, f field) {
	x, err := parseScalar(v.Type(), n.text)
	if err != nil {
		d.bad(n, at, err.Error(), allowed(f, v.Type()))
		return
	}
	if !f.inRange(x) {
		what := "out of range"
		if f.min == f.max {
			what = "not supported by this version of hopbed"
		}
		d.bad(n, at, what, allowed(f, v.Type()))
		return
	}
	if v.Kind() == reflect.String {
		if len(f.enum) > 0 && !slices.Contains(f.enum, n.text) {
			d.problem(n, at, Problem{Value: quote(n.text), What: "unknown", Allowed: allowed(f, v.Type()), Hint: suggest(n.text, f.enum)})
			return
		}
		if p, ok := patterns[f.pattern]; ok && !p.ok(n.text) {
			d.bad(n, at, p.what, p.allowed)
			return
		}
	}
	v.Set(reflect.ValueOf(x).Convert(v.Type()))
}
