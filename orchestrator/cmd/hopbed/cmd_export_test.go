package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// What a run left, in the formats of other programs.
func TestExportFormats(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	if status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim"); status != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{
		{"export", "--format", "parquet", "--table", "samples", "-o", "s.parquet"},
		{"export", "--format", "flent", "--run", "2", "-o", "r.flent.gz"},
	} {
		if status, out, stderr := hopbed(t, dir, args...); status != 0 || out != "" {
			t.Fatalf("%v: status %d, %q: %s", args, status, out, stderr)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "s.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil || f.NumRows() == 0 {
		t.Fatalf("%v", err)
	}
	if _, ok := f.Schema().Lookup("goodput_bps"); !ok {
		t.Error("no column goodput_bps")
	}
	gz, err := os.ReadFile(filepath.Join(dir, "r.flent.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Metadata map[string]any             `json:"metadata"`
		Results  map[string][]*float64      `json:"results"`
		Raw      map[string]json.RawMessage `json:"raw_values"`
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Metadata["HOPBED_BACKEND"] != "sim" || d.Metadata["DATA_FILENAME"] != "r.flent.gz" || len(d.Results["TCP upload::1"]) == 0 {
		t.Errorf("%v, %d steps", d.Metadata, len(d.Results["TCP upload::1"]))
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", "--format", "xml", "--table", "flows"}, `no format "xml": --format takes csv, json, parquet, flent`},
		{[]string{"export", "--format", "flent"}, "--run ID"},
		{[]string{"export", "--format", "flent", "--table", "flows", "--run", "1"}, "leave --table out"},
		{[]string{"export"}, "which table?"},
	} {
		status, _, stderr := hopbed(t, dir, c.args...)
		if status != 2 {
			t.Errorf("%v: status %d", c.args, status)
		}
		says(t, stderr, c.want)
	}
}
