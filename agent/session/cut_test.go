//go:build linux

package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
)

// within10 is what a user is promised: a node is as it was this long after it
// lost its controller. The rest is for a machine that is busy with other tests.
const within10, busy = 10 * time.Second, 10 * time.Second

// wired is a machine whose eth0 leads to a controller's namespace, and an agent on
// it that was started through its SSH server.
type wired struct {
	*machine
	controller *machine
	before     map[string]string
	client     *proto.Client
	process    sshclient.Process
	conn       sshclient.Client
	worker     int
	said       *logBuffer
	dir        string
}

func newWired(t *testing.T) *wired {
	t.Helper()
	w := &wired{machine: newMachine(t), controller: &machine{t: t}, said: &logBuffer{}, dir: filepath.Join(t.TempDir(), "undo")}
	w.controller.ns = bare(t)
	err := w.inside(func() error {
		wire, err := netlink.LinkByName("wire0")
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(wire, int(w.controller.ns.Fd()))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"addr add 192.0.2.1/24 dev wire0", "link set wire0 up", "link set lo up"} {
		w.controller.run("ip", strings.Fields(line)...)
	}
	w.run("ip", "neigh", "del", "192.0.2.1", "dev", "eth0")
	srv := sshtest.Start(t, sshtest.Options{NetNS: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.ns.Fd()), Listen: netip.MustParseAddrPort("192.0.2.7:22")})
	// As a node has it: the program under its own name.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), session.Part+"-test")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	dialer := sshclient.New(sshclient.Options{DialNet: func(ctx context.Context, _ *inventory.Node, network, addr string) (c net.Conn, err error) {
		err = w.controller.inside(func() (err error) {
			c, err = new(net.Dialer).DialContext(ctx, network, addr)
			return err
		})
		return c, err
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if w.conn, err = dialer.Dial(ctx, srv.Node("n01")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.conn.Close() })
	if w.process, err = w.conn.Start(ctx, w.said, "env", reexec.Marker+"="+session.Part, program, "--guarded", "--journal", w.dir); err != nil {
		t.Fatal(err)
	}
	w.before = w.state()
	w.client = proto.NewClient(w.process)
	go func() {
		for range w.client.Async() {
		}
	}()
	h, err := w.client.Hello(ctx, proto.Hello{Controller: "test", Watchdog: proto.DefaultWatchdog})
	if err != nil {
		t.Fatalf("hello: %v; it said %q", err, w.said)
	}
	w.worker = h.PID
	cfg := w.order()
	cfg.Protect = []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.1")}
	if _, err := w.client.Configure(ctx, cfg); err != nil {
		t.Fatalf("configure: %v", err)
	}
	w.changed(w.before)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent said:\n%s", w.said)
		}
	})
	return w
}

// reverted waits until the agent is gone and says how long that took.
func (w *wired) reverted(t *testing.T, since time.Time) {
	t.Helper()
	for procfs.Running(w.worker) || len(journals(t, w.dir)) > 0 {
		if time.Since(since) > within10+busy {
			t.Fatal("the agent lives on")
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("put back after %v", time.Since(since))
	w.compare(w.before)
}

// The network to a node is cut while nothing else ends: the connection hangs, and
// the node is put back all the same. So is the controller told, who is on the
// other side of the cut.
func TestCutNetwork(t *testing.T) {
	testenv.Long(t)
	w := newWired(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	beating := make(chan error, 1)
	go func() { beating <- w.client.Heartbeat(ctx, "n01", proto.DefaultWatchdog) }()
	select {
	case err := <-beating:
		t.Fatalf("the heart stopped: %v", err)
	case <-time.After(proto.DefaultWatchdog.Std() + time.Second):
	}
	if !procfs.Running(w.worker) {
		t.Fatal("the agent ended although its controller beats")
	}
	w.controller.run("ip", "link", "set", "wire0", "down")
	cut := time.Now()
	w.reverted(t, cut)
	var silent *proto.Silent
	var gone *proto.Gone
	select {
	case err := <-beating:
		if !errors.As(err, &silent) && !errors.As(err, &gone) {
			t.Errorf("the controller was told %v", err)
		}
		t.Logf("the controller was told after %v: %v", time.Since(cut), err)
	case <-time.After(within10 + busy):
		t.Error("the controller was told nothing")
	}
}

// The controller, or its connection, ends in order.
func TestClosedConnection(t *testing.T) {
	w := newWired(t)
	closed := time.Now()
	if err := w.conn.Close(); err != nil {
		t.Error(err)
	}
	w.reverted(t, closed)
}

// The worker of an agent is killed on its node: the controller hears of it, with
// what the guardian did.
func TestKilledOnItsNode(t *testing.T) {
	w := newWired(t)
	killed := time.Now()
	signal(t, w.worker, 9)
	w.reverted(t, killed)
	select {
	case <-w.client.Done():
	case <-time.After(within10 + busy):
		t.Fatal("the controller was told nothing")
	}
	var exit *sshclient.ExitError
	if err := w.process.Wait(); !errors.As(err, &exit) || exit.Status != 1 {
		t.Errorf("the process ended with %v", err)
	}
	if !bytes.Contains([]byte(w.said.String()), []byte("the agent ended (signal: killed) with")) {
		t.Errorf("it said %q", w.said)
	}
}
