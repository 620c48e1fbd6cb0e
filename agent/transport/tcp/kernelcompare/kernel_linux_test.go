package kernelcompare

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// space is a network namespace of its own, held by one locked thread that
// runs what it is given. The namespace dies with the thread and its sockets.
type space struct {
	do  chan func()
	tap *os.File
	fd  int
}

func newSpace(addr, peer string, mac, peerMAC byte) (*space, error) {
	s := &space{do: make(chan func())}
	errc := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not be reused
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = s.setup(addr, peer, mac, peerMAC)
		}
		errc <- err
		if err != nil {
			return
		}
		for f := range s.do {
			f()
		}
	}()
	return s, <-errc
}

// run executes f on the namespace's thread.
func (s *space) run(f func() error) error {
	errc := make(chan error)
	s.do <- func() { errc <- f() }
	return <-errc
}

func (s *space) close() {
	close(s.do)
	unix.Close(s.fd)
}

func (s *space) setup(addr, peer string, mac, peerMAC byte) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq("tap0")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI) // no IFF_VNET_HDR: no TSO
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	s.fd = fd
	hw := func(b byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, b} }
	link, err := netlink.LinkByName("tap0")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetHardwareAddr(link, hw(mac)); err != nil {
		return err
	}
	a, err := netlink.ParseAddr(addr + "/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, a); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	if err := netlink.NeighAdd(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: unix.AF_INET,
		State: netlink.NUD_PERMANENT, IP: net.ParseIP(peer), HardwareAddr: hw(peerMAC)}); err != nil {
		return err
	}
	for k, v := range map[string]string{"ipv4/tcp_no_metrics_save": "1", "ipv6/conf/all/disable_ipv6": "1"} {
		if err := os.WriteFile("/proc/sys/net/"+k, []byte(v), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// fifo gives the calling thread real-time priority where that is permitted.
func fifo(prio uint32) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: prio}
	_ = unix.SchedSetAttr(0, &attr, 0)
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// forwarder carries frames between two TAPs: Bernoulli loss on entry, a
// drop-tail queue, a rate, a delay. A packet's times follow from when it was
// read, not from when the thread woke.
type forwarder struct {
	fd   [2]int
	dir  [2]fwdDir
	stop atomic.Bool
	late int64 // largest lateness of a delivery, ns
	done sync.WaitGroup
}

type fwdDir struct {
	rate  vtime.BitRate
	delay int64
	limit int
	loss  float64
	rng   *des.Stream
	busy  int64
	q     []frame // in order of departure
	head  int     // first not yet delivered
	gone  int     // first whose departure is still to come

	entered, lost, overflow atomic.Uint64
}

type frame struct {
	depart, due int64
	n           int
	buf         [1514]byte
}

func (d *fwdDir) enter(now int64, b []byte) {
	d.entered.Add(1)
	_, hit := d.rng.Float64(), d.rng.Float64() // the draws of pipe.lose: equal seeds lose the same packets
	if hit < d.loss {
		d.lost.Add(1)
		return
	}
	for d.gone < len(d.q) && d.q[d.gone].depart <= now {
		d.gone++
	}
	if len(d.q)-d.gone >= d.limit {
		d.overflow.Add(1)
		return
	}
	d.busy = max(d.busy, now) + int64(d.rate.TxTime(vtime.Bytes(len(b)-14)))
	f := frame{depart: d.busy, due: d.busy + d.delay, n: len(b)}
	copy(f.buf[:], b)
	d.q = append(d.q, f)
}

func (f *forwarder) deliver(i int, now int64) {
	d := &f.dir[i]
	for d.head < len(d.q) && d.q[d.head].due <= now {
		k := &d.q[d.head]
		f.late = max(f.late, now-k.due)
		_, _ = unix.Write(f.fd[1-i], k.buf[:k.n])
		d.head++
		now = monotonic()
	}
	if d.head > 1024 {
		d.q = append(d.q[:0], d.q[d.head:]...)
		d.gone = max(d.gone-d.head, 0)
		d.head = 0
	}
}

func (f *forwarder) loop() {
	defer f.done.Done()
	runtime.LockOSThread()
	fifo(20)
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		panic(err)
	}
	defer unix.Close(ep)
	for i, fd := range f.fd {
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			panic(err)
		}
	}
	var buf [2048]byte
	var evs [2]unix.EpollEvent
	for !f.stop.Load() {
		now := monotonic()
		f.deliver(0, now)
		f.deliver(1, now)
		for i := range f.fd {
			for range 64 {
				n, err := unix.Read(f.fd[i], buf[:])
				if err != nil {
					break
				}
				f.dir[i].enter(monotonic(), buf[:n])
			}
		}
		next := monotonic() + 50_000_000
		for i := range f.dir {
			if d := &f.dir[i]; d.head < len(d.q) {
				next = min(next, d.q[d.head].due)
			}
		}
		if wait := next - monotonic(); wait > 0 {
			ts := unix.NsecToTimespec(wait)
			_, _, _ = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(ep), uintptr(unsafe.Pointer(&evs[0])), 2,
				uintptr(unsafe.Pointer(&ts)), 0, 0)
		}
	}
}

