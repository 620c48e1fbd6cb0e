package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/lab"
)

// hand is a chain of three radios with a server on a wire behind it.
const hand = `hopbed: 1
name: by-hand
topology:
  generate: {kind: chain, nodes: 3, spacing: 200m}
  nodes: [{name: server, radio: false}]
  pipes: [{ends: [n03, server], rate: 10mbit, delay: 20ms, queue: {packets: 100}}]
radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}}
flows: [{pairs: [{src: n01, dst: n03}], transport: tcp/cubic}]
duration: 5s
`

// standingLab is a folder in which networks are kept standing.
type standingLab struct {
	t    *testing.T
	dir  string
	host string // as of the table hosts; "" = this one
}

func newStandingLab(t *testing.T, text string) *standingLab {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	l := &standingLab{t: t, dir: t.TempDir()}
	write(t, filepath.Join(l.dir, "f.yaml"), text)
	return l
}

func (l *standingLab) program(args ...string) *program {
	l.t.Helper()
	if l.host != "" {
		return on(l.t, l.host, l.dir, args...)
	}
	return start(l.t, l.dir, args...)
}

// run carries one command out.
func (l *standingLab) run(args ...string) (status int, stdout, stderr string) {
	l.t.Helper()
	p := l.program(args...)
	status = p.end()
	return status, p.stdout.String(), p.said()
}

func (l *standingLab) must(args ...string) string {
	l.t.Helper()
	status, stdout, stderr := l.run(args...)
	if status != 0 {
		l.t.Fatalf("hopbed %s: status %d\n%s%s", strings.Join(args, " "), status, stdout, stderr)
	}
	return stdout
}

// refuses checks that a command fails with a status and a message.
func (l *standingLab) refuses(status int, want string, args ...string) {
	l.t.Helper()
	got, stdout, stderr := l.run(args...)
	if got != status || !strings.Contains(stderr, want) {
		l.t.Errorf("hopbed %s: status %d, want %d with %q:\n%s%s", strings.Join(args, " "), got, status, want, stdout, stderr)
	}
}

func (l *standingLab) status(name ...string) *lab.Status {
	l.t.Helper()
	var s lab.Status
	if err := json.Unmarshal([]byte(l.must(append([]string{"status", "--json"}, name...)...)), &s); err != nil {
		l.t.Fatal(err)
	}
	return &s
}

// gone fails if something of the lab is left but its logs.
func (l *standingLab) gone(spaces map[string]bool) {
	l.t.Helper()
	p := &program{t: l.t, dir: l.dir}
	p.leavesNothing("f.yaml")
	for _, f := range list(l.t, filepath.Join(l.dir, "state", "hopbed", "labs")) {
		if !strings.HasSuffix(f, ".log") {
			l.t.Errorf("%s is left", f)
		}
	}
	for pid := range tenants(l.t, spaces) {
		l.t.Errorf("process %d (%s) is left in a node", pid, procfs.Name(pid))
	}
}

// spaces are the namespaces of the nodes.
func (l *standingLab) spaces(name ...string) map[string]bool {
	l.t.Helper()
	out := map[string]bool{}
	for _, n := range l.status(name...).Nodes {
		ns := strings.TrimSpace(l.must(append(labOf(name), n.Name, "readlink", "/proc/self/ns/net")...))
		if !strings.HasPrefix(ns, "net:[") {
			l.t.Fatalf("node %s is in %q", n.Name, ns)
		}
		out[ns] = true
	}
	return out
}

func labOf(name []string) []string {
	if len(name) > 0 {
		return []string{"exec", "--lab", name[0]}
	}
	return []string{"exec"}
}

func tenants(t *testing.T, spaces map[string]bool) map[int]string {
	t.Helper()
	pids, err := procfs.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]string{}
	for _, pid := range pids {
		if ns, err := procfs.NetNS(pid); err == nil && spaces[ns] && procfs.Running(pid) {
			out[pid] = procfs.Name(pid)
		}
	}
	return out
}

