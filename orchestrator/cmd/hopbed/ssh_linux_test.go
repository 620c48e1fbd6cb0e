package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/sshd"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// wired is an experiment for a lab of three: a line by its listed links, so that the
// middle relays, a transfer and a telephone call.
const wired = `hopbed: 1
name: wired
topology:
  inventory: lab.yaml
  links: [{from: n01, to: n02}, {from: n02, to: n03}]
flows:
  - {pairs: [{src: n01, dst: n03}], transport: tcp/cubic, workload: {kind: sized, size: 1MB}}
  - {pairs: [{src: n03, dst: n01}], transport: udp, workload: voip}
repeat: 2
warmup: 300ms
duration: 2s
limits: {reruns: 1}
`

// newestCampaign is what a database has of its newest campaign.
func newestCampaign(t *testing.T, dir string) (store.CampaignStatus, []store.Run) {
	t.Helper()
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	all, err := st.Campaigns(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatalf("campaigns: %v, %v", all, err)
	}
	runs, err := st.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return all[len(all)-1].Status, runs
}

// The same file format on real nodes, as far as this machine has them: SSH
// servers in namespaces. Nothing is told to the command line but the experiment:
// it names the inventory.
func TestCampaignOverSSH(t *testing.T) {
	l := newWiredLab(t, 3)
	write(t, filepath.Join(l.dir, "f.yaml"), wired)
	p := l.run(builtAgents(t), "--backend", "ssh", "--report", "r.md")
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	status, runs := newestCampaign(t, l.dir)
	if len(runs) < 2 || status == store.CampaignFailed {
		t.Fatalf("campaign %s, %d runs:\n%s", status, len(runs), p.said())
	}
	st := reading(t, filepath.Join(l.dir, "results.db"))
	defer st.Close()
	for _, r := range runs {
		if r.Status == store.RunFailed || r.Backend != "ssh" {
			t.Errorf("run %d on %s: %s", r.ID, r.Backend, r.Error)
			continue
		}
		of := store.Filter{RunIDs: []int64{r.ID}}
		flows, err := st.Flows(t.Context(), of)
		if err != nil || len(flows) != 2 {
			t.Fatalf("%d flows, %v", len(flows), err)
		}
		for _, f := range flows {
			if f.Status != store.FlowOK || f.Bytes == 0 || f.Hops != 2 {
				t.Errorf("run %d, flow %d: %s %s, %d bytes, %d hops", r.ID, f.Flow, f.Status, f.Error, f.Bytes, f.Hops)
			}
		}
		if call := flows[1]; call.Messages.V == 0 || !call.DelayP50Us.OK {
			t.Errorf("run %d: the call has %d messages, median delay %v", r.ID, call.Messages.V, call.DelayP50Us)
		}
		nodes, err := st.Nodes(t.Context(), of)
		if err != nil || len(nodes) != 3 {
			t.Fatalf("%d nodes, %v", len(nodes), err)
		}
		for i, n := range nodes {
			f := n.Facts
			if f["host"] != n.Name || f["matched"] != "by name" || f["interface"] != "eth1" || f["clock"] != "this host's" || f["kernel"] == "" || f["neighbours"] == "0" {
				t.Errorf("node %d: %v", i, f)
			}
		}
	}
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
}

// A node that is cut off costs its run, which says so; what follows fails at once;
// the node puts back what was changed by itself; and --resume completes the
// campaign when it is back.
func TestNodeThatIsCutOff(t *testing.T) {
	l := newWiredLab(t, 3)
	agents := builtAgents(t)
	write(t, filepath.Join(l.dir, "f.yaml"), strings.Replace(wired, "duration: 2s", "duration: 15s", 1))
	p := l.run(agents)
	p.await("  measure", 1)
	l.cut(1)
	began := time.Now()
	l.nodes[1].putBack(t, 10*time.Second+2*time.Second) // it is the agent's watchdog that counts, on a busy machine
	for _, i := range []int{0, 2} {
		l.nodes[i].putBack(t, 10*time.Second)
	}
	if code := p.end(); code != exitNotValid {
		t.Errorf("status %d:\n%s", code, p.said())
	}
	if d := time.Since(began); d > 90*time.Second {
		t.Errorf("the rest of the campaign took %v", d)
	}
	status, runs := newestCampaign(t, l.dir)
	if status != store.CampaignIncomplete || len(runs) < 3 {
		t.Fatalf("campaign %s, %d runs:\n%s", status, len(runs), p.said())
	}
	for _, r := range runs {
		t.Logf("run %d, attempt %d, after %.1f s: %s", r.ID, r.Attempt, r.WallS, r.Error)
		if r.Status != store.RunFailed || !strings.Contains(r.Error, "n02") {
			t.Errorf("run %d is %s: %s", r.ID, r.Status, r.Error)
		}
	}
	l.mend(1)
	write(t, filepath.Join(l.dir, "f.yaml"), strings.Replace(wired, "duration: 2s", "duration: 15s", 1))
	again := l.run(agents, "--resume")
	again.await("  measure", 1)
	again.signal(syscall.SIGINT) // that it goes on is enough here; 20 nodes do it to the end
	if code := again.end(); code != exitInterrupted {
		t.Errorf("resume: status %d:\n%s", code, again.said())
	}
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
}

