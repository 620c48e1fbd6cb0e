package kernelcompare

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

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
