package hop

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/*.txt")

// TestScripts runs the exchanges in testdata/*.txt. A line that begins with
// "> " is a command, what follows up to the next command is its output;
// "go test -update" rewrites it, and the change is reviewed as text.
//
// Commands:
//
//	nodes N [KEY=VALUE…]        a chain of N nodes, packets moved by hand; with
//	                            "wires" joined by wires, each with a queue of its own
//	open SRC DST FLOW SIZE      a flow of SIZE bytes
//	deliver [N]                 carry the next N packets (default: until quiet)
//	stop NODE TO, go NODE TO    the wire from NODE to TO stands still, or goes on
//	lose TYPE [N]               drop the next N packets of a type, others wait
//	pending                     list what stands in the MACs
//	advance DURATION            let time pass, firing timers, moving no packet
//	run DURATION                let time pass and carry every packet at once
//	route NODE DST NEXT|none    change a route
//	reboot NODE                 the node loses its memory
//	state                       blocks at every node
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s differs (go test -update rewrites it):\n%s", file, firstDifference(got, string(want)))
			}
		})
	}
}

// script is a network whose packets are moved by hand. A packet stands in its
// sender's MAC until it is delivered or lost.
type script struct {
	t     *testing.T
	out   bytes.Buffer
	now   vtime.Time
	cfg   Config
	nodes []*scriptNode
	wires int // places in a wire's queue; 0: the nodes have a radio
}

type scriptNode struct {
	s    *script
	id   NodeID
	n    *Node
	next map[NodeID]NodeID
	mac  [NumClasses][]frame // of the radio
	wire [2][]frame          // to the node below, to the node above
	stop [2]bool
}

// Port implements Radio: port 1 leads to the node below, port 2 to that above.
func (x *scriptNode) Port(to NodeID) Port {
	switch {
	case x.s.wires == 0:
		return RadioPort
	case to < x.id:
		return 1
	}
	return 2
}

// Free implements Radio.
func (x *scriptNode) Free(p Port, c Class) int {
	if p != RadioPort {
		return x.s.wires - len(x.wire[p-1])
	}
	return 1000 - len(x.mac[c])
}
func (x *scriptNode) NextHop(d NodeID) (NodeID, bool) {
	h, ok := x.next[d]
	return h, ok
}
func (x *scriptNode) Accept(vtime.Time, FlowKey) bool { return true }
func (x *scriptNode) Deliver(_ vtime.Time, d Delivery) {
	fmt.Fprintf(&x.s.out, "  node %d: block %d of flow %d delivered, %d B\n", x.id, d.Block, d.Flow.Flow, len(d.Data))
}
func (x *scriptNode) Finished(_ vtime.Time, f FlowKey) {
	fmt.Fprintf(&x.s.out, "  node %d: flow %d finished\n", x.id, f.Flow)
}
func (x *scriptNode) Failed(_ vtime.Time, f FlowKey, err error) {
	fmt.Fprintf(&x.s.out, "  node %d: flow %d: %v\n", x.id, f.Flow, err)
}

func runScript(t *testing.T, text string) string {
	s := &script{t: t}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "> "):
			s.out.WriteString(line + "\n")
			s.command(strings.Fields(line[2:]))
		case strings.HasPrefix(line, "#"), line == "" && i < len(lines)-1:
			s.out.WriteString(line + "\n")
		}
	}
	return s.out.String()
}

func (s *script) command(f []string) {
	num := func(i int) int {
		if i >= len(f) {
			s.t.Fatalf("%q lacks an argument", f)
		}
		v, err := strconv.Atoi(f[i])
		if err != nil {
			s.t.Fatalf("%q: %v", f, err)
		}
		return v
	}
	switch f[0] {
	case "nodes":
		s.build(num(1), f[2:])
	case "open":
		x := s.nodes[num(1)]
		k := FlowKey{Src: x.id, Dst: NodeID(num(2)), Flow: FlowID(num(3))}
		if err := x.n.OpenFlow(s.now, k.Flow, k.Dst, Sized(flowSeed(k), vtime.Bytes(num(4))), FlowOptions{}); err != nil {
			fmt.Fprintf(&s.out, "  %v\n", err)
		}
		s.poll(x)
	case "deliver":
		n := 1000
		if len(f) > 1 {
			n = num(1)
		}
		for ; n > 0 && s.move(false, ""); n-- {
		}
	case "lose":
		n := 1
		if len(f) > 2 {
			n = num(2)
		}
		for ; n > 0; n-- {
			if !s.move(true, f[1]) {
				fmt.Fprintf(&s.out, "  nothing to lose\n")
			}
		}
	case "stop", "go":
		x := s.nodes[num(1)]
		x.stop[x.Port(NodeID(num(2)))-1] = f[0] == "stop"
	case "pending":
		for _, x := range s.nodes {
			for _, q := range x.wire {
				for _, p := range q {
					fmt.Fprintf(&s.out, "  %s\n", describe(x.id, p))
				}
			}
			for c := Control + 1; c > 0; c-- {
				for _, p := range x.mac[c-1] {
					fmt.Fprintf(&s.out, "  %s\n", describe(x.id, p))
				}
			}
		}
	case "advance":
		d, err := vtime.ParseDuration(f[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.advance(d, false)
	case "run":
		d, err := vtime.ParseDuration(f[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.advance(d, true)
	case "route":
		if f[3] == "none" {
			delete(s.nodes[num(1)].next, NodeID(num(2)))
		} else {
			s.nodes[num(1)].next[NodeID(num(2))] = NodeID(num(3))
		}
	case "reboot":
		s.boot(num(1))
	case "state":
		s.state()
	default:
		s.t.Fatalf("unknown command %q", f[0])
	}
}

func (s *script) build(k int, opts []string) {
	s.now, s.wires = 0, 0
	s.cfg = DefaultConfig()
	s.cfg.BlockSize, s.cfg.Payload, s.cfg.NoMicro = 3000, 1000, true
	for _, o := range opts {
		key, v, _ := strings.Cut(o, "=")
		n, _ := strconv.Atoi(v)
		switch key {
		case "block":
			s.cfg.BlockSize = vtime.Bytes(n)
		case "h":
			s.cfg.H = n
		case "micro":
			s.cfg.NoMicro = false
			s.cfg.MicroThreshold = vtime.Bytes(n)
		case "poll":
			s.cfg.GrantPoll = true
		case "notice":
			s.cfg.Notice = true
		case "window":
			s.cfg.Window = n
		case "wires":
			s.wires = n
		case "memory":
			s.cfg.MemoryLimit = vtime.Bytes(n)
		default:
			s.t.Fatalf("unknown option %q", o)
		}
	}
	s.nodes = make([]*scriptNode, k)
	for i := range k {
		s.boot(i)
	}
}

func (s *script) boot(i int) {
	x := &scriptNode{s: s, id: NodeID(i), next: map[NodeID]NodeID{}}
	for d := range s.nodes {
		if d < i {
			x.next[NodeID(d)] = NodeID(i - 1)
		} else if d > i {
			x.next[NodeID(d)] = NodeID(i + 1)
		}
	}
	cfg := s.cfg
	cfg.ID = x.id
	n, err := NewNode(cfg, x, x, x)
	if err != nil {
		s.t.Fatal(err)
	}
	x.n = n
	s.nodes[i] = x
}

func (s *script) poll(x *scriptNode) {
	for p, ok := x.n.Poll(s.now); ok; p, ok = x.n.Poll(s.now) {
		q := &x.mac[p.Class]
		if p.Port != RadioPort {
			q = &x.wire[p.Port-1]
		}
		*q = append(*q, frame{to: p.To, buf: bytes.Clone(p.Buf)})
	}
}

// move takes one packet out of a queue: control before data, low nodes first,
// then wires.
func (s *script) move(lose bool, typ string) bool {
	for c := Control + 1; c > 0; c-- {
		for _, x := range s.nodes {
			if s.take(x, &x.mac[c-1], RadioPort, c-1, lose, typ) {
				return true
			}
		}
	}
	for _, x := range s.nodes {
		for i := range x.wire {
			if !x.stop[i] && s.take(x, &x.wire[i], Port(i+1), Data, lose, typ) {
				return true
			}
		}
	}
	return false
}

// take takes the head of a queue, if it is of the type.
func (s *script) take(x *scriptNode, q *[]frame, port Port, c Class, lose bool, typ string) bool {
	if len(*q) == 0 || typ != "" && typeName((*q)[0].buf) != typ {
		return false
	}
	p := (*q)[0]
	*q = (*q)[1:]
	mark := ""
	if lose {
		mark = " LOST"
	}
	fmt.Fprintf(&s.out, "  %s%s\n", describe(x.id, p), mark)
	x.n.TxDone(s.now, port, c, 1)
	s.poll(x)
	if !lose {
		y := s.nodes[p.to]
		y.n.Receive(s.now, x.id, p.buf)
		s.poll(y)
	}
	return true
}

func (s *script) advance(d vtime.Duration, carry bool) {
	end := s.now.Add(d)
	for {
		for carry && s.move(false, "") {
		}
		first := vtime.Never
		for _, x := range s.nodes {
			first = vtime.Min(first, x.n.Deadline())
		}
		if first > end {
			break
		}
		s.now = vtime.Max(first, s.now)
		for _, x := range s.nodes {
			if x.n.Deadline() <= s.now {
				before := len(x.mac[Control]) + len(x.mac[Data])
				wires := len(x.wire[0]) + len(x.wire[1])
				x.n.Expire(s.now)
				s.poll(x)
				if len(x.mac[Control])+len(x.mac[Data]) > before {
					fmt.Fprintf(&s.out, "  %gms, in node %d's MAC:", float64(s.now)/1e6, x.id)
					for _, p := range x.mac[Control] {
						fmt.Fprintf(&s.out, " %s", typeName(p.buf))
					}
					fmt.Fprintln(&s.out)
				}
				if len(x.wire[0])+len(x.wire[1]) > wires {
					fmt.Fprintf(&s.out, "  %gms, in node %d's wires:", float64(s.now)/1e6, x.id)
					for _, q := range x.wire {
						for _, p := range q {
							fmt.Fprintf(&s.out, " %s", typeName(p.buf))
						}
					}
					fmt.Fprintln(&s.out)
				}
			}
		}
	}
	s.now = end
}
