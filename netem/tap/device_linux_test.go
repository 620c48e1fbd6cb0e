package tap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
)

// holderPart is a process in a namespace of its own that waits for the end of
// its input.
const holderPart = "tap-test-holder"

func TestMain(m *testing.M) {
	if os.Args[0] == holderPart {
		fmt.Println("up")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

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

func names(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDeviceLivesInTheOtherNamespace(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	pid := holder(t)
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	want := HardwareAddr(41)
	d, err := Create(pid, Config{HardwareAddress: want, MTU: 1400, QueueLength: 33})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(names(t, pid), "wlan0:") {
		t.Error("no wlan0 in the node's namespace")
	}
	if strings.Contains(names(t, os.Getpid()), "wlan0:") {
		t.Error("wlan0 in our own namespace")
	}
	if now, _ := os.Readlink("/proc/thread-self/ns/net"); now != own {
		t.Errorf("this thread is now in %s, was in %s", now, own)
	}
	err = InNamespace(pid, func() error {
		i, err := net.InterfaceByName(Interface)
		if err != nil {
			return err
		}
		if i.HardwareAddr.String() != want.String() || i.MTU != 1400 || i.Flags&net.FlagUp == 0 {
			t.Errorf("interface %+v, want address %v, MTU 1400, up", i, want)
		}
		addrs, err := i.Addrs()
		if len(addrs) != 0 {
			t.Errorf("addresses %v: IPv6 is not silent", addrs)
		}
		b, rerr := os.ReadFile("/proc/sys/net/ipv6/conf/default/disable_ipv6")
		if rerr == nil && string(b) != "1\n" {
			t.Errorf("disable_ipv6 is %q", b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := queueLength(t, pid); n != 33 {
		t.Errorf("queue length %d, want 33", n)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(names(t, pid), "wlan0:") {
		t.Error("the device outlived its descriptor")
	}
}

func queueLength(t *testing.T, pid int) (n int) {
	t.Helper()
	err := InNamespace(pid, func() error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		ifr, err := unix.NewIfreq(Interface)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(s, unix.SIOCGIFTXQLEN, ifr); err != nil {
			return err
		}
		n = int(ifr.Uint32())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Frames pass both ways unchanged, and the counters know of them.
func TestFramesPass(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	pid := holder(t)
	d, err := Create(pid, Config{HardwareAddress: HardwareAddr(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	buf := make([]byte, MaxFrame)
	if n, err := d.Read(buf); !errors.Is(err, ErrEmpty) {
		t.Fatalf("an idle device gave %d bytes, %v: %x", n, err, buf[:max(n, 0)])
	}
	frame := append(append(append([]byte{}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), make([]byte, 6)...), 0x88, 0xb5) // a local experimental type
	frame = append(frame, bytes.Repeat([]byte{7}, 46)...)
	var back []byte
	err = InNamespace(pid, func() error {
		s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(htons(0x88b5)))
		if err != nil {
			return err
		}
		defer unix.Close(s)
		i, err := net.InterfaceByName(Interface)
		if err != nil {
			return err
		}
		to := &unix.SockaddrLinklayer{Protocol: htons(0x88b5), Ifindex: i.Index}
		if err := unix.Bind(s, to); err != nil {
			return err
		}
		if err := unix.Sendto(s, frame, 0, to); err != nil {
			return err
		}
		if err := d.Write(frame); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
			return err
		}
		b := make([]byte, 2000)
		n, _, err := unix.Recvfrom(s, b, 0)
		back = b[:max(n, 0)]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back, frame) {
		t.Errorf("the namespace received %x, want %x", back, frame)
	}
	n, err := d.Read(buf)
	if err != nil || !bytes.Equal(buf[:n], frame) {
		t.Errorf("the device gave %x, %v; want %x", buf[:max(n, 0)], err, frame)
	}
	c, err := d.Counters()
	if err != nil || c.Sent != 1 || c.Received != 1 || c.SentBytes != uint64(len(frame)) {
		t.Errorf("counters %+v, %v; want one frame each way", c, err)
	}
}

func htons(v uint16) uint16 { return v<<8 | v>>8 } // every test host is little-endian, or the test fails

// A burst longer than the ring is cut, counted, and the sender is not told:
// the reason for the queue board.
func TestTheRingDropsSilently(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	pid := holder(t)
	d, err := Create(pid, Config{HardwareAddress: HardwareAddr(0), QueueLength: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = InNamespace(pid, func() error {
		s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		i, err := net.InterfaceByName(Interface)
		if err != nil {
			return err
		}
		for range 20 {
			if err := unix.Sendto(s, make([]byte, 60), 0, &unix.SockaddrLinklayer{Protocol: htons(0x88b5), Ifindex: i.Index}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, unix.ENOBUFS) {
		t.Fatal(err)
	}
	c, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for b := make([]byte, MaxFrame); ; got++ {
		if _, err := d.Read(b); err != nil {
			break
		}
	}
	if got < 8 || got >= 20 || c.TransmitDropped != uint64(20-got) {
		t.Errorf("%d frames of 20 came through a ring of 8, %d counted as dropped (send: %v)", got, c.TransmitDropped, err)
	}
}

func TestErrors(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	pid := holder(t)
	for _, c := range []struct {
		pid  int
		cfg  Config
		want string
	}{
		{pid, Config{Name: "a-name-that-is-too-long"}, "15 characters"},
		{pid, Config{MTU: 9000}, "MTU 9000"},
		{1 << 22, Config{}, "process 4194304"},
	} {
		d, err := Create(c.pid, c.cfg)
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Create(%d, %+v): %v, want %q", c.pid, c.cfg, err, c.want)
		}
	}
	d, err := Create(pid, Config{HardwareAddress: HardwareAddr(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if e, err := Create(pid, Config{HardwareAddress: HardwareAddr(2)}); err == nil {
		e.Close()
		t.Error("two devices of one name")
	}
}

func TestUnavailableSaysWhatToDo(t *testing.T) {
	for _, e := range []error{unix.ENOENT, unix.ENODEV, unix.EACCES, unix.EPERM} {
		var u *Unavailable
		if err := unavailable(e); !errors.As(err, &u) || u.Do == "" || !errors.Is(err, e) {
			t.Errorf("%v became %v", e, err)
		}
	}
	var u *Unavailable
	if err := unavailable(unix.EMFILE); errors.As(err, &u) {
		t.Errorf("too many open files is not a lack of TAP devices: %v", err)
	}
}

// Namespaces are entered by a thread of their own: goroutines never find
// themselves elsewhere, however many enter at once.
func TestNoGoroutineStaysInAForeignNamespace(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	pid := holder(t)
	own, _ := os.Readlink("/proc/thread-self/ns/net")
	done := make(chan error)
	for range 50 {
		go func() {
			done <- InNamespace(pid, func() error {
				if ns, _ := os.Readlink("/proc/thread-self/ns/net"); ns == own {
					return errors.New("not in the other namespace")
				}
				return nil
			})
		}()
	}
	for range 50 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	deadline := time.Now().Add(time.Second)
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		foreign := 0
		for _, e := range tasks {
			if ns, err := os.Readlink("/proc/self/task/" + e.Name() + "/ns/net"); err == nil && ns != own {
				foreign++
			}
		}
		if foreign == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d threads are still in the other namespace", foreign)
		}
	}
}

func BenchmarkReadWrite(b *testing.B) {
	testenv.Need(b, testenv.Root, testenv.TAP)
	d, err := Create(holder(b), Config{HardwareAddress: HardwareAddr(0)})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	frame := make([]byte, MaxFrame)
	copy(frame, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 'h', 'o', 'p', 0, 1, 0x88, 0xb5})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := d.Write(frame); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read-empty", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.Read(frame); !errors.Is(err, ErrEmpty) {
				b.Fatal(err)
			}
		}
	})
}

// A device with IPv6 has its link-local address at once: nobody is asked whether
// it is there twice.
func TestDeviceWithIPv6(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP)
	pid := holder(t)
	d, err := Create(pid, Config{HardwareAddress: HardwareAddr(0), IPv6: true})
	var lack *Unavailable
	if errors.As(err, &lack) {
		t.Skipf("SKIP[unavailable: IPv6] %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = InNamespace(pid, func() error {
		b, err := os.ReadFile("/proc/thread-self/net/if_inet6")
		// Flags of the address: 0x80 is permanent, 0x40 would be tentative.
		if err == nil && !strings.Contains(string(b), "fe8000000000000000686ffffe700000 ") {
			t.Errorf("addresses:\n%s", b)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 6 && f[5] == Interface && f[4] != "80" {
				t.Errorf("the address is not usable at once: %s", line)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
