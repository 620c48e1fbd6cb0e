package inventory

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/problem"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

var (
	marked   = regexp.MustCompile(`(?s)<!-- keys: (\w+) -->\n(.*?)<!-- end -->`)
	examples = regexp.MustCompile("(?s)```yaml( wrong)?\n(.*?)```\n(?:\n```text\n(.*?)```\n)?")
)

func table(keys []key) string {
	var b strings.Builder
	b.WriteString("| key | meaning | allowed | default |\n|---|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, k.meaning, strings.ReplaceAll(k.allowed, "|", `\|`), k.def)
	}
	return b.String()
}

// The tables of FORMAT.md are made of the keys themselves, its examples are read,
// and its mistakes are told as it says.
func TestFORMAT(t *testing.T) {
	b, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	want := marked.ReplaceAllStringFunc(string(b), func(s string) string {
		seen++
		name := marked.FindStringSubmatch(s)[1]
		keys := nodeKeys()
		if name == "radio" {
			keys = radioKeys()
		}
		return "<!-- keys: " + name + " -->\n" + table(keys) + "<!-- end -->"
	})
	if seen != 2 {
		t.Errorf("%d tables", seen)
	}
	read := 0
	want = examples.ReplaceAllStringFunc(want, func(s string) string {
		read++
		m := examples.FindStringSubmatch(s)
		_, err := Parse("FILE", []byte(m[2]))
		var es *problem.Errors
		switch {
		case m[1] == "" && err != nil:
			t.Errorf("the example\n%s\nis refused: %v", m[2], err)
		case m[1] != "" && !errors.As(err, &es):
			t.Errorf("the example of mistakes\n%s\nis read: %v", m[2], err)
		case m[1] != "":
			return "```yaml wrong\n" + m[2] + "```\n\n```text\n" + err.Error() + "\n```\n"
		}
		return s
	})
	if read < 4 {
		t.Errorf("%d examples", read)
	}
	if *update {
		if err := os.WriteFile("FORMAT.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(b) {
		t.Error("FORMAT.md is not what the keys say: go test ./deploy/inventory -run FORMAT -update")
	}
}
