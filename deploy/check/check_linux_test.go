package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
)

// TestMain: the test program is the agent.
func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{agents.Part: func() int { return session.Main("test") }})
	os.Exit(m.Run())
}

// source is the test program as an agent, for one architecture.
type source struct{}

func (source) Agent(_ context.Context, arch string) (*agents.Binary, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return agents.Open(exe, arch)
}

func run(t *testing.T, within time.Duration, nodes ...inventory.Node) []Node {
	t.Helper()
	out := Run(context.Background(), Options{Dialer: sshclient.New(sshclient.Options{}), Agents: source{}, Within: within}, nodes)
	if len(out) != len(nodes) {
		t.Fatalf("%d results for %d nodes", len(out), len(nodes))
	}
	return out
}

// server is one whose users have no login scripts.
func server(t *testing.T) *sshtest.Server {
	t.Helper()
	return sshtest.Start(t, sshtest.Options{Config: []string{"SetEnv HOME=" + t.TempDir()}})
}

func has(n Node, fatal bool, text string) bool {
	for _, p := range n.Problems {
		if p.Fatal == fatal && strings.Contains(p.What+p.Do, text) {
			return true
		}
	}
	return false
}

func TestNodeBeforeAndAfterPush(t *testing.T) {
	testenv.Need(t, testenv.Root)
	s := server(t)
	in := s.Node("n01")
	in.Dir = filepath.Join(t.TempDir(), "agents")
	n := run(t, 0, *in)[0]
	if !n.Usable || !n.Reachable || n.Access != "root" || n.Arch == "" || n.Kernel == "" || n.Agent == nil || n.Agent.Present || n.Interface != nil {
		t.Fatalf("%+v", n)
	}
	if n.Clock == nil || n.Clock.By != "date" || abs(n.Clock.OffsetNS) > n.Clock.BoundNS {
		t.Errorf("the clock of this host, through date: %+v", n.Clock)
	}
	if _, err := os.Stat(in.Dir); err == nil {
		t.Error("a check has made a folder")
	}
	c, err := sshclient.New(sshclient.Options{}).Dial(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := agents.Examine(context.Background(), c, in)
	if err != nil {
		t.Fatal(err)
	}
	b, err := source{}.Agent(context.Background(), f.Arch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agents.Push(context.Background(), c, in, f, b); err != nil {
		t.Fatal(err)
	}
	n = run(t, 0, *in)[0]
	if !n.Usable || !n.Agent.Present || n.Clock == nil || n.Clock.By != "agent" || abs(n.Clock.OffsetNS) > n.Clock.BoundNS {
		t.Errorf("with its agent: %+v, clock %+v", n, n.Clock)
	}
	var table bytes.Buffer
	if err := Table(&table, []Node{n}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n01", "present " + b.SHA256[:8], "1 of 1 nodes can be used", "±"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	if out, err := json.Marshal(n); err != nil || !strings.Contains(string(out), `"usable":true`) || !strings.Contains(string(out), `"by":"agent"`) {
		t.Errorf("%s, %v", out, err)
	}
}

// Fifty nodes, of which some are not there, one does not answer, and one does not
// let us in: the others are not held up.
func TestFiftyNodes(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Root)
	good := server(t)
	silent, closed := server(t), server(t)
	silent.Pause()
	t.Cleanup(silent.Resume)
	closed.Stop()
	dir := t.TempDir()
	nodes := make([]inventory.Node, 50)
	for i := range nodes {
		s := good
		switch i {
		case 10:
			s = silent
		case 20:
			s = closed
		}
		nodes[i] = *s.Node(fmt.Sprintf("n%02d", i+1))
		nodes[i].Dir = filepath.Join(dir, "agents")
	}
	nodes[30].Identity = []string{sshtest.Key(t, "ed25519", "")}
	t0 := time.Now()
	out := run(t, time.Minute, nodes...)
	t.Logf("50 nodes on one host took %v", time.Since(t0).Round(time.Millisecond))
	for i, n := range out {
		want := i != 10 && i != 20 && i != 30
		if n.Name != nodes[i].Name || n.Usable != want || n.Reachable != want {
			t.Errorf("%s: usable %v, reachable %v, %+v", n.Name, n.Usable, n.Reachable, n.Problems)
		}
	}
	if !has(out[20], true, string(sshclient.Unreachable)) || !has(out[30], true, string(sshclient.AuthRefused)) || len(out[10].Problems) == 0 {
		t.Errorf("%+v, %+v, %+v", out[10].Problems, out[20].Problems, out[30].Problems)
	}
	var table bytes.Buffer
	if err := Table(&table, out); err != nil || !strings.Contains(table.String(), "47 of 50 nodes can be used") {
		t.Errorf("%v\n%s", err, table.String())
	}
}

// A router with BusyBox alone, and one whose sudo wants a password.
func TestRouter(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.Program("busybox"))
	box, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	out, err := exec.Command(box, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, applet := range strings.Fields(string(out)) {
		if err := os.Symlink(box, filepath.Join(bin, applet)); err != nil {
			t.Fatal(err)
		}
	}
	s := sshtest.Start(t, sshtest.Options{Config: []string{"SetEnv HOME=" + bin + " PATH=" + bin}})
	in := s.Node("n01")
	in.Dir, in.Interface = filepath.Join(t.TempDir(), "agents"), "lo"
	n := run(t, 0, *in)[0]
	if n.Clock == nil || n.Interface == nil || !n.Interface.Found || n.Interface.State == "" || n.Interface.Driver != "" {
		t.Errorf("%+v, interface %+v", n, n.Interface)
	}
	// This connection goes through lo: whatever the driver, an agent would refuse to
	// configure it. Nothing else keeps the node from being used.
	fatal := slices.DeleteFunc(slices.Clone(n.Problems), func(p Problem) bool { return !p.Fatal })
	if n.Usable || !n.Interface.Carries || len(fatal) != 1 || !has(n, true, "this connection goes through lo") {
		t.Errorf("%+v", n.Problems)
	}
	yes := true
	in.Sudo, in.Radio.Driver = &yes, "nl80211"
	sudo := "#!" + filepath.Join(bin, "sh") + "\necho 'sudo: a password is required' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte(sudo), 0o755); err != nil {
		t.Fatal(err)
	}
	n = run(t, 0, *in)[0]
	if n.Usable || n.Access != "" || !has(n, true, "NOPASSWD") || !has(n, true, "lo is no radio") || !has(n, true, "this connection goes through") {
		t.Errorf("%+v", n.Problems)
	}
}

