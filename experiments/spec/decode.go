package spec

import (
	"fmt"
	"math"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/hopbed/hopbed/netem/vtime"
)

// field is one key of a block, from the tags of the Go type.
type field struct {
	index    int
	key      string
	required bool
	novar    bool // variables are not replaced here
	min, max string
	def      string
	enum     []string
	pattern  string
}

func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key := tag.Get("key")
		if key == "" {
			continue
		}
		f := field{index: i, key: key, required: tag.Get("required") != "", novar: tag.Get("novar") != "",
			min: tag.Get("min"), max: tag.Get("max"), def: tag.Get("default"), pattern: tag.Get("pattern")}
		if e := tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, "|")
		}
		out = append(out, f)
	}
	return out
}

// setDefaults fills a block with the values of the tags "default". A tag that
// does not parse is a mistake of this package, found by every test.
func setDefaults(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		fv := v.Field(f.index)
		if f.def == "" {
			setDefaults(fv)
			continue
		}
		n := &node{text: f.def}
		d := &decoder{report: &report{}, set: map[string]*node{}}
		if d.value(n, f.key, fv, f); len(d.report.problems) > 0 {
			panic("spec: default of " + f.key + ": " + d.report.problems[0].Error())
		}
	}
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
				d.value(n.items[i], join(at, f.key), v.Field(f.index), f)
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
			d.problem(n, at, Problem{What: "the key " + f.key + " is missing", Allowed: example(f, v.Field(f.index).Type())})
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
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, it := range n.items {
		e := out.Index(i)
		setDefaults(e)
		d.value(it, fmt.Sprintf("%s[%d]", at, i), e, field{})
	}
	v.Set(out)
}

// allowed describes what a key takes.
func allowed(f field, t reflect.Type) string {
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

var decimal = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

func (d *decoder) scalar(n *node, at string, v reflect.Value, f field) {
	x, err := parseScalar(v.Type(), n.text)
	if err != nil {
		d.bad(n, at, err.Error(), allowed(f, v.Type()))
		return
	}
	if !f.inRange(v.Type(), x) {
		d.bad(n, at, "out of range", allowed(f, v.Type()))
		return
	}
	if v.Kind() == reflect.String {
		if len(f.enum) > 0 && !contains(f.enum, n.text) {
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

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// parseScalar reads a text as one of the format's scalar types.
func parseScalar(t reflect.Type, s string) (any, error) {
	switch t {
	case reflect.TypeFor[vtime.Duration]():
		return vtime.ParseDuration(s)
	case reflect.TypeFor[vtime.BitRate]():
		return vtime.ParseBitRate(s)
	case reflect.TypeFor[vtime.Bytes]():
		return vtime.ParseBytes(s)
	case reflect.TypeFor[vtime.Decibel]():
		return vtime.ParseDecibel(s)
	case reflect.TypeFor[vtime.DBm]():
		return vtime.ParseDBm(s)
	case reflect.TypeFor[vtime.Metres]():
		return vtime.ParseMetres(s)
	case reflect.TypeFor[vtime.Fraction]():
		return vtime.ParseFraction(s)
	}
	switch t.Kind() {
	case reflect.String:
		return s, nil
	case reflect.Bool:
		if s == "true" || s == "false" {
			return s == "true", nil
		}
		return nil, fmt.Errorf("not a truth value")
	case reflect.Float64:
		if !decimal.MatchString(s) {
			return nil, fmt.Errorf("not a number in decimal notation")
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(x, 0) {
			return nil, fmt.Errorf("the number is too large")
		}
		return x, nil
	}
	if !decimal.MatchString(s) || strings.Contains(s, ".") {
		return nil, fmt.Errorf("not a whole number")
	}
	if t.Kind() == reflect.Uint64 {
		x, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("out of range")
		}
		return x, nil
	}
	x, err := strconv.Atoi(s)
	if err != nil {
		return nil, fmt.Errorf("the number is too large")
	}
	return x, nil
}

// inRange compares with the tags min and max, which are written as in a file.
func (f field) inRange(t reflect.Type, x any) bool {
	num := func(x any) float64 {
		v := reflect.ValueOf(x)
		switch {
		case v.CanInt():
			return float64(v.Int())
		case v.CanUint():
			return float64(v.Uint())
		}
		return v.Float()
	}
	check := func(tag string, below bool) bool {
		if tag == "" {
			return true
		}
		limit, err := parseScalar(t, tag)
		if err != nil {
			panic("spec: the tag " + tag + " of " + f.key + ": " + err.Error())
		}
		if below {
			return num(x) >= num(limit)
		}
		return num(x) <= num(limit)
	}
	return check(f.min, true) && check(f.max, false)
}

type pattern struct {
	ok      func(string) bool
	regexp  string // for the schema
	what    string
	allowed string
}

const (
	nameRegexp      = `^[a-z0-9][a-z0-9._-]{0,63}$`
	referenceRegexp = `^[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}$`
)

// patterns are the kinds of text of the format.
var patterns = map[string]pattern{
	"name": {regexp.MustCompile(nameRegexp).MatchString, nameRegexp, "not a name",
		"lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, at most 64"},
	"reference": {regexp.MustCompile(referenceRegexp).MatchString, referenceRegexp, "not a reference", "paper/experiment, for example hop-nsdi09/load30"},
	"line": {func(s string) bool { return len(s) <= 200 && printable(s, "") }, `^.{0,200}$`, "not one line of plain text",
		"up to 200 bytes without control characters"},
	"text": {func(s string) bool { return printable(s, "\n\t") }, "", "holds control characters", "plain text"},
	"path": {func(s string) bool {
		return s != "" && len(s) <= 1024 && printable(s, "") && path.Clean(s) != ".."
	}, "", "not a path", "the path of a file, without control characters"},
}

// printable refuses control characters, and the invisible ones that make a
// text read differently from what it is (Unicode categories Cc, Cf, Zl, Zp).
func printable(s, except string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) && !strings.ContainsRune(except, r) {
			return false
		}
	}
	return true
}
