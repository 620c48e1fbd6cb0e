package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Commands that read leave a database of an older format as it is; the one that
// writes says that it does not.
func TestOlderDatabaseIsOnlyChangedByRun(t *testing.T) {
	dir := t.TempDir()
	packed, err := os.ReadFile(filepath.Join("..", "..", "store", "testdata", "format1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	before, err := io.ReadAll(g)
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "results.db")
	if err := os.WriteFile(db, before, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"results"}, {"results", "--campaign", "1"}, {"show", "1"}, {"export", "--table", "nodes"}, {"export", "--table", "pipes"},
		{"report", "-o", "r.html"}, {"report", "-o", "r.json"}, {"compare", "1", "1"},
	} {
		if status, _, stderr := hopbed(t, dir, args...); status != 0 {
			t.Errorf("%v: status %d: %s", args, status, stderr)
		}
	}
	if after, err := os.ReadFile(db); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("reading changed the file, %v", err)
	}
	file := filepath.Join(dir, "x.yaml")
	text := "hopbed: 1\nname: x\nrepeat: 1\nwarmup: 0s\nduration: 1s\ntopology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b]}]}\nflows: [{pairs: [{src: a, dst: b}], transport: tcp/reno, workload: {kind: sized, size: 1kB}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := hopbed(t, dir, "run", "x.yaml", "--backend", "sim")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, stderr, "results.db was brought from format 1 to format 4: an older hopbed cannot read it any more")
}
