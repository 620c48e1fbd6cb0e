//go:build linux

package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// machine is a network namespace that outlives its agents, as a real node does:
// with interfaces that were configured by somebody else.
type machine struct {
	t     *testing.T
	ns    *os.File
	radio string // interface; empty = none
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	testenv.Need(t, testenv.Program("ip"), testenv.Program("tc"))
	m := &machine{t: t, ns: bare(t)}
	for _, line := range []string{
		"link add wlan0 address 02:68:6f:70:00:01 type veth peer name air0", "link set air0 up",
		"link add eth0 address 02:68:6f:70:80:01 type veth peer name wire0", "link set wire0 up",
		"link set wlan0 up", "link set wlan0 down", // the kernel gives it its queueing discipline
		"link set lo up", "addr add 192.0.2.7/24 dev eth0", "link set eth0 up", "link set wlan0 mtu 1480",
		"route add default via 192.0.2.1", "neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev eth0",
		// What the experiment's routes and neighbours replace.
		"route add 10.77.0.9/32 via 192.0.2.1 dev eth0 proto static advmss 1000", "neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev eth0",
	} {
		m.run("ip", strings.Fields(line)...)
	}
	// An interface that forwards by itself: switching forwarding on and off for all
	// would change it.
	if err := m.inside(func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/eth0/forwarding", []byte("1"), 0) }); err != nil {
		t.Fatal(err)
	}
	return m
}

// bare makes a network namespace that lives as long as the test.
func bare(t *testing.T) *os.File {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS)
	made := make(chan error, 1)
	var ns *os.File
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		for _, of := range []string{"all", "default"} { // its addresses come and go with carriers, in their own time
			err = errors.Join(err, os.WriteFile("/proc/sys/net/ipv6/conf/"+of+"/disable_ipv6", []byte("1"), 0))
		}
		if err == nil {
			ns, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// inside calls f on a thread of the machine.
func (m *machine) inside(f func() error) error {
	m.t.Helper()
	done := make(chan error, 1)
	go func() {
		lockAndEnter(int(m.ns.Fd()))
		done <- f()
	}()
	return <-done
}

func (m *machine) run(name string, args ...string) string {
	m.t.Helper()
	var out []byte
	err := m.inside(func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		return err
	})
	if err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// volatile are settings that the kernel changes by itself, and states of
// neighbours that come and go.
var volatile = regexp.MustCompile(`/(flush|stable_secret|tcp_fastopen_key|ipfrag_|inet_peer)`)

// carrier is what the kernel notices of the other end of a link in its own time.
var carrier = regexp.MustCompile(`"NO-CARRIER",|,"LOWER_UP"|"linkdown"|"operstate":"[A-Z]+",`)

// controllerAddress is the other end of the wire where there is one.
const controllerAddress = "192.0.2.1"

var age = regexp.MustCompile(`age \S+ `)

// state is all that an agent may change.
func (m *machine) state() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	for _, what := range []string{"addr", "link", "route show table all", "neigh show nud permanent", "rule"} {
		text := m.run("ip", append([]string{"-j", "-d"}, strings.Fields(what)...)...)
		text = carrier.ReplaceAllString(text, "")
		lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "[{"), "}]"), "},{") // in an order of the kernel's
		slices.Sort(lines)
		out["ip "+what] = strings.Join(lines, "},\n{")
	}
	if m.radio != "" {
		out["radio"] = m.wireless()
	}
	out["tc qdisc"] = m.run("tc", "-j", "qdisc")
	// What the kernel learnt of the SSH connection itself, when that closed after the agent, is not the agent's.
	metrics := slices.DeleteFunc(strings.Split(age.ReplaceAllString(m.run("ip", "tcp_metrics"), ""), "\n"), func(l string) bool {
		return strings.HasPrefix(l, controllerAddress+" ")
	})
	out["tcp_metrics"] = strings.Join(metrics, "\n")
	err := m.inside(func() error {
		return filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.Type().IsRegular() || volatile.MatchString(path) {
				return nil
			}
			b, err := os.ReadFile(path)
			if err == nil {
				out[path] = string(b)
			}
			return nil // some cannot be read
		})
	})
	if err == nil {
		err = m.inside(func() error {
			for _, name := range []string{"wlan0", "eth0"} {
				if _, err := net.InterfaceByName(name); err != nil {
					continue // a test removed it
				}
				o, err := session.ReadOffloads(name)
				if err != nil {
					return err
				}
				out["offloads of "+name] = fmt.Sprint(o)
			}
			return nil
		})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// compare reports what is not as it was.
func (m *machine) compare(before map[string]string) {
	m.t.Helper()
	after := m.state()
	for k, v := range before {
		if after[k] != v {
			m.t.Errorf("%s was\n%s\nand is\n%s", k, v, after[k])
		}
		delete(after, k)
	}
	for k, v := range after {
		m.t.Errorf("%s is new: %s", k, v)
	}
}

// changed waits until the state differs from before, for tests that would show
// nothing otherwise.
func (m *machine) changed(before map[string]string) {
	m.t.Helper()
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		for k, v := range m.state() {
			if before[k] != v {
				return
			}
		}
	}
	m.t.Fatal("the agent changed nothing: the test shows nothing")
}

