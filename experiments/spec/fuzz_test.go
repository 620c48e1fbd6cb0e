package spec

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
		cases,
		small + "matrix: {a: [{label: [x]}, {label: y, k: $a.k}]}\nradio: $a.k\n",
		small + "matrix: {a: [{k: {k: 1mbit}}, {k: 2mbit}]}\nradio: {rate: \"${a.k.k}\"}\nnotes: $a.k.k.k\n",
		wires(", interfaces: [lan, eth7], rate: 10mbit, delay: 20ms, jitter: {distribution: normal, spread: 2ms, overtake: true}, loss: {good: 0.1%, bad: 30%, to-bad: 1%, to-good: 20%}, queue: {packets: 100, bytes: 64KiB}, reverse: {trace: {file: umts.down, offset: 10s}, schedule: []}"),
		wires(", reorder: {share: 1%, extra: 5ms}, duplicate: 0.1%, queue: {packets: 1}, overhead: 38B, schedule: [{at: 1s, up: false}, {at: 2s, up: true, rate: 1mbit, delay: 5ms, loss: 1%, queue: {packets: 3}}], reverse: {rate: 1mbit}"),
		wires(", rate: 1mbit, queue: {}, reverse: {reverse: {}}") + "backends: [sim, sim]\ntransports: {tcp: {receive-window: 42, cwnd-cap: 10, mss: 536B, receive-buffer: 4KiB}}\n",
		withLine("topology", "topology: {nodes: [{name: a, radio: false, bridge: true}, {name: b, radio: false, bridge: true}, {name: c, radio: false, bridge: true}], pipes: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, a]}, {ends: [a, a]}]}"),
		withLine("topology", "topology: {generate: {kind: chain, nodes: 2, spacing: 20m}, nodes: [{name: n01}, {name: s, radio: false}], pipes: [{ends: [n02, s]}]}") + "mac: {rts: off}\n",
		withLine("flows", "flows: [{count: 1, pairs: random, hops: >=2, transport: hop, start: 5s, stop: 4s}]"),
		withLine("flows", "flows: [{count: 1, pairs: random, transport: udp/no-arq+txop, dscp: cs1, workload: {kind: poisson, size: 1kB, interval: 1ms, sizes: pareto}}, {count: 1, pairs: random, transport: tcp/reno, workload: {kind: web, zipf: 0.8, max-size: 20kB}}, {count: 1, pairs: random, transport: udp, dscp: 63, workload: voip}]"),
		withLine("flows", "flows: [{count: 1, pairs: random, transport: exec, workload: {kind: trace, file: x}}, {count: 1, pairs: random, transport: iperf3/udp}]") + "transports: {exec: {send: [a, -b], receive: [c]}, iperf: {rate: 1mbit}, bundle: {storage: disk}}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		open := memory("1\n2\n2\n5\n")
		e, err := ParseFiles("f.yaml", data, open)
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
			names := c.Topology.NodeNames()
			if n := len(names); n < 2 || n > MaxNodes {
				t.Fatalf("%d nodes", n)
			}
			seen := map[string]bool{}
			for k, f := range c.Topology.PipeInterfaces() {
				for end, node := range c.Topology.Pipes[k].Ends {
					if at := node + " " + f[end]; !slices.Contains(names, node) || seen[at] || !interfaceName(f[end]) {
						t.Fatalf("pipe %d has the interface %q", k, at)
					} else {
						seen[at] = true
					}
				}
			}
		}
		// What was accepted is accepted again, with the same result.
		again, err := ParseFiles("f.yaml", data, open)
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