var pingFigures = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received.*\n(?:rtt min/avg/max/mdev = ([\d.]+)/)?`)

// ping returns the share that was lost and the shortest round trip.
func (l *standingLab) ping(from, to string, args ...string) (lost float64, least time.Duration) {
	l.t.Helper()
	_, stdout, stderr := l.run(append([]string{"exec", from, "ping", to}, args...)...)
	m := pingFigures.FindStringSubmatch(stdout)
	if m == nil {
		l.t.Fatalf("ping said nothing of use:\n%s%s", stdout, stderr)
	}
	sent, _ := strconv.ParseFloat(m[1], 64)
	got, _ := strconv.ParseFloat(m[2], 64)
	ms, _ := strconv.ParseFloat(m[3], 64)
	return 1 - got/sent, time.Duration(ms * float64(time.Millisecond))
}

// The main job: up, programs in nodes with names, pipes and exit statuses, links
// that change, down; and nothing is left.
func TestANetworkByHand(t *testing.T) {
	testenv.Need(t, testenv.Program("ping"))
	l := newStandingLab(t, hand)
	write(t, filepath.Join(l.dir, "f.yaml"), strings.Replace(hand, "rate: 10mbit,", "rate: 10mbit, emulator: kernel,", 1))
	p := l.program("up", "f.yaml")
	if code := p.end(); code != 0 {
		t.Fatalf("status %d: %s", code, p.said())
	}
	says(t, p.said(), "emulated in user space")
	says(t, p.stdout.String(), "lab by-hand of f.yaml stands: 4 nodes", "10.77.0.4", "hopbed down")
	spaces := l.spaces()
	if len(spaces) != 4 {
		t.Fatalf("namespaces: %v", spaces)
	}
	least := func(want time.Duration) {
		t.Helper()
		if lost, rtt := l.ping("n01", "server", "-c", "4", "-i", "0.2"); lost != 0 || rtt < want || rtt > want+30*time.Millisecond {
			t.Errorf("a round trip of %v, %v lost; want %v and the radio's share", rtt, lost, want)
		}
	}
	least(40 * time.Millisecond)
	says(t, l.must("set", "n03:server", "delay=70ms"), "n03:server: delay is 70ms, was 20ms")
	least(90 * time.Millisecond)
	l.must("set", "n03-server", "delay=0ms", "loss=30%")
	// Both directions lose 30 %: 51 % of the round trips. Of 300 the share lies within
	// 0.12 of it in all but one of 100,000 tests.
	if lost, _ := l.ping("n03", "server", "-c", "300", "-i", "0.01", "-W", "1"); lost < 0.39 || lost > 0.63 {
		t.Errorf("%.2f of the round trips were lost, want 0.51", lost)
	}
	l.must("set", "n03-server", "loss=0%")
	l.must("set", "n01-n02", "up=false")
	if lost, _ := l.ping("n01", "n02", "-c", "2", "-W", "1"); lost != 1 {
		t.Errorf("a link that is down lost %v", lost)
	}
	l.must("set", "n01-n02", "up=true")
	l.must("set", "n02", "up=false")
	if lost, _ := l.ping("n03", "n02", "-c", "2", "-W", "1"); lost != 1 {
		t.Errorf("a node that is off lost %v", lost)
	}
	l.must("set", "n02", "up=true")
	if lost, _ := l.ping("n01", "n03", "-c", "3", "-i", "0.2"); lost != 0 {
		t.Errorf("%v lost after everything is up again", lost)
	}

	l.refuses(1, `did you mean "delay"?`, "set", "n03-server", "dealy=3ms")
	l.refuses(1, "n01-n99", "set", "n03-server", "n01-n99", "delay=3ms")
	l.refuses(1, "cannot be changed while the network stands", "set", "n01", "radio.tx-power=3dBm")
	l.refuses(2, "KEY=VALUE", "set", "n01-n02")
	l.refuses(1, "stands already", "up", "f.yaml")
	if s := l.status(); s.Wires[0].Text != "10mbit, no delay, queue 100 packets" || s.RadioLinks == 0 || !s.Routes || s.Unnamed != "" {
		t.Errorf("%+v", s)
	}
	if b, err := os.ReadFile(filepath.Join(l.dir, "state", "hopbed", "labs", "by-hand.log")); err != nil || !strings.Contains(string(b), "set n03:server delay: 70ms, was 20ms") {
		t.Errorf("the log: %v\n%s", err, b)
	}
	says(t, l.must("down"), "lab by-hand is down: 4 nodes gone")
	l.gone(spaces)
	l.refuses(125, "no lab stands", "exec", "n01", "true")
	l.refuses(1, "no lab stands", "down")
}

// What a program in a node is given, and what becomes of its end.
func TestProgramsInNodes(t *testing.T) {
	l := newStandingLab(t, hand)
	l.must("up", "f.yaml", "--name", "x")
	// No shell reads the arguments.
	hostile := `$(touch /tmp/no); "'*\ é` + "\n"
	if got := l.must("exec", "n02", "printf", "%s|%s", hostile, "-c"); got != hostile+"|-c" {
		t.Errorf("arguments became %q", got)
	}
	if got := l.must("exec", "--lab=x", "n02", "sh", "-c", "hostname; echo $HOPBED_NODE $HOPBED_LAB; ls /sys/class/net; cat f.yaml | head -1; echo ${HOPBED_PART-none}"); got != "n02\nn02 x\nlo\nwlan0\nhopbed: 1\nnone\n" {
		t.Errorf("it sees %q", got)
	}
	input := bytes.Repeat([]byte("0123456789"), 500_000)
	p := prepare(t, l.dir, "exec", "n01", "sha256sum")
	p.cmd.Stdin = bytes.NewReader(input)
	p.launch()
	if code := p.end(); code != 0 || !strings.HasPrefix(p.stdout.String(), fmt.Sprintf("%x ", sha256.Sum256(input))) {
		t.Errorf("status %d: %s%s", code, p.stdout.String(), p.said())
	}
	l.refuses(7, "", "exec", "n01", "sh", "-c", "exit 7")
	l.refuses(128+9, "", "exec", "n01", "sh", "-c", "kill -9 $$")
	l.refuses(127, "nosuch", "exec", "n01", "nosuch")
	l.refuses(126, "permission denied", "exec", "n01", "./f.yaml")
	l.refuses(125, `no node "n04"`, "exec", "n04", "true")
	l.refuses(125, `no lab "y"`, "exec", "--lab", "y", "n01", "true")
	l.refuses(2, "in which node", "exec")
	l.refuses(2, "no option of hopbed exec", "exec", "-x", "n01")

	// Signals are the program's.
	p = start(t, l.dir, "exec", "n01", "sh", "-c", `trap 'exit 5' TERM; echo ready >&2; while :; do sleep 0.05; done`)
	p.await("ready", 1)
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 5 {
		t.Errorf("status %d after SIGTERM:\n%s", code, p.said())
	}
	// A client that is killed takes its program along.
	p = start(t, l.dir, "exec", "n01", "sh", "-c", "echo ready >&2; exec sleep 1000")
	p.await("ready", 1)
	p.signal(syscall.SIGKILL)
	p.end()
	for i := 0; ; i++ {
		running := l.status().Nodes[0].Processes
		if len(running) == 0 {
			break
		}
		if i == 50 {
			t.Fatalf("still there: %v", running)
		}
		time.Sleep(100 * time.Millisecond)
	}
	// One that is left in the background stays until the lab goes, and is named.
	l.must("exec", "n01", "sh", "-c", "env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
	spaces := l.spaces()
	says(t, l.must("down", "x"), "ended with it: sleep (", "on n01")
	l.gone(spaces)
}