// order is a configuration that makes every kind of change.
func (m *machine) order() *proto.Configure {
	c := &proto.Configure{
		Name: "n01", Interfaces: []proto.Interface{{Name: "wlan0", HardwareAddress: "02:68:6f:70:00:01"}}, Address: netip.MustParsePrefix("10.77.0.1/32"),
		MTU: 1300, OffloadsOff: true, Loopback: true,
		Neighbours: []proto.Neighbour{{Interface: "wlan0", Addr: netip.MustParseAddr("10.77.0.2"), HardwareAddress: "02:68:6f:70:00:02"}},
	}
	for _, s := range tap.NodeSysctls() {
		c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: s.Key, Value: s.Value})
	}
	for i := 2; i < 12; i++ {
		r := proto.Route{Interface: "wlan0", Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}), 32)}
		if i > 2 {
			r.Via = netip.MustParseAddr("10.77.0.2")
		}
		if i == 5 {
			r.CwndCap = 7
		}
		c.Routes = append(c.Routes, r)
	}
	return c
}

// agent is a guarded agent on a machine.
type agent struct {
	cmd    *exec.Cmd
	client *proto.Client
	worker int
	exited chan error
	said   *logBuffer // on standard error
	logged *logBuffer // to the controller
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type duplex struct {
	io.ReadCloser
	io.WriteCloser
}

func (d duplex) Close() error { return errors.Join(d.WriteCloser.Close(), d.ReadCloser.Close()) }

// start starts an agent with the given arguments, and greets it.
func (m *machine) start(watchdog vtime.Duration, args ...string) *agent {
	m.t.Helper()
	return m.startAs(os.Geteuid(), watchdog, args...)
}

// startAs starts it as another user.
func (m *machine) startAs(uid int, watchdog vtime.Duration, args ...string) *agent {
	m.t.Helper()
	a := &agent{cmd: reexec.Command(session.Part, args), exited: make(chan error, 1), said: &logBuffer{}, logged: &logBuffer{}}
	if uid != os.Geteuid() {
		a.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	in, err := a.cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		m.t.Fatal(err)
	}
	a.cmd.Stdout, a.cmd.Stderr = w, a.said
	if err := m.inside(a.cmd.Start); err != nil {
		m.t.Fatal(err)
	}
	w.Close()
	go func() { a.exited <- a.cmd.Wait() }()
	a.client = proto.NewClient(duplex{r, in})
	go func() {
		for m := range a.client.Async() {
			if m.Log != nil {
				fmt.Fprintln(a.logged, m.Log.Message)
			}
		}
	}()
	m.t.Cleanup(func() {
		a.client.Close()
		_ = a.cmd.Process.Kill()
		if m.t.Failed() {
			m.t.Logf("the agent said:\n%s", a.said)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h, err := a.client.Hello(ctx, proto.Hello{Controller: "test", Watchdog: watchdog})
	if err != nil {
		m.t.Fatalf("hello: %v; it said %s", err, a.said)
	}
	a.worker = h.PID
	return a
}

func (a *agent) configure(t *testing.T, c *proto.Configure) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := a.client.Configure(ctx, c); err != nil {
		t.Fatalf("configure: %v", err)
	}
}

// ended waits for the end of both processes.
func (a *agent) ended(t *testing.T) {
	t.Helper()
	begin := time.Now()
	select {
	case err := <-a.exited:
		a.exited <- err
	case <-time.After(20 * time.Second):
		t.Fatalf("the first process is still there; it said %s", a.said)
	}
	for procfs.Running(a.worker) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("the worker is still there; it said %s", a.said)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// journals lists the files of a directory.
func journals(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func agentCommand(args ...string) *exec.Cmd { return reexec.Command(session.Part, args) }
