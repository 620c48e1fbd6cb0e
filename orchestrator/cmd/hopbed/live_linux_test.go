package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// liveLab is a folder for runs on real namespaces, with a journal of its own.
func liveLab(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	return dir
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "state", "hopbed", "journal", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("journals are left: %v %v", left, err)
	}
}

// The main job in small, on real namespaces, with the kernel's TCP: every
// transport carries data, the report is written, nothing is left. A busy
// machine may make a run invalid, never failed.
func TestRunOnNamespaces(t *testing.T) {
	dir := liveLab(t)
	write(t, filepath.Join(dir, "f.yaml"), strings.Replace(tiny, "[hop, tcp/cubic]", "[hop, tcp/cubic, hop-by-hop-tcp/reno, udp]", 1))
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--report", "r.html")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	seen := map[string]bool{}
	for _, r := range runsIn(t, filepath.Join(dir, "results.db")) {
		if r.Status == store.RunFailed {
			t.Errorf("%s failed: %s", r.Transport, r.Error)
			continue
		}
		seen[r.Transport] = true
		flows, err := st.Flows(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
		if err != nil || len(flows) != 1 {
			t.Fatalf("%s: %d flows, %v", r.Transport, len(flows), err)
		}
		// Two hops at 11 Mb/s carry at most half of one, and one at most 8.5.
		if g := flows[0].GoodputBps.V; flows[0].Bytes == 0 || g > 4.4e6 {
			t.Errorf("%s: %.0f b/s over two hops", r.Transport, g)
		}
		if !r.LatenessP99Us.OK || r.TraceHash == "" || r.AgentS.V <= 0 {
			t.Errorf("%s: the run does not say how it went: %+v", r.Transport, r)
		}
	}
	if len(seen) != 4 {
		t.Errorf("ran %v, want four transports; it said:\n%s%s", seen, out, stderr)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "r.html")); err != nil || !bytes.Contains(b, []byte("tcp/cubic")) {
		t.Errorf("the report: %v", err)
	}
	nothingLeft(t, dir)
}

// A second hopbed on the same database is told who holds it, and changes
// nothing.
func TestSecondHopbedOnOneDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim")
	if status != exitError || !strings.Contains(stderr, "being written by") || !strings.Contains(stderr, "--db") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// One command on both back ends: a campaign of its own on each, and a report
// that sets them side by side. What the machine spoils is told, not failed.
func TestRunOnBothBackEnds(t *testing.T) {
	dir := liveLab(t)
	text := strings.NewReplacer("1500ms", "400ms", "500ms", "100ms").Replace(tiny) + "backends: [sim, netns]\n"
	write(t, filepath.Join(dir, "f.yaml"), text)
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--report", "r.md")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, out, "campaign 1: tiny, back end sim (", "campaign 2: tiny, back end netns (")
	backends := map[string]int{}
	for _, r := range runsIn(t, filepath.Join(dir, "results.db")) {
		if r.Status == store.RunFailed {
			t.Errorf("run %d on %s failed: %s", r.ID, r.Backend, r.Error)
		}
		if r.Valid {
			backends[r.Backend]++
		}
	}
	if backends["sim"] != 2 {
		t.Errorf("valid runs: %v", backends)
	}
	b, err := os.ReadFile(filepath.Join(dir, "r.md"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(b), "Comparison: tiny: sim / netns", "Campaign 1: tiny on sim", "Campaign 2: tiny on netns")
	nothingLeft(t, dir)
}

// Programs of others as transports: iperf3, and one of the user's own beside the
// experiment file.
func TestProgramsOnNamespaces(t *testing.T) {
	testenv.Need(t, testenv.Program("iperf3"), testenv.Program("python3"))
	dir := liveLab(t)
	write(t, filepath.Join(dir, "p.py"), `import json, os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port = int(os.environ["HOPBED_PORT"])
if os.environ["HOPBED_SIDE"] == "send":
    import time
    while True:
        s.sendto(bytes(1000), (os.environ["HOPBED_DST"], port))
        time.sleep(0.01)
s.bind((os.environ["HOPBED_ADDR"], port))
total = 0
while True:
    print(json.dumps({"bytes": total, "calls": total // 1000}), flush=True)
    total += len(s.recv(2000))
`)
	text := strings.Replace(tiny, "[hop, tcp/cubic]", "[iperf3/cubic, iperf3/udp, exec]", 1)
	text = strings.Replace(text, "transports: {", "transports: {iperf: {rate: 1mbit}, exec: {send: [python3, p.py], receive: [python3, p.py]}, ", 1)
	write(t, filepath.Join(dir, "f.yaml"), strings.Replace(text, "duration: 1500ms", "duration: 4s", 1))
	status, _, stderr := hopbed(t, dir, "run", "f.yaml")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	seen := map[string]bool{}
	for _, r := range runsIn(t, filepath.Join(dir, "results.db")) {
		flows, err := st.Flows(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
		if err != nil || len(flows) != 1 {
			t.Fatalf("%s: %d flows, %v", r.Transport, len(flows), err)
		}
		if f := flows[0]; f.Status == store.FlowFailed || f.Bytes == 0 || f.RetransBytes.OK || r.Transport == "exec" && f.Counters["calls"] == 0 || r.Transport == "iperf3/udp" && f.Counters["datagrams_expected"] == 0 {
			t.Errorf("%s: %+v", r.Transport, f)
		}
		nodes, err := st.Nodes(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
		if err != nil || strings.Contains(nodes[0].Facts["programs"], "iperf 3.") == (r.Transport == "exec") {
			t.Errorf("%s: the facts of %s say %q, %v", r.Transport, nodes[0].Name, nodes[0].Facts["programs"], err)
		}
		seen[r.Transport] = true
	}
	if len(seen) != 3 {
		t.Errorf("ran %v", seen)
	}
	nothingLeft(t, dir)
}
