package inventory_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/internal/problem"
)

// FuzzParse: whatever the bytes, Parse ends, and either gives sound nodes or a
// bounded list of problems with places.
func FuzzParse(f *testing.F) {
	for _, c := range mistakes {
		if len(c.text) < 4096 {
			f.Add([]byte(c.text))
		}
	}
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		f.Add([]byte(m[1]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := inventory.Parse("f.yaml", data)
		if err != nil {
			var es *problem.Errors
			if v != nil || !errors.As(err, &es) || len(es.Problems) == 0 || len(es.Problems) > problem.Max {
				t.Fatalf("%v with the error %T %v", v, err, err)
			}
			for _, p := range es.Problems {
				if !strings.HasPrefix(p.Error(), "f.yaml:") || p.Pos.Line < 1 || p.Pos.Col < 1 || p.What == "" {
					t.Fatalf("a problem without a place: %v", p)
				}
				if strings.ContainsFunc(p.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Fatalf("a control character in %q", p.Error())
				}
			}
			return
		}
		names, addresses := map[string]bool{}, map[string]bool{}
		for _, n := range v.Nodes {
			if n.Name == "" || names[n.Name] || n.Line < 1 || n.Port < 0 || n.Port > 65535 || len(n.Interface) > 15 || n.Radio.Driver == "" {
				t.Fatalf("%+v", n)
			}
			a := n.Experiment.Addr().String()
			if !n.Experiment.IsValid() || addresses[a] || n.Experiment.Masked() != v.Network {
				t.Fatalf("address %v of %s in %v", n.Experiment, n.Name, v.Network)
			}
			names[n.Name], addresses[a] = true, true
		}
		if len(v.Nodes) < 1 || len(v.Nodes) > inventory.MaxNodes {
			t.Fatalf("%d nodes", len(v.Nodes))
		}
	})
}
