package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// designExample is the example of the format's specification, as it is there.
const designExample = `hopbed: 1
name: load30
title: Thirty concurrent flows over a 20-node mesh
reference: hop-nsdi09/load30            # published values to compare with
topology:
  generate: {kind: random-mesh, nodes: 20, area: [120m, 80m], min-hops: 2, seed: 11}
radio: {standard: 802.11b, rate: 11mbit, preamble: long, path-loss: {exponent: 3.3, shadowing: 6dB}, sense: -7dB}
mac:
  retries: 7
  queues: {bk: {txop: 8160us, ack: none}}
routing: {kind: static, metric: etx}
flows:
  - {count: 30, pairs: random, hops: ">=2", transport: $transport, workload: continual}
matrix: {transport: [hop, tcp/cubic, hop-by-hop-tcp/cubic]}
repeat: 5
warmup: 20s
duration: 300s
sample: 100ms
quick: {repeat: 1, warmup: 5s, duration: 30s}
`

func parse(t *testing.T, text string) *Experiment {
	t.Helper()
	e, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return e
}

func TestTheExampleOfTheFormat(t *testing.T) {
	e := parse(t, designExample)
	ps := e.Points()
	if len(ps) != 3 {
		t.Fatalf("%d points, want 3", len(ps))
	}
	for i, want := range []Transport{"hop", "tcp/cubic", "hop-by-hop-tcp/cubic"} {
		c := ps[i].Config
		if c.Flows[0].Transport != want || ps[i].Label() != "transport="+string(want) || ps[i].Index != i {
			t.Errorf("point %d: %+v", i, ps[i])
		}
		if c.Warmup != 20*vtime.Second || c.Duration != 300*vtime.Second || c.Sample != 100*vtime.Millisecond || c.Repeat != 5 {
			t.Errorf("times: %+v", c)
		}
		g := c.Topology.Generate
		if g == nil || g.Kind != RandomMesh || g.Area != (Area{120, 80}) || *g.Seed != 11 || g.MinHops != 2 || g.Vary != VaryRepetition {
			t.Errorf("generate: %+v", g)
		}
		if *c.Radio.Sense != -7 || c.Radio.Rate != 11*vtime.MbitPerSecond || c.Radio.BasicRate != 2*vtime.MbitPerSecond || *c.Radio.PathLoss.Exponent != 3.3 {
			t.Errorf("radio: %+v", c.Radio)
		}
		q := c.MAC.Queues.BK
		if *q.TXOP != 8160*vtime.Microsecond || q.Ack != AckNone || q.AIFS != nil || *c.MAC.Retries != 7 {
			t.Errorf("mac: %+v", c.MAC)
		}
		if h := c.Flows[0].Hops; h.Allows(1) || !h.Allows(2) || !h.Allows(19) {
			t.Errorf("hops: %+v", h)
		}
		if c.Transports.Hop.Block != vtime.MiB || c.Transports.Hop.H != 1 {
			t.Errorf("hop options: %+v", c.Transports)
		}
	}
	if e.Quick {
		t.Error("quick without being asked")
	}
	if err := e.ApplyQuick(); err != nil {
		t.Fatal(err)
	}
	if c := e.Base(); !e.Quick || c.Repeat != 1 || c.Warmup != 5*vtime.Second || c.Duration != 30*vtime.Second {
		t.Errorf("quick: %+v", c)
	}
}

// small is a valid file of five lines to which the cases below add.
const small = `hopbed: 1
name: small
topology: {generate: {kind: chain, nodes: 3, spacing: 20m}}
flows: [{count: 1, pairs: random, transport: hop}]
duration: 10s
`

func TestTheSmallFileIsValid(t *testing.T) { parse(t, small) }

// replace changes one line of small, or adds one.
func withLine(key, line string) string {
	var out []string
	found := false
	for _, l := range strings.Split(strings.TrimSuffix(small, "\n"), "\n") {
		if strings.HasPrefix(l, key+":") {
			l, found = line, true
		}
		out = append(out, l)
	}
	if !found {
		out = append(out, line)
	}
	return strings.Join(out, "\n") + "\n"
}

