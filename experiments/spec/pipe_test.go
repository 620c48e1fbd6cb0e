package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// wires is a file of two stations, an access point and a server, into which the
// cases below put a pipe's keys.
func wires(pipe string) string {
	return `hopbed: 1
name: wires
topology:
  nodes:
    - {name: sta, at: [10m, 0m]}
    - {name: ap, at: [0m, 0m]}
    - {name: server, radio: false}
  pipes:
    - {ends: [ap, server]` + pipe + `}
flows: [{pairs: [{src: server, dst: sta}], transport: tcp/cubic}]
duration: 10s
`
}

// memory serves one trace.
func memory(text string) Files {
	return func(path string) ([]byte, error) {
		if path != "umts.down" {
			return nil, fmt.Errorf("open %s: no such file", path)
		}
		return []byte(text), nil
	}
}

func TestEveryKeyOfAPipe(t *testing.T) {
	e, err := ParseFiles("x.yaml", []byte(wires(`, interfaces: [lan, eth7], emulator: auto, rate: 10mbit, delay: 20ms, jitter: {distribution: normal, spread: 2ms, overtake: true},
      loss: {good: 0.1%, bad: 30%, to-bad: 1%, to-good: 20%, after-queue: true}, queue: {packets: 100, bytes: 64KiB}, reorder: {share: 1%, extra: 5ms},
      duplicate: 0.1%, overhead: 38B, schedule: [{at: 1s, up: false}, {at: 2s, up: true, delay: 5ms, loss: 1%, queue: {packets: 3}}],
      reverse: {trace: {file: umts.down, offset: 10s}, loss: 2%, queue: {packets: 7}, schedule: []}`)), memory("1\n2\n2\n5\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := e.Base()
	p := c.Topology.Pipes[0]
	up, down, delay := true, false, 5*vtime.Millisecond
	forward := Direction{
		Rate: 10 * vtime.MbitPerSecond, Delay: 20 * vtime.Millisecond, Jitter: &Jitter{Normal, 2 * vtime.Millisecond, true},
		Loss: &PipeLoss{0.001, 0.3, 0.01, 0.2, true}, Queue: &PipeQueue{100, 64 * vtime.KiB}, Reorder: &Reorder{0.01, 5 * vtime.Millisecond},
		Duplicate: 0.001, Overhead: 38,
		Schedule: []PipeChange{{At: vtime.Second, Up: &down}, {At: 2 * vtime.Second, Up: &up, Delay: &delay, Loss: &PipeLoss{Good: 0.01}, Queue: &PipeQueue{Packets: 3}}},
	}
	if !reflect.DeepEqual(p.Direction, forward) || p.Ends != (Ends{"ap", "server"}) || p.Interfaces != (Interfaces{"lan", "eth7"}) || p.Emulator != AutoEmulator {
		t.Errorf("forward %+v", p)
	}
	// What reverse does not name is as in the first direction; what it names is
	// replaced as a whole, and a trace replaces a rate.
	back := p.Backward()
	if back.Rate != 0 || back.Trace == nil || back.Trace.Offset != 10*vtime.Second || back.Trace.Capacity.Period() != 5*vtime.Millisecond ||
		*back.Loss != (PipeLoss{Good: 0.02}) || *back.Queue != (PipeQueue{Packets: 7}) || back.Schedule != nil ||
		back.Delay != forward.Delay || back.Jitter != p.Jitter || back.Overhead != 38 {
		t.Errorf("backward %+v", back)
	}
	if f := e.Files(); len(f) != 1 || f[0] != (File{"umts.down", "f883cf97f518161f7cb40d79e09264b9e26ffdabb90271b0866b9e865485d449", 8}) {
		t.Errorf("files %+v", f)
	}
	if n := c.Topology.Nodes; !n[0].Radio || n[0].Bridge || n[2].Radio {
		t.Errorf("nodes %+v", n)
	}
	plain := parse(t, wires(""))
	if p := plain.Base().Topology.Pipes[0]; !reflect.DeepEqual(p, Pipe{Ends: Ends{"ap", "server"}, Emulator: UserEmulator}) {
		t.Errorf("a plain wire: %+v", p)
	}
}

func TestWrongPipes(t *testing.T) {
	for _, c := range []struct {
		name, pipe string
		want       []string
	}{
		{"unknown emulator", ", emulator: netem", []string{"topology.pipes[0].emulator", "user, kernel, auto"}},
		{"kernel and a trace", ", emulator: kernel, trace: {file: umts.down}, queue: {packets: 9}", []string{"topology.pipes[0].emulator", "a trace", "user"}},
		{"kernel and a schedule on the way back", ", emulator: kernel, reverse: {schedule: [{at: 1s, delay: 1ms}]}", []string{"topology.pipes[0].emulator", "a schedule"}},
		{"unknown key", ", rat: 10mbit", []string{"x.yaml:9:28: topology.pipes[0]: ", `"rat": unknown key`, `did you mean "rate"?`}},
		{"queue missing beside a rate", ", rate: 10mbit", []string{"x.yaml:9:7: topology.pipes[0]: ", ": a link with a rate needs the key queue", "queue: {packets: 100}"}},
		{"queue missing beside a rate of one direction", ", reverse: {rate: 10mbit}", []string{"topology.pipes[0].reverse: ", ": a link with a rate needs the key queue"}},
		{"queue missing beside a trace", ", trace: {file: umts.down}", []string{"a link with a trace needs the key queue"}},
		{"queue missing beside a scheduled rate", ", schedule: [{at: 1s, rate: 1mbit}]", []string{"a link whose schedule sets a rate needs the key queue"}},
		{"queue missing where the link goes down", ", schedule: [{at: 1s, up: false}]", []string{"a link that goes down keeps what waits for it: it needs the key queue"}},
		{"queue without a limit", ", rate: 1mbit, queue: {}", []string{"topology.pipes[0].queue: ", "has no limit", "{packets: 100}"}},
		{"queue smaller than a packet", ", rate: 1mbit, queue: {bytes: 1499B}", []string{`topology.pipes[0].queue.bytes: "1499B": out of range`}},
		{"queue in which nothing waits", ", queue: {packets: 10}", []string{"topology.pipes[0].queue: ", "nothing ever waits"}},
		{"queue of reverse in which nothing waits", ", rate: 1mbit, queue: {packets: 1}, reverse: {queue: {packets: 2}}", nil},
		{"overhead without a rate", ", overhead: 38B", []string{"topology.pipes[0].overhead: ", "the length of a packet is of no matter"}},
		{"rate and trace", ", rate: 1mbit, queue: {packets: 9}, trace: {file: umts.down}", []string{"topology.pipes[0].trace: ", "one of rate and trace"}},
		{"trace that is not there", ", queue: {packets: 9}, trace: {file: lte.down}", []string{`x.yaml:9:63: topology.pipes[0].trace.file: "lte.down": cannot be read: open lte.down: no such file`, "Mahimahi"}},
		{"trace without a file", ", queue: {packets: 9}, trace: {offset: 1s}", []string{"neither a file nor a model"}},
		{"jitter without a spread", ", jitter: {distribution: normal}", []string{"the distribution normal needs a spread"}},
		{"jitter that does not vary", ", jitter: {distribution: constant, spread: 2ms}", []string{"topology.pipes[0].jitter.spread", "a constant delay does not vary"}},
		{"unknown distribution", ", jitter: {distribution: gauss, spread: 2ms}", []string{"constant, uniform, normal, exponential, pareto"}},
		{"bad state that is never entered", ", loss: {good: 1%, bad: 30%}", []string{"topology.pipes[0].loss.bad", "never entered"}},
		{"bad state that is never left", ", loss: {bad: 30%, to-bad: 1%}", []string{"topology.pipes[0].loss: ", "never left", "to-good: 20%"}},
		{"loss that says nothing", ", loss: {}", []string{"topology.pipes[0].loss: ", "says nothing", "leave it out for a link without loss"}},
		{"change to a loss that says nothing", ", schedule: [{at: 2s, loss: {}}]", []string{"topology.pipes[0].schedule[0].loss: ", "says nothing"}},
		{"reverse loss that says nothing", ", loss: 1%, reverse: {loss: {}}", []string{"topology.pipes[0].reverse.loss: ", "says nothing"}},
		{"loss without a unit", ", loss: 1", []string{`topology.pipes[0].loss: "1"`, "unit"}},
		{"reordering by nothing", ", reorder: {share: 1%}", []string{"the key extra is missing"}},
		{"schedule that does not ascend", ", schedule: [{at: 2s, delay: 1ms}, {at: 1s, delay: 2ms}]", []string{"x.yaml:9:66: topology.pipes[0].schedule[1].at", `"1s": not after the change before it, at 2s`}},
		{"two changes at once", ", schedule: [{at: 2s, delay: 1ms}, {at: 2s, loss: 1%}]", []string{"not after the change before it", "one entry"}},
		{"change of nothing", ", schedule: [{at: 2s}]", []string{"topology.pipes[0].schedule[0]: ", "changes nothing"}},
		{"change without a moment", ", schedule: [{delay: 1ms}]", []string{"the key at is missing"}},
		{"rate set beside a trace", ", trace: {file: umts.down}, queue: {packets: 9}, schedule: [{at: 2s, rate: 1mbit}]", []string{"topology.pipes[0].schedule[0].rate", "the capacity is that of a trace"}},
		{"rate set in both directions", ", rate: 5mbit, queue: {packets: 9}, schedule: [{at: 2s, rate: 1mbit}], reverse: {rate: 2mbit}", []string{"topology.pipes[0].schedule[0].rate", "reverse has a rate of its own", "reverse: {schedule: []}"}},
		{"place of a loss changed", ", schedule: [{at: 2s, loss: {good: 1%, after-queue: true}}]", []string{"topology.pipes[0].schedule[0].loss.after-queue"}},
		{"empty schedule", ", schedule: []", []string{"topology.pipes[0].schedule", "the list is empty"}},
		{"empty reverse", ", reverse: {}", []string{"topology.pipes[0].reverse: ", "both directions are alike"}},
		{"reverse of reverse", ", reverse: {reverse: {delay: 1s}}", []string{`"reverse": unknown key`}},
		{"interface that exists", ", interfaces: [wlan0, eth0]", []string{`x.yaml:9:41: topology.pipes[0].interfaces[0]: "wlan0": not a name of an interface`}},
		{"interface too long", ", interfaces: [eth0, abcdefghijklmnop]", []string{"at most 15"}},
		{"one interface", ", interfaces: [eth0]", []string{"[interface, interface]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseFiles("x.yaml", []byte(wires(c.pipe)), memory("5\n"))
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
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

func TestWrongWiredTopologies(t *testing.T) {
	const flows = "\nflows: [{pairs: random, count: 1, transport: hop}]\nduration: 10s\n"
	for _, c := range []struct {
		name, topology string
		want           []string
	}{
		{"unknown node", "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, c]}]}", []string{`topology.pipes[0].ends[1]: "c": no node has this name`}},
		{"same ends", "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, a]}, {ends: [a, b]}]}", []string{"topology.pipes[0].ends", "joins a node to itself"}},
		{"two pipes between the same nodes", "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b]}, {ends: [b, a]}]}", []string{"topology.pipes[1]: ", "topology.pipes[0] joins the same nodes"}},
		{"three ends", "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b, a]}]}", []string{"not a list of two names"}},
		{"interface twice", "{nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}], pipes: [{ends: [a, b], interfaces: [lan, lan]}, {ends: [a, c], interfaces: [lan, lan]}]}",
			[]string{"topology.pipes[1].interfaces[0]: ", "a has this interface already, by topology.pipes[0]"}},
		{"alone", "{nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}], pipes: [{ends: [a, b]}]}", []string{"topology.nodes[2]: ", "neither a radio nor a pipe"}},
		{"radio without a place", "{nodes: [{name: a, radio: false}, {name: b}], pipes: [{ends: [a, b]}]}", []string{"topology.nodes[1]: ", "needs its place"}},
		{"radio beside a generator", "{generate: {kind: chain, nodes: 2, spacing: 20m}, nodes: [{name: a, at: [0m, 0m]}]}", []string{"topology.nodes[0]: ", "a node beside generate has no radio", "radio: false"}},
		{"name of a generated node", "{generate: {kind: chain, nodes: 2, spacing: 20m}, nodes: [{name: n02, radio: false}], pipes: [{ends: [n01, n02]}]}", []string{"topology.nodes[0].name: ", "a generated node has the same name"}},
		{"too many with the generated ones", "{generate: {kind: chain, nodes: 1000, spacing: 20m}, nodes: [{name: a, radio: false}], pipes: [{ends: [n0001, a]}]}", []string{`topology.nodes: 1001: out of range`}},
		{"link of a wired node", "{nodes: [{name: a, radio: false}, {name: b}], links: [{from: b, to: a}], pipes: [{ends: [a, b]}]}", []string{"topology.links[0].to: ", "the node has no radio"}},
		{"links without any radio", "{nodes: [{name: a, radio: false}, {name: b, radio: false}], links: [{from: b, to: a}], pipes: [{ends: [a, b]}]}", []string{"topology.links: ", "no node has a radio"}},
		{"bridge with the radio alone", "{nodes: [{name: a, at: [0m, 0m], bridge: true}, {name: b, at: [0m, 1m]}]}", []string{"topology.nodes[0].bridge: ", "the node has 1 interface only"}},
		{"loop of bridges", "{nodes: [{name: a, radio: false, bridge: true}, {name: b, radio: false, bridge: true}, {name: c, radio: false, bridge: true}], pipes: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, a]}]}",
			[]string{"topology.pipes[2]: ", "closes a loop of bridges", "c – b – a – c"}},
		{"loop over the radio", "{nodes: [{name: a, at: [0m, 0m], bridge: true}, {name: b, at: [1m, 0m], bridge: true}], pipes: [{ends: [a, b]}]}",
			[]string{"topology.pipes[0]: ", "closes a loop of bridges", "a – the radio – b – a"}},
		{"generate, nodes and import", "{generate: {kind: chain, nodes: 2, spacing: 20m}, nodes: [{name: a, radio: false}], import: {format: netjson, file: x}}", []string{"says generate and nodes and import at once"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte("hopbed: 1\nname: x\ntopology: "+c.topology+flows))
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
	// No loop: a router between, and two bridges on the same radio.
	for _, topology := range []string{
		"{nodes: [{name: a, radio: false, bridge: true}, {name: b, radio: false, bridge: true}, {name: c, radio: false}], pipes: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, a]}]}",
		"{nodes: [{name: a, at: [0m, 0m], bridge: true}, {name: b, at: [1m, 0m], bridge: true}, {name: c, radio: false}, {name: d, radio: false}], pipes: [{ends: [a, c]}, {ends: [b, d]}]}",
	} {
		if _, err := Parse("x.yaml", []byte("hopbed: 1\nname: x\ntopology: "+topology+flows)); err != nil {
			t.Error(err)
		}
	}
}

// TestRadioKeysNeedARadio: in some point of the file as it is written.
func TestRadioKeysNeedARadio(t *testing.T) {
	wired := withLine("topology", "topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b]}]}")
	parse(t, wired)
	_, err := Parse("x.yaml", []byte(wired+"radio: {rate: 1mbit}\nmac: {retries: 3}\n"))
	if err == nil || !strings.Contains(err.Error(), "x.yaml:6:8: radio: ") || !strings.Contains(err.Error(), "x.yaml:7:6: mac: ") || strings.Count(err.Error(), "no node has a radio") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestDefaultInterfaces(t *testing.T) {
	e := parse(t, withLine("topology", "topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}, {name: d, radio: false}],\n"+
		"  pipes: [{ends: [a, b]}, {ends: [c, a], interfaces: [eth0, eth1]}, {ends: [a, d]}, {ends: [b, c]}]}"))
	want := []Interfaces{{"eth0", "eth0"}, {"eth0", "eth1"}, {"eth2", "eth0"}, {"eth1", "eth1"}}
	if got := e.Base().Topology.PipeInterfaces(); !reflect.DeepEqual(got, want) {
		t.Errorf("interfaces %v, want %v", got, want)
	}
}

// TestTraceFiles: a path is relative to the experiment's folder; what cannot be
// resolved is refused, and can be left unread on purpose.
func TestTraceFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	text := wires(", queue: {packets: 9}, trace: {file: $f}") + "matrix: {f: [umts.down, ./umts.down]}\n"
	exp := write("x.yaml", text)
	if _, err := Load(exp); err == nil || !strings.Contains(err.Error(), "topology.pipes[0].trace.file (through $f)") || !strings.Contains(err.Error(), "cannot be read: open "+dir) {
		t.Errorf("without the file: %v", err)
	}
	write("umts.down", "10\n20\n")
	e, err := Load(exp)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Files()) != 2 || e.Points()[1].Config.Topology.Pipes[0].Trace.Capacity.Period() != 20*vtime.Millisecond {
		t.Errorf("files %+v", e.Files())
	}
	for name, text := range map[string]string{"no numbers": "ten\n", "descending": "20\n10\n", "empty": "", "huge": strings.Repeat("1\n", MaxTrace/2+1)} {
		write("umts.down", text)
		if _, err := Load(exp); err == nil || !strings.Contains(err.Error(), "trace.file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "umts.down")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "umts.down"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(exp); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "no file in a folder") {
		t.Errorf("a text without a folder: %v", err)
	}
	e, err = ParseFiles("x.yaml", []byte(text), Unread)
	if err != nil || len(e.Files()) != 0 || e.Base().Topology.Pipes[0].Trace.Capacity != nil {
		t.Errorf("left unread: %+v, %v", e.Files(), err)
	}
}

func TestStartAndStop(t *testing.T) {
	file := func(flow string) string {
		return withLine("flows", "flows: [{count: 1, pairs: random, transport: tcp/cubic"+flow+"}]") + "warmup: 4s\n"
	}
	c := parse(t, file(", start: 5s, stop: 9s")).Base()
	if *c.Flows[0].Start != 5*vtime.Second || *c.Flows[0].Stop != 9*vtime.Second {
		t.Errorf("flow %+v", c.Flows[0])
	}
	if c := parse(t, file("")).Base(); c.Flows[0].Start != nil || c.Flows[0].Stop != nil {
		t.Errorf("flow %+v", c.Flows[0])
	}
	for flow, want := range map[string]string{
		", start: 14s":          `flows[0].start: "14s": not before the end of the run; allowed: less than 14s`,
		", start: 5s, stop: 5s": `flows[0].stop: "5s": not after the flow's begin, at 5s`,
		", stop: 0s":            "not after the flow's begin, at the begin of the run",
		", stop: 4s":            "over before the measured interval begins, at 4s",
		", workload: {kind: sized, size: 1MB}, stop: 3s": "not after the flow's begin, with the measured interval, at 4s",
		", start: -1s": "out of range",
	} {
		if _, err := Parse("x.yaml", []byte(file(flow))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flow, err)
		}
	}
}

func TestWindowsAndBackEnds(t *testing.T) {
	c := parse(t, small+"transports: {tcp: {receive-window: 42, cwnd-cap: 10, receive-buffer: 64KiB}}\nbackends: [sim, netns]\n").Base()
	if c.Transports.TCP.ReceiveWindow != 42 || c.Transports.TCP.CwndCap != 10 || !reflect.DeepEqual(c.Backends, []Backend{BackendSim, BackendNetns}) {
		t.Errorf("%+v %v", c.Transports.TCP, c.Backends)
	}
	for line, want := range map[string]string{
		"transports: {tcp: {receive-window: 0}}":                         "out of range",
		"transports: {tcp: {receive-window: 46, receive-buffer: 64KiB}}": "more than the receive-buffer holds; allowed: up to 45",
		"transports: {bundle: {limit: 1MiB}}":                            "no bundle of 1MiB with its headers would fit",
		"transports: {tcp: {receive-window: 5, cwnd-cap: 1.5}}":          "not a whole number",
		"backends: [sim, ns3]":                                           `backends[1]: "ns3": unknown; allowed: sim, netns`,
		"backends: [sim, sim]":                                           "listed twice",
		"backends: sim":                                                  "a list",
		"backends: []":                                                   "the list is empty",
		"backends: [$b]\nmatrix: {b: [sim]}":                             "never used",
	} {
		if _, err := Parse("x.yaml", []byte(small+line+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
