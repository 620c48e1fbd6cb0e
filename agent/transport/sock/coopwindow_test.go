//go:build linux

package sock

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

type fixedClock vtime.Time

func (c fixedClock) Now() vtime.Time { return vtime.Time(c) }

// TestAdmit: a source without a cap writes what it likes, one with a cap whole
// segments that fit it, and one whose queue is full waits for room, for the stop or
// for the end of its context.
func TestAdmit(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn := d.(*net.TCPConn)
	w := &coopWindow{mss: 1000}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	admit := func(clock fixedClock, stop vtime.Time, piece vtime.Bytes) (vtime.Bytes, error) {
		return w.admit(ctx, conn, clock, stop, piece)
	}
	for _, c := range []struct {
		segments    int
		piece, want vtime.Bytes
	}{{0, 1 << 20, 1 << 20}, {7, 1 << 20, 7000}, {7, 2500, 2500}, {1, 1 << 20, 1000}, {1, 10, 10}} {
		if err := w.set(c.segments); err != nil {
			t.Fatal(err)
		}
		if got, err := admit(0, 1, c.piece); got != c.want || err != nil {
			t.Errorf("%d segments, a piece of %d: %d, %v", c.segments, c.piece, got, err)
		}
	}
	// The other end reads nothing, and what neither kernel takes stays in the queue.
	if err := w.set(4); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, 1<<20); err == nil; {
		_, err = conn.Write(buf)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	var queued int
	if err := OnConn(conn, func(fd int) (err error) { queued, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); return err }); err != nil || queued < 4000 {
		t.Fatalf("%d bytes are queued, %v", queued, err)
	}
	if n, err := admit(1, 1, 1000); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at the stop: %d, %v", n, err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	if n, err := admit(0, 1, 1000); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("at the end of the context: %d, %v", n, err)
	}
}

// TestNoWindow: sources of other transports have none.
func TestNoWindow(t *testing.T) {
	var w *coopWindow
	w.begin(nil)
	w.end()
}

func TestCoopCheck(t *testing.T) {
	good := proto.Flow{Transport: "coop-tcp/cubic", Options: proto.FlowOptions{Coop: &proto.Coop{Limit: proto.LimitQueue}}}
	if err := (Coop{}).Check(&good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*proto.Flow){
		"tcp/CC":         func(f *proto.Flow) { f.Transport = "coop-tcp" },
		"cwnd_cap":       func(f *proto.Flow) { f.Options.CwndCap = 5 },
		"block_size":     func(f *proto.Flow) { f.Options.BlockSize = 5 },
		"coop.limit":     func(f *proto.Flow) { f.Options.Coop = &proto.Coop{Limit: "magic"} },
		"coop.bandwidth": func(f *proto.Flow) { f.Options.Coop = &proto.Coop{Bandwidth: -1} },
	} {
		f := good
		change(&f)
		if err := (Coop{}).Check(&f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	f := good
	f.Transport = "tcp/cubic"
	if err := (TCP{}).Check(&f); err == nil || !strings.Contains(err.Error(), "coop") {
		t.Errorf("TCP takes options of coop-tcp: %v", err)
	}
}
