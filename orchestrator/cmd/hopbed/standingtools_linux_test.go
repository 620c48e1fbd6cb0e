package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// The tools of others find what they expect in a node: iperf3 gets the rate of the
// wire, before and after it changes, and tcpdump sees what passes.
func TestToolsInNodes(t *testing.T) {
	testenv.Need(t, testenv.Program("ping"), testenv.Program("iperf3"), testenv.Program("tcpdump"))
	l := newStandingLab(t, hand)
	l.must("up", "f.yaml")
	server := start(t, l.dir, "exec", "server", "sh", "-c", "echo ready >&2; exec iperf3 -s")
	server.await("ready", 1)
	time.Sleep(300 * time.Millisecond)
	rate := func() float64 {
		t.Helper()
		var r struct {
			End struct {
				SumReceived struct {
					BitsPerSecond float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			}
		}
		out := l.must("exec", "n03", "iperf3", "-c", "server", "-t", "3", "-O", "1", "--json")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return r.End.SumReceived.BitsPerSecond / 1e6
	}
	// 10 Mb/s less the headers of IP and TCP: 9.65.
	if got := rate(); got < 7 || got > 9.7 {
		t.Errorf("%.2f Mb/s over a wire of 10", got)
	}
	l.must("set", "n03-server", "rate=2mbit")
	if got := rate(); got < 1.3 || got > 2 {
		t.Errorf("%.2f Mb/s over a wire of 2", got)
	}
	server.signal(syscall.SIGINT)
	server.end()

	watch := start(t, l.dir, "exec", "n02", "tcpdump", "-n", "-i", "wlan0", "-c", "6", "-l", "icmp")
	watch.await("listening on", 1)
	l.ping("n01", "n03", "-c", "4", "-i", "0.2")
	if code := watch.end(); code != 0 || !strings.Contains(watch.stdout.String(), "10.77.0.1 > 10.77.0.3: ICMP echo request") {
		t.Errorf("status %d: %s%s", code, watch.stdout.String(), watch.said())
	}
	l.must("down")
	l.gone(nil)
}

const grid = `hopbed: 1
name: grid
topology: {generate: {kind: grid, nodes: 9, columns: 3, spacing: 200m}}
radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}}
routing: {metric: hops}
flows: [{pairs: [{src: n01, dst: n09}], transport: tcp/cubic}]
duration: 5s
`

// A routing daemon finds the mesh: babeld in every node of a grid, whose routes
// lead everywhere, and are as long as those that hopbed computes.
func TestBabelInNodes(t *testing.T) {
	testenv.Need(t, testenv.Program("babeld"), testenv.Program("ip"), testenv.Program("ping"))
	l := newStandingLab(t, grid)
	l.must("up", "f.yaml", "--no-routes", "--ipv6")
	e, err := spec.Load(filepath.Join(l.dir, "f.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Network()
	if err != nil {
		t.Fatal(err)
	}
	private := t.TempDir()
	if out := l.must("exec", "n01", "ip", "route"); strings.Contains(out, "via") {
		t.Errorf("there are routes before the daemon has made any:\n%s", out)
	}
	nodes := s.Topology.Nodes
	for _, n := range nodes {
		p := filepath.Join(private, n.Name)
		start(t, l.dir, "exec", n.Name, "babeld", "-h", "1", "-H", "1", "-I", p+".pid", "-S", p+".state", "-L", p+".log",
			"-C", "redistribute local ip 10.77.0.0/16 allow", "-C", "redistribute local deny", "wlan0")
	}
	index := map[string]int{}
	for i, n := range l.status().Nodes {
		index[n.Addr] = i
	}
	// routes reads who is the next hop to whom.
	routes := func() (next [][]int, missing int) {
		next = make([][]int, len(nodes))
		for i, n := range nodes {
			next[i] = make([]int, len(nodes))
			for j := range next[i] {
				next[i][j] = -1
			}
			for line := range strings.Lines(l.must("exec", n.Name, "ip", "-4", "route")) {
				f := strings.Fields(line)
				d, known := index[f[0]]
				if v, ok := index[f[2]]; known && ok && f[1] == "via" {
					next[i][d] = v
				}
			}
			for j := range next[i] {
				if j != i && next[i][j] < 0 {
					missing++
				}
			}
		}
		return next, missing
	}
	began := time.Now()
	next, missing := routes()
	for missing > 0 {
		if time.Since(began) > 60*time.Second {
			b, _ := os.ReadFile(filepath.Join(private, "n01.log"))
			t.Fatalf("%d routes are missing after a minute; babeld of n01 said:\n%s", missing, b)
		}
		time.Sleep(500 * time.Millisecond)
		next, missing = routes()
	}
	converged := time.Since(began)
	// The metric is smoothed over some seconds: detours of the first moments go.
	length := func(i, j int) int {
		n := 0
		for at := i; at != j && n <= len(nodes); n++ {
			at = next[at][j]
		}
		return n
	}
	pairs, equal := 0, 0
	var differ []string
	compare := func() {
		pairs, equal, differ = 0, 0, nil
		for i := range nodes {
			for j := range nodes {
				if i == j {
					continue
				}
				pairs++
				ours := 0
				for at := i; at != j; ours++ {
					at, _ = s.Topology.Routes.NextHop(at, j)
				}
				if got := length(i, j); got == ours {
					equal++
				} else {
					differ = append(differ, fmt.Sprintf("%s to %s: %d hops, ours %d", nodes[i].Name, nodes[j].Name, got, ours))
				}
			}
		}
	}
	for compare(); equal < pairs && time.Since(began) < 40*time.Second; compare() {
		time.Sleep(time.Second)
		if next, missing = routes(); missing > 0 {
			t.Logf("%d routes went away for a moment", missing)
		}
	}
	t.Logf("routes everywhere after %v; %d of %d are as long as ours; %s", converged.Round(100*time.Millisecond), equal, pairs, strings.Join(differ, "; "))
	if 10*equal < 9*pairs {
		t.Errorf("only %d of %d routes are as long as ours: %s", equal, pairs, strings.Join(differ, "; "))
	}
	if lost, _ := l.ping("n01", "n09", "-c", "5", "-i", "0.3"); lost > 0.4 {
		t.Errorf("%v of the echoes over the daemon's routes were lost", lost)
	}
	// A node that is switched off: the daemon finds another way.
	l.must("set", "n05", "up=false")
	found := false
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end) && !found; time.Sleep(500 * time.Millisecond) {
		next, _ = routes()
		found = true
		for i, row := range next {
			for j, v := range row {
				if i != 4 && j != 4 && i != j && (v == 4 || v < 0) {
					found = false
				}
			}
		}
	}
	if !found {
		t.Errorf("routes still lead over a node that is off, or nowhere: %v", next)
	}
	says(t, l.must("down"), "babeld (")
	l.gone(nil)
}