// Nobody is left to put anything back: each node does it by itself.
func TestKilledControllerOfRealNodes(t *testing.T) {
	l := newWiredLab(t, 3)
	write(t, filepath.Join(l.dir, "f.yaml"), strings.Replace(wired, "duration: 2s", "duration: 60s", 1))
	p := l.run(builtAgents(t))
	p.await("  measure", 1)
	if l.nodes[0].state(t) == l.nodes[0].before {
		t.Error("the run changes nothing at its nodes: there is nothing to put back")
	}
	p.signal(syscall.SIGKILL)
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
	p.end()
}

// Nothing says who hears whom: probes do, before the first run; whom they reach is
// everybody here. The experiment's own nodes are matched in order.
func TestMeasuredLinksOverSSH(t *testing.T) {
	l := newWiredLab(t, 3)
	write(t, filepath.Join(l.dir, "f.yaml"), `hopbed: 1
name: measured
topology: {generate: {kind: chain, nodes: 3, spacing: 20m}}
routing: {kind: measured, probes: 10, period: 100ms}
transports: {udp: {rate: 1mbit}}
flows: [{count: 2, pairs: random, transport: udp}]
duration: 1s
warmup: 200ms
`)
	p := l.run(builtAgents(t))
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	st := reading(t, filepath.Join(l.dir, "results.db"))
	defer st.Close()
	runs, err := st.Runs(t.Context(), store.Filter{})
	if err != nil || len(runs) == 0 || runs[0].Status == store.RunFailed {
		t.Fatalf("runs %+v, %v:\n%s", runs, err, p.said())
	}
	of := store.Filter{RunIDs: []int64{runs[0].ID}}
	links, err := st.Links(t.Context(), of)
	if err != nil || len(links) != 6 {
		t.Fatalf("%d links, %v", len(links), err)
	}
	for _, x := range links {
		if x.Measured == "model" || !x.Delivery.OK {
			t.Errorf("link %d to %d: delivery %v by %s", x.Src, x.Dst, x.Delivery, x.Measured)
		}
	}
	nodes, err := st.Nodes(t.Context(), of)
	if err != nil || nodes[0].Facts["host"] != "n01" {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
}

// A node whose clock is another one: a time namespace sets it 5,000 s ahead. The
// flows begin together all the same, one-way delays between the two clocks are what
// they are between equal ones, and their uncertainty stands beside them.
func TestClocksThatDiffer(t *testing.T) {
	out, err := exec.Command("unshare", "--time", "--fork", "--monotonic", "5000", "true").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("unshare --time: %w: %s", err, out)
	}
	testenv.Need(t, testenv.Root, testenv.Because("time namespaces", err))
	l := newWiredLab(t, 3, map[string]string{"n03": `ForceCommand exec unshare --time --fork --kill-child --monotonic 5000 /bin/sh -c "$SSH_ORIGINAL_COMMAND"`})
	write(t, filepath.Join(l.dir, "f.yaml"), strings.Replace(wired, "repeat: 2", "repeat: 1", 1))
	p := l.run(builtAgents(t))
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	_, runs := newestCampaign(t, l.dir)
	r := runs[len(runs)-1]
	if r.Status == store.RunFailed {
		t.Fatalf("run %d: %s", r.ID, r.Error)
	}
	st := reading(t, filepath.Join(l.dir, "results.db"))
	defer st.Close()
	of := store.Filter{RunIDs: []int64{r.ID}}
	nodes, err := st.Nodes(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	offset, bound := number(t, nodes[2].Facts["clock_offset_us"]), number(t, nodes[2].Facts["clock_bound_us"])
	if offset < 5e9-bound || offset > 5e9+bound || bound <= 0 || nodes[0].Facts["clock"] != "this host's" {
		t.Errorf("the clock of n03: %v; of n01: %v", nodes[2].Facts, nodes[0].Facts)
	}
	drift, _, _ := strings.Cut(nodes[2].Facts["clock_drift_ppm"], " ")
	t.Logf("offset %.1f ± %.1f µs, drift %s ppm", offset, bound, nodes[2].Facts["clock_drift_ppm"])
	if d := number(t, drift); math.Abs(d) > 20000 { // 2 s with bounds of some ms each
		t.Errorf("drift %v ppm", d)
	}
	flows, err := st.Flows(t.Context(), of)
	if err != nil || len(flows) != 2 {
		t.Fatal(flows, err)
	}
	call := flows[1] // from n03 to n01
	unsure := call.Counters["delay_uncertainty_us"]
	if unsure <= 0 || unsure > 100_000 || flows[0].Status != store.FlowOK || call.Status != store.FlowOK || call.MessagesDelivered.V == 0 {
		t.Errorf("the call: %+v; the transfer: %+v", call, flows[0])
	}
	seen := 0
	if err := st.Messages(t.Context(), r.ID, func(m *store.Message) error {
		if m.DelayUs.OK {
			seen++
			if m.DelayUs.V < -unsure || m.DelayUs.V > 2_000_000 {
				t.Errorf("message %d of flow %d took %d µs, ± %d", m.Message, m.Flow, m.DelayUs.V, unsure)
			}
		}
		return nil
	}); err != nil || seen == 0 {
		t.Errorf("%d messages, %v", seen, err)
	}
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Errorf("%q is no number", text)
	}
	return v
}

