package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func labels(e *Experiment) []string {
	var out []string
	for _, p := range e.Points() {
		out = append(out, p.Label())
	}
	return out
}

func TestTheLastVariableRunsFastest(t *testing.T) {
	e := parse(t, small+"seed: $s\nrepeat: 2\nmatrix: {s: [1, 2], r: [1mbit, 2mbit, 11mbit]}\nradio: {rate: $r}\n")
	want := []string{"s=1 r=1mbit", "s=1 r=2mbit", "s=1 r=11mbit", "s=2 r=1mbit", "s=2 r=2mbit", "s=2 r=11mbit"}
	if got := labels(e); !reflect.DeepEqual(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
	if c := e.Points()[4].Config; c.Seed != 2 || c.Radio.Rate != 2*vtime.MbitPerSecond {
		t.Errorf("point 4: seed %d, rate %v", c.Seed, c.Radio.Rate)
	}
}

func TestVariablesStandForBlocksAndPartsOfTexts(t *testing.T) {
	e := parse(t, strings.Replace(small, "transport: hop", "transport: tcp/$cc, workload: $w", 1)+
		"radio: $radio\nmatrix:\n  cc: [cubic, reno]\n  w: [continual, {kind: sized, size: $size}]\n  size: [1MB]\n  radio: [{rate: 11mbit}, {path-loss: {kind: disk, range: 50m}}]\n")
	ps := e.Points()
	if len(ps) != 8 {
		t.Fatalf("%d points, want 8", len(ps))
	}
	c := ps[7].Config
	if f := c.Flows[0]; f.Transport != "tcp/reno" || f.Workload.Kind != Sized || f.Workload.Size != vtime.MB {
		t.Errorf("flow %+v", f)
	}
	if p := c.Radio.PathLoss; p.Kind != Disk || p.Range != 50 || p.SenseRange != 50 {
		t.Errorf("path loss %+v", p)
	}
	if l := ps[7].Label(); l != "cc=reno w={kind: sized, size: 1MB} size=1MB radio={path-loss: {kind: disk, range: 50m}}" {
		t.Errorf("label %q", l)
	}
}

func TestTheDollarSign(t *testing.T) {
	e := parse(t, small+"title: costs $5 and $x\nnotes: $$\n")
	if c := e.Base(); c.Title != "costs $5 and $x" || c.Notes != "$$" {
		t.Errorf("free text was changed: %q %q", c.Title, c.Notes)
	}
	if _, err := Parse("x", []byte(small+"radio: {rate: $$}\n")); err == nil || !strings.Contains(err.Error(), `"$": rate`) {
		t.Errorf("$$ should read as a dollar sign: %v", err)
	}
}

func TestWrongVariables(t *testing.T) {
	cases := []struct {
		name, more string
		want       []string
	}{
		{"unknown", "radio: {rate: $rat}\nmatrix: {rate: [1mbit]}\n", []string{`x.yaml:6:15: "$rat": the variable $rat is not declared`, `did you mean "rate"?`}},
		{"none declared", "radio: {rate: $r}\n", []string{"matrix: {r: [value, …]} declares it"}},
		{"unused", "matrix: {r: [1mbit]}\n", []string{"x.yaml:6:10: matrix.r: the variable is never used", "matrix.r: [1mbit]"}},
		{"used by an unused one only", "matrix: {a: [$b], b: [1]}\n", []string{"matrix.a: the variable is never used", "matrix.b: the variable is never used"}},
		{"cycle", "radio: {rate: $a}\nmatrix: {a: [$b], b: [1mbit, $c], c: [\"${a}\"]}\n", []string{"x.yaml:7:10: matrix: variables refer to each other in a cycle: $a → $b → $c → $a"}},
		{"self", "radio: {rate: $a}\nmatrix: {a: [$a]}\n", []string{"in a cycle: $a → $a"}},
		{"dollar alone", "radio: {rate: 5$}\n", []string{"a $ that begins no variable"}},
		{"upper case", "radio: {rate: $R}\n", []string{"a $ that begins no variable"}},
		{"name of a variable", "matrix: {R: [1]}\n", []string{"not a name of a variable"}},
		{"not a list", "matrix: {r: 1mbit}\nradio: {rate: $r}\n", []string{"x.yaml:6:13: matrix.r", "[1mbit]"}},
		{"empty list", "matrix: {r: []}\nradio: {rate: $r}\n", []string{"at least one value"}},
		{"value twice", "matrix: {r: [1mbit, 1mbit]}\nradio: {rate: $r}\n", []string{"x.yaml:6:21: matrix.r", "listed twice"}},
		{"value wrong", "matrix: {r: [1mbit, 3mbit]}\nradio: {rate: $r}\n", []string{`x.yaml:6:21: radio.rate (through $r): "3mbit"`}},
		{"block in a text", "matrix: {r: [[1]]}\nradio: {rate: \"${r}mbit\"}\n", []string{"stands for a list, which cannot be a part of a text"}},
		{"variable where none may be", "repeat: $n\nmatrix: {n: [1, 2]}\n", []string{"never used"}},
		{"not a mapping", "matrix: [a]\n", []string{"a mapping of variables to lists"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(small+c.more))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("message lacks %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestAMistakeSeenThroughManyPointsIsSaidOnce(t *testing.T) {
	_, err := Parse("x.yaml", []byte(withLine("duration", "duration: 10")+"seed: $s\nmatrix: {s: [1, 2, 3, 4, 5, 6, 7, 8]}\n"))
	if err == nil || strings.Count(err.Error(), "has no unit") != 1 {
		t.Errorf("got %v", err)
	}
}

func TestQuick(t *testing.T) {
	text := strings.Replace(small, "transport: hop", "transport: $t", 1) + "repeat: 5\nmatrix: {t: [hop, tcp/cubic, tcp/reno], s: [1, 2]}\nseed: $s\n"
	e := parse(t, text+"quick: {repeat: 1, warmup: 1s, duration: 2s, sample: 50ms, matrix: {t: [hop, tcp/reno]}}\n")
	if len(e.Points()) != 6 || e.Base().Repeat != 5 || !e.HasQuick() {
		t.Fatalf("full: %d points", len(e.Points()))
	}
	if err := e.ApplyQuick(); err != nil {
		t.Fatal(err)
	}
	c := e.Base()
	if got := labels(e); !e.Quick || c.Repeat != 1 || c.Warmup != vtime.Second || c.Duration != 2*vtime.Second || c.Sample != 50*vtime.Millisecond ||
		!reflect.DeepEqual(got, []string{"t=hop s=1", "t=hop s=2", "t=tcp/reno s=1", "t=tcp/reno s=2"}) {
		t.Errorf("quick: %+v, points %q", c, got)
	}

	for _, q := range []struct{ quick, want string }{
		{"{matrix: {t: [tcp/bbr]}}", `quick.matrix.t: "tcp/bbr": not a value of the file's matrix`},
		{"{matrix: {x: [1]}}", `"x": not a variable of the file`},
		{"{matrix: {t: []}}", "at least one value"},
		{"{matrix: 5}", "not a part of the file's matrix"},
		{"{repeat: 0}", `repeat: "0": out of range`},
		{"{}", "a mapping with some of repeat"},
		{"5", "a mapping with some of repeat"},
	} {
		if _, err := Parse("x.yaml", []byte(text+"quick: "+q.quick+"\n")); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("quick: %s: got %v, want %q", q.quick, err, q.want)
		}
	}
	if err := parse(t, small).ApplyQuick(); err == nil || !strings.Contains(err.Error(), "no quick block") {
		t.Errorf("without a quick block: %v", err)
	}
}

func TestSet(t *testing.T) {
	e := parse(t, designExample)
	err := e.Set(Assignment{"radio.rate", "1mbit"}, Assignment{"flows.0.count", "5"}, Assignment{"flows[0].hops", ">=3"}, Assignment{"seed", "7"},
		Assignment{"matrix.transport", "[hop, tcp/reno]"}, Assignment{"transports.hop.block", "256KiB"}, Assignment{"title", `"a: b"`}, Assignment{"duration", "60s"})
	if err != nil {
		t.Fatal(err)
	}
	c := e.Base()
	if c.Radio.Rate != vtime.MbitPerSecond || c.Flows[0].Count != 5 || c.Flows[0].Hops.Classes[0].Min != 3 || c.Seed != 7 ||
		c.Transports.Hop.Block != 256*vtime.KiB || c.Title != "a: b" || c.Duration != 60*vtime.Second {
		t.Errorf("config %+v", c)
	}
	if got := labels(e); !reflect.DeepEqual(got, []string{"transport=hop", "transport=tcp/reno"}) {
		t.Errorf("points %q", got)
	}
	if len(e.Sets()) != 8 || string(e.Source) != designExample {
		t.Error("the record of what was set is not complete")
	}
}

func TestWrongSet(t *testing.T) {
	cases := []struct{ key, value, want string }{
		{"radio.rate", "12mbit", `--set radio.rate: radio.rate: "12mbit": not a rate of 802.11b`},
		{"radio.rate", "", "--set radio.rate: radio.rate: (nothing): is empty"},
		{"radio.speed", "1mbit", `--set radio.speed: radio: "speed": unknown key`},
		{"radoi.rate", "1mbit", `did you mean "radio"?`},
		{"transport", "hop", `"transport": unknown key`},
		{"flows.3.count", "1", `flows has no entry "3"; allowed: 0 to 0`},
		{"flows.x.count", "1", `flows has no entry "x"`},
		{"duration.x", "1", `duration is "300s", which has no keys`},
		{"matrix.transprt", "[hop]", `did you mean "transport"?`},
		{"matrix.transport", "hop", "[hop]"},
		{"flows.0.transport", "hop", "the variable is never used"},
		{"quick.duration", "1s", "the quick block is applied before --set"},
		{"radio..rate", "1mbit", "not a key"},
		{"radio", "{rate: 11mbit", "--set radio: not YAML"},
		{"name", "a\x00b", "not a value"},
		{"repeat", "$x", "a variable cannot stand here"},
		{strings.Repeat("a.", 200), "1", "not a key"},
	}
	for _, c := range cases {
		e := parse(t, designExample)
		before := e.Base()
		err := e.Set(Assignment{"seed", "5"}, Assignment{c.key, c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--set %s=%s: got %v, want %q", c.key, c.value, err, c.want)
		}
		if e.Base() != before || len(e.Sets()) != 0 {
			t.Errorf("--set %s=%s changed the experiment although it failed", c.key, c.value)
		}
	}
	for _, s := range []string{"", "x", "=5"} {
		if _, err := ParseAssignment(s); err == nil {
			t.Errorf("ParseAssignment(%q) accepted", s)
		}
	}
	if a, err := ParseAssignment("a.b=c=d"); err != nil || a != (Assignment{"a.b", "c=d"}) {
		t.Errorf("ParseAssignment: %v %v", a, err)
	}
}

func TestHopMix(t *testing.T) {
	e := parse(t, strings.NewReplacer("nodes: 3", "nodes: 20", "count: 1", "count: 30, hops: {7: 10%, 2: 30%, 3: 30%, 4: 10%, 5: 20%}").Replace(small))
	h := e.Base().Flows[0].Hops
	if got := h.Counts(30); !reflect.DeepEqual(got, []int{9, 9, 3, 6, 3}) {
		t.Errorf("counts of 30: %v", got)
	}
	// Largest remainder: 7 × {30, 30, 10, 20, 10} % = 2.1 2.1 0.7 1.4 0.7.
	if got := h.Counts(7); !reflect.DeepEqual(got, []int{2, 2, 1, 1, 1}) {
		t.Errorf("counts of 7: %v", got)
	}
	for n := range 100 {
		sum := 0
		for _, c := range h.Counts(n) {
			sum += c
		}
		if sum != n {
			t.Errorf("counts of %d add up to %d", n, sum)
		}
	}
	if h.Class(6) != -1 || h.Class(7) != 4 || h.Allows(1) {
		t.Errorf("classes: %+v", h)
	}
	for s, want := range map[string]HopClass{"3": {3, 3, 1}, "=3": {3, 3, 1}, ">=2": {2, MaxNodes, 1}, ">2": {3, MaxNodes, 1}, "<4": {1, 3, 1}, "<=4": {1, 4, 1}, "2-5": {2, 5, 1}} {
		if got, ok := hopClass(s); !ok || got != want {
			t.Errorf("hops %q = %+v, %v", s, got, ok)
		}
	}
}

func TestRepetitionSeeds(t *testing.T) {
	seen := map[uint64]bool{}
	for base := range uint64(50) {
		for rep := range 50 {
			s := RepetitionSeed(base, rep)
			if seen[s] || s >= 1<<53 {
				t.Fatalf("seed %d of (%d, %d) is not unique or not exact in JSON", s, base, rep)
			}
			seen[s] = true
		}
	}
	// A change here changes every placement: earlier results would no longer
	// repeat.
	if got := RepetitionSeed(2009, 0); got != 450383256274430 {
		t.Errorf("RepetitionSeed(2009, 0) = %d, want 450383256274430", got)
	}
}
