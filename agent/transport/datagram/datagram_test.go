package datagram

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"
)

func listen(t testing.TB, at string, o Options) *Socket {
	t.Helper()
	s, err := Listen(netip.MustParseAddrPort(at), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type message struct {
	from netip.AddrPort
	data []byte
}

// collect takes datagrams until there are n.
func collect(t testing.TB, s *Socket, n int) []message {
	t.Helper()
	if err := s.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var got []message
	for len(got) < n {
		if err := s.Wait(); err != nil {
			t.Fatalf("after %d of %d datagrams: %v", len(got), n, err)
		}
		s.All(func(from netip.AddrPort, data []byte) { got = append(got, message{from, bytes.Clone(data)}) })
	}
	return got
}

func fill(b []byte, k int) []byte {
	for i := range b {
		b[i] = byte(k*7 + i)
	}
	return b
}

// What goes in comes out, whatever the sizes are: those that the kernel takes as
// trains, and those that break them.
func TestEveryDatagramArrivesAsItWasSent(t *testing.T) {
	sizes := []int{1400, 1400, 1400, 60, 60, 1400, 1, 1472, 1472, 1000, 40, 40, 41}
	for range 60 {
		sizes = append(sizes, 1200)
	}
	for _, o := range []Options{{}, {NoOffload: true}} {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			t.Run(fmt.Sprintf("%s %+v", at, o), func(t *testing.T) {
				if at == "[::1]:0" {
					if l, err := net.ListenPacket("udp6", at); err != nil {
						t.Skip("no IPv6 on loopback:", err)
					} else {
						l.Close()
					}
				}
				a, b, c := listen(t, at, o), listen(t, at, o), listen(t, at, o)
				want := map[*Socket][][]byte{}
				for k, n := range sizes {
					to := b
					if k%11 == 5 {
						to = c
					}
					d := fill(a.Slot()[:n], k)
					want[to] = append(want[to], bytes.Clone(d))
					a.Put(to.LocalAddr(), uint8(k%2)*0x20, n)
				}
				if left, full, err := a.Flush(); left != len(sizes) || full || err != nil || a.Pending() != 0 {
					t.Fatalf("%d of %d datagrams left, full %v, %v", left, len(sizes), full, err)
				}
				for to, w := range want {
					for i, m := range collect(t, to, len(w)) {
						if m.from != a.LocalAddr() || !bytes.Equal(m.data, w[i]) {
							t.Fatalf("datagram %d of %d bytes came as %d bytes from %v, want %d from %v", i, len(w[i]), len(m.data), m.from, len(w[i]), a.LocalAddr())
						}
					}
				}
				f := a.Facts()
				t.Logf("%+v", f)
				if f.Sent != uint64(len(sizes)) || f.Refused != 0 || f.Batches && f.SendCalls > 3 {
					t.Errorf("%+v", f)
				}
			})
		}
	}
}

// A socket on every address of both families reaches IPv4 and tells its senders
// as IPv4.
func TestDualStack(t *testing.T) {
	a, err := Listen(netip.MustParseAddrPort("[::]:0"), Options{})
	if err != nil {
		t.Skip("no IPv6:", err)
	}
	defer a.Close()
	b := listen(t, "127.0.0.1:0", Options{})
	fill(a.Slot()[:10], 1)
	a.Put(b.LocalAddr(), 0x20, 10)
	if _, _, err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	m := collect(t, b, 1)[0]
	fill(b.Slot()[:20], 2)
	b.Put(m.from, 0, 20)
	if _, _, err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, a, 1)[0]; got.from != b.LocalAddr() || len(got.data) != 20 {
		t.Errorf("%d bytes from %v, want 20 from %v", len(got.data), got.from, b.LocalAddr())
	}
}

// The batch has an end, and begins anew when it was handed over.
func TestBatchIsBounded(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{ReceiveBuffer: 1 << 20})
	for range 3 {
		n := 0
		for slot := a.Slot(); slot != nil; slot = a.Slot() {
			if len(slot) < MaxSize {
				t.Fatalf("a slot of %d bytes", len(slot))
			}
			a.Put(b.LocalAddr(), 0, 500)
			n++
		}
		if n != mostDatagrams || a.Pending() != n {
			t.Errorf("%d datagrams in the batch, %d pending, want %d", n, a.Pending(), mostDatagrams)
		}
		if left, _, err := a.Flush(); left != n || err != nil {
			t.Fatalf("%d left, %v", left, err)
		}
		collect(t, b, n)
	}
	if left, full, err := a.Flush(); left != 0 || full || err != nil {
		t.Errorf("an empty batch: %d %v %v", left, full, err)
	}
}

