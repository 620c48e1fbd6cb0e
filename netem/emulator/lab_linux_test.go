package emulator_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// holderPart is a process that keeps a network namespace open until its input
// ends. The traffic comes from sockets that the test opens inside.
const holderPart = "emulator-test-holder"

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case emulator.Part:
		os.Exit(emulator.Main(os.Stdin, os.Stdout))
	case holderPart:
		fmt.Println("up")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case lackingPart:
		os.Exit(lacking())
	}
	os.Exit(m.Run())
}

// lab is a set of nodes on an emulated medium.
type lab struct {
	t    testing.TB
	pids []int
	proc *emulator.Proc
	cfg  *emulator.Config
	done bool
	seq  uint16 // of the last echo request
}

// line places nodes on a line, d metres apart, with disks of range and sense.
func line(n int, d, decode, sense vtime.Metres) *emulator.Config {
	cfg := &emulator.Config{Seed: 1, MACs: []wifi.MAC{wifi.DefaultMAC(wifi.StandardB)}, Radio: wifi.DiskRadio(decode, sense)}
	for i := range n {
		cfg.Positions = append(cfg.Positions, wifi.Position{X: vtime.Metres(i) * d})
	}
	return cfg
}

// newLab starts the namespaces and the emulator and gives every node its
// address and static routes along next (next[i][j] = first hop from i to j, or
// nil for one hop everywhere).
func newLab(t testing.TB, cfg *emulator.Config, opt emulator.Options, next func(from, to int) int) *lab {
	t.Helper()
	n := len(cfg.Positions)
	if cfg.Matrix != nil {
		n = len(cfg.Matrix.Delivery)
	}
	cfg.Nodes = make([]emulator.Node, n)
	l := bareLab(t, cfg, opt)
	if next == nil {
		next = func(_, to int) int { return to }
	}
	for i := range n {
		l.inside(i, func() error { return address(i, n, next) })
	}
	return l
}

// bareLab starts the namespaces of the nodes of cfg and the emulator. The nodes
// have no address.
func bareLab(t testing.TB, cfg *emulator.Config, opt emulator.Options) *lab {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.TAP)
	l := &lab{t: t, cfg: cfg}
	for i := range cfg.Nodes {
		pid := holder(t)
		l.pids = append(l.pids, pid)
		cfg.Nodes[i].Name, cfg.Nodes[i].PID = fmt.Sprintf("n%02d", i+1), pid
	}
	proc, err := emulator.Start(context.Background(), cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	l.proc = proc
	t.Cleanup(func() {
		if !l.done {
			proc.Kill()
		}
	})
	for i := range cfg.Nodes {
		l.inside(i, sysctls)
	}
	return l
}

func sysctls() error {
	for _, s := range tap.NodeSysctls() {
		path := "/proc/sys/" + dots(s.Key)
		if err := os.WriteFile(path, []byte(s.Value), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func address(i, n int, next func(from, to int) int) error {
	link, err := netlink.LinkByName(tap.Interface)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: host(tap.Addr(i))}); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	for j := range n {
		if j == i {
			continue
		}
		m := tap.HardwareAddr(j)
		if err := netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: tap.Addr(j).AsSlice(), HardwareAddr: m[:]}); err != nil {
			return fmt.Errorf("neighbour: %w", err)
		}
		r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: host(tap.Addr(j)), Scope: netlink.SCOPE_LINK}
		if v := next(i, j); v != j {
			r.Gw, r.Scope = tap.Addr(v).AsSlice(), netlink.SCOPE_UNIVERSE
			r.SetFlag(netlink.FLAG_ONLINK)
		}
		if err := netlink.RouteReplace(r); err != nil {
			return fmt.Errorf("route: %w", err)
		}
	}
	return nil
}

func dots(key string) string {
	b := []byte(key)
	for i := range b {
		if b[i] == '.' {
			b[i] = '/'
		}
	}
	return string(b)
}

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// holder starts a process in a namespace of its own.
func holder(t testing.TB) int {
	t.Helper()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{holderPart}, SysProcAttr: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	var word string
	if _, err := fmt.Fscan(out, &word); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func (l *lab) inside(node int, f func() error) {
	l.t.Helper()
	if err := tap.InNamespace(l.pids[node], f); err != nil {
		l.t.Fatalf("node %d: %v", node, err)
	}
}

// udp opens a UDP socket in a node, with a type of service for what it sends.
func (l *lab) udp(node, port, tos int) *net.UDPConn {
	l.t.Helper()
	var c *net.UDPConn
	l.inside(node, func() error {
		var err error
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: tap.Addr(node).AsSlice(), Port: port})
		if err != nil {
			return err
		}
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		var opt error
		err = raw.Control(func(fd uintptr) { opt = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, tos) })
		if err == nil {
			err = opt
		}
		return err
	})
	l.t.Cleanup(func() { c.Close() })
	return c
}

