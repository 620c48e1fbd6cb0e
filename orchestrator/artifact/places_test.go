package artifact

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Three wires in a row; an access point that routes or bridges; a ring.
const (
	wires = `nodes: [{name: a, radio: false}, {name: r, radio: false}, {name: s, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, r]}, {ends: [r, s]}, {ends: [s, b]}]`
	point = `nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m]}, {name: sta, at: [10m, 0m]}]
  pipes: [{ends: [ap, server], interfaces: [uplink, eth0]}]`
	bridge = `nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m], bridge: true}, {name: sta, at: [10m, 0m]}]
  pipes: [{ends: [ap, server], interfaces: [uplink, eth0]}]`
	chain = `generate: {kind: chain, nodes: 2, spacing: 10m}`
)

func laidOut(t *testing.T, topology, flows string) (*plan.Plan, *plan.Scenario) {
	t.Helper()
	text := "hopbed: 1\nname: f\ntopology:\n  " + topology + "\nflows:\n  - " + strings.ReplaceAll(flows, "; ", "\n  - ") + "\ntransports: {udp: {rate: 1mbit}}\nrepeat: 1\nduration: 1s\n"
	e, err := spec.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Build(e)
	s, err := p.Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

// What a capture holds if nobody says what, and what to do where Wireshark would
// then see repeats of packets that were sent once.
func TestDefaultPlaces(t *testing.T) {
	const (
		ab  = "{pairs: [{src: a, dst: b}], transport: tcp/cubic}"
		ba  = "{pairs: [{src: b, dst: a}], transport: tcp/cubic}"
		air = "(on the air with every hop and repetition)"
	)
	for name, c := range map[string]struct {
		topology, flows string
		at              []string // --trace-at
		want            string   // interfaces
		hint            []string // none: no hint
	}{
		"a flow":          {wires, ab, nil, "a:eth0", nil},
		"hop by hop":      {wires, "{pairs: [{src: a, dst: b}], transport: hop-by-hop-tcp/cubic}", nil, "a:eth0 r:eth1 s:eth1", nil},
		"Hop":             {wires, "{pairs: [{src: a, dst: b}], transport: hop}", nil, "a:eth0 r:eth1 s:eth1", nil},
		"back":            {wires, ba, nil, "b:eth0", nil},
		"both ways":       {wires, ab + "; " + ba, nil, "a:eth0 b:eth0", []string{"c.pcapng has packets of flow 0", "(a:eth0, b:eth0)", `frame.interface_name == "a:eth0"' -w c-a.pcapng, or run with --trace-at a:eth0`}},
		"from the middle": {wires, ab + "; {pairs: [{src: s, dst: b}], transport: tcp/reno}", nil, "a:eth0 s:eth1", []string{"flow 0", "(a:eth0, s:eth1)"}},
		"UDP both ways":   {wires, "{pairs: [{src: a, dst: b}, {src: b, dst: a}], transport: udp}", nil, "a:eth0 b:eth0", nil},
		"all":             {wires, ab, []string{Everywhere}, "", []string{"(a:eth0, r:eth0, r:eth1, s:eth0, s:eth1, b:eth0)", "--trace-at a:eth0"}},
		"one":             {wires, ab, []string{"s:eth0"}, "s:eth0", nil},
		"two":             {wires, ab, []string{"s:eth0", "s:eth1"}, "s:eth0 s:eth1", []string{"(s:eth0, s:eth1)", `"s:eth0"' -w c-s.pcapng`}},
		"down":            {point, "{pairs: [{src: server, dst: sta}], transport: tcp/cubic}", nil, "air server:eth0", []string{"(server:eth0, on the air with every hop and repetition)", "--trace-at server:eth0"}},
		"up":              {point, "{pairs: [{src: sta, dst: server}], transport: tcp/cubic}", nil, "air", []string{air, "'wlan.fc.retry == 0 && wlan.addr == 02:68:6f:70:00:02' -w c-sta.pcapng"}},
		"up hop by hop":   {point, "{pairs: [{src: sta, dst: server}], transport: hop-by-hop-tcp/cubic}", nil, "air ap:uplink", []string{air}},
		"Hop down":        {point, "{pairs: [{src: server, dst: sta}], transport: hop}", nil, "air server:eth0", nil},
		"over a bridge":   {bridge, "{pairs: [{src: sta, dst: server}], transport: hop-by-hop-tcp/cubic}", nil, "air", []string{air, "02:68:6f:70:00:02"}},
		"down a bridge":   {bridge, "{pairs: [{src: server, dst: sta}], transport: hop}", nil, "air server:eth0", nil},
		"radio":           {chain, "{pairs: [{src: n01, dst: n02}], transport: tcp/cubic}", nil, "air", []string{air, "02:68:6f:70:00:00' -w c-n01.pcapng"}},
		"radio, Hop":      {chain, "{pairs: [{src: n01, dst: n02}], transport: hop}", nil, "air", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := laidOut(t, c.topology, c.flows)
			f := New(Wanted{Packets: "c.pcapng", At: c.at}, p, 1)
			at := f.at(s)
			slices.Sort(at)
			if got := strings.Join(at, " "); got != c.want {
				t.Errorf("at %q, want %q", got, c.want)
			}
			if err := f.Fits(s); err != nil {
				t.Error(err)
			}
			hint := f.Hint(s, "sim")
			if (hint == "") != (len(c.hint) == 0) {
				t.Errorf("hint %q", hint)
			}
			for _, part := range c.hint {
				if !strings.Contains(hint, part) {
					t.Errorf("hint %q lacks %q", hint, part)
				}
			}
			if h := New(Wanted{Events: "c.log"}, p, 1).Hint(s, "sim"); h != "" {
				t.Errorf("a hint on an event log: %q", h)
			}
		})
	}
}

// The commands of a hint can be pasted, whatever the file is called.
func TestHintIsQuoted(t *testing.T) {
	p, s := laidOut(t, wires, "{pairs: [{src: a, dst: b}], transport: tcp/cubic}")
	f := New(Wanted{Packets: "my run's/c.pcapng", At: []string{Everywhere}}, p, 1)
	if h := f.Hint(s, "sim"); !strings.Contains(h, `tshark -r 'my run'\''s/c.pcapng' -Y`) || !strings.Contains(h, ` -w 'my run'\''s/c-a.pcapng'`) {
		t.Error(h)
	}
}
