package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: whatever the bytes, Parse ends, and either gives points with sound
// values or a bounded list of problems with places.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(designExample))
	files, err := filepath.Glob("../library/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d shipped files, %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		"", "a", "- a", "{", "&a [*a]", "a: &a [x]\nb: *a\n", "<<: {a: b}", "!!binary aGk=", "? [a]\n: b", "\xff", "\ufeffhopbed: 1", "---\n---\n",
		small + "matrix: {a: [$b], b: [$a]}\nseed: $a\n",
		small + "matrix: {a: [\"${b}${b}\"], b: [x]}\nradio: {rate: $a}\n",
		small + "radio: {path-loss: {exponent: .nan}}\n",
		small + "seed: 99999999999999999999999\n",
		small + "quick: {matrix: {a: [1]}}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse("f.yaml", data)
		if err != nil {
			var es *Errors
			if e != nil || !errors.As(err, &es) || len(es.Problems) == 0 || len(es.Problems) > maxProblems {
				t.Fatalf("experiment %v with the error %T %v", e, err, err)
			}
			for _, p := range es.Problems {
				if !strings.HasPrefix(p.Error(), "f.yaml:") || p.Pos.Line < 1 || p.Pos.Col < 1 || p.What == "" {
					t.Fatalf("a problem without a place: %v", p)
				}
				// What is quoted is escaped; a message must not drive a terminal.
				if strings.ContainsFunc(p.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Fatalf("a control character in %q", p.Error())
				}
			}
			return
		}
		if len(e.Points()) < 1 || len(e.Points()) > MaxPoints {
			t.Fatalf("%d points", len(e.Points()))
		}
		for i, p := range e.Points() {
			c := p.Config
			if i > 20 {
				break
			}
			if p.Index != i || c.Version != 1 || c.Name == "" || c.Duration <= 0 || c.Warmup < 0 || c.Sample <= 0 || c.Repeat < 1 || len(c.Flows) == 0 {
				t.Fatalf("point %d: %+v", i, c)
			}
			for _, fl := range c.Flows {
				if fl.Count < 1 || fl.Transport.family() == nil {
					t.Fatalf("flow %+v", fl)
				}
			}
			if n := len(c.Topology.NodeNames()); n < 2 || n > MaxNodes {
				t.Fatalf("%d nodes", n)
			}
		}
		// What was accepted is accepted again, with the same result.
		again, err := Parse("f.yaml", data)
		if err != nil || len(again.Points()) != len(e.Points()) {
			t.Fatalf("the second time: %v", err)
		}
		if err := e.Set(Assignment{"seed", "7"}); err == nil && e.Base().Seed != 7 {
			t.Fatal("a value that was set is not there")
		}
	})
}

// FuzzSet: no assignment of the command line panics, and one that fails leaves
// the experiment as it was.
func FuzzSet(f *testing.F) {
	for _, s := range [][2]string{{"radio.rate", "1mbit"}, {"flows.0.hops", ">=2"}, {"matrix.transport", "[hop]"}, {"flows[0]", "{a: &a [*a]}"}, {"a..b", "x"}, {"quick", "1"},
		{"topology", "$x"}, {"flows.0.pairs", "[{src: n01, dst: n02}]"}, {"radio", "{path-loss: {kind: disk, range: 5m}}"}, {"matrix", "{transport: [hop], transport: [hop]}"}, {"seed", "\x00"}, {"", ""}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		e, err := Parse("f.yaml", []byte(designExample))
		if err != nil {
			t.Fatal(err)
		}
		before := e.Base()
		if err := e.Set(Assignment{key, value}); err != nil {
			if e.Base() != before || len(e.Points()) != 3 {
				t.Fatalf("--set %s=%s failed with %v, but changed the experiment", key, value, err)
			}
			return
		}
		if len(e.Points()) == 0 || e.Base().Duration <= 0 {
			t.Fatalf("--set %s=%s gave %+v", key, value, e.Base())
		}
	})
}