// tcpExt reads one counter of TcpExt in the namespace of the calling thread.
func tcpExt(names ...string) (map[string]float64, error) {
	b, err := os.ReadFile("/proc/thread-self/net/netstat")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(b), "\n")
	out := map[string]float64{}
	for i := 0; i+1 < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "TcpExt:") {
			continue
		}
		keys, vals := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for j, k := range keys {
			for _, n := range names {
				if k == n && j < len(vals) {
					out[n], _ = strconv.ParseFloat(vals[j], 64)
				}
			}
		}
		i++
	}
	return out, nil
}

var counters = []string{"TCPTimeouts", "TCPLossProbes", "TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo", "TCPSACKReorder"}

// runKernel runs the scenario over kernel sockets.
func runKernel(t testing.TB, s scenario, seed uint64) result {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := newSpace("10.99.0.1", "10.99.0.2", 1, 2)
	fail(err)
	defer a.close()
	b, err := newSpace("10.99.0.2", "10.99.0.1", 2, 1)
	fail(err)
	defer b.close()

	f := &forwarder{fd: [2]int{a.fd, b.fd}}
	for i := range f.dir {
		f.dir[i] = fwdDir{rate: s.rate, delay: int64(s.rtt / 2), limit: s.queue, rng: des.NewStream(seed, [2]string{"data/loss", "ack/loss"}[i]), q: make([]frame, 0, 8192)}
	}
	f.dir[0].loss, f.dir[1].loss = s.loss, s.back
	f.done.Add(1)
	go f.loop()
	defer f.done.Wait()
	defer f.stop.Store(true)

	nf := max(s.flows, 1)
	var ls int
	cs, as := make([]int, nf), make([]int, nf)
	sock := func(fd *int) error {
		var err error
		*fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.SetsockoptString(*fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, s.cc)
	}
	set := func() error {
		v := "1"
		if !s.sack {
			v = "0"
		}
		return os.WriteFile("/proc/sys/net/ipv4/tcp_sack", []byte(v), 0)
	}
	fail(b.run(func() error {
		if err := set(); err != nil {
			return err
		}
		if err := sock(&ls); err != nil {
			return err
		}
		if err := unix.Bind(ls, &unix.SockaddrInet4{Port: 5000}); err != nil {
			return err
		}
		return unix.Listen(ls, nf)
	}))
	fail(a.run(func() error {
		if err := set(); err != nil {
			return err
		}
		for i := range cs {
			if err := sock(&cs[i]); err != nil {
				return err
			}
		}
		return nil
	}))
	var received atomic.Uint64
	accepted, connected := make(chan error, nf), make(chan error, nf)
	var wg sync.WaitGroup
	wg.Add(2 * nf)
	for i := range nf {
		go func() { // receiver
			defer wg.Done()
			runtime.LockOSThread()
			fifo(10)
			var err error
			as[i], _, err = unix.Accept(ls)
			accepted <- err
			if err != nil {
				return
			}
			buf := make([]byte, 128<<10)
			for {
				n, err := unix.Read(as[i], buf)
				if n <= 0 || err != nil {
					return
				}
				received.Add(uint64(n))
			}
		}()
		go func() { // sender
			defer wg.Done()
			runtime.LockOSThread()
			fifo(10)
			err := unix.Connect(cs[i], &unix.SockaddrInet4{Port: 5000, Addr: [4]byte{10, 99, 0, 2}})
			connected <- err
			if err != nil {
				return
			}
			buf := make([]byte, 64<<10)
			for {
				if _, err := unix.Write(cs[i], buf); err != nil {
					return
				}
			}
		}()
	}
	for range nf {
		fail(<-connected)
		fail(<-accepted)
	}
	time.Sleep(vtime.FromSeconds(s.warm).Std())

	info := func(fd int) *unix.TCPInfo { return must(unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)) }
	type counts struct{ sent, retrans, segsOut, dataIn float64 }
	sum := func() (c counts) {
		for i := range cs {
			a, b := info(cs[i]), info(as[i])
			c.sent += float64(a.Bytes_sent)
			c.retrans += float64(a.Bytes_retrans)
			c.segsOut += float64(b.Segs_out)
			c.dataIn += float64(b.Data_segs_in)
		}
		return c
	}
	ext := func() map[string]float64 {
		var m map[string]float64
		fail(a.run(func() (err error) { m, err = tcpExt(counters...); return }))
		return m
	}
	r0, c0, e0 := received.Load(), sum(), ext()
	en0, ov0 := f.dir[0].entered.Load(), f.dir[0].overflow.Load()
	t0 := time.Now()
	var srtt, cwnd float64
	n := 0
	for k := 0; ; k++ {
		for _, fd := range cs {
			i := info(fd)
			srtt += float64(i.Rtt) / 1000
			cwnd += float64(i.Snd_cwnd)
			n++
		}
		next := t0.Add(time.Duration(k+1) * 100 * time.Millisecond)
		if next.Sub(t0).Seconds() > s.secs+1e-9 {
			break
		}
		time.Sleep(time.Until(next))
	}
	secs := time.Since(t0).Seconds()
	r1, c1, e1 := received.Load(), sum(), ext()
	en1, ov1 := f.dir[0].entered.Load(), f.dir[0].overflow.Load()
	for i := range cs { // a reset ends both sides at once
		_ = unix.SetsockoptLinger(cs[i], unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		_ = unix.Shutdown(cs[i], unix.SHUT_RDWR)
		unix.Close(cs[i])
		_ = unix.Shutdown(as[i], unix.SHUT_RDWR)
	}
	wg.Wait()
	for _, fd := range as {
		unix.Close(fd)
	}
	unix.Close(ls)
	if ms := float64(f.late) / 1e6; ms > 2 {
		t.Logf("note: a delivery was %.1f ms late", ms)
	}
	undo := 0.0
	for _, k := range counters[2:6] {
		undo += e1[k]
	}
	return result{
		goodput:  float64(r1-r0) * 8 / secs,
		retrans:  (c1.retrans - c0.retrans) / (c1.sent - c0.sent),
		timeouts: (e1["TCPTimeouts"] - e0["TCPTimeouts"]) * 60 / secs,
		tlp:      (e1["TCPLossProbes"] - e0["TCPLossProbes"]) * 60 / secs,
		srtt:     srtt / float64(n),
		cwnd:     cwnd / float64(n),
		acks:     (c1.segsOut - c0.segsOut) / (c1.dataIn - c0.dataIn),
		drops:    float64(ov1-ov0) / float64(en1-en0),
		undos:    undo,
		reord:    e1["TCPSACKReorder"],
		late:     float64(f.late) / 1e6,
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
