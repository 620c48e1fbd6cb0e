package spec

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The generator of schema.json: a walk over the types, with the field comments
// as descriptions. It lives in a test, because nothing but the test that keeps
// the file in step needs it.

type object = map[string]any

type generator struct {
	docs map[string]string // "Radio.Rate" → comment
	defs object
}

func generateSchema(t *testing.T) []byte {
	g := &generator{docs: fieldComments(t), defs: object{}}
	g.defs["variable"] = object{
		"description": "A variable of the matrix, $name for the whole value, or a text that holds one.",
		"type":        "string", "pattern": `\$`,
	}
	root := g.block(reflect.TypeFor[Config]())
	props := root["properties"].(object)
	props[keyMatrix] = object{
		"description":   "Variables and the values that they take; every combination is a point of the experiment.",
		"type":          "object",
		"propertyNames": object{"pattern": varName.String()},
		"additionalProperties": object{
			"type": "array", "minItems": 1, "uniqueItems": true,
		},
	}
	quick := object{}
	for _, k := range quickKeys {
		quick[k] = props[k]
	}
	props[keyQuick] = object{
		"description": "What a run with --quick has instead.",
		"type":        "object", "minProperties": 1, "additionalProperties": false, "properties": quick,
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "urn:hopbed:experiment:1"
	root["title"] = "hopbed experiment file, version 1"
	root["$defs"] = g.defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fieldComments reads the comments of this package's struct fields.
func fieldComments(t *testing.T) map[string]string {
	out := map[string]string{}
	fset := token.NewFileSet()
	for _, name := range []string{"types.go", "import.go", "routing.go", "pipe.go", "changes.go", "flow.go", "workload.go", "transport.go"} {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			gd, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gd.Specs {
				ts, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range st.Fields.List {
					for _, n := range field.Names {
						out[ts.Name.Name+"."+n.Name] = strings.TrimSpace(strings.ReplaceAll(field.Doc.Text(), "\n", " "))
					}
				}
			}
		}
	}
	return out
}

// block describes a struct.
func (g *generator) block(t reflect.Type) object {
	props := object{}
	var required []string
	for _, f := range fieldsOf(t) {
		sf := t.FieldByIndex(f.index)
		p := g.value(sf.Type, f)
		if f.off {
			p = object{"anyOf": []any{p, object{"const": "off"}}}
		}
		if !f.novar {
			p = object{"anyOf": []any{p, object{"$ref": "#/$defs/variable"}}}
		}
		p["description"] = g.docs[f.owner+"."+sf.Name]
		if f.def != "" {
			p["default"] = defaultOf(sf.Type, f.def)
		}
		props[f.key] = p
		if f.required {
			required = append(required, f.key)
		}
	}
	o := object{"type": "object", "additionalProperties": false, "properties": props}
	if required != nil {
		o["required"] = required
	}
	return o
}

func defaultOf(t reflect.Type, s string) any {
	switch t.Kind() {
	case reflect.Bool:
		return s == "true"
	case reflect.Int, reflect.Uint64:
		if x, err := parseScalar(t, s); err == nil && t.PkgPath() == "" {
			return x
		}
	}
	return s
}

// ref describes a struct once, by name.
func (g *generator) ref(t reflect.Type) object {
	if _, ok := g.defs[t.Name()]; !ok {
		g.defs[t.Name()] = nil // a type that contains itself refers to this one
		g.defs[t.Name()] = g.block(t)
	}
	return object{"$ref": "#/$defs/" + t.Name()}
}

func unitPattern(f field, units string) object {
	sign := "[+-]?"
	if f.min != "" && !strings.HasPrefix(f.min, "-") {
		sign = `\+?`
	}
	return object{"type": "string", "pattern": "^" + sign + `[0-9]+(\.[0-9]*)? *(` + units + ")$"}
}

func (g *generator) value(t reflect.Type, f field) object {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	orVariable := func(o object) object { return object{"anyOf": []any{o, object{"$ref": "#/$defs/variable"}}} }
	metres := orVariable(unitPattern(field{}, "m|km"))
	switch t {
	case reflect.TypeFor[vtime.Duration]():
		return unitPattern(f, "h|min|s|ms|us|µs|ns")
	case reflect.TypeFor[vtime.BitRate]():
		return unitPattern(f, "[gG][bB][iI][tT]|[mM][bB][iI][tT]|[kK][bB][iI][tT]|[bB][iI][tT]")
	case reflect.TypeFor[vtime.Bytes]():
		return unitPattern(f, "GiB|MiB|KiB|GB|MB|kB|KB|B")
	case reflect.TypeFor[vtime.Decibel]():
		return unitPattern(f, "dB")
	case reflect.TypeFor[vtime.DBm]():
		return unitPattern(f, "dBm")
	case reflect.TypeFor[vtime.Metres]():
		return unitPattern(f, "m|km")
	case reflect.TypeFor[vtime.Fraction]():
		return unitPattern(f, "%")
	case reflect.TypeFor[Area](), reflect.TypeFor[Position]():
		return object{"type": "array", "minItems": 2, "maxItems": 2, "items": metres}
	case reflect.TypeFor[Ends](), reflect.TypeFor[Interfaces]():
		pattern := nameRegexp
		if t == reflect.TypeFor[Interfaces]() {
			pattern = interfaceRegexp
		}
		return object{"type": "array", "minItems": 2, "maxItems": 2, "items": orVariable(object{"type": "string", "pattern": pattern})}
	case reflect.TypeFor[Path]():
		return object{"anyOf": []any{object{"const": "chain"},
			object{"type": "array", "minItems": 2, "maxItems": MaxFlows, "items": orVariable(object{"type": "string", "pattern": nameRegexp})}}}
	case reflect.TypeFor[PipeLoss]():
		return object{"anyOf": []any{unitPattern(field{min: "0%"}, "%"), g.ref(t)}}
	case reflect.TypeFor[Pairs]():
		return object{"anyOf": []any{object{"const": "random"}, object{"type": "array", "minItems": 1, "items": g.ref(reflect.TypeFor[Pair]())}}}
	case reflect.TypeFor[HopRule]():
		class := `([0-9]{1,4} *- *[0-9]{1,4}|(>=|<=|>|<|=)? *[0-9]{1,4})`
		return object{"anyOf": []any{
			object{"type": "integer", "minimum": 1},
			object{"type": "string", "pattern": "^" + class + "$"},
			object{"type": "object", "minProperties": 1, "additionalProperties": false,
				"patternProperties": object{"^" + class + "$": orVariable(unitPattern(field{min: "0%"}, "%"))}},
		}}
	case reflect.TypeFor[DSCP]():
		var names []any
		for _, x := range dscpNames {
			names = append(names, x.name, strings.ToLower(x.name))
		}
		return object{"anyOf": []any{object{"type": "integer", "minimum": 0, "maximum": 63}, object{"enum": names}}}
	case reflect.TypeFor[Workload]():
		return object{"anyOf": []any{object{"enum": fieldsOf(t)[0].enum}, g.ref(t)}}
	case reflect.TypeFor[Transport]():
		return object{"type": "string", "pattern": transportPattern()}
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.ref(t)
	case reflect.Slice:
		least := 1
		if t.Elem() == reflect.TypeFor[PipeChange]() {
			least = 0 // reverse: {schedule: []}
		}
		return object{"type": "array", "minItems": least, "maxItems": MaxFlows, "items": g.value(t.Elem(), field{enum: f.enum, pattern: f.pattern})}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Uint64, reflect.Float64:
		o := object{"type": "integer"}
		if t.Kind() == reflect.Float64 {
			o["type"] = "number"
		}
		if f.min != "" {
			o["minimum"] = json.Number(f.min)
		}
		if f.max != "" {
			o["maximum"] = json.Number(f.max)
		}
		return o
	}
	if len(f.enum) > 0 {
		return object{"enum": f.enum}
	}
	o := object{"type": "string"}
	if p := patterns[f.pattern].regexp; p != "" {
		o["pattern"] = p
	}
	return o
}

func transportPattern() string {
	var alts []string
	for _, f := range transportTable {
		v := "(" + strings.Join(f.variants, "|") + ")"
		switch {
		case f.variants == nil:
			alts = append(alts, f.name)
		case f.joined:
			alts = append(alts, f.name+"(/"+v+`(\+`+v+")*)?")
		default:
			alts = append(alts, f.name+"/"+v)
		}
	}
	return "^(" + strings.Join(alts, "|") + ")$"
}

func TestTheGeneratorKnowsWhatParseKnows(t *testing.T) {
	re := regexp.MustCompile(transportPattern())
	for _, n := range append(TransportNames(), "hop/arq+no-txop", "udp/no-arq+txop") {
		if !re.MatchString(n) || Transport(n).family() == nil {
			t.Errorf("%s: pattern %v, table %v", n, re.MatchString(n), Transport(n).family() != nil)
		}
	}
	for _, n := range []string{"", "tcp", "cubic", "hop/", "hop/x", "udp/x", "tcp/cubic+reno", "hop-by-hop-tcp", "udp/no-arq+no-arq/", "iperf3", "iperf3/udp+cubic", "bundle", "exec/x"} {
		if re.MatchString(n) || Transport(n).family() != nil {
			t.Errorf("%s: pattern %v, table %v", strconv.Quote(n), re.MatchString(n), Transport(n).family() != nil)
		}
	}
}
