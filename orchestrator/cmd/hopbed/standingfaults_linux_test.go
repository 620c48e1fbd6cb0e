package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
)

// A keeper that is killed takes everything along, also what has left its session
// and its environment behind; the next command says so, once.
func TestAKilledKeeperLeavesNothing(t *testing.T) {
	l := newStandingLab(t, hand)
	l.must("up", "f.yaml")
	l.must("up", "f.yaml", "--name", "other")
	spaces := l.spaces("by-hand")
	l.must("exec", "--lab", "by-hand", "n02", "sh", "-c", "env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
	p := start(t, l.dir, "exec", "--lab", "by-hand", "n01", "sh", "-c", "echo ready >&2; sleep 1000")
	p.await("ready", 1)
	if err := syscall.Kill(l.status("by-hand").PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 125 || !strings.Contains(p.said(), "went down meanwhile") {
		t.Errorf("its client: status %d\n%s", code, p.said())
	}
	for i := 0; len(tenants(t, spaces)) > 0; i++ {
		if i == 100 {
			t.Fatalf("left in the nodes: %v", tenants(t, spaces))
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // the guardian leaves word
	l.refuses(125, "its keeper was killed, and everything of it was removed", "exec", "--lab", "by-hand", "n01", "true")
	l.refuses(1, `no lab "by-hand"`, "set", "--lab", "by-hand", "n01", "up=false")
	l.must("exec", "n01", "true") // the other one
	says(t, l.must("down", "--all"), "lab other is down")
	l.gone(spaces)
}

// A lab of which a part ends by itself goes down as a whole, and says why.
func TestALabThatLosesANode(t *testing.T) {
	l := newStandingLab(t, hand)
	l.must("up", "f.yaml")
	spaces := l.spaces()
	for pid, name := range tenants(t, spaces) {
		if name == "hopbed-agent" || strings.HasPrefix(name, "exe") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for i := 0; len(tenants(t, spaces)) > 0 && i < 100; i++ {
		time.Sleep(100 * time.Millisecond)
	}
	var status int
	var said string
	for i := 0; i < 50; i++ { // it says why when everything is gone
		if status, _, said = l.run("exec", "n01", "true"); strings.Contains(said, "is no more") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if status != 125 || !strings.Contains(said, "the agent") || !strings.Contains(said, "ended unexpectedly") {
		t.Errorf("status %d: %s", status, said)
	}
	l.gone(spaces)
}

// Without root, where the host lets users make user namespaces and open the
// device: names, terminals and settings are the same.
func TestANetworkByHandWithoutRoot(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("ping"))
	l := newStandingLab(t, hand)
	for _, p := range []string{l.dir, filepath.Join(l.dir, "f.yaml")} {
		if err := os.Chown(p, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(l.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	l.host = "nobody"
	says(t, l.must("up", "f.yaml"), "without root")
	if lost, rtt := l.ping("n01", "server", "-c", "3", "-i", "0.3"); lost != 0 || rtt < 40*time.Millisecond {
		t.Errorf("%v lost, a round trip of %v", lost, rtt)
	}
	says(t, l.must("set", "n03-server", "delay=50ms"), "delay is 50ms, was 20ms")
	if _, rtt := l.ping("n01", "server", "-c", "3", "-i", "0.3"); rtt < 100*time.Millisecond {
		t.Errorf("a round trip of %v", rtt)
	}
	if got := l.must("exec", "n02", "sh", "-c", "hostname; echo $HOPBED_NODE"); got != "n02\nn02\n" {
		t.Errorf("it sees %q", got)
	}
	spaces := l.spaces()
	l.must("exec", "n02", "sh", "-c", "env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
	// Another user's command does not find it, and is not heard.
	l.host = ""
	if status, _, said := l.run("exec", "n01", "true"); status != 125 {
		t.Errorf("root in the user's folder: status %d: %s", status, said)
	}
	l.host = "nobody"
	for _, m := range (&program{t: t, dir: l.dir}).family() {
		if m.part == keeperPart { // the one in the user namespace dies with it
			if err := syscall.Kill(m.pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for i := 0; len(tenants(t, spaces)) > 0; i++ {
		if i == 100 {
			t.Fatalf("left in the nodes: %v", tenants(t, spaces))
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	l.refuses(1, "everything of it was removed", "down")
	l.must("up", "f.yaml")
	spaces = l.spaces()
	l.must("down")
	l.gone(spaces)
}
