//go:build linux

package session_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
)

// needShapers skips where the kernel does not limit rates in both directions.
func needShapers(t *testing.T) {
	t.Helper()
	f, err := tc.Probe()
	if err == nil {
		err = errors.Join(f.TBF, f.HTB, f.Ingress)
	}
	testenv.Need(t, testenv.Because("rate limits of the kernel", err))
}

// shaped adds links that the kernel emulates to an order.
func shaped(c *proto.Configure) *proto.Configure {
	rate := func(r vtime.BitRate) []tc.Class { return []tc.Class{{Shape: tc.Shape{Rate: r}}} }
	c.Shapers = []tc.Link{{Interface: "wlan0", Egress: rate(5 * vtime.MbitPerSecond), Ingress: rate(7 * vtime.MbitPerSecond)}}
	return c
}

// bridged makes the order one of a bridge.
func bridged(c *proto.Configure) *proto.Configure {
	c.Bridge = &proto.Bridge{Name: "br0", HardwareAddress: "02:68:6f:70:00:01",
		Forward: []proto.Forward{{HardwareAddress: "02:68:6f:70:00:02", Interface: "wlan0"}}}
	for i := range c.Routes {
		c.Routes[i].Interface = "br0"
	}
	for i := range c.Neighbours {
		c.Neighbours[i].Interface = "br0"
	}
	return c
}

// Each kind of record is carried out by a process that knows nothing but it, and
// once more, as a process that was killed in the middle leaves it.
func TestEveryKindIsTakenBackByAnotherProcess(t *testing.T) {
	needShapers(t)
	// KindCommand is what radio drivers push: tested in undo, and with the drivers.
	seen := map[string]bool{undo.KindCommand: true}
	for name, change := range map[string]func(*proto.Configure) *proto.Configure{"routed, shaped": shaped, "bridged": bridged} {
		t.Run(name, func(t *testing.T) {
			m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
			before := m.state()
			a := m.start(0, "--guarded", "--journal", dir)
			a.configure(t, change(m.order()))
			a.killBoth(t)
			m.changed(before)
			list := journals(t, dir)
			if len(list) != 1 {
				t.Fatalf("journals %v", list)
			}
			copied, err := os.ReadFile(list[0])
			if err != nil {
				t.Fatal(err)
			}
			for kind := range kinds(t, list[0]) {
				seen[kind] = true
			}
			for range 2 {
				m.agentSays(t, 0, "--clean", "--journal", dir)
				m.compare(before)
				if left := journals(t, dir); len(left) != 0 {
					t.Errorf("left: %v", left)
				}
				if err := os.WriteFile(list[0], copied, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			// And when the interface is gone.
			m.run("ip", "link", "del", "wlan0")
			before = m.state()
			m.agentSays(t, 0, "--clean", "--journal", dir)
			m.compare(before)
		})
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, session.Kinds()) {
		t.Errorf("the orders made changes of the kinds %v, an agent knows %v", got, session.Kinds())
	}
}

// kinds are those in a journal.
func kinds(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Record *undo.Record }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Record != nil {
			out[e.Record.Kind] = true
		}
	}
	return out
}
