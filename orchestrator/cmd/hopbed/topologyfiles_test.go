package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/topology/interchange"
)

const listedLinks = `hopbed: 1
name: l
topology:
  nodes: [{name: a}, {name: b, at: [3m, 4m]}, {name: c}]
  links: [{from: a, to: b, delivery: 90%}, {from: c, to: b, delivery: 75%, reverse: 50%}]
routing: {kind: measured, probes: 400, period: 100ms}
flows: [{pairs: [{src: a, dst: c}], transport: $transport}]
matrix: {transport: [hop, tcp/reno]}
repeat: 2
warmup: 1s
duration: 2s
`

// Every format that export writes for others is read by import, and gives the same
// experiment again.
func TestTopologyExportAndImport(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "l.yaml"), listedLinks)
	for _, format := range interchange.Writable() {
		status, _, stderr := hopbed(t, dir, "topology", "export", "--format", format, "-o", format+".file", "l.yaml")
		if status != 0 {
			t.Fatalf("%s: status %d: %s", format, status, stderr)
		}
		// Neither format nor anything else is said: the file tells.
		status, out, stderr := hopbed(t, dir, "topology", "import", format+".file")
		if status != 0 {
			t.Fatalf("%s: status %d: %s", format, status, stderr)
		}
		for _, want := range []string{`# 3 nodes and 2 links, from a file of the format ` + format, `{from: a, to: b, delivery: 90%}`, `{from: b, to: c, delivery: 50%, reverse: 75%}`} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", format, want, out)
			}
		}
		write(t, filepath.Join(dir, "i.yaml"), regexp.MustCompile(`(?s)topology:.*routing`).ReplaceAllString(listedLinks, strings.ReplaceAll(out, "$", "$$")+"routing"))
		if status, _, stderr := hopbed(t, dir, "check", "i.yaml"); status != 0 {
			t.Errorf("%s: what was imported is no experiment: %s\n%s", format, stderr, out)
		}
		write(t, filepath.Join(dir, "n.yaml"), regexp.MustCompile(`(?s)topology:.*routing`).ReplaceAllString(listedLinks, "topology: {import: {format: "+format+", file: "+format+".file}}\nrouting"))
		if status, out, stderr := hopbed(t, dir, "check", "n.yaml"); status != 0 || !strings.Contains(out, "3 nodes") {
			t.Errorf("%s: topology.import: %s\n%s", format, stderr, out)
		}
	}
	if _, out, _ := hopbed(t, dir, "topology", "export", "--format", "dot", "l.yaml"); !strings.HasPrefix(out, "graph network {") || !strings.Contains(out, `"b" -- "c" [label="50% / 75%"`) {
		t.Errorf("dot:\n%s", out)
	}
	if status, _, stderr := hopbed(t, dir, "topology", "export", "--format", "graphml", "l.yaml"); status != exitUsage || !strings.Contains(stderr, "json, hopbed, dot") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestTopologyImportSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.json"), "{\n \"links\": [{\"source\": 1, \"target\": 2, \"source_tq\": 7}]}")
	write(t, filepath.Join(dir, "parts.json"), `{"links": [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}, {"source": "d", "target": "e"}]}`)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--format", "meshnet-lab", "x.json"}, 1, `x.json:2:52: "source_tq" is 7`},
		{[]string{"x.json"}, 1, "none of the formats that hopbed reads:\n  as meshnet-lab: 2:52:"},
		{[]string{"--format", "xml", "x.json"}, exitUsage, "one of meshnet-lab"},
		{[]string{"none.json"}, 1, "no such file"},
		{nil, exitUsage, "which file"},
		{[]string{"parts.json"}, 0, "falls into 2 parts, the largest of 3 nodes"},
		{[]string{"--largest", "parts.json"}, 0, "2 of 5 nodes are outside"},
	} {
		status, _, stderr := hopbed(t, dir, append([]string{"topology", "import"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, stderr)
		}
	}
}

func TestTopologyDraw(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "l.yaml"), listedLinks)
	for _, args := range [][]string{{"l.yaml"}, {"--spread", "load30"}, {"load30"}, {"access-point"}} {
		if status, _, stderr := hopbed(t, dir, append([]string{"topology", "draw", "-o", "n.svg"}, args...)...); status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, stderr)
		}
		b, err := os.ReadFile(filepath.Join(dir, "n.svg"))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v: not XML: %v", args, err)
			}
		}
		if spread := strings.Contains(string(b), "positions mean nothing"); spread != (len(args) > 1) {
			t.Errorf("%v: spread %v", args, spread)
		}
	}
}

// What is measured lies about what the file lists, with its interval, and the
// model beside it.
func TestTopologyMeasuresLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "l.yaml"), listedLinks)
	status, out, stderr := hopbed(t, dir, "topology", "etx", "--measure", "--backend", "sim", "l.yaml")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{`(?m)^a +b +0\.(8[4-9]|9[0-5])\d +0\.\d\d–0\.\d\d +0\.(8[4-9]|9[0-5])\d +0\.\d\d–0\.\d\d +1\.\d\d +1\.\d\d–1\.\d\d +0\.900 +0\.900 +1\.23`,
		`(?m)^b +c +0\.[45]\d\d .* +0\.500 +0\.750 +2\.67 +asymmetric`, `400 probes of 134B at 2mbit`, `mean ETX of the 2 links that both take`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(stderr, "links 1/1") || !strings.Contains(stderr, "2 pairs of nodes heard probes: 2 usable links") {
		t.Errorf("progress: %s", stderr)
	}
	// Its own routing is static: --measure measures all the same, with what is set.
	status, out, stderr = hopbed(t, dir, "topology", "etx", "--measure", "-q", "--backend", "sim", "--set", "routing.probes=50", "--set", "routing.size=1500B", "--set", "routing.rate=11mbit", "load30")
	if status != 0 || !strings.Contains(out, "50 probes of 1500B at 11mbit") || stderr != "" {
		t.Errorf("status %d: %s\n%s", status, stderr, out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--backend", "sim", "l.yaml"}, "--backend belongs to --measure"},
		{[]string{"--measure", "--backend", "moon", "l.yaml"}, "no such back end"},
		{[]string{"--measure", "--repetition", "9", "--backend", "sim", "l.yaml"}, "repetitions 1 to 2"},
		{[]string{"--measure"}, "which experiment"},
	} {
		if status, _, stderr := hopbed(t, dir, append([]string{"topology", "etx"}, c.args...)...); status != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, stderr)
		}
	}
}

// A campaign of measured routes: measured once for each back end, kept, and not
// again when it goes on.
func TestRunOverMeasuredRoutes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "l.yaml"), listedLinks)
	status, _, stderr := hopbed(t, dir, "run", "--backend", "sim", "l.yaml")
	if status != 0 || strings.Count(stderr, "links 1/1") != 1 || !strings.Contains(stderr, "2 usable links") {
		t.Fatalf("status %d: %s", status, stderr)
	}
	_, out, _ := hopbed(t, dir, "export", "--table", "links", "--format", "csv")
	if !strings.Contains(out, "probes") || strings.Contains(out, "model") {
		t.Errorf("links:\n%s", out)
	}
	if _, out, _ = hopbed(t, dir, "export", "--table", "surveys", "--format", "csv"); strings.Count(out, "\n") != 2 {
		t.Errorf("surveys:\n%s", out)
	}
	if status, _, stderr = hopbed(t, dir, "topology", "show", "l.yaml"); status != 0 || !strings.Contains(stderr, "measures its links before its first run") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