// In the foreground, Ctrl-C takes the network down.
func TestUpInTheForeground(t *testing.T) {
	l := newStandingLab(t, hand)
	p := start(t, l.dir, "up", "f.yaml", "--foreground")
	p.await("the lab is ready", 1)
	l.must("exec", "n01", "true")
	p.signal(syscall.SIGINT)
	if code := p.end(); code != 0 && code != exitInterrupted {
		t.Errorf("status %d:\n%s", code, p.said())
	}
	l.gone(nil)
}

// What cannot come up says why, and leaves nothing.
func TestUpThatFails(t *testing.T) {
	l := newStandingLab(t, hand)
	l.refuses(1, `did you mean "nodes"?`, "up", "f.yaml", "--set", "topology.generate.nods=3")
	l.refuses(2, "--repetition 2", "up", "f.yaml", "--repetition", "2")
	l.refuses(2, "cannot be named", "up", "f.yaml", "--name", "../x")
	l.refuses(1, "no-such.yaml", "up", "no-such.yaml")
	l.host = "without TAP"
	l.refuses(1, "modprobe tun", "up", "f.yaml")
	l.host = ""
	// Interrupted at some moment: before it listens to signals it just ends.
	p := start(t, l.dir, "up", "f.yaml")
	p.signal(syscall.SIGINT) // wherever it is
	switch code := p.end(); code {
	case exitOK:
		l.must("down")
	case exitInterrupted, -1:
	default:
		t.Errorf("status %d: %s", code, p.said())
	}
	for wait := 0; wait <= 300; wait += 100 {
		p := start(t, l.dir, "up", "f.yaml")
		time.Sleep(time.Duration(wait) * time.Millisecond)
		p.signal(syscall.SIGTERM)
		if code := p.end(); code == exitOK {
			l.must("down")
		} else if code != exitInterrupted && code != -1 {
			t.Errorf("after %d ms: status %d: %s", wait, code, p.said())
		}
		l.gone(nil)
	}
}

// What status says of the medium's lateness follows the bounds of runs.
func TestLatenessOfALab(t *testing.T) {
	for late, want := range map[vtime.Duration]string{
		80 * vtime.Microsecond:  "firm ground",
		700 * vtime.Microsecond: "with care",
		3 * vtime.Millisecond:   "too busy",
	} {
		if got := lateness(&lab.Status{Late: &late}); !strings.Contains(got, want) {
			t.Errorf("%v: %q", late, got)
		}
	}
	if got := lateness(&lab.Status{}); got != "" {
		t.Errorf("nothing known: %q", got)
	}
}
