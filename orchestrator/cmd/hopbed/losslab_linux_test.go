package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// A wired lab as a mesh with losses: the nodes' kernels lose what the links and
// radio.drop say. It needs a kernel with netem, the kernel lane's.
func TestWiredLabWithLosses(t *testing.T) {
	c := lane.Config{Modules: lane.Network, HostRoot: true, Memory: 2048, Timeout: 10 * time.Minute}
	if !lanetest.Inside() {
		testenv.Long(t)
		testenv.Need(t, testenv.Program("sshd"), testenv.Program("go"))
		c.Share = builtAgents(t)
	}
	lanetest.Run(t, c, lanetest.Case{Name: "losses", Run: losses})
}

const lossyLab = `hopbed: 1
name: lossy
topology:
  inventory: lab.yaml
  links: [{from: n01, to: n02, delivery: 80%}, {from: n02, to: n03}]
radio: {drop: 5%}
transports: {udp: {rate: 2mbit, packet: 1000B}}
flows:
  - {pairs: [{src: n01, dst: n03}], transport: udp}
warmup: 1s
duration: 10s
limits: {reruns: 0}
`

func losses(t *testing.T) {
	l := newWiredLab(t, 3)
	write(t, filepath.Join(l.dir, "f.yaml"), lossyLab)
	p := l.run(lane.SharePath, "--backend", "ssh")
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	_, runs := newestCampaign(t, l.dir)
	r := runs[0]
	if r.Status == store.RunFailed {
		t.Fatal(r.Error)
	}
	st := reading(t, filepath.Join(l.dir, "results.db"))
	defer st.Close()
	of := store.Filter{RunIDs: []int64{r.ID}}
	flows, err := st.Flows(t.Context(), of)
	if err != nil || len(flows) != 1 {
		t.Fatalf("%d flows, %v", len(flows), err)
	}
	nodes, err := st.Nodes(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		for key, text := range n.Facts {
			if strings.HasPrefix(key, "shaped.") {
				t.Logf("%s: %s: %s", n.Name, key, text)
			}
		}
	}
	if nodes[0].Facts["shaped.eth1.egress.0"] == "" || nodes[1].Facts["shaped.eth1.ingress.0"] == "" {
		t.Errorf("the facts say nothing of what was lost: %v", nodes[0].Facts)
	}
	// 80 % on the first link, and 5 % thrown away at the relay and at the end.
	want := 2e6 * 0.8 * 0.95 * 0.95
	got := flows[0].GoodputBps.V
	t.Logf("goodput %.0f b/s, expected %.0f (%s)", got, want, r.Status)
	if math.Abs(got-want) > 0.06*2e6 { // four standard deviations of 2,500 packets, and a busy machine
		t.Errorf("goodput %.0f b/s, want about %.0f", got, want)
	}
	for _, n := range l.nodes {
		n.putBack(t, 10*time.Second)
	}
}
