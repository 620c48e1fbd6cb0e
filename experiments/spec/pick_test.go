package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// cases has points with different networks, rates and flows.
const cases = `hopbed: 1
name: cases
topology: $case.topology
radio: $case.radio
transports: {hop: {block: "${case.kib}KiB"}}
flows:
  - {pairs: $case.pairs, transport: $transport}
matrix:
  case:
    - label: one hop
      topology: {generate: {kind: chain, nodes: 2, spacing: 20m}}
      radio: {rate: 11mbit}
      kib: 64
      pairs: [{src: n01, dst: n02}]
    - label: wire
      topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], rate: $rate, queue: {packets: 50}}]}
      radio: {}
      kib: 128
      pairs: [{src: a, dst: b}]
  rate: [5mbit, 10mbit]
  transport: [hop, tcp/reno]
duration: 10s
quick: {matrix: {case: [wire], rate: [5mbit]}}
`

func TestValuesThatAreMappingsArePickedFrom(t *testing.T) {
	e := parse(t, cases)
	if got, want := labels(e)[:3], []string{"case=one hop rate=5mbit transport=hop", "case=one hop rate=5mbit transport=tcp/reno", "case=one hop rate=10mbit transport=hop"}; !reflect.DeepEqual(got, want) || len(e.Points()) != 8 {
		t.Errorf("%d points %q, want %q …", len(e.Points()), got, want)
	}
	first, last := e.Points()[0].Config, e.Points()[7].Config
	if first.Topology.Generate == nil || first.Transports.Hop.Block != 64*vtime.KiB || first.Flows[0].Pairs.Listed[0].Src != "n01" {
		t.Errorf("first: %+v", first)
	}
	if last.Topology.Generate != nil || last.Topology.Pipes[0].Rate != 10*vtime.MbitPerSecond || last.Transports.Hop.Block != 128*vtime.KiB || last.Flows[0].Pairs.Listed[0].Src != "a" {
		t.Errorf("last: %+v", last)
	}
	if err := e.ApplyQuick(); err != nil {
		t.Fatal(err)
	}
	if got, want := labels(e), []string{"case=wire rate=5mbit transport=hop", "case=wire rate=5mbit transport=tcp/reno"}; !reflect.DeepEqual(got, want) {
		t.Errorf("quick: %q, want %q", got, want)
	}
	// Fewer points need not use every variable, as long as it does not multiply them.
	e = parse(t, cases)
	if err := e.Set(Assignment{"matrix.case", "[one hop]"}, Assignment{"matrix.rate", "[5mbit]"}); err != nil {
		t.Fatal(err)
	}
	if got, want := labels(e), []string{"case=one hop rate=5mbit transport=hop", "case=one hop rate=5mbit transport=tcp/reno"}; !reflect.DeepEqual(got, want) {
		t.Errorf("set: %q, want %q", got, want)
	}
}

// TestALabelNamesAValueThatIsUsedAsAWhole: the label is no key of the block.
func TestALabelNamesAValueThatIsUsedAsAWhole(t *testing.T) {
	e := parse(t, small+"radio: $radio\nmatrix: {radio: [{label: near, path-loss: {kind: disk, range: 50m}}, {rate: 2mbit}, $other], other: [{label: far, rate: 1mbit}]}\n")
	want := []string{"radio=near other=far", "radio={rate: 2mbit} other=far", "radio=far other=far"}
	if got := labels(e); !reflect.DeepEqual(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
	if c := e.Points()[2].Config; c.Radio.Rate != vtime.MbitPerSecond {
		t.Errorf("radio %+v", c.Radio)
	}
}

// TestADotAfterAPlainValueIsADot: in names of nodes and files.
func TestADotAfterAPlainValueIsADot(t *testing.T) {
	e := parse(t, withLine("topology", `topology: {nodes: [{name: $x.a}, {name: "${x}.b"}, {name: $y.k.c}], links: [{from: $x.a, to: n.b}]}`)+
		"matrix: {x: [n], y: [{k: m}]}\n")
	if got, want := e.Base().Topology.NodeNames(), []string{"n.a", "n.b", "m.c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("nodes %q, want %q", got, want)
	}
}

func TestWrongPicks(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"unknown key", "$case.radio", "$case.radios", []string{`x.yaml:4:8: "$case.radios": the value of $case in the point case="one hop" has no key radios`, "$case.topology, $case.radio", `did you mean "radio"?`}},
		{"key of one value only", "      kib: 128\n", "", []string{`case="wire" has no key kib`}},
		{"key of a value with a label only", "duration: 10s\n", "  bare: [{label: empty}]\nduration: $bare.time\n", []string{`bare="empty" has no key time: it holds no key but its label; allowed: a key time in that value`}},
		{"key that nothing picks", "label: wire", "label: wire\n      rats: 7", []string{`x.yaml:16:7: matrix.case: "rats": the key is never used`, "label for the name of the value"}},
		{"misspelt label", "label: wire", "lable: wire", []string{`"lable": the key is never used`, `did you mean "label"?`}},
		{"labels alike", "label: wire", "label: one hop", []string{`x.yaml:15:7: matrix.case: "one hop": two values have this label`}},
		{"label that is a list", "label: wire", "label: [wire]", []string{"x.yaml:15:14: matrix.case.label", "not a name for a value"}},
		{"pick of a pick of a value", "$case.pairs", "$case.pairs.src", []string{"$case.pairs is a list, which has no keys"}},
		{"braces around a plain value", `"${case.kib}KiB"`, `"${rate.kib}KiB"`, []string{"$rate is a value, which has no keys"}},
		{"mapping in a text", `"${case.kib}KiB"`, `"${case.radio}KiB"`, []string{"stands for a mapping, which cannot be a part of a text"}},
		{"quick names no label", "case: [wire]", "case: [wires]", []string{`quick.matrix.case: "wires": not a value of the file's matrix; allowed: one hop, wire; did you mean "wire"?`}},
		{"mistake in a picked value", "rate: $rate, queue: {packets: 50}", "rate: $rate, queue: {packets: 0}", []string{`topology.pipes[0].queue.packets: "0": out of range`}},
		{"mistake in the picked value itself", "radio: {rate: 11mbit}", "radio: {rate: 12mbit}", []string{`x.yaml:12:21: radio.rate: "12mbit": not a rate of 802.11b`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(cases, c.old, c.new, 1)
			if text == cases {
				t.Fatalf("%q is not in the file", c.old)
			}
			_, err := Parse("x.yaml", []byte(text))
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
