package library_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/reference"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
)

func load(t *testing.T, name string) *spec.Experiment {
	t.Helper()
	src, ok := library.Source(name)
	if !ok {
		t.Fatalf("%s is not shipped", name)
	}
	e, err := spec.Parse(name+".yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEveryFileIsListedValidAndCanBeLaidOut: the table and the folder agree,
// the name in the file is its own, every point of the full and of the quick
// variant has a topology and pairs, and the reference exists.
func TestEveryFileIsListedValidAndCanBeLaidOut(t *testing.T) {
	listed := map[string]bool{}
	for _, name := range library.Names() {
		listed[name+".yaml"] = true
		t.Run(name, func(t *testing.T) {
			e := load(t, name)
			if e.Base().Name != name || e.Base().Title == "" {
				t.Errorf("the file %s says name %q, title %q", name, e.Base().Name, e.Base().Title)
			}
			if ref := e.Base().Reference; ref != "" {
				if _, err := reference.Lookup(ref); err != nil {
					t.Error(err)
				}
			}
			layOut(t, e)
			if err := e.ApplyQuick(); err != nil {
				t.Fatal(err)
			}
			layOut(t, e)
		})
	}
	entries, err := fs.Glob(os.DirFS("."), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(listed) {
		t.Errorf("%d files, %d names: %q", len(entries), len(listed), entries)
	}
	for _, f := range entries {
		if !listed[f] {
			t.Errorf("%s is not in the table", f)
		}
	}
}

func layOut(t *testing.T, e *spec.Experiment) {
	t.Helper()
	for _, p := range e.Points() {
		repeat := p.Config.Repeat
		if g := p.Config.Topology.Generate; p.Index > 0 && g != nil && g.Kind == spec.RandomMesh {
			repeat = 1 // the same placements: TestLoad30HasThePapersMix
		}
		for rep := range repeat {
			top, err := topology.Build(p.Config, rep)
			if err != nil {
				t.Fatalf("%s repetition %d: %v", p.Label(), rep+1, err)
			}
			flows, err := top.Flows(p.Config, rep)
			if err != nil || len(flows) == 0 {
				t.Fatalf("%s repetition %d: %d flows, %v", p.Label(), rep+1, len(flows), err)
			}
		}
	}
}

// TestLoad30HasThePapersMix: 30 flows in each of the five repetitions, 9, 9, 3,
// 6 and 3 of them over 2, 3, 4, 5 and 7 hops (section 5.2), the same pairs for
// every transport, a new placement for each repetition.
func TestLoad30HasThePapersMix(t *testing.T) {
	want := map[int]int{2: 9, 3: 9, 4: 3, 5: 6, 7: 3}
	for _, name := range []string{"load30", "load30-1m", "load30-open"} {
		e := load(t, name)
		if e.Base().Repeat != 5 || len(e.Points()) != 3 {
			t.Errorf("%s: %d repetitions of %d points", name, e.Base().Repeat, len(e.Points()))
		}
		places := map[string]bool{}
		for rep := range e.Base().Repeat {
			var first []topology.Flow
			for _, p := range e.Points() {
				if p.Index > 0 && name != "load30" {
					break
				}
				top, err := topology.Build(p.Config, rep)
				if err != nil {
					t.Fatal(err)
				}
				flows, err := top.Flows(p.Config, rep)
				if err != nil {
					t.Fatal(err)
				}
				got := map[int]int{}
				pairs := map[[2]int]bool{}
				for i, f := range flows {
					got[f.Hops()]++
					pairs[[2]int{f.Src, f.Dst}] = true
					if first != nil && (first[i].Src != f.Src || first[i].Dst != f.Dst) {
						t.Fatalf("%s repetition %d: %s has other pairs", name, rep+1, p.Label())
					}
				}
				for h, n := range want {
					if got[h] != n {
						t.Errorf("%s repetition %d: %d flows of %d hops, want %d", name, rep+1, got[h], h, n)
					}
				}
				if len(flows) != 30 || len(pairs) != 30 {
					t.Errorf("%s repetition %d: %d flows between %d pairs, want 30 and 30", name, rep+1, len(flows), len(pairs))
				}
				if first == nil {
					first = flows
					places[top.Nodes[0].Position.X.String()+top.Nodes[1].Position.Y.String()] = true
				}
			}
		}
		if len(places) != 5 {
			t.Errorf("%s: %d different placements in 5 repetitions", name, len(places))
		}
	}
}

// TestTheVariantsOfLoad30DifferInWhatTheirNamesSay: everything else is equal,
// so that they can stand side by side.
func TestTheVariantsOfLoad30DifferInWhatTheirNamesSay(t *testing.T) {
	base := *load(t, "load30").Base()
	large := *load(t, "load30-1m").Base()
	if large.Transports.Hop.Block.String() != "1MiB" || base.Transports.Hop.Block.String() != "256KiB" {
		t.Errorf("blocks %v and %v", large.Transports.Hop.Block, base.Transports.Hop.Block)
	}
	open := *load(t, "load30-open").Base()
	if open.Radio.PathLoss.Kind != spec.Disk || open.MAC.Queues.BK.Ack != base.MAC.Queues.BK.Ack || *open.MAC.Queues.BK.TXOP != *base.MAC.Queues.BK.TXOP {
		t.Errorf("open: %+v %+v", open.Radio, open.MAC)
	}
	for _, c := range []spec.Config{large, open} {
		if c.Seed != base.Seed || c.Repeat != base.Repeat || c.Duration != base.Duration || c.Flows[0].Count != base.Flows[0].Count || c.Reference != base.Reference {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
}

// TestThePageOfLoad30SaysWhatIsTrue: the tries that the page names are those
// that the placements need.
func TestThePageOfLoad30SaysWhatIsTrue(t *testing.T) {
	page, _ := library.Page("load30")
	var tries []any
	c := load(t, "load30").Base()
	for rep := range c.Repeat {
		top, err := topology.Build(c, rep)
		if err != nil {
			t.Fatal(err)
		}
		tries = append(tries, top.Tries)
	}
	want := fmt.Sprintf("found at try %d, %d, %d, %d and %d.", tries...)
	if !strings.Contains(strings.Join(strings.Fields(page), " "), want) {
		t.Errorf("the page does not say %q", want)
	}
}

// TestTheAccessPoint: with a router and with a bridge every flow has a route over
// the wire, a bridge is no hop, and the small transfer is inside the measured
// interval.
func TestTheAccessPoint(t *testing.T) {
	e := load(t, "access-point")
	hops := map[string]int{}
	for _, p := range e.Points() {
		top, err := topology.Build(p.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		flows, err := top.Flows(p.Config, 0)
		if err != nil || len(flows) != 4 {
			t.Fatalf("%s: %d flows, %v", p.Label(), len(flows), err)
		}
		for _, f := range flows {
			wires := 0
			for k := 1; k < len(f.Path); k++ {
				for _, l := range top.LinkPath(f.Path[k-1], f.Path[k]) {
					if l.Pipe != topology.RadioEgress {
						wires++
					}
				}
			}
			if wires != 1 {
				t.Errorf("%s: flow %d passes %d wires", p.Label(), f.ID, wires)
			}
			hops[p.Params[0].Value] += f.Hops()
		}
		if g := p.Config.Flows[2]; *g.Start <= p.Config.Warmup || *g.Start >= p.Config.Warmup+p.Config.Duration {
			t.Errorf("the transfer begins at %v", *g.Start)
		}
		if pipe := top.Pipes[0]; pipe.Interfaces != [2]string{"uplink", "eth0"} {
			t.Errorf("interfaces %v", pipe.Interfaces)
		}
	}
	if hops["true"] != 3*4 || hops["false"] != 3*4*2 {
		t.Errorf("hops %v, want 1 a flow with a bridge and 2 without", hops)
	}
}

// TestFiles: what a shipped experiment names is among the shipped files, or
// refused.
func TestFiles(t *testing.T) {
	text := "hopbed: 1\nname: x\ntopology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], queue: {packets: 9}, trace: {file: FILE}}]}\n" +
		"flows: [{count: 1, pairs: random, transport: tcp/reno}]\nduration: 10s\n"
	for file, want := range map[string]string{
		"lte.down":          "no file lte.down is shipped",
		"../spec/FORMAT.md": "no file ../spec/FORMAT.md is shipped",
		"./smoke.yaml":      "is no trace: trace: line 3",
		"/etc/hostname":     "no file /etc/hostname is shipped",
	} {
		_, err := spec.ParseFiles("x.yaml (shipped)", []byte(strings.Replace(text, "FILE", file, 1)), library.File)
		if err == nil || !strings.Contains(err.Error(), "topology.pipes[0].trace.file") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestPages(t *testing.T) {
	page, ok := library.Page("load30-open")
	if !ok || !strings.Contains(page, "2009") || !strings.Contains(page, "Andersen") {
		t.Error("load30-open has no page with its sources")
	}
	paper, ok := library.PaperPage("hop-nsdi09")
	if page, has := library.Page("hidden"); !ok || !has || page != paper || !strings.Contains(page, "What does not hold, and why") {
		t.Error("hidden does not have the page of its paper")
	}
	if _, ok := library.Page("smoke"); ok {
		t.Error("smoke has a page of its own name only")
	}
	for _, n := range []string{"", "load31", "../spec/schema", "load30.yaml"} {
		if _, ok := library.Source(n); ok {
			t.Errorf("Source(%q) is there", n)
		}
		if _, ok := library.Page(n); ok {
			t.Errorf("Page(%q) is there", n)
		}
	}
}
