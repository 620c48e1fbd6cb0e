package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/spec"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The README's example is an experiment, and its plan can be laid out.
func TestReadmeExampleIsAnExperiment(t *testing.T) {
	_, rest, ok := strings.Cut(readme(t), "```yaml\n")
	text, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("the README has no example")
	}
	if _, err := spec.Parse("README.md", []byte(text)); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "example.yaml"), text)
	if status, _, stderr := hopbed(t, dir, "check", "example.yaml"); status != 0 {
		t.Errorf("check: status %d: %s", status, stderr)
	}
}

// The README's other topologies and flows fit its example: each takes the place of
// the example's block of the same name.
func TestReadmeTopologiesFitTheExample(t *testing.T) {
	blocks := strings.Split(readme(t), "```yaml\n")[1:]
	example, _, _ := strings.Cut(blocks[0], "```")
	if len(blocks) < 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks[1:] {
		part, _, _ := strings.Cut(b, "```")
		key, _, _ := strings.Cut(part, ":")
		if key == "inventory" {
			if _, err := inventory.Parse("README.md", []byte(part)); err != nil {
				t.Error(err)
			}
			continue
		}
		before, rest, ok := strings.Cut(example, key+":\n")
		end := regexp.MustCompile(`(?m)^[a-z]`).FindStringIndex(rest)
		if !ok || end == nil {
			t.Fatalf("the example has no block %s", key)
		}
		text := before + part + rest[end[0]:]
		if key == "topology" {
			text = strings.NewReplacer("n01", "server", "n03", "sta").Replace(text)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "example.yaml"), text)
		if status, _, stderr := hopbed(t, dir, "check", "example.yaml"); status != 0 {
			t.Errorf("check: status %d: %s\n%s", status, stderr, text)
		}
	}
}

// The README lists every document.
func TestReadmeListsEveryDocument(t *testing.T) {
	text, n := readme(t), 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != "..") {
			return fs.SkipDir
		}
		rel, err := filepath.Rel("../../..", path)
		if err != nil || filepath.Ext(rel) != ".md" || rel == "README.md" {
			return err
		}
		if n++; !strings.Contains(text, "("+filepath.ToSlash(rel)+")") {
			t.Errorf("the README does not list %s", rel)
		}
		return nil
	})
	if err != nil || n < 5 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// Every command and option that the README names exists, and every file that it
// links to.
func TestReadmeNamesWhatExists(t *testing.T) {
	app := newApp(os.Stdout, os.Stderr)
	n := 0
	for line := range strings.Lines(readme(t)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "hopbed" && !strings.HasPrefix(line, "go run ./orchestrator/cmd/hopbed ") {
			continue
		}
		if words[0] == "go" {
			words = words[2:]
		}
		cmd := find(app.Commands, words[1])
		if cmd == nil {
			if strings.HasPrefix(line, "hopbed runs ") { // prose
				continue
			}
			t.Errorf("the README names a command that is not there: %s", line)
			continue
		}
		n++
		if len(words) > 2 {
			if sub := find(cmd.Subcommands, words[2]); sub != nil {
				cmd = sub
			} else if len(cmd.Subcommands) > 0 {
				t.Errorf("%s has no subcommand %s", words[1], words[2])
			}
		}
		for _, w := range words {
			if w == "#" {
				break
			}
			if name, isOption := strings.CutPrefix(w, "-"); isOption {
				name, _, _ = strings.Cut(strings.TrimLeft(name, "-"), "=")
				known := false
				for _, f := range cmd.Flags {
					for _, k := range f.Names() {
						known = known || k == name
					}
				}
				if !known {
					t.Errorf("hopbed %s has no option %s: %s", words[1], w, line)
				}
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d commands were found in the README", n)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(readme(t), -1) {
		if _, err := os.Stat(filepath.Join("../../..", m[1])); err != nil && !strings.Contains(m[1], "://") {
			t.Errorf("the README links to %s: %v", m[1], err)
		}
	}
}
