package tc

import (
	"encoding/binary"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

// lab moves the test to a thread in a new network namespace with a veth pair, a
// and b. Both ends are up; nothing is sent over them by itself.
func lab(t *testing.T) (a, b netlink.Link) {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a", TxQLen: 1000}, PeerName: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lo", "a", "b"} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetARPOff(l); err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "a":
			a = l
		case "b":
			b = l
		}
	}
	return a, b
}

// wire is a packet socket at an interface.
type wire struct {
	fd, index int
	source    net.HardwareAddr
}

func attach(t *testing.T, l netlink.Link) *wire {
	t.Helper()
	all := int(htons(unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: l.Attrs().Index}); err != nil {
		t.Fatal(err)
	}
	// Room for a whole measurement: what is lost must have been lost on the link.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20); err != nil {
		t.Fatal(err)
	}
	// Packets are stamped as they arrive from now on, not as they are read.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		t.Fatal(err)
	}
	return &wire{fd: fd, index: l.Attrs().Index, source: l.Attrs().HardwareAddr}
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

var (
	anyPeer   = netip.MustParseAddr("10.99.0.1")
	anySource = netip.MustParseAddr("10.99.0.9")
)

// send sends packet number i, n bytes of IP.
func (w *wire) send(t *testing.T, i, n int) { t.Helper(); w.sendTo(t, anyPeer, i, n) }

func (w *wire) sendTo(t *testing.T, dst netip.Addr, i, n int) {
	t.Helper()
	src := netip.MustParseAddr("10.99.0.9")
	if dst.Is6() {
		src = netip.MustParseAddr("fd00::9")
	}
	w.sendFrom(t, src, dst, i, n)
}

// mark begins the payload of our packets; number and moment of sending follow.
const mark = 0x74635f74

func (w *wire) sendFrom(t *testing.T, src, dst netip.Addr, i, n int) {
	t.Helper()
	if _, err := w.trySend(src, dst, i, n); err != nil {
		t.Fatal(err)
	}
}

func (w *wire) trySend(src, dst netip.Addr, i, n int) (at vtime.Duration, err error) {
	head := 20
	b := make([]byte, 14+n)
	copy(b, []byte{2, 0, 0, 0, 0, 9})
	copy(b[6:], w.source)
	ip := b[14:]
	if dst.Is4() {
		binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IP)
		ip[0], ip[8], ip[9] = 0x45, 64, 253
		binary.BigEndian.PutUint16(ip[2:], uint16(n))
		copy(ip[12:], src.AsSlice())
		copy(ip[16:], dst.AsSlice())
	} else {
		head = 40
		binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IPV6)
		ip[0], ip[6], ip[7] = 0x60, 253, 64
		binary.BigEndian.PutUint16(ip[4:], uint16(n-40))
		copy(ip[8:], src.AsSlice())
		copy(ip[24:], dst.AsSlice())
	}
	binary.BigEndian.PutUint32(ip[head:], mark)
	binary.BigEndian.PutUint32(ip[head+4:], uint32(i))
	at = now()
	binary.BigEndian.PutUint64(ip[head+8:], uint64(at))
	return at, unix.Sendto(w.fd, b, 0, &unix.SockaddrLinklayer{Ifindex: w.index, Halen: 6, Addr: [8]byte{2, 0, 0, 0, 0, 9}})
}

// now is the clock of the kernel's receive timestamps.
func now() vtime.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts); err != nil {
		panic(err)
	}
	return vtime.Duration(ts.Nano())
}

// arrival is one of our packets at the other end.
type arrival struct {
	number int
	at     vtime.Duration // kernel's clock
	delay  vtime.Duration
	intact bool // the padding is as it was sent
}

// collect reads what arrives until nothing has come for so long.
func (w *wire) collect(t *testing.T, quiet vtime.Duration) []arrival {
	t.Helper()
	var out []arrival
	buf, oob := make([]byte, 4096), make([]byte, 256)
	for {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(quiet/ms))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return out
		}
		n, oobn, _, from, err := unix.Recvmsg(w.fd, buf, oob, 0)
		if err != nil {
			t.Fatal(err)
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if a, ok := decode(buf[:n], oob[:oobn]); ok {
			out = append(out, a)
		}
	}
}

func decode(b, oob []byte) (arrival, bool) {
	head := 34
	if len(b) > 54 && b[12] == 0x86 {
		head = 54
	}
	if len(b) < head+16 || binary.BigEndian.Uint32(b[head:]) != mark {
		return arrival{}, false
	}
	a := arrival{number: int(binary.BigEndian.Uint32(b[head+4:])), at: now(), intact: true}
	if msgs, err := unix.ParseSocketControlMessage(oob); err == nil {
		for _, m := range msgs {
			if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
				a.at = vtime.Duration(binary.NativeEndian.Uint64(m.Data))*vtime.Second + vtime.Duration(binary.NativeEndian.Uint64(m.Data[8:]))
			}
		}
	}
	a.delay = a.at - vtime.Duration(binary.BigEndian.Uint64(b[head+8:]))
	for _, x := range b[head+16:] {
		a.intact = a.intact && x == 0
	}
	return a, true
}