// An agent that is killed on its node costs its run, which says so, and nothing is
// left on the node: its guardian puts its settings back, or, where that was killed
// too, the next agent there. --on-node-loss stop ends the campaign.
func TestAgentThatIsKilledOnItsNode(t *testing.T) {
	for _, what := range []string{lossContinue, lossStop} {
		t.Run(what, func(t *testing.T) {
			l := newWiredLab(t, 3)
			write(t, filepath.Join(l.dir, "f.yaml"), strings.Replace(wired, "duration: 2s", "duration: 4s", 1))
			p := l.run(builtAgents(t), "--on-node-loss", what)
			p.await("  measure", 1)
			killed, want := 0, map[string]int{lossContinue: 2, lossStop: 1}[what]
			for _, pid := range l.nodes[1].processes(t) {
				args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // none of one that has ended
				if worker := strings.Contains(string(args), "--worker"); worker || what == lossContinue && strings.Contains(string(args), "--guarded") && strings.HasPrefix(filepath.Base(exe(pid)), "hopbed-agent") {
					killed++
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
						t.Fatal(err)
					}
				}
			}
			if killed != want {
				t.Errorf("%d processes of the agent at n02, want %d", killed, want)
			}
			code := p.end()
			status, runs := newestCampaign(t, l.dir)
			if len(runs) == 0 || runs[0].Status != store.RunFailed || !strings.Contains(runs[0].Error, "n02") {
				t.Fatalf("campaign %s, runs %+v:\n%s", status, runs, p.said())
			}
			t.Logf("run 1: %s", runs[0].Error)
			if what == lossStop {
				if len(runs) != 1 || code != exitError {
					t.Errorf("%d runs, status %d after a loss that ends the campaign:\n%s", len(runs), code, p.said())
				}
			} else if len(runs) < 3 || runs[1].Status == store.RunFailed || code != exitOK && code != exitNotValid {
				t.Errorf("%d runs, status %d: the campaign does not go on:\n%s", len(runs), code, p.said())
			}
			for _, n := range l.nodes {
				n.putBack(t, 10*time.Second)
			}
		})
	}
}

func exe(pid int) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // "" for one that has ended
	return path
}

