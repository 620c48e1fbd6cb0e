package spec

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// The blocks that FORMAT.md has a table of, by the name in its markers.
var tables = map[string]reflect.Type{}

func init() {
	for _, t := range []reflect.Type{
		reflect.TypeFor[Config](), reflect.TypeFor[Topology](), reflect.TypeFor[Generate](), reflect.TypeFor[Node](), reflect.TypeFor[WindowRewriting](), reflect.TypeFor[Link](), reflect.TypeFor[Import](),
		reflect.TypeFor[Radio](), reflect.TypeFor[PathLoss](), reflect.TypeFor[MAC](), reflect.TypeFor[Queues](), reflect.TypeFor[Queue](), reflect.TypeFor[Routing](),
		reflect.TypeFor[Flow](), reflect.TypeFor[Pair](), reflect.TypeFor[Workload](), reflect.TypeFor[Transports](), reflect.TypeFor[HopOptions](), reflect.TypeFor[TCPOptions](),
		reflect.TypeFor[RelayOptions](), reflect.TypeFor[CoopOptions](), reflect.TypeFor[UDPOptions](), reflect.TypeFor[BundleOptions](), reflect.TypeFor[IperfOptions](), reflect.TypeFor[ExecOptions](), reflect.TypeFor[Limits](),
		reflect.TypeFor[Pipe](), reflect.TypeFor[Direction](), reflect.TypeFor[Jitter](), reflect.TypeFor[Hysteresis](), reflect.TypeFor[PipeLoss](), reflect.TypeFor[PipeQueue](), reflect.TypeFor[Reorder](),
		reflect.TypeFor[PipeTrace](), reflect.TypeFor[PipeChange](), reflect.TypeFor[Change](), reflect.TypeFor[Cycle](),
	} {
		tables[t.Name()] = t
	}
}

func table(t reflect.Type, docs map[string]string) string {
	var b strings.Builder
	b.WriteString("| key | meaning | allowed | default |\n|---|---|---|---|\n")
	for _, f := range fieldsOf(t) {
		if f.owner != t.Name() {
			continue // in the table of the type that is embedded
		}
		sf := t.FieldByIndex(f.index)
		doc := docs[f.owner+"."+sf.Name]
		if i := strings.IndexByte(doc, ' '); i > 0 && (doc[:i] == sf.Name) {
			doc = strings.TrimPrefix(doc[i+1:], "is ")
			doc = strings.ToUpper(doc[:1]) + doc[1:]
		}
		def := f.def
		switch {
		case f.required:
			def = "required"
		case def == "":
			def = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, doc, cell(f, sf.Type), def)
	}
	return b.String()
}

func cell(f field, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Area](), reflect.TypeFor[Position]():
		return "a list of two distances"
	case reflect.TypeFor[Pairs]():
		return "`random`, or a list of pairs"
	case reflect.TypeFor[HopRule]():
		return "see below"
	case reflect.TypeFor[Transport]():
		return "see below"
	case reflect.TypeFor[Workload]():
		return "a kind, or a mapping"
	case reflect.TypeFor[DSCP]():
		return "a name or a number, see below"
	case reflect.TypeFor[[]string]():
		return "a list of words"
	case reflect.TypeFor[Ends](), reflect.TypeFor[Interfaces]():
		return "a list of two names"
	case reflect.TypeFor[Path]():
		return "`chain`, or a list of names"
	case reflect.TypeFor[PipeLoss]():
		return "a share, or a mapping"
	case reflect.TypeFor[[]Backend]():
		return "a list of `" + strings.Join(f.enum, "`, `") + "`"
	}
	if f.pattern == "name" {
		return "a name"
	}
	if len(f.enum) > 0 {
		return "`" + strings.Join(f.enum, "`, `") + "`"
	}
	return allowed(f, t)
}

var marked = regexp.MustCompile(`(?s)<!-- keys: (\w+) -->\n(.*?)<!-- end -->`)

