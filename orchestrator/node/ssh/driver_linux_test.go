package ssh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/nodetest"
)

func TestConformance(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	nodetest.Run(t, func(t *testing.T) node.Driver { return l.driver(t, Options{Grace: 100 * time.Millisecond}) })
}

func TestAgentsOnNodes(t *testing.T) {
	testenv.Need(t, testenv.Root)
	// A login script that prints, as on many a lab's nodes.
	l := newLab(t, sshtest.Options{Config: []string{`ForceCommand echo Welcome to the lab; printf 'no newline'; exec sh -c "$SSH_ORIGINAL_COMMAND"`}})
	d := l.driver(t, Options{Env: []string{"WITH=a b'c"}})
	hs := l.start(t, d, "who", 3)
	for _, h := range hs {
		w := hello(t, h)
		f, ok := FactsOf(h)
		if !ok || len(w) != 5 || w[1] != strconv.Itoa(f.PID) || w[3] != "test-tag" || w[4] != "--guarded" || h.PID() != 0 {
			t.Errorf("the agent says %q; facts %+v", w, f)
		}
		if f.Controller.String() != "127.0.0.1" || f.Address.String() != "127.0.0.1" || !strings.HasPrefix(f.Agent.Path, l.dir) {
			t.Errorf("facts %+v", f)
		}
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%s/environ", w[1])); err != nil || !strings.Contains(string(env), "WITH=a b'c\x00") {
			t.Errorf("environment %q, %v", env, err)
		}
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for _, h := range hs {
		f, _ := FactsOf(h)
		gone(t, f.PID)
		if h.Err() != nil || h.Stderr() != "end of input" {
			t.Errorf("an ordered end: %v, %q", h.Err(), h.Stderr())
		}
	}
	// The next run's agents use the same connections and the same program.
	before := len(l.Connections())
	d = l.driver(t, Options{})
	for _, h := range l.start(t, d, "who", 3) {
		if f, _ := FactsOf(h); f.PID == 0 {
			t.Error("no pid")
		}
		hello(t, h)
	}
	if now := len(l.Connections()); now < before {
		t.Errorf("%d processes of connections, were %d", now, before)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// An agent that could not put back what it changed says so with its status.
func TestFailedEndIsAnError(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	d := l.driver(t, Options{})
	hs := l.start(t, d, "fails", 1)
	err := hs[0].Stop(context.Background())
	var e *node.Exited
	if !errors.As(err, &e) || e.State != "exit status 1" || !strings.Contains(e.Error(), "channel") {
		t.Errorf("%v", err)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStubbornAgentIsKilledWithItsChildren(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	d := l.driver(t, Options{Grace: 100 * time.Millisecond})
	var pids []int
	for _, h := range l.start(t, d, "stubborn", 2) {
		w := hello(t, h)
		a, _ := strconv.Atoi(w[1])
		b, _ := strconv.Atoi(w[2])
		pids = append(pids, a, b)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	gone(t, pids...)
}

func TestKilledAgent(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	d := l.driver(t, Options{})
	hs := l.start(t, d, "who", 2)
	hello(t, hs[0])
	hello(t, hs[1])
	f, _ := FactsOf(hs[1])
	if err := syscall.Kill(f.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, hs[1])
	var e *node.Exited
	if err := hs[1].Err(); !errors.As(err, &e) || e.Name != "n02" || e.PID != f.PID || !(strings.Contains(e.State, "KILL") || strings.Contains(e.State, "137")) {
		t.Errorf("got %v, want an *Exited that names n02 and the signal", err)
	}
	if hs[0].Err() != nil {
		t.Errorf("the other node: %v", hs[0].Err())
	}
	if err := d.Close(context.Background()); err != nil {
		t.Errorf("close after a death: %v", err)
	}
}

// A connection that is cut: the agents get the end of their input and end; the
// controller says which node is lost, and finds the agent gone when it asks again.
func TestCutConnection(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	d := l.driver(t, Options{})
	hs := l.start(t, d, "who", 2)
	hello(t, hs[0])
	hello(t, hs[1])
	f, _ := FactsOf(hs[0])
	ready, err := l.pool.Get(context.Background(), must(l.node(node.Spec{Name: "n01"})))
	if err != nil {
		t.Fatal(err)
	}
	ready.Client.Close()
	ended(t, hs[0])
	var lost *node.Lost
	if err := hs[0].Err(); !errors.As(err, &lost) || lost.Name != "n01" || lost.Reason == "" || lost.After <= 0 {
		t.Errorf("got %v, want a *Lost that names n01", err)
	}
	if hs[1].Err() != nil {
		t.Errorf("the other node: %v", hs[1].Err())
	}
	if _, err := hs[0].Conn().Read(make([]byte, 1)); err == nil {
		t.Error("something can be read of a node that is lost")
	}
	if err := d.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	gone(t, f.PID)
	// The next run gets a new connection.
	d = l.driver(t, Options{})
	hello(t, l.start(t, d, "who", 1)[0])
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A node that is cut off (its server and all in it stand still): the loss is seen by
// the keepalive, and the end says what may be left.
func TestNodeThatIsSilent(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	d := l.driver(t, Options{Grace: 100 * time.Millisecond})
	hs := l.start(t, d, "who", 1)
	hello(t, hs[0])
	l.Pause()
	t.Cleanup(l.Resume)
	ended(t, hs[0])
	var lost *node.Lost
	if err := hs[0].Err(); !errors.As(err, &lost) || !errors.Is(err, sshclient.Lost) {
		t.Errorf("got %v, want a *Lost", err)
	}
	t0 := time.Now()
	err := d.Close(context.Background())
	var left *node.Leftover
	if !errors.As(err, &left) || !strings.Contains(err.Error(), "n01") || strings.Contains(err.Error(), "hopbed clean\n") {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(t0); took > 40*time.Second {
		t.Errorf("close took %v", took)
	}
}

func TestKilledServer(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	d := l.driver(t, Options{})
	hs := l.start(t, d, "who", 1)
	hello(t, hs[0])
	l.DropConnections()
	ended(t, hs[0])
	var lost *node.Lost
	var exited *node.Exited
	// The server's process dies before or after it has told how the agent ended.
	if err := hs[0].Err(); !errors.As(err, &lost) && !errors.As(err, &exited) {
		t.Errorf("got %v", err)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func must(n *inventory.Node, err error) *inventory.Node {
	if err != nil {
		panic(err)
	}
	return n
}

// Either all nodes run or none, and the error names each that does not.
func TestFailedStartLeavesNothing(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	closed := sshtest.Start(t, sshtest.Options{})
	closed.Stop()
	d := l.driver(t, Options{Nodes: func(s node.Spec) (*inventory.Node, error) {
		if s.ID >= 2 {
			n := closed.Node(s.Name)
			return n, nil
		}
		return l.node(s)
	}})
	hs, err := d.Start(context.Background(), specs("who", 4))
	if err == nil || hs != nil {
		t.Fatalf("started %v", hs)
	}
	for _, name := range []string{"n03", "n04"} {
		found := false
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			each, ok := e.(interface{ Unwrap() []error })
			if !ok {
				continue
			}
			for _, e := range each.Unwrap() {
				var n *NotStarted
				found = found || errors.As(e, &n) && n.Name == name && errors.Is(e, sshclient.Unreachable)
			}
		}
		if !found {
			t.Errorf("%v does not say that %s is unreachable", err, name)
		}
	}
	if strings.Contains(err.Error(), "n01") {
		t.Errorf("%v speaks of a node that works", err)
	}
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, e := range entries {
		if b, err := os.ReadFile(e); err == nil && strings.Contains(string(b), "HOPBED_TAG=test-tag\x00") && strings.Contains(string(b), "TEST_AGENT=who\x00") && running(pidOf(e)) {
			t.Errorf("%s is left", e)
		}
	}
}

func pidOf(environ string) int {
	pid, _ := strconv.Atoi(strings.Split(environ, "/")[2])
	return pid
}

// The program was removed from the node between two runs.
func TestRemovedAgentIsUploadedAgain(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	for range 2 {
		d := l.driver(t, Options{})
		h := l.start(t, d, "who", 1)[0]
		hello(t, h)
		f, _ := FactsOf(h)
		if !f.Agent.Uploaded {
			t.Error("it was there")
		}
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(l.dir); err != nil {
			t.Fatal(err)
		}
	}
}

// Fake sudo programs, found by the PATH that the server gives to its users.
func TestSudo(t *testing.T) {
	testenv.Need(t, testenv.Root)
	bin := t.TempDir()
	write := func(script string) {
		if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(t, sshtest.Options{Config: []string{"SetEnv HOME=" + bin + " PATH=" + bin + ":/usr/bin:/bin"}})
	yes := true
	l.sudo = &yes
	write(`echo "$@" >>` + filepath.Join(bin, "log") + `; [ "$1" = -n ] || exit 9; shift; [ "$1" != -- ] || shift; exec "$@"`)
	d := l.driver(t, Options{})
	h := l.start(t, d, "stubborn", 1)[0]
	w := hello(t, h)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.Stop(ctx); err != nil {
		t.Error(err)
	}
	pid, _ := strconv.Atoi(w[1])
	gone(t, pid)
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if log := sshtest.Read(t, filepath.Join(bin, "log")); !strings.Contains(log, "true") || strings.Count(log, "hopbed-start") != 1 || !strings.Contains(log, "kill -TERM") {
		t.Errorf("sudo was asked for %s", log)
	}
	// It expires between two runs.
	write(`echo 'sudo: a password is required' >&2; exit 1`)
	d = l.driver(t, Options{})
	_, err := d.Start(context.Background(), specs("who", 1))
	var e *agents.Error
	if !errors.As(err, &e) || e.Kind != agents.KindPrivileges || !strings.Contains(err.Error(), "NOPASSWD") {
		t.Errorf("sudo that wants a password now: %v", err)
	}
}

func TestPatience(t *testing.T) {
	testenv.Need(t, testenv.Root)
	l := newLab(t, sshtest.Options{})
	l.Pause()
	t.Cleanup(l.Resume)
	d := l.driver(t, Options{Patience: func(string) time.Duration { return 300 * time.Millisecond }})
	t0 := time.Now()
	_, err := d.Start(context.Background(), specs("who", 1))
	if err == nil || time.Since(t0) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(t0), err)
	}
}
