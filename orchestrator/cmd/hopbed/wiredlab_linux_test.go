package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
)

// holderPart is a process that only keeps a network namespace.
const holderPart = "hopbed-test-holder"

func hold() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// space is a network namespace with a process that keeps it.
type space struct {
	cmd *exec.Cmd
	net *netlink.Handle
}

func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{cmd: reexec.Command(holderPart, nil)}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = s.cmd.Wait() })
	h, err := netns.GetFromPid(s.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if s.net, err = netlink.NewHandleAt(h, unix.NETLINK_ROUTE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.net.Close)
	s.up(t, "lo")
	return s
}

func (s *space) pid() int     { return s.cmd.Process.Pid }
func (s *space) path() string { return fmt.Sprintf("/proc/%d/ns/net", s.pid()) }

func (s *space) link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := s.net.LinkByName(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return l
}

func (s *space) up(t *testing.T, name string) {
	t.Helper()
	if err := s.net.LinkSetUp(s.link(t, name)); err != nil {
		t.Fatal(err)
	}
}

func (s *space) bridge(t *testing.T, name string) {
	t.Helper()
	if err := s.net.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
		t.Fatal(err)
	}
	s.up(t, name)
}

func (s *space) address(t *testing.T, name, prefix string) {
	t.Helper()
	a, err := netlink.ParseAddr(prefix)
	if err == nil {
		err = s.net.AddrAdd(s.link(t, name), a)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// plug joins a port of a bridge in s with a new interface of another namespace.
func (s *space) plug(t *testing.T, bridge, port string, to *space, name string) {
	t.Helper()
	err := s.net.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port, MasterIndex: s.link(t, bridge).Attrs().Index}, PeerName: name, PeerNamespace: netlink.NsPid(to.pid())})
	if err != nil {
		t.Fatal(err)
	}
	s.up(t, port)
}

// within starts a program in the namespace: the process begins in that of the
// thread that starts it.
func (s *space) within(t *testing.T, start func()) {
	t.Helper()
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	there, err := netns.GetFromPid(s.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := netns.Set(there); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := netns.Set(home); err != nil {
			t.Fatal(err) // the thread stays locked and ends with the test's goroutine
		}
		runtime.UnlockOSThread()
	}()
	start()
}

// wiredLab is a lab of namespaces: each node has an SSH server, a control
// interface eth0 to the controller's namespace, and eth1, which experiments may
// use, on a bridge that all nodes share.
type wiredLab struct {
	t       *testing.T
	dir     string // experiment, inventory, database
	control *space
	nodes   []*labNode
}

type labNode struct {
	*space
	name   string
	server *sshtest.Server
	before string
}

// newWiredLab makes a lab of n nodes, n01, n02 … config is added to that of their
// servers, by the node's name.
func newWiredLab(t *testing.T, n int, config ...map[string]string) *wiredLab {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS)
	l := &wiredLab{t: t, dir: t.TempDir(), control: newSpace(t)}
	l.control.bridge(t, "control")
	l.control.address(t, "control", "10.9.255.254/16")
	air := newSpace(t)
	air.bridge(t, "air")
	// One disk for all: the agent is uploaded once. It is their home, too, so that no
	// login depends on what root has there.
	shared := t.TempDir()
	var inv strings.Builder
	inv.WriteString("inventory: 1\ndefaults: {user: root, interface: eth1, dir: " + shared + "}\nnodes:\n")
	for i := range n {
		nd := &labNode{space: newSpace(t), name: fmt.Sprintf("n%02d", i+1)}
		l.nodes = append(l.nodes, nd)
		at := netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)})
		l.control.plug(t, "control", fmt.Sprintf("c%d", i+1), nd.space, "eth0")
		nd.address(t, "eth0", at.String()+"/16")
		nd.up(t, "eth0")
		air.plug(t, "air", fmt.Sprintf("a%d", i+1), nd.space, "eth1")
		nd.before = nd.state(t)
		lines := []string{"MaxStartups 100", "SetEnv HOME=" + shared}
		for _, c := range config {
			if line := c[nd.name]; line != "" {
				lines = append(lines, line)
			}
		}
		nd.server = sshtest.Start(t, sshtest.Options{NetNS: nd.path(), Listen: netip.AddrPortFrom(at, 22), Config: lines})
		fmt.Fprintf(&inv, "  - {name: %s, address: %v, identity: %s, known-hosts: %s}\n", nd.name, at, nd.server.Identity, nd.server.KnownHosts)
	}
	write(t, filepath.Join(l.dir, "lab.yaml"), inv.String())
	return l
}

// builtAgents is a folder with the agent for this processor, as `task agents`
// builds it.
func builtAgents(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.Program("go"))
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "hopbed-agent-"+runtime.GOARCH), "github.com/hopbed/hopbed/agent/cmd/hopbed-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	return dir
}

// run starts hopbed in the controller's namespace.
func (l *wiredLab) run(agents string, args ...string) *program {
	l.t.Helper()
	p := prepare(l.t, l.dir, append([]string{"run", "f.yaml", "--inventory", "lab.yaml", "--agents", agents}, args...)...)
	l.control.within(l.t, p.launch)
	return p
}

// cut takes a node's control link down; mend brings it up again.
func (l *wiredLab) cut(i int) {
	l.t.Helper()
	if err := l.control.net.LinkSetDown(l.control.link(l.t, fmt.Sprintf("c%d", i+1))); err != nil {
		l.t.Fatal(err)
	}
}

func (l *wiredLab) mend(i int) { l.t.Helper(); l.control.up(l.t, fmt.Sprintf("c%d", i+1)) }

// state says all of a node that an experiment may change.
func (n *labNode) state(t *testing.T) string {
	t.Helper()
	eth1 := n.link(t, "eth1")
	out := []string{fmt.Sprintf("eth1 %v, mtu %d", eth1.Attrs().Flags&net.FlagUp, eth1.Attrs().MTU)}
	addrs, err := n.net.AddrList(eth1, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		out = append(out, "address "+a.String())
	}
	routes, err := n.net.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		out = append(out, "route "+r.String())
	}
	neighbours, err := n.net.NeighList(eth1.Attrs().Index, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range neighbours {
		if x.State&netlink.NUD_PERMANENT != 0 {
			out = append(out, "neighbour "+x.IP.String())
		}
	}
	n.within(t, func() {
		for _, key := range []string{"ip_forward", "tcp_no_metrics_save", "conf/all/send_redirects", "conf/all/rp_filter", "conf/eth1/send_redirects", "conf/eth1/rp_filter", "conf/eth1/accept_redirects"} {
			b, err := os.ReadFile("/proc/sys/net/ipv4/" + key)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, key+"="+strings.TrimSpace(string(b)))
		}
	})
	return strings.Join(out, "\n")
}

// processes are those in the node's namespace.
func (n *labNode) processes(t *testing.T) []int {
	t.Helper()
	own, err := os.Readlink(n.path())
	if err != nil {
		t.Fatal(err)
	}
	pids, err := procfs.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		at, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		return err != nil || at != own
	})
}

// putBack waits until nothing of an experiment is left at a node.
func (n *labNode) putBack(t *testing.T, limit time.Duration) {
	t.Helper()
	began := time.Now()
	for {
		left := n.state(t)
		if left == n.before {
			if d := time.Since(began); d > time.Second {
				t.Logf("node %s was as before after %v", n.name, d.Round(100*time.Millisecond))
			}
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("node %s after %v:\n%s\nit was\n%s", n.name, limit, left, n.before)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
