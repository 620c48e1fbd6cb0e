package radio_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/undo"
)

// hwsimAir looks at the frames themselves, which the simulated radios show on a
// monitor interface: what nl80211 does not tell is in them.
func hwsimAir(t *testing.T) {
	var records []undo.Record
	push := func(r undo.Record) error { records = append(records, r); return nil }
	defer func() {
		if err := undoAll(t, records); err != nil {
			t.Errorf("undo: %v", err)
		}
	}()
	for _, name := range []string{"wlan0", "wlan1"} {
		c := meshLab()
		c.Interface, c.RTS, c.Fragment = name, nil, nil
		if _, err := radio.Configure(t.Context(), radio.System(), c, push); err != nil {
			t.Fatal(err)
		}
	}
	from, err := net.InterfaceByName("wlan0")
	if err != nil {
		t.Fatal(err)
	}
	to, err := net.InterfaceByName("wlan1")
	if err != nil {
		t.Fatal(err)
	}
	run(t, "ip", "address", "add", "10.9.0.1/24", "broadcast", "10.9.0.255", "dev", "wlan0")
	defer run(t, "ip", "address", "del", "10.9.0.1/24", "dev", "wlan0")
	run(t, "ip", "neighbour", "replace", "10.9.0.2", "lladdr", to.HardwareAddr.String(), "dev", "wlan0")
	run(t, "ip", "link", "set", "dev", "hwsim0", "up")
	frames := sniff(t, "hwsim0")

	// By DSCP: CS1 goes into BK, which is not acknowledged; CS6 into VO, which is.
	type sight struct {
		noAck bool
		rate  int // 500 kb/s
	}
	seen := map[string]sight{}
	want := map[string]sight{"BK": {true, 22}, "VO": {false, 22}, "broadcast": {false, 4}}
	for end := time.Now().Add(20 * time.Second); len(seen) < len(want) && time.Now().Before(end); {
		send(t, "10.9.0.2", 0x20)
		send(t, "10.9.0.2", 0xc0)
		send(t, "10.9.0.255", 0)
		for range 40 {
			f, ok := frames()
			if !ok {
				break
			}
			if len(f.mac) < 26 || string(f.mac[10:16]) != string(from.HardwareAddr) || f.mac[0]&0x0c != 0x08 {
				continue // not data of wlan0
			}
			qos := f.mac[0]&0x80 != 0
			switch {
			case f.mac[4]&1 != 0:
				seen["broadcast"] = sight{false, f.rate}
			case qos:
				tid, policy := f.mac[24]&0x0f, f.mac[24]>>5&3
				category := map[byte]string{1: "BK", 2: "BK", 6: "VO", 7: "VO"}[tid]
				if category != "" {
					seen[category] = sight{policy == 1, f.rate}
				}
			}
		}
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("on the air (no ack, rate in 500 kb/s): %v, want %v", seen, want)
	}
}

// frame is a frame on the air.
type frame struct {
	rate int
	mac  []byte // from the frame control on
}

// sniff returns a function that gives the next frame, or false where there is
// none for a while.
func sniff(t *testing.T, name string) func() (frame, bool) {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	all := int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: i.Index}); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	return func() (frame, bool) {
		for {
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n < 18 {
				return frame{}, false
			}
			// Radiotap: length at 2; the module's header has the TSF (8 octets from 8), the
			// flags and the rate (drivers/net/wireless/virtual/mac80211_hwsim.c).
			h := int(binary.LittleEndian.Uint16(buf[2:]))
			if h > n || h < 18 {
				continue // an acknowledgement, whose header is another
			}
			return frame{rate: int(buf[17]), mac: append([]byte(nil), buf[h:n]...)}, true
		}
	}
}

// send sends one datagram with a type of service.
func send(t *testing.T, to string, tos int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, o := range [][2]int{{unix.IPPROTO_IP, unix.IP_TOS}, {unix.SOL_SOCKET, unix.SO_BROADCAST}} {
		v := tos
		if o[1] == unix.SO_BROADCAST {
			v = 1
		}
		if err := unix.SetsockoptInt(fd, o[0], o[1], v); err != nil {
			t.Fatal(err)
		}
	}
	a := unix.SockaddrInet4{Port: 9, Addr: [4]byte(net.ParseIP(to).To4())}
	if err := unix.Sendto(fd, make([]byte, 300), 0, &a); err != nil {
		t.Fatal(err)
	}
}
