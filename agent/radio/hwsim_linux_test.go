package radio_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/radio/radiotest"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The simulated radios of mac80211_hwsim have the whole of cfg80211 and mac80211
// above them. They need a kernel that has the module: the kernel lane's.
func TestSimulatedRadios(t *testing.T) {
	if !lanetest.Inside() {
		testenv.Need(t, testenv.Program("iw"), testenv.Program("hostapd"), testenv.Program("nsenter"))
	}
	lanetest.Run(t, lane.Config{Modules: append([]string{"mac80211_hwsim radios=4"}, lane.Network...), HostRoot: true},
		lanetest.Case{Name: "conformance", Run: hwsimConforms},
		lanetest.Case{Name: "refused", Run: hwsimRefuses},
		lanetest.Case{Name: "air", Run: hwsimAir},
		lanetest.Case{Name: "access-point", Run: hwsimAccessPoint},
		lanetest.Case{Name: "ibss", Run: hwsimIBSS},
	)
}

// kernel is the lane's kernel as a host for the conformance test.
type kernel struct {
	radio.Host
	t testing.TB
}

func (k kernel) Snapshot() string {
	w, err := k.Wireless("wlan0")
	if err != nil {
		k.t.Fatal(err)
	}
	i, err := k.Interface("wlan0")
	if err != nil {
		k.t.Fatal(err)
	}
	b, err := json.MarshalIndent(struct {
		*radio.Wireless
		radio.Interface
	}{w, i}, "", " ")
	if err != nil {
		k.t.Fatal(err)
	}
	return string(b)
}

func hwsimConforms(t *testing.T) {
	warm(t, "wlan0")
	radiotest.Conform(t, radiotest.Subject{
		Driver: radio.NL80211, Configs: nl80211Configs(), Unsupported: nl80211Unsupported(), Uninterrupted: true,
		New: func(t testing.TB) radiotest.Host { return kernel{radio.System(), t} },
	})
	radiotest.Conform(t, radiotest.Subject{
		Driver: radio.NL80211, Configs: map[string]radio.Config{"interrupted": meshLab()},
		New: func(t testing.TB) radiotest.Host { return kernel{radio.System(), t} },
	})
	// An IBSS of the lab's is joined again.
	run(t, "iw", "dev", "wlan0", "set", "type", "ibss")
	run(t, "ip", "link", "set", "dev", "wlan0", "up")
	run(t, "iw", "dev", "wlan0", "ibss", "join", "lab", "2412", "HT20", "fixed-freq", "02:aa:00:00:00:01")
	joined := func() string {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			w, err := radio.System().Wireless("wlan0")
			if err != nil || time.Now().After(end) {
				t.Fatalf("wlan0 is not in its IBSS again: %+v, %v", w, err)
			}
			if w.BSSID != "" {
				return fmt.Sprint(w.Mode, w.Network, w.BSSID, w.Frequency, w.Width)
			}
		}
	}
	before := joined()
	s, records, err := configure(t, radio.System(), meshLab())
	if err != nil {
		t.Fatal(err)
	}
	if err := undoAll(t, records); err != nil {
		t.Errorf("undo: %v", err)
	}
	if after := joined(); after != before {
		t.Errorf("after the undo wlan0 is %s, was %s", after, before)
	}
	run(t, "ip", "link", "set", "dev", "wlan0", "down")
	run(t, "iw", "dev", "wlan0", "set", "type", "managed")
	for _, x := range s {
		t.Logf("%-11s wanted %-18s got %-18s %s %s", x.Name, x.Wanted, x.Got, x.State, x.Why)
	}
}

// hwsimRefuses: what the kernel refuses or changes is an error that names it.
func hwsimRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		change  func(*radio.Config)
		kind    radio.Kind
		setting string
	}{
		"a channel of 5 GHz without permission to begin": {func(c *radio.Config) { c.Standard, c.Channel, c.Rate, c.BasicRate = "", 36, 0, 0 }, radio.Rejected, "channel"},
		"a channel beyond the regulatory domain":         {func(c *radio.Config) { c.Channel = 14 }, radio.Rejected, "channel"},
		"more power than permitted":                      {func(c *radio.Config) { c.TxPower = ptr(vtime.DBm(30)) }, radio.NotTaken, "tx-power"},
		"no such interface":                              {func(c *radio.Config) { c.Interface = "wlan9" }, radio.Unavailable, ""},
		"an interface that is not wireless":              {func(c *radio.Config) { c.Interface = "lo" }, radio.Unavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, records, err := configure(t, radio.System(), with(meshLab(), x.change))
			e, ok := errors.AsType[*radio.Error](err)
			if failed := undoAll(t, records); failed != nil {
				t.Errorf("undo: %v", failed)
			}
			if !ok || e.Kind != x.kind || !strings.Contains(e.Setting, x.setting) {
				t.Fatalf("got %v, want %s of %s", err, x.kind, x.setting)
			}
			t.Log(err)
		})
	}
}