// Twenty nodes: agents brought to them, a campaign, a node that is cut off in it,
// and what is missing done when it is back.
func TestTwentyNodes(t *testing.T) {
	testenv.Long(t)
	const n = 20
	l := newWiredLab(t, n)
	agents := builtAgents(t)
	var links strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&links, "{from: n%02d, to: n%02d}, ", i, i+1)
	}
	text := strings.Replace(wired, "{from: n01, to: n02}, {from: n02, to: n03}", links.String(), 1)
	text = strings.NewReplacer("repeat: 2", "repeat: 4", "duration: 2s", "duration: 5s").Replace(text)
	write(t, filepath.Join(l.dir, "f.yaml"), text)
	began := time.Now()
	p := l.run(agents)
	p.await("run 1/4", 1)
	t.Logf("%d nodes reached, with their agents: %v", n, time.Since(began).Round(100*time.Millisecond))
	p.await("  measure", 2)
	l.cut(7)
	cut := time.Now()
	l.nodes[7].putBack(t, 12*time.Second)
	if code := p.end(); code != exitNotValid {
		t.Errorf("status %d:\n%s", code, p.said())
	}
	t.Logf("the rest of the campaign without node n08: %v", time.Since(cut).Round(100*time.Millisecond))
	for _, nd := range l.nodes {
		nd.putBack(t, 10*time.Second)
	}
	l.mend(7)
	_, before := newestCampaign(t, l.dir)
	began = time.Now()
	again := l.run(agents, "--resume")
	if code := again.end(); code != exitOK && code != exitNotValid {
		t.Errorf("resume: status %d:\n%s", code, again.said())
	}
	status, after := newestCampaign(t, l.dir)
	for _, r := range after {
		t.Logf("run %d, repetition %d, attempt %d: %s in %.1f s: %s%s", r.ID, r.Repetition, r.Attempt, r.Status, r.WallS, r.Error, strings.Join(r.InvalidReasons, "; "))
	}
	t.Logf("resumed in %v: campaign %s", time.Since(began).Round(100*time.Millisecond), status)
	done := map[int]bool{}
	for _, r := range after {
		if r.Status != store.RunFailed {
			done[r.Repetition] = true
		}
	}
	if len(done) != 4 || len(after) <= len(before) {
		t.Errorf("repetitions %v are done, %d runs before and %d after:\n%s", done, len(before), len(after), again.said())
	}
	for _, nd := range l.nodes {
		nd.putBack(t, 10*time.Second)
	}
}

// Namespaces through SSH give what they give directly.
func TestViaSSH(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP, testenv.SSHServer(sshd.Available))
	dir := experiment(t)
	p := start(t, dir, "run", "f.yaml", "--via", "ssh")
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	q := start(t, dir, "run", "f.yaml")
	if code := q.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, q.said())
	}
	goodput := map[bool]map[string]float64{true: {}, false: {}}
	runs := runsIn(t, filepath.Join(dir, "results.db"))
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	for _, r := range runs {
		if r.Status == store.RunFailed {
			t.Errorf("run %d failed: %s", r.ID, r.Error)
		}
		flows, err := st.Flows(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
		if err != nil || len(flows) != 1 {
			t.Fatalf("%d flows, %v", len(flows), err)
		}
		if flows[0].Status != store.FlowOK {
			t.Errorf("run %d: %s", r.ID, flows[0].Error)
		}
		if r.Valid {
			goodput[r.Facts["via"] == "ssh"][r.Transport] = flows[0].GoodputBps.V
		}
	}
	for transport, direct := range goodput[false] {
		via, ok := goodput[true][transport]
		if ok && (via < 0.8*direct || via > 1.25*direct) {
			t.Errorf("%s: %.3g b/s through SSH, %.3g directly", transport, via, direct)
		}
	}
	p.leavesNothing("f.yaml", "results.db", "results.db-shm", "results.db-wal") // which st holds
}