func TestMistakesAreShownWhereTheyAre(t *testing.T) {
	cases := []struct {
		name, key, line string
		want            []string // parts of the message
	}{
		{"unknown key", "durations", "durations: 10s", []string{"x.yaml:6:1: ", `"durations": unknown key`, `did you mean "duration"?`}},
		{"unknown key in a block", "radio", "radio: {rat: 11mbit}", []string{"x.yaml:6:9: radio: ", `"rat": unknown key`, `"rate"`}},
		{"comparison without quotes", "flows", "flows: [{count: 1, pairs: random, hops: >=2, transport: hop}]", []string{`x.yaml:4:41: ">=2": not YAML: a value cannot begin with > here`, `allowed: the same in quotes: ">=2"`}},
		{"comparison without quotes in a block", "flows", "flows:\n  - count: 1\n    hops: >= 3\n    pairs: random", []string{`x.yaml:6:11: ">= 3": not YAML`, `quotes: ">= 3"`}},
		{"comparison that YAML takes for a text", "flows", "flows:\n  - count: 1\n    hops: >2\n    pairs: random\n    transport: hop", []string{`flows[0].hops: "": empty: YAML reads > without quotes`, `">=2"`}},
		{"off where it is none", "mac", "mac: {retries: off}", []string{`mac.retries: "off": not a whole number`}},
		{"neither off nor a size", "mac", "mac: {rts: none}", []string{`mac.rts: "none"`, "allowed: off, or a size such as 256KiB from 1B to 4096B"}},
		{"no unit", "duration", "duration: 10", []string{`x.yaml:5:11: duration: "10"`, "has no unit", "10"}},
		{"wrong unit", "duration", "duration: 10m", []string{"x.yaml:5:11", `unit "m"`, "ms"}},
		{"negative", "duration", "duration: -10s", []string{"x.yaml:5:11", `"-10s": out of range`, "100ms to 168h"}},
		{"gigantic", "duration", "duration: " + strings.Repeat("9", 400) + "s", []string{"x.yaml:5:11"}},
		{"not a number", "radio", "radio: {path-loss: {exponent: .nan}}", []string{"x.yaml:6:31: radio.path-loss.exponent", `".nan"`, "not a number"}},
		{"infinite", "radio", "radio: {path-loss: {exponent: .inf}}", []string{"x.yaml:6:31", "not a number"}},
		{"gigantic int", "repeat", "repeat: 99999999999999999999", []string{"x.yaml:6:9: repeat", "too large"}},
		{"hexadecimal", "repeat", "repeat: 0x10", []string{"x.yaml:6:9: repeat", "not a whole number"}},
		{"negative seed", "seed", "seed: -1", []string{"x.yaml:6:7: seed", "out of range"}},
		{"control character", "name", `name: "a\u0007b"`, []string{`x.yaml:2:7: name: "a\ab": not a name`}},
		{"upper case", "name", "name: Load", []string{"x.yaml:2:7", "lower-case"}},
		{"invisible", "title", `title: "a\u202eb"`, []string{"x.yaml:6:8: title", "not one line"}},
		{"reference", "reference", "reference: hop", []string{"x.yaml:6:12: reference", "paper/experiment"}},
		{"version", "hopbed", "hopbed: 2", []string{`x.yaml:1:9: hopbed: "2"`, "allowed: 1"}},
		{"null", "radio", "radio:", []string{"x.yaml:6:7: radio: (nothing): is empty", "a mapping with the keys standard"}},
		{"a list for a mapping", "radio", "radio: [a]", []string{"x.yaml:6:8: radio", "is a list"}},
		{"a mapping for a value", "repeat", "repeat: {a: 1}", []string{"x.yaml:6:9: repeat", "is a mapping"}},
		{"duplicate", "radio", "radio: {rate: 11mbit, rate: 1mbit}", []string{`x.yaml:6:23: "rate": the key is given twice; first at line 6`}},
		{"transport", "flows", "flows: [{count: 1, pairs: random, transport: cubic}]", []string{`x.yaml:4:46: flows[0].transport: "cubic": unknown transport`, `"tcp/cubic"`}},
		{"transport typo", "flows", "flows: [{count: 1, pairs: random, transport: tcp/cubc}]", []string{"x.yaml:4:46", `did you mean "tcp/cubic"?`}},
		{"variant twice", "flows", "flows: [{count: 1, pairs: random, transport: hop/arq+arq}]", []string{"unknown transport"}},
		{"rate of another standard", "radio", "radio: {rate: 12mbit}", []string{`x.yaml:6:15: radio.rate: "12mbit": not a rate of 802.11b`, "1mbit, 2mbit, 5500kbit, 11mbit"}},
		{"odd fragment", "mac", "mac: {fragment: 513B}", []string{"x.yaml:6:17: mac.fragment", "even number", "512B or 514B here"}},
		{"txop", "mac", "mac: {queues: {bk: {txop: 8161us}}}", []string{"x.yaml:6:27: mac.queues.bk.txop", "8160us or 8192us"}},
		{"cwmin", "mac", "mac: {queues: {bk: {cwmin: 30}}}", []string{"power of two minus one"}},
		{"cw order", "mac", "mac: {queues: {bk: {cwmin: 31, cwmax: 15}}}", []string{"above cwmax, which is 15"}},
		{"ack", "mac", "mac: {queues: {bk: {ack: non}}}", []string{`"non": unknown; allowed: normal, none; did you mean "none"?`}},
		{"disk without range", "radio", "radio: {path-loss: {kind: disk}}", []string{"a disk needs the key range"}},
		{"disk with exponent key", "radio", "radio: {path-loss: {kind: disk, range: 9m, shadowing: 3dB}}", []string{"x.yaml:6:55: radio.path-loss.shadowing", "has no meaning"}},
		{"sense range", "radio", "radio: {path-loss: {kind: disk, range: 9m, sense-range: 8m}}", []string{"shorter than the range"}},
		{"mesh without area", "topology", "topology: {generate: {kind: random-mesh, nodes: 9}}", []string{"x.yaml:3:22: topology.generate: ", "needs the key area"}},
		{"chain with area", "topology", "topology: {generate: {kind: chain, nodes: 3, spacing: 2m, area: [1m, 1m]}}", []string{"x.yaml:3:65: topology.generate.area", "has no meaning"}},
		{"too many nodes", "topology", "topology: {generate: {kind: chain, nodes: 1001, spacing: 2m}}", []string{`topology.generate.nodes: "1001": out of range; allowed: a whole number from 2 to 1000`}},
		{"two topologies", "topology", "topology: {inventory: lab.yaml, generate: {kind: chain, nodes: 3, spacing: 2m}}", []string{"says generate and inventory at once"}},
		{"inventory", "topology", "topology: {inventory: lab.yaml}", []string{"cannot be read", "a file that lists real nodes"}},
		{"import", "topology", "topology: {import: {format: netjson, file: a.json}}", []string{"topology.import.file", "cannot be read", "NetJSON NetworkGraph"}},
		{"import format", "topology", "topology: {import: {format: netjsn, file: a.json}}", []string{`did you mean "netjson"?`}},
		{"missing keys", "flows", "flows: [{count: 1}]", []string{"flows[0]: the key pairs is missing", "flows[0]: the key transport is missing"}},
		{"no flows", "flows", "flows: []", []string{"x.yaml:4:8: flows", "the list is empty"}},
		{"count", "flows", "flows: [{pairs: random, transport: hop}]", []string{"random pairs need the key count"}},
		{"count out of range", "flows", "flows: [{count: 100000, pairs: random, transport: hop}]", []string{"flows[0].count", "100000", "1 to 10000"}},
		{"too many flows", "flows", "flows: [{count: 9000, pairs: random, transport: hop}, {count: 9000, pairs: random, transport: hop}]", []string{"too many flows"}},
		{"unknown node", "flows", "flows: [{pairs: [{src: n01, dst: n09}], transport: hop}]", []string{"flows[0].pairs[0].dst", "n01 … n03", "no node has this name"}},
		{"self pair", "flows", "flows: [{pairs: [{src: n01, dst: n01}], transport: hop}]", []string{"the same node"}},
		{"hops of a short chain", "flows", `flows: [{count: 1, pairs: random, hops: ">=3", transport: hop}]`, []string{"3 nodes have no routes of 3 hops"}},
		{"mix sum", "flows", "flows: [{count: 1, pairs: random, hops: {1: 50%, 2: 40%}, transport: hop}]", []string{"the shares add up to 90%"}},
		{"mix overlap", "flows", "flows: [{count: 1, pairs: random, hops: {1-2: 50%, 2: 50%}, transport: hop}]", []string{"two classes hold routes of 2 hops"}},
		{"hops", "flows", "flows: [{count: 1, pairs: random, hops: many, transport: hop}]", []string{`"many": not a number of hops`}},
		{"hop below one", "flows", `flows: [{count: 1, pairs: random, hops: "<1", transport: hop}]`, []string{"not a number of hops"}},
		{"two hops", "flows", "flows: [{count: 1, pairs: random, transport: hop}, {count: 1, pairs: random, transport: hop/arq}]", []string{"runs beside hop"}},
		{"sized without size", "flows", "flows: [{count: 1, pairs: random, transport: hop, workload: sized}]", []string{"needs its size"}},
		{"continual with size", "flows", "flows: [{count: 1, pairs: random, transport: hop, workload: {kind: continual, size: 1MB}}]", []string{"has no size"}},
		{"udp sized", "flows", "flows: [{count: 1, pairs: random, transport: udp, workload: {kind: sized, size: 1MB}}]", []string{"cannot carry the workload sized"}},
		{"quick key", "quick", "quick: {seed: 3}", []string{`x.yaml:6:9: quick: "seed": cannot be changed by quick`}},
		{"quick value", "quick", "quick: {duration: 3}", []string{"x.yaml:6:19: duration", "has no unit"}},
		{"sample", "sample", "sample: 20s", []string{"longer than the measured interval"}},
		{"tag", "repeat", "repeat: !!int 5", nil},
		{"foreign tag", "repeat", "repeat: !foo 5", []string{"x.yaml:6:9: the tag \"!foo\""}},
		{"merge key", "radio", "radio: {<<: {rate: 11mbit}}", []string{"merge keys"}},
		{"not YAML", "radio", "radio: {rate: 11mbit", []string{"x.yaml:", "not YAML"}},
		{"tabs", "radio", "radio:\n\trate: 11mbit", []string{"x.yaml:7:2: not YAML", "no tabs"}},
		{"second document", "radio", "---\nhopbed: 1", []string{"x.yaml:6:1: a second document"}},
		{"too many runs", "repeat", "repeat: 100000\nmatrix: {d: [1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s]}\nwarmup: $d", []string{"too many runs"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(withLine(c.key, c.line)))
			if c.want == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			var es *Errors
			if !errors.As(err, &es) || len(es.Problems) == 0 {
				t.Fatalf("not a list of problems: %T %v", err, err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("message lacks %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestSeveralMistakesAreReportedTogetherAndInOrder(t *testing.T) {
	_, err := Parse("x.yaml", []byte("hopbed: 1\nname: X\ntopology: {generate: {kind: ring, nodes: 1}}\nflows: 3\nduration: 10\nrepeat: 0\n"))
	var es *Errors
	if !errors.As(err, &es) {
		t.Fatal(err)
	}
	if len(es.Problems) < 6 {
		t.Errorf("only %d problems:\n%v", len(es.Problems), err)
	}
	for i := 1; i < len(es.Problems); i++ {
		if es.Problems[i].Pos.Line < es.Problems[i-1].Pos.Line {
			t.Errorf("not in file order:\n%v", err)
		}
	}
	var p *Problem
	if !errors.As(err, &p) || p.Pos.Line != 2 {
		t.Errorf("errors.As gives %+v", p)
	}
}

func TestTheNumberOfProblemsIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(small)
	for i := range 5000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	_, err := Parse("x.yaml", []byte(b.String()))
	var es *Errors
	if !errors.As(err, &es) || len(es.Problems) != maxProblems || es.More != 5000-maxProblems {
		t.Fatalf("%d problems and %d more", len(es.Problems), es.More)
	}
	if n := strings.Count(err.Error(), "\n"); n != maxProblems {
		t.Errorf("%d lines", n)
	}
}

func TestHostileDocuments(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	vars := "matrix:\n"
	for i := range 20 {
		vars += fmt.Sprintf("  v%d: [{x: $v%d, y: $v%d}]\n", i, i+1, i+1)
	}
	vars += "  v20: [1]\nradio: $v0\n"
	text := "matrix:\n"
	for i := range 20 {
		text += fmt.Sprintf("  v%d: [\"${v%d}${v%d}\"]\n", i, i+1, i+1)
	}
	text += "  v20: [aaaa]\nradio: {rate: $v0}\n"
	points := "matrix:\n"
	for i := range 20 {
		points += fmt.Sprintf("  v%d: [1, 2, 3]\n", i)
	}
	cases := []struct{ name, text, want string }{
		{"alias bomb", small + bomb, "more than 50000 values"},
		{"self alias", small + "radio: &r {rate: *r}\n", "contains itself"},
		{"deep", small + "radio: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "nested deeper"},
		{"variable bomb", small + vars, "more than 50000 values"},
		{"text bomb", small + text, "longer than"},
		{"points", small + points, "more than 10000 points"},
		{"large", small + "notes: |\n" + strings.Repeat("  aaaaaaaaaaaaaaa\n", 70000), "bytes; allowed: up to 1048576"},
		{"long value", small + "notes: " + strings.Repeat("a", 20000) + "\n", "the value has 20000 bytes"},
		{"not UTF-8", small + "notes: \xff\n", "x.yaml:6:8: not valid UTF-8"},
		{"empty", "", "the file is empty"},
		{"comment only", "# nothing\n", "the file is empty"},
		{"a list", "- a\n", "is a list"},
		{"a word", "hello\n", "is a value"},
		{"a mapping as key", small + "{a: b}: c\n", "a key must be a word"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && len(err.Error()) > 20_000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestRTSIsOffOrASize(t *testing.T) {
	e := parse(t, small+"mac: {rts: $rts}\nmatrix: {rts: [off, 500B]}\n")
	if off, on := e.Points()[0].Config.MAC.RTS, e.Points()[1].Config.MAC.RTS; off != nil || on == nil || *on != 500 {
		t.Errorf("RTS %v and %v", off, on)
	}
}