func TestFORMATHasEveryKey(t *testing.T) {
	b, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := fieldComments(t)
	seen := map[string]bool{}
	want := marked.ReplaceAllStringFunc(string(b), func(s string) string {
		name := marked.FindStringSubmatch(s)[1]
		typ, ok := tables[name]
		if !ok {
			t.Errorf("FORMAT.md has a table of %s, which is no block", name)
			return s
		}
		seen[name] = true
		return "<!-- keys: " + name + " -->\n" + table(typ, docs) + "<!-- end -->"
	})
	for name := range tables {
		if !seen[name] {
			t.Errorf("FORMAT.md has no table of %s", name)
		}
	}
	if *update {
		if err := os.WriteFile("FORMAT.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(b) {
		t.Error("the tables of FORMAT.md are not what the types say: go test ./experiments/spec -run FORMAT -update")
	}
	// Every block of the schema has a table.
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || len(fieldsOf(typ)) == 0 {
			return
		}
		if tables[typ.Name()] == nil {
			t.Errorf("the block %s has no table", typ.Name())
		}
		for _, f := range fieldsOf(typ) {
			walk(typ.FieldByIndex(f.index).Type)
		}
	}
	walk(reflect.TypeFor[Config]())
}

// TestFORMATExamples: complete files parse, parts parse in place of the same
// keys of a small file, and wrong files give exactly the messages shown.
func TestFORMATExamples(t *testing.T) {
	b, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```([a-z ]+)\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	count := map[string]int{}
	for i, m := range blocks {
		kind, text := m[1], m[2]
		count[kind]++
		switch kind {
		case "yaml":
			if _, err := Parse("FORMAT.md", []byte(text)); err != nil {
				t.Errorf("%s\n%v", text, err)
			}
		case "yaml part":
			if _, err := Parse("FORMAT.md", []byte(merge(text))); err != nil {
				t.Errorf("%s\n%v", text, err)
			}
		case "yaml part import":
			// It names a file: one with the nodes of the small file stands there.
			open := func(string) ([]byte, error) {
				return []byte(`{"topology": [{"lastHopIP": "n01", "destinationIP": "n02", "linkQuality": 1, "neighborLinkQuality": 1}, {"lastHopIP": "n02", "destinationIP": "n03", "linkQuality": 1, "neighborLinkQuality": 1}]}`), nil
			}
			if _, err := ParseFiles("FORMAT.md", []byte(merge(text)), open); err != nil {
				t.Errorf("%s\n%v", text, err)
			}
		case "yaml wrong":
			_, err := Parse("FILE", []byte(text))
			if err == nil || i+1 == len(blocks) || blocks[i+1][1] != "text" || err.Error() != strings.TrimSpace(blocks[i+1][2]) {
				t.Errorf("%s\ngives\n%v", text, err)
			}
		case "sh":
			for _, s := range regexp.MustCompile(`--set ('[^']*'|\S+)`).FindAllStringSubmatch(text, -1) {
				a, err := ParseAssignment(strings.Trim(s[1], "'"))
				if err != nil {
					t.Errorf("%s: %v", s[0], err)
				}
				src, err := os.ReadFile("../library/load30.yaml")
				if err != nil {
					t.Fatal(err)
				}
				if err := parse(t, string(src)).Set(a); err != nil {
					t.Errorf("%s: %v", s[0], err)
				}
			}
		}
	}
	if count["yaml"] < 1 || count["yaml part"] < 7 || count["yaml part import"] < 1 || count["yaml wrong"] < 1 || count["sh"] < 1 {
		t.Errorf("examples found: %v", count)
	}
}

// merge puts a part in place of the same top-level keys of the small file.
func merge(part string) string {
	has := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(part, -1) {
		has[m[1]] = true
	}
	out := part
	for _, l := range strings.Split(strings.TrimSpace(small), "\n") {
		if key, _, _ := strings.Cut(l, ":"); !has[key] {
			out = l + "\n" + out
		}
	}
	return out
}