// An address that the kernel has no way to costs its own datagrams only.
func TestRefusedDatagramsAreLost(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	for k, to := range []netip.AddrPort{b.LocalAddr(), netip.MustParseAddrPort("127.0.0.1:0"), b.LocalAddr()} {
		a.Slot()
		a.Put(to, 0, 100+k)
	}
	left, full, err := a.Flush()
	if left != 3 || full || err != nil {
		t.Fatalf("%d left, full %v, %v", left, full, err)
	}
	got := collect(t, b, 2)
	if len(got[0].data) != 100 || len(got[1].data) != 102 || a.Facts().Refused != 1 {
		t.Errorf("%d and %d bytes, %+v", len(got[0].data), len(got[1].data), a.Facts())
	}
}

// A train that the kernel does not take as one is sent as single datagrams.
func TestTrainsAreTakenApart(t *testing.T) {
	var tr trains
	tr.init(true)
	to := netip.MustParseAddrPort("127.0.0.1:9")
	for range 70 {
		tr.slot()
		tr.put(to, 0, 1000)
	}
	tr.slot()
	tr.put(to, 0, 10)
	if len(tr.list) != 2 || tr.list[0].segments != mostSegments || tr.list[1].segments != 7 {
		t.Fatalf("%+v", tr.list)
	}
	tr.gone(1)
	before := tr.pending
	tr.split()
	if len(tr.list) != 7 || tr.pending != before || tr.list[6].size != 10 || tr.list[0].from != 64_000 {
		t.Errorf("%d trains, %d pending: %+v", len(tr.list), tr.pending, tr.list)
	}
	if tr.gone(7); tr.pending != 0 {
		t.Errorf("%d pending", tr.pending)
	}
}

func TestDeadlineAndClose(t *testing.T) {
	s := listen(t, "127.0.0.1:0", Options{})
	s.SetDeadline(time.Now().Add(20 * time.Millisecond))
	if err := s.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at the deadline: %v", err)
	}
	s.SetDeadline(time.Time{})
	done := make(chan error)
	go func() { done <- s.Wait() }()
	time.Sleep(10 * time.Millisecond)
	s.SetDeadline(time.Unix(1, 0)) // in the past: it wakes
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("woken: %v", err)
	}
	if err := s.Poll(); err != nil { // whatever the deadline, and without waiting
		t.Errorf("poll: %v", err)
	}
	s.All(func(netip.AddrPort, []byte) { t.Error("a datagram that nobody sent") })
	s.SetDeadline(time.Time{})
	go func() { done <- s.Wait() }()
	time.Sleep(10 * time.Millisecond)
	s.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := Listen(netip.MustParseAddrPort("192.0.2.1:1"), Options{}); err == nil {
		t.Error("bound to an address that this host does not have")
	}
}

// Nothing is allocated per datagram.
func TestNoAllocations(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the portable socket allocates")
	}
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{ReceiveBuffer: 1 << 20})
	take := func(netip.AddrPort, []byte) {}
	to := b.LocalAddr()
	if n := testing.AllocsPerRun(100, func() {
		for range 64 {
			a.Slot()
			a.Put(to, 0, 1400)
		}
		a.Flush()
		b.Wait()
		b.All(take)
	}); n > 0 {
		t.Errorf("%.1f allocations for 64 datagrams", n)
	}
}

// BenchmarkTrains is the cost of one datagram of 1,440 B over loopback, sent and
// received by one goroutine.
func BenchmarkTrains(b *testing.B) {
	for _, o := range []Options{{ReceiveBuffer: 4 << 20}, {ReceiveBuffer: 4 << 20, NoOffload: true}} {
		b.Run(fmt.Sprintf("offload=%v", !o.NoOffload), func(b *testing.B) {
			x, y := listen(b, "127.0.0.1:0", o), listen(b, "127.0.0.1:0", o)
			to, got := y.LocalAddr(), 0
			take := func(_ netip.AddrPort, d []byte) { got++ }
			b.SetBytes(1440)
			b.ReportAllocs()
			for sent := 0; got < b.N; {
				for range 64 {
					x.Slot()
					x.Put(to, 0, 1440)
				}
				if _, _, err := x.Flush(); err != nil {
					b.Fatal(err)
				}
				for sent += 64; got < sent; {
					if err := y.Wait(); err != nil {
						b.Fatal(err)
					}
					y.All(take)
				}
			}
		})
	}
}