// What was seen, and what follows.
func TestConclusions(t *testing.T) {
	usual := map[string]string{"tools": "ip tc iw iwconfig iwpriv", "netem": "yes", "nl80211": "wlan0 wlan1", "madwifi": "ath0", "interface": "yes", "state": "up", "module": "ath9k", "addresses": "10.1.0.7/24 fe80::1/64"}
	for _, c := range []struct {
		name    string
		radio   string
		iface   string
		answers map[string]string
		fatal   string
		note    string
	}{
		{name: "as it should be", radio: "nl80211", iface: "wlan0"},
		{name: "madwifi as it should be", radio: "madwifi", iface: "ath0"},
		{name: "the other driver", radio: "madwifi", iface: "wlan0", fatal: "wlan0 is a radio of nl80211, and the inventory says madwifi"},
		{name: "no radio", radio: "nl80211", iface: "eth0", fatal: "no radio"},
		{name: "no interface", radio: "nl80211", iface: "wlan7", answers: map[string]string{"interface": ""}, fatal: "wlan0 (nl80211), wlan1 (nl80211), ath0 (madwifi)"},
		{name: "madwifi makes it", radio: "madwifi", iface: "ath7", answers: map[string]string{"interface": "", "device": "yes"}},
		{name: "no tool", radio: "madwifi", iface: "ath0", answers: map[string]string{"tools": "ip tc iw"}, fatal: "wireless-tools"},
		{name: "none needs nothing", radio: "none", iface: "eth0", answers: map[string]string{"tools": ""}},
		{name: "driver without interface", radio: "madwifi", fatal: "`interface:`"},
		{name: "no netem", radio: "none", iface: "eth0", answers: map[string]string{"netem": "no"}, note: "linux-modules-extra-6.1.0"},
		{name: "the way there", radio: "nl80211", iface: "wlan0", answers: map[string]string{"addresses": "10.1.0.4/24"}, fatal: "this connection goes through wlan0 (10.1.0.4)"},
		{name: "the way there, without a driver", radio: "none", iface: "wlan0", answers: map[string]string{"addresses": "10.1.0.4/24"}, fatal: "this connection goes through wlan0"},
		{name: "busy", radio: "none", iface: "eth0", answers: map[string]string{"running": "17 18"}, note: "17, 18"},
	} {
		a := map[string]string{}
		for k, v := range usual {
			a[k] = v
		}
		for k, v := range c.answers {
			a[k] = v
		}
		n := Node{Kernel: "6.1.0"}
		n.conclude(&inventory.Node{Name: "n1", Interface: c.iface, Radio: inventory.Radio{Driver: c.radio}}, agents.Facts{Address: netip.MustParseAddr("10.1.0.4")}, a)
		if (c.fatal != "") != has(n, true, c.fatal) || (c.note != "") != has(n, false, c.note) {
			t.Errorf("%s: %+v", c.name, n.Problems)
		}
	}
}

func TestDates(t *testing.T) {
	for in, want := range map[string][2]int64{
		"1700000000.123456789\n":    {1700000000123456789, 1},
		"1700000000.%N\n":           {1700000000000000000, 1e9},
		"1700000000.\n":             {1700000000000000000, 1e9},
		"Welcome\n1700000000.000\n": {1700000000000000000, 1e9},
	} {
		at, res, err := parseDate(in)
		if err != nil || at != want[0] || res != want[1] {
			t.Errorf("%q: %d, %d, %v", in, at, res, err)
		}
	}
	for _, bad := range []string{"", "now"} {
		if _, _, err := parseDate(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestClocksShowTheDigitsThatStand(t *testing.T) {
	for want, c := range map[string]*Clock{
		"": nil, "+1.23ms ±310µs": {OffsetNS: 1234567, BoundNS: 314159}, "-12µs ±41µs": {OffsetNS: -12345, BoundNS: 41234},
		"-2m0.12s ±500ms": {OffsetNS: -120.123e9, BoundNS: 0.5e9}, "+0s ±1ms": {OffsetNS: 1, BoundNS: 999999},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// The table is shown on a terminal; what comes from nodes must not drive it.
func TestTableIsPlainText(t *testing.T) {
	var out bytes.Buffer
	n := Node{Name: "n1", Host: "h", Reachable: true, Kernel: "6.1\x1b[2J", Tools: []string{"tc"}}
	n.problem(true, "bad\x1b]0;x\x07", "")
	if err := Table(&out, []Node{n}); err != nil || strings.ContainsAny(out.String(), "\x1b\x07") || !strings.Contains(out.String(), "unusable") {
		t.Errorf("%v: %q", err, out.String())
	}
}
