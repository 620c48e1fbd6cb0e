//go:build linux

package session_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A machine with a radio and a kernel that emulates links, whose agent is killed
// in every way: the radio, too, is as it was.
func TestKilledWithARadio(t *testing.T) {
	if !lanetest.Inside() {
		testenv.Need(t, testenv.Program("iw"), testenv.Program("ip"), testenv.Program("tc"))
	}
	lanetest.Run(t, lane.Config{Modules: append([]string{"mac80211_hwsim radios=2"}, lane.Network...), HostRoot: true},
		lanetest.Case{Name: "worker", Run: func(t *testing.T) {
			m, dir, before, a := radioMachine(t)
			killed := time.Now()
			signal(t, a.worker, syscall.SIGKILL)
			a.ended(t)
			t.Logf("put back after %v", time.Since(killed))
			m.compare(before)
			if left := journals(t, dir); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		}},
		lanetest.Case{Name: "guardian", Run: func(t *testing.T) {
			m, _, before, a := radioMachine(t)
			signal(t, a.cmd.Process.Pid, syscall.SIGKILL)
			a.ended(t)
			m.compare(before)
		}},
		lanetest.Case{Name: "both", Run: func(t *testing.T) {
			m, dir, before, a := radioMachine(t)
			a.killBoth(t)
			m.changed(before)
			m.agentSays(t, 0, "--clean", "--journal", dir)
			m.compare(before)
		}},
	)
}

// radioMachine is the lane's guest itself, with an agent that has configured it.
func radioMachine(t *testing.T) (m *machine, dir string, before map[string]string, a *agent) {
	t.Helper()
	m, dir = &machine{t: t, radio: "wlan0"}, filepath.Join(t.TempDir(), "undo")
	var err error
	if m.ns, err = os.Open("/proc/self/ns/net"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.ns.Close() })
	for _, of := range []string{"all", "default", "wlan0", "wlan1"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+of+"/disable_ipv6", []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"link set lo up", "link set wlan0 up", "link set wlan0 down"} {
		m.run("ip", strings.Fields(line)...)
	}
	before = m.state()
	a = m.start(0, "--guarded", "--journal", dir)
	power := vtime.DBm(15)
	c := &proto.Configure{
		Name: "n01", Interfaces: []proto.Interface{{Name: "wlan0"}}, Address: netip.MustParsePrefix("10.77.0.1/32"), MTU: 1400, OffloadsOff: true,
		Routes: []proto.Route{{Interface: "wlan0", Dst: netip.MustParsePrefix("10.77.0.2/32")}},
		Radio: &radio.Config{Driver: radio.NL80211, Interface: "wlan0", Mode: radio.ModeAdhoc, Network: "hop", BSSID: "02:CA:FE:00:00:01", Channel: 6,
			Standard: "802.11b", Rate: 11 * vtime.MbitPerSecond, TxPower: &power},
		Shapers: []tc.Link{{Interface: "wlan0", Egress: []tc.Class{{Shape: tc.Shape{Delay: 5 * vtime.Millisecond}}}, Ingress: []tc.Class{{Shape: tc.Shape{Delay: vtime.Millisecond}}}}},
	}
	for _, s := range tap.NodeSysctls() {
		c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: s.Key, Value: s.Value})
	}
	a.configure(t, c)
	m.changed(before)
	if w := m.wireless(); !strings.Contains(w, "02:ca:fe:00:00:01") {
		t.Fatalf("the radio is %s", w)
	}
	return m, dir, before, a
}

// wireless is what the kernel says of the radio.
func (m *machine) wireless() string {
	m.t.Helper()
	var b []byte
	err := m.inside(func() error {
		w, err := radio.System().Wireless(m.radio)
		if err != nil {
			return err
		}
		b, err = json.MarshalIndent(w, "", " ")
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}
