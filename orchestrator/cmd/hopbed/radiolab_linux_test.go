package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// The whole way of a lab with radios, as far as one machine has it: SSH, the agent
// put on the nodes, simulated radios joined into an IBSS, flows over three hops,
// evidence in the results, everything put back. It needs a kernel with
// mac80211_hwsim, the kernel lane's.
func TestCampaignOverSimulatedRadios(t *testing.T) {
	c := lane.Config{Modules: append([]string{"mac80211_hwsim radios=4"}, lane.Network...), HostRoot: true, Memory: 2048, Timeout: 10 * time.Minute}
	if !lanetest.Inside() {
		testenv.Long(t)
		testenv.Need(t, testenv.Program("iw"), testenv.Program("sshd"), testenv.Program("nsenter"), testenv.Program("go"))
		c.Share = builtAgents(t)
	}
	lanetest.Run(t, c, lanetest.Case{Name: "campaign", Run: campaignOverRadios})
}

// overRadios is a line of four by its routes: all of them hear each other.
const overRadios = `hopbed: 1
name: radios
topology:
  inventory: lab.yaml
  links: [{from: n01, to: n02}, {from: n02, to: n03}, {from: n03, to: n04}]
radio: {standard: 802.11b, rate: 11mbit, basic-rate: 2mbit}
mac: {retries: 5, rts: 700B, fragment: 1500B, queues: {bk: {ack: none}}}
transports: {hop: {block: 32KiB}}
flows:
  - {pairs: [{src: n01, dst: n04}], transport: tcp/cubic}
  - {pairs: [{src: n04, dst: n01}], transport: hop}
warmup: 1s
duration: 8s
limits: {reruns: 0}
`

func campaignOverRadios(t *testing.T) {
	l := newWiredLab(t, 4)
	inventory, err := os.ReadFile(filepath.Join(l.dir, "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(l.dir, "lab.yaml"), strings.Replace(string(inventory), "interface: eth1,",
		`interface: wlan0, radio: {driver: nl80211, mode: adhoc, network: hop, bssid: "02:ca:fe:00:00:01", channel: 6, tx-power: 10dBm},`, 1))
	write(t, filepath.Join(l.dir, "f.yaml"), overRadios)
	var before []string
	for i, n := range l.nodes {
		giveRadio(t, i, n.pid())
		before = append(before, radioOf(t, n.pid()))
	}

	p := l.run(lane.SharePath, "--backend", "ssh")
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	status, runs := newestCampaign(t, l.dir)
	if len(runs) != 1 || status == store.CampaignFailed {
		t.Fatalf("campaign %s, %d runs:\n%s", status, len(runs), p.said())
	}
	st := reading(t, filepath.Join(l.dir, "results.db"))
	defer st.Close()
	for _, r := range runs {
		if r.Status == store.RunFailed {
			t.Errorf("run %d: %s", r.ID, r.Error)
			continue
		}
		of := store.Filter{RunIDs: []int64{r.ID}}
		flows, err := st.Flows(t.Context(), of)
		if err != nil || len(flows) != 2 {
			t.Fatalf("%d flows, %v", len(flows), err)
		}
		for _, f := range flows {
			t.Logf("%s over %d hops: %d bytes, %.0f b/s (the run is %s)", f.Transport, f.Hops, f.Bytes, f.GoodputBps.V, r.Status)
			if f.Status != store.FlowOK || f.Bytes == 0 || f.Hops != 3 {
				t.Errorf("%s: %s %s, %d bytes, %d hops", f.Transport, f.Status, f.Error, f.Bytes, f.Hops)
			}
		}
		nodes, err := st.Nodes(t.Context(), of)
		if err != nil || len(nodes) != 4 {
			t.Fatalf("%d nodes, %v", len(nodes), err)
		}
		for i, n := range nodes {
			for name, want := range map[string]string{"channel": "6", "bssid": "02:ca:fe:00:00:01", "tx-power": "10dBm", "retries": "5", "rts": "700B", "fragment": "1500B"} {
				if got := n.Facts["radio."+name]; !strings.Contains(got, want) || !strings.Contains(got, string(radio.Verified)) {
					t.Errorf("node %d: %s is %q, want %s, verified", i, name, got, want)
				}
			}
			if got := n.Facts["radio.bk.ack"]; !strings.Contains(got, string(radio.Unverified)) {
				t.Errorf("node %d: bk.ack is %q, want it unverified", i, got)
			}
		}
	}
	for i, n := range l.nodes {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			after := radioOf(t, n.pid())
			if after == before[i] {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the radio of %s is %s, was %s", n.name, after, before[i])
			}
		}
		n.putBack(t, 10*time.Second)
	}
}

// giveRadio moves a simulated radio into a namespace, where it is wlan0.
func giveRadio(t *testing.T, i, pid int) {
	t.Helper()
	name := fmt.Sprintf("wlan%d", i)
	run := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	w, err := radio.System().Wireless(name)
	if err != nil {
		t.Fatal(err)
	}
	run("ip", "link", "set", "dev", name, "up") // until then it has no power
	run("ip", "link", "set", "dev", name, "down")
	run("iw", "phy", w.Phy, "set", "netns", strconv.Itoa(pid))
	if name != "wlan0" {
		run("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid), "ip", "link", "set", "dev", name, "name", "wlan0")
	}
}

// radioOf is the state of a namespace's radio.
func radioOf(t *testing.T, pid int) string {
	t.Helper()
	var w *radio.Wireless
	var i radio.Interface
	err := tap.InNamespace(pid, func() (err error) {
		if w, err = radio.System().Wireless("wlan0"); err == nil {
			i, err = radio.System().Interface("wlan0")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(w.Mode, w.Network, w.BSSID, w.Frequency, *w.TxPower, *w.RetryShort, *w.RetryLong, *w.RTS, *w.Fragment, i)
}
