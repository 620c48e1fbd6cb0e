package spec

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

func TestSchemaIsInStep(t *testing.T) {
	want := generateSchema(t)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(Schema, want) {
		t.Error("schema.json is not what the types say: go test ./experiments/spec -run Schema -update")
	}
}

func TestEveryKeyIsDescribed(t *testing.T) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			props, _ := v["properties"].(map[string]any)
			for k, p := range props {
				d, _ := p.(map[string]any)["description"].(string)
				if len(strings.Fields(d)) < 3 {
					t.Errorf("%s.%s is described as %q", path, k, d)
				}
			}
			for k, p := range v {
				walk(path+"/"+k, p)
			}
		case []any:
			for i, p := range v {
				walk(fmt.Sprintf("%s/%d", path, i), p)
			}
		}
	}
	var doc any
	if err := json.Unmarshal(generateSchema(t), &doc); err != nil {
		t.Fatal(err)
	}
	walk("", doc)
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(generateSchema(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("experiment.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("experiment.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance reads YAML as an editor's schema checker does.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(jsonable(v))
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func jsonable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = jsonable(v[k])
		}
		return v
	case map[any]any:
		out := map[string]any{}
		for k := range v {
			out[fmt.Sprint(k)] = jsonable(v[k])
		}
		return out
	case []any:
		for i := range v {
			v[i] = jsonable(v[i])
		}
	}
	return v
}

func TestSchemaAcceptsTheShippedFiles(t *testing.T) {
	s := compile(t)
	files, err := filepath.Glob("../library/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	texts := map[string][]byte{"small": []byte(small), "the design's example": []byte(designExample)}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[f] = b
	}
	for name, text := range texts {
		if err := s.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaRefuses what Parse refuses, as far as one value at a time shows it.
func TestSchemaRefuses(t *testing.T) {
	s := compile(t)
	for _, c := range []struct{ key, line string }{
		{"durations", "durations: 10s"},
		{"radio", "radio: {rat: 11mbit}"},
		{"duration", "duration: 10"},
		{"duration", "duration: 10m"},
		{"duration", "duration: -10s"},
		{"hopbed", "hopbed: 2"},
		{"name", "name: Load"},
		{"repeat", "repeat: 0"},
		{"repeat", "repeat: many"},
		{"repeat", "repeat: $n"},
		{"radio", "radio: [a]"},
		{"flows", "flows: []"},
		{"flows", "flows: [{count: 1}]"},
		{"flows", "flows: [{count: 1, pairs: random, transport: cubic}]"},
		{"flows", "flows: [{count: 1, pairs: any, transport: hop}]"},
		{"flows", "flows: [{count: 1, pairs: random, hops: many, transport: hop}]"},
		{"flows", "flows: [{count: 1, pairs: random, hops: {2: 30}, transport: hop}]"},
		{"flows", "flows: [{count: 1, pairs: random, transport: hop, workload: ftp}]"},
		{"mac", "mac: {queues: {bk: {ack: non}}}"},
		{"mac", "mac: {queues: {bulk: {}}}"},
		{"topology", "topology: {generate: {kind: ring, nodes: 3}}"},
		{"topology", "topology: {generate: {kind: chain, nodes: 1001, spacing: 2m}}"},
		{"topology", "topology: {generate: {kind: random-mesh, nodes: 9, area: [5m]}}"},
		{"matrix", "matrix: {R: [1]}"},
		{"matrix", "matrix: {r: []}"},
		{"matrix", "matrix: {r: 1}"},
		{"quick", "quick: {seed: 3}"},
		{"quick", "quick: {}"},
	} {
		text := []byte(withLine(c.key, c.line))
		if err := s.Validate(instance(t, text)); err == nil {
			t.Errorf("%s: the schema accepts it", c.line)
		}
		if _, err := Parse("x", text); err == nil {
			t.Errorf("%s: Parse accepts it", c.line)
		}
	}
}
