//go:build linux

package session_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestHelloSaysWhoseClockItIs(t *testing.T) {
	l := agenttest.New(t, 1, agenttest.Options{NoDevices: true})
	h, err := l.Nodes[0].Client.Hello(l.Context(5*time.Second), proto.Hello{Controller: "test"})
	boot, err2 := procfs.BootID()
	if err != nil || err2 != nil || h.BootID != boot || h.UID != os.Geteuid() {
		t.Errorf("%+v, %v, %v", h, err, err2)
	}
	ck, err := l.Nodes[0].Client.Clock(l.Context(5 * time.Second))
	if off := time.Since(time.Unix(0, ck.UnixNS)); err != nil || off < 0 || off > time.Minute {
		t.Errorf("clock %+v, %v", ck, err)
	}
	_, err = l.Nodes[0].Client.Hello(l.Context(5*time.Second), proto.Hello{Watchdog: 1})
	wantError(t, err, proto.CodeOrder, "watchdog")
}

// The clock is told while an order waits.
func TestClockAtAnyTime(t *testing.T) {
	l := agenttest.New(t, 1, agenttest.Options{NoDevices: true})
	c := l.Nodes[0].Client
	configured := make(chan error, 1)
	cfg := &proto.Configure{Name: "n01", Interfaces: []proto.Interface{{Name: "never0"}}, WaitInterfaces: 3 * vtime.Second}
	go func() {
		_, err := c.Configure(l.Context(20*time.Second), cfg)
		configured <- err
	}()
	time.Sleep(100 * time.Millisecond)
	for range 20 {
		before := probe.MonotonicNS()
		ck, err := c.Clock(l.Context(2 * time.Second))
		if err != nil || ck.MonotonicNS < before || ck.MonotonicNS > probe.MonotonicNS() {
			t.Fatalf("clock %+v, %v", ck, err)
		}
	}
	select {
	case err := <-configured:
		t.Fatalf("the order was over before: %v", err)
	default:
	}
	wantError(t, <-configured, proto.CodeTimeout, "never0")
}

// A controller that stands still is a controller that is gone; one that beats is
// not, whatever else it does.
func TestWatchdogEndsTheAgent(t *testing.T) {
	l := agenttest.New(t, 1, agenttest.Options{NoDevices: true})
	n := l.Nodes[0]
	c := n.Client
	// The hello of the lab had no watchdog, and the first hello decides.
	_, err := c.Hello(l.Context(5*time.Second), proto.Hello{Controller: "test", Watchdog: vtime.Second})
	wantError(t, err, proto.CodeOrder, "watchdog")
	l = agenttest.New(t, 1, agenttest.Options{NoDevices: true, Watchdog: vtime.Second})
	n = l.Nodes[0]
	ctx, stop := context.WithCancel(context.Background())
	beating := make(chan error, 1)
	go func() { beating <- n.Client.Heartbeat(ctx, "n01", vtime.Second) }()
	select {
	case err := <-beating:
		t.Fatalf("the heart stopped: %v", err)
	case <-n.Exited:
		t.Fatal("the agent ended although its controller lives")
	case <-time.After(2500 * time.Millisecond):
	}
	stop()
	if err := <-beating; err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	select {
	case <-n.Exited:
	case <-time.After(10 * time.Second):
		t.Fatal("the agent lives on without a controller")
	}
	t.Logf("the agent was gone %v after the last beat", time.Since(begin))
	if code := n.Cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit status %d", code)
	}
	failures := n.Failures()
	if len(failures) != 1 || failures[0].Error.Code != proto.CodeTimeout || !strings.Contains(failures[0].Error.Error(), "said nothing for 1s") {
		t.Errorf("last words %+v", failures)
	}
	var gone *proto.Gone
	if _, err := n.Client.Clock(context.Background()); !errors.As(err, &gone) {
		t.Errorf("after the end: %v", err)
	}
}