// hwsimIBSS: four nodes with an agent and a radio each, set through the
// protocol; flows of the kernel's TCP and of Hop over three hops.
func hwsimIBSS(t *testing.T) {
	l := agenttest.New(t, 4, agenttest.Options{NoDevices: true})
	hw := make([]net.HardwareAddr, len(l.Nodes))
	before := make([]*radio.Wireless, len(l.Nodes))
	for i, n := range l.Nodes {
		hw[i] = moveRadio(t, i, n.Cmd.Process.Pid)
		before[i] = wirelessIn(t, n.Cmd.Process.Pid)
	}
	const end = vtime.Time(12 * vtime.Second)
	flows := []proto.Flow{
		l.Flow(proto.Flow{ID: 0, Transport: "tcp/cubic", Src: 0, Dst: 3, Workload: workload.Spec{Kind: workload.Continual}}),
		l.Flow(proto.Flow{ID: 1, Transport: "hop", Src: 3, Dst: 0, Workload: workload.Spec{Kind: workload.Continual}, Options: proto.FlowOptions{BlockSize: 32 << 10}}),
	}
	var states []map[string]radio.State
	for _, n := range l.Nodes {
		c := l.Chain(n.ID, flows)
		cfg := meshLab()
		c.Radio, c.Interfaces[0].HardwareAddress = &cfg, ""
		for j := range c.Neighbours {
			for k := range l.Nodes {
				if c.Neighbours[j].Addr == tap.Addr(k) {
					c.Neighbours[j].HardwareAddress = hw[k].String()
				}
			}
		}
		// An IBSS counts as joined only when it has been found or begun: some seconds.
		r, err := n.Client.Configure(l.Context(30*time.Second), c)
		if err != nil {
			t.Fatal(err)
		}
		is := map[string]radio.State{}
		for _, s := range r.Radio {
			is[s.Name] = s.State
		}
		states = append(states, is)
	}
	want := map[string]radio.State{
		"mode": radio.Verified, "network": radio.Verified, "bssid": radio.Verified, "channel": radio.Verified, "tx-power": radio.Verified,
		"retries": radio.Verified, "rts": radio.Verified, "fragment": radio.Verified,
		"standard": radio.Unverified, "rate": radio.Unverified, "basic-rate": radio.Unverified, "preamble": radio.Unverified,
		"bk.ack": radio.Unverified, "vo.ack": radio.Unverified,
	}
	if w := wirelessIn(t, l.Nodes[0].Cmd.Process.Pid); len(w.Rates) > 0 { // a kernel with mac80211's debugfs
		want["standard"], want["rate"] = radio.Verified, radio.Verified
	}
	for i, got := range states {
		if !maps.Equal(got, want) {
			t.Errorf("node %d: %v, want %v", i, got, want)
		}
	}
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		t.Logf("%s over 3 hops: %v in %v", f.Transport, dst.Bytes, vtime.Duration(end))
		if src.Error != nil || dst.Error != nil || dst.Corrupt != 0 || dst.Bytes < 32<<10 {
			t.Errorf("flow %d, %s: source %+v, destination %+v", f.ID, f.Transport, src, dst)
		}
	}
	// The rate of data, which nothing but the frames themselves show.
	out := inside(t, l.Nodes[0].Cmd.Process.Pid, "iw", "dev", "wlan0", "station", "get", hw[1].String())
	if !strings.Contains(out, "tx bitrate:\t11.0 MBit/s") {
		t.Errorf("the rate to the neighbour is not 11 Mb/s:\n%s", out)
	}
	for i, n := range l.Nodes {
		r, err := n.Client.Revert(l.Context(30 * time.Second))
		if err != nil || len(r.Failed) > 0 {
			t.Errorf("node %d: revert: %+v, %v", i, r, err)
		}
		if got, was := describe(wirelessIn(t, n.Cmd.Process.Pid)), describe(before[i]); got != was {
			t.Errorf("node %d: reverted, the radio is %s, was %s", i, got, was)
		}
	}
}

// hwsimAccessPoint: a station joins an access point that hostapd keeps, with the
// parameters of a queue.
func hwsimAccessPoint(t *testing.T) {
	d, err := radio.Lookup(radio.NL80211)
	if err != nil {
		t.Fatal(err)
	}
	var records []undo.Record
	push := func(r undo.Record) error { records = append(records, r); return nil }
	defer func() {
		if err := undoAll(t, records); err != nil {
			t.Errorf("undo: %v", err)
		}
	}()
	if _, err := radio.Configure(t.Context(), radio.System(), apLab(), push); err != nil {
		t.Fatal(err)
	}
	sta := radio.Config{Driver: radio.NL80211, Interface: "wlan1", Mode: radio.ModeStation, Network: "hop", Channel: 6}
	if err := d.Apply(t.Context(), radio.System(), sta, push); err != nil {
		t.Fatal(err)
	}
	s, err := d.Readback(t.Context(), radio.System(), sta)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(s, func(x radio.Setting) bool { return x.Name == "network" && x.State == radio.Verified }) {
		t.Errorf("the station has %+v", s)
	}
}

// describe is a state as text: pointers are followed.
func describe(w *radio.Wireless) string {
	b, _ := json.Marshal(w)
	return string(b)
}

// moveRadio gives radio i to a process's namespace, as wlan0.
func moveRadio(t *testing.T, i, pid int) net.HardwareAddr {
	t.Helper()
	name := fmt.Sprintf("wlan%d", i)
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := radio.System().Wireless(name)
	if err != nil {
		t.Fatal(err)
	}
	warm(t, name)
	run(t, "iw", "phy", w.Phy, "set", "netns", strconv.Itoa(pid))
	if name != "wlan0" {
		inside(t, pid, "ip", "link", "set", "dev", name, "name", "wlan0")
	}
	return ifc.HardwareAddr
}

// warm takes an interface up and down once: until then it has no power.
func warm(t *testing.T, name string) {
	t.Helper()
	run(t, "ip", "link", "set", "dev", name, "up")
	run(t, "ip", "link", "set", "dev", name, "down")
}

func wirelessIn(t *testing.T, pid int) (w *radio.Wireless) {
	t.Helper()
	err := tap.InNamespace(pid, func() (err error) {
		w, err = radio.System().Wireless("wlan0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return string(out)
}

func inside(t *testing.T, pid int, argv ...string) string {
	t.Helper()
	return run(t, append([]string{"nsenter", "--net=/proc/" + strconv.Itoa(pid) + "/ns/net"}, argv...)...)
}