// What belongs to real nodes is refused elsewhere, and what they cannot do before
// any is reached.
func TestOptionsOfRealNodes(t *testing.T) {
	lab := "inventory: 1\nnodes: [{name: n01, address: 192.0.2.1, interface: wlan0}, {name: n02, address: 192.0.2.2, interface: wlan0}, {name: n03, address: 192.0.2.3, interface: wlan0}]\n"
	for name, c := range map[string]struct {
		file string
		args []string
		code int
		want []string
	}{
		"no inventory":        {tiny, []string{"--backend", "ssh"}, exitUsage, []string{"--inventory"}},
		"inventory elsewhere": {tiny, []string{"--backend", "sim", "--inventory", "lab.yaml"}, exitUsage, []string{"--inventory belongs to --backend ssh"}},
		"dry run elsewhere":   {tiny, []string{"--backend", "sim", "--dry-run"}, exitUsage, []string{"--dry-run belongs to"}},
		"another way":         {tiny, []string{"--via", "telnet"}, exitUsage, []string{"--via telnet", "ssh"}},
		"way of real nodes":   {tiny, []string{"--backend", "ssh", "--inventory", "lab.yaml", "--via", "ssh"}, exitUsage, []string{"--via belongs to --backend netns"}},
		"loss":                {tiny, []string{"--backend", "ssh", "--inventory", "lab.yaml", "--on-node-loss", "shrug"}, exitUsage, []string{"shrug", "continue or stop"}},
		"capture":             {tiny, []string{"--inventory", "lab.yaml", "--trace", "t.pcapng"}, exitError, []string{"--trace is unavailable on the back end ssh", "tcpdump"}},
		"too many nodes":      {strings.Replace(tiny, "nodes: 3", "nodes: 4", 1), []string{"--inventory", "lab.yaml"}, exitError, []string{"4 nodes", "lab.yaml has 3"}},
		"no such tag":         {tiny, []string{"--inventory", "lab.yaml", "--tags", "roof"}, exitError, []string{"roof"}},
		"wires":               {wiredTopology, []string{"--inventory", "lab.yaml"}, exitError, []string{"topology.pipes is unavailable on the back end ssh"}},
		"changes":             {tiny + "", []string{"--inventory", "lab.yaml", "--set", "topology.changes=[{at: 1s, link: [n01, n02], up: false}]"}, exitError, []string{"topology.changes is unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f.yaml"), c.file)
			write(t, filepath.Join(dir, "lab.yaml"), lab)
			code, _, stderr := hopbed(t, dir, append([]string{"run", "f.yaml"}, c.args...)...)
			if code != c.code {
				t.Errorf("status %d, want %d", code, c.code)
			}
			says(t, stderr, c.want...)
			if got := list(t, dir); len(got) != 2 {
				t.Errorf("it leaves %v", got)
			}
		})
	}
}

const wiredTopology = `hopbed: 1
name: wires
topology:
  nodes: [{name: n01, radio: false}, {name: n02, radio: false}]
  pipes: [{ends: [n01, n02], rate: 1mbit, queue: {packets: 100}}]
flows: [{pairs: [{src: n01, dst: n02}], transport: tcp/cubic}]
duration: 1s
`

// A dry run reaches nobody: the addresses are of nobody (RFC 5737).
func TestDryRunOfAMadwifiLab(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lab.yaml"), `inventory: 1
defaults: {user: root, interface: ath0, radio: {driver: madwifi, mode: ahdemo, network: hopbed, channel: 1}}
nodes:
  - {name: roof, address: 192.0.2.1}
  - {name: yard, address: 192.0.2.2, radio: {tx-power: 10dBm}}
  - {name: shed, address: 192.0.2.3}
`)
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	code, out, stderr := hopbed(t, dir, "run", "f.yaml", "--inventory", "lab.yaml", "--dry-run")
	if code != exitOK {
		t.Fatalf("status %d: %s", code, stderr)
	}
	says(t, out, "node n01 = roof of the inventory", "ath0", "iwconfig", "txop", "measure")
	if got := list(t, dir); len(got) != 2 {
		t.Errorf("it leaves %v", got)
	}
	// With listed links there are routes.
	write(t, filepath.Join(dir, "f.yaml"), wired)
	write(t, filepath.Join(dir, "lab.yaml"), "inventory: 1\ndefaults: {interface: eth1}\nnodes: [{name: n01, address: 192.0.2.1}, {name: n02, address: 192.0.2.2}, {name: n03, address: 192.0.2.3}]\n")
	code, out, stderr = hopbed(t, dir, "run", "f.yaml", "--dry-run")
	if code != exitOK {
		t.Fatalf("status %d: %s", code, stderr)
	}
	says(t, out, "ip route replace 10.66.0.3/32 via 10.66.0.2 dev eth1 onlink", "sysctl -w net/ipv4/ip_forward=1", "ip address add 10.66.0.1")
}
