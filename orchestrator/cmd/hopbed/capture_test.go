package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// artifacts are the files on record in a folder's database.
func artifacts(t *testing.T, dir string) []store.Artifact {
	t.Helper()
	st, err := store.OpenRead(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all, err := st.Artifacts(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each run of a plan leaves its files, which are on record and can be read; a
// second command does not replace them unless it is told to.
func TestCaptureOfEachRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	args := []string{"run", "f.yaml", "--backend", "sim", "--trace", "out.pcapng", "--events", "out.log", "--snaplen", "60"}
	if status, _, stderr := hopbed(t, dir, args...); status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	want := []string{"f.yaml", "out-1-transport=hop-r1.log", "out-1-transport=hop-r1.pcapng", "out-2-transport=tcp-cubic-r1.log", "out-2-transport=tcp-cubic-r1.pcapng", "results.db"}
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v", got)
	}
	var paths []string
	for _, a := range artifacts(t, dir) {
		paths = append(paths, a.Path)
		if st, err := os.Stat(filepath.Join(dir, a.Path)); err != nil || st.Size() != a.Bytes || a.Bytes < 10000 {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if !slices.Equal(paths, want[1:5]) {
		t.Errorf("on record: %v", paths)
	}
	log, err := os.ReadFile(filepath.Join(dir, want[3]))
	if err != nil || !bytes.Contains(log, []byte("  flow 0 begins: tcp/cubic to n03\n")) || !bytes.Contains(log, []byte("  flow 0 connected (src)\n")) || !bytes.Contains(log, []byte("  flow 0 ends\n")) {
		t.Errorf("%v, the log lacks the flow's life", err)
	}
	status, _, stderr := hopbed(t, dir, args...)
	if status != exitError || !strings.Contains(stderr, "out-1-transport=hop-r1.pcapng exists") || !strings.Contains(stderr, "--overwrite") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, _, stderr := hopbed(t, dir, append(args, "--overwrite")...); status != exitOK {
		t.Errorf("status %d: %s", status, stderr)
	}
	if n := len(artifacts(t, dir)); n != 8 {
		t.Errorf("%d files are on record after two campaigns, want 8", n)
	}
}

// The one run of a plan writes exactly the file that was named, and Wireshark
// reads it; in a database of its own each back end's has a name.
func TestCaptureOfOneRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), strings.Replace(tiny, "[hop, tcp/cubic]", "[tcp/cubic]", 1))
	if status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--trace", "out.pcapng", "--trace-at", "air"); status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"f.yaml", "out.pcapng", "results.db"}) {
		t.Errorf("files %v", got)
	}
	tshark.Need(t)
	tshark.Sound(t, filepath.Join(dir, "out.pcapng"), tshark.TCPRemarks)
}

// Mistakes are told before anything is created.
func TestCaptureMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no such folder":     {[]string{"--trace", "no/out.pcapng"}, exitError, "the folder no does not exist"},
		"one name for both":  {[]string{"--trace", "x", "--events", "x"}, exitError, "the same name"},
		"a folder":           {[]string{"--events", "."}, exitError, "no ordinary file"},
		"the database":       {[]string{"--trace", "results.db"}, exitUsage, "--db"},
		"no name":            {[]string{"--trace", ""}, exitUsage, "name of a file"},
		"no such interface":  {[]string{"--trace", "x", "--trace-at", "n01:eth0"}, exitError, "only air"},
		"negative length":    {[]string{"--trace", "x", "--snaplen", "-1"}, exitUsage, "--snaplen -1"},
		"length of nothing":  {[]string{"--snaplen", "100"}, exitUsage, "belongs to --trace"},
		"length of no bytes": {[]string{"--trace", "x", "--snaplen", "many"}, exitUsage, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f.yaml"), tiny)
			status, _, stderr := hopbed(t, dir, append([]string{"run", "f.yaml", "--backend", "sim"}, c.args...)...)
			if status != c.status || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want %d and %q: %s", status, c.status, c.want, stderr)
			}
			if got := list(t, dir); !slices.Equal(got, []string{"f.yaml"}) {
				t.Errorf("files %v", got)
			}
		})
	}
}
