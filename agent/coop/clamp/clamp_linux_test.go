package clamp

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/testenv"
)

// TestClamp: the window of a connection that sends for ever follows the cap down
// to one segment and up again, and that of one that was not added does not.
func TestClamp(t *testing.T) {
	c, err := New()
	if e, ok := errors.AsType[*proto.Error](err); ok && e.Code == proto.CodeUnavailable {
		testenv.Need(t, testenv.Because("BPF at sockets (sockops)", e))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, s)
		}
	}()
	var key uint64
	add := func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) { key, err = c.Add(int(fd)) }), err)
	}
	capped, free := begin(t, l.Addr(), add), begin(t, l.Addr(), nil)
	for _, n := range []int{7, 1, 23, None, 3} {
		if err := c.Set(key, n); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { got, err := c.Applied(key); return err == nil && got == n })
		if n == None {
			await(t, func() bool { return capped() > 23 })
			continue
		}
		await(t, func() bool { return capped() <= int64(n) })
		// It stays there, over some thousand round trips.
		for range 20 {
			if got := capped(); got > int64(n) {
				t.Fatalf("capped at %d segments, the window is %d", n, got)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if got := free(); got < 10 {
		t.Errorf("the window of a connection that was not added is %d", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error("again:", err)
	}
}

// begin opens a connection that sends for ever and returns how to read its window.
func begin(t *testing.T, to net.Addr, control func(_, _ string, _ syscall.RawConn) error) (window func() int64) {
	d := net.Dialer{Control: control}
	d.SetMultipathTCP(false)
	conn, err := d.Dial("tcp4", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := conn.Write(buf); err != nil {
				return
			}
		}
	}()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return func() int64 {
		var s proto.Sample
		var failed error
		if err := errors.Join(raw.Control(func(fd uintptr) { failed = probe.TCPInfo(int(fd), &s) }), failed); err != nil {
			t.Error(err)
		}
		return s.CwndPackets
	}
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the cap did not take")
		}
	}
}

func TestSetRefuses(t *testing.T) {
	for _, n := range []int{0, -1} {
		var c Clamp
		if e, ok := errors.AsType[*proto.Error](c.Set(1, n)); !ok || e.Code != proto.CodeOrder {
			t.Errorf("%d: %v", n, e)
		}
	}
}

func TestOwnGroup(t *testing.T) {
	const info = "24 1 0:22 / /sys rw - sysfs sysfs rw\n31 24 0:27 /pod/7 /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
	if at, root, ok := mountOf(info); at != "/sys/fs/cgroup/unified" || root != "/pod/7" || !ok {
		t.Errorf("mount: %q %q %v", at, root, ok)
	}
	if _, _, ok := mountOf("24 1 0:22 / /sys rw - sysfs sysfs rw\n"); ok {
		t.Error("a hierarchy where there is none")
	}
	if g, ok := groupOf("5:memory:/x\n0::/user.slice/a:b\n"); g != "/user.slice/a:b" || !ok {
		t.Errorf("group: %q %v", g, ok)
	}
	if _, ok := groupOf("5:memory:/x\n"); ok {
		t.Error("a group where there is none")
	}
	if e, _ := errors.AsType[*proto.Error](unavailable(unix.EPERM)); e.Code != proto.CodeUnavailable || e.Remedy == "" {
		t.Errorf("%+v", e)
	}
}