func to(node, port int) netip.AddrPort { return netip.AddrPortFrom(tap.Addr(node), uint16(port)) }

// blast sends packets of size bytes (IP length) as fast as the kernel takes
// them until stop is closed. Each carries a number.
func blast(c *net.UDPConn, dst netip.AddrPort, size int, stop <-chan struct{}) {
	b := make([]byte, size-28)
	for {
		select {
		case <-stop:
			return
		default:
		}
		for range 8 {
			_, _ = c.WriteToUDPAddrPort(b, dst) // a full ring is not reported
		}
		time.Sleep(2 * time.Millisecond) // 8 × 1500 B in 2 ms = 48 Mb/s: above any rate used here
	}
}

// receive counts payload bytes until the deadline.
func receive(c *net.UDPConn, from, until time.Time) (bytes int) {
	b := make([]byte, 2048)
	_ = c.SetReadDeadline(until)
	for {
		n, _, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return bytes
		}
		if time.Now().After(from) {
			bytes += n
		}
	}
}

// ping sends an echo request from one node to another and returns how long the
// reply took and the TTL that it had left.
func (l *lab) ping(from, dst int) (time.Duration, int) {
	l.t.Helper()
	var fd int
	l.inside(from, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		return err
	})
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		l.t.Fatal(err)
	}
	l.seq++
	t0 := time.Now()
	if err := unix.Sendto(fd, echoRequest(l.seq), 0, &unix.SockaddrInet4{Addr: tap.Addr(dst).As4()}); err != nil {
		l.t.Fatal(err)
	}
	b := make([]byte, 1500)
	for {
		n, from, err := unix.Recvfrom(fd, b, 0)
		if err == unix.EINTR { // with a timeout the kernel does not go on by itself (signal(7))
			continue
		}
		if err != nil {
			l.t.Fatalf("no echo of node %d: %v", dst, err)
		}
		rtt := time.Since(t0)
		sa, ok := from.(*unix.SockaddrInet4)
		if n >= 28 && ok && sa.Addr == tap.Addr(dst).As4() && b[20] == 0 && b[26] == byte(l.seq>>8) && b[27] == byte(l.seq) {
			return rtt, int(b[8])
		}
	}
}

// throughput is the UDP payload rate in Mb/s between two nodes over one second.
func (l *lab) throughput(src, dst, tos int) float64 {
	l.t.Helper()
	rx := l.udp(dst, 9000, 0)
	tx := l.udp(src, 9001, tos)
	stop := make(chan struct{})
	go blast(tx, to(dst, 9000), 1500, stop)
	defer close(stop)
	const span = time.Second
	from := time.Now().Add(300 * time.Millisecond)
	return float64(receive(rx, from, from.Add(span))) * 8 / span.Seconds() / 1e6
}

func (l *lab) stop() *emulator.Report {
	l.t.Helper()
	l.done = true
	r, err := l.proc.Stop(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	v := emulator.Judge(r)
	l.t.Logf("%s, %s; lateness p50 %v p99 %v max %v over %d events; cpu %v; verdict %+v", r.Priority, r.Wait,
		r.Measured.Lateness.P50.Std(), r.Measured.Lateness.P99.Std(), r.Measured.Lateness.Max.Std(), r.Measured.Lateness.Events, r.Whole.Host.CPU.Std(), v)
	return r
}

func newBoard(t testing.TB, n, pipes int) *board.Board {
	t.Helper()
	b, err := board.Create(n, pipes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// openView maps a node's view of the board, as its agent would.
func openView(t testing.TB, b *board.Board, node int, pipes ...int) *board.View {
	t.Helper()
	files, err := b.NodeFiles(node)
	if err != nil {
		t.Fatal(err)
	}
	var fds [2]uintptr
	for i, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds[i] = uintptr(fd)
	}
	v, err := board.OpenViewFD(fds[0], fds[1], node, pipes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}
