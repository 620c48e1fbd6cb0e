package emulator_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

const ms = vtime.Millisecond

// wired joins nodes a and b, whose interfaces have the given slots, by a pipe
// that is the same in both directions.
func wired(cfg *emulator.Config, a, slotA, b, slotB int, c pipe.Config) {
	end := func(node, slot int) emulator.PipeEnd {
		return emulator.PipeEnd{Node: node, Interface: fmt.Sprintf("eth%d", slot), HardwareAddress: tap.PipeHardwareAddr(node, slot)}
	}
	cfg.Pipes = append(cfg.Pipes, emulator.Pipe{Ends: [2]emulator.PipeEnd{end(a, slotA), end(b, slotB)}, Config: [2]pipe.Config{c, c}})
}

// pair starts two wired nodes with a pipe between them. Everything on it is the
// test's: there is no address resolution.
func pair(t testing.TB, c pipe.Config, opt emulator.Options) *lab {
	t.Helper()
	return pairOf(t, &emulator.Config{Seed: 7, Nodes: []emulator.Node{{NoRadio: true}, {NoRadio: true}}}, c, opt)
}

// pairOf is pair with a configuration of two wired nodes.
func pairOf(t testing.TB, cfg *emulator.Config, c pipe.Config, opt emulator.Options) *lab {
	t.Helper()
	wired(cfg, 0, 0, 1, 0, c)
	l := bareLab(t, cfg, opt)
	for i := range 2 {
		l.attach(i, "eth0")
		l.neighbour(i, "eth0", 1-i, tap.PipeHardwareAddr(1-i, 0))
		l.route(i, "eth0", 1-i, 1-i)
	}
	return l
}

func withLink(name string, f func(link netlink.Link) error) func() error {
	return func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return f(link)
	}
}

// attach gives the node its address on an interface.
func (l *lab) attach(node int, name string) {
	l.t.Helper()
	l.inside(node, withLink(name, func(link netlink.Link) error {
		return netlink.AddrAdd(link, &netlink.Addr{IPNet: host(tap.Addr(node))})
	}))
}

func (l *lab) neighbour(node int, name string, to int, mac tap.HardwareAddress) {
	l.t.Helper()
	l.inside(node, withLink(name, func(link netlink.Link) error {
		return netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: tap.Addr(to).AsSlice(), HardwareAddr: mac[:]})
	}))
}

// route sends what is for node to through the interface, to via.
func (l *lab) route(node int, name string, to, via int) {
	l.t.Helper()
	l.inside(node, withLink(name, func(link netlink.Link) error {
		r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: host(tap.Addr(to)), Scope: netlink.SCOPE_LINK}
		if via != to {
			r.Gw, r.Scope = tap.Addr(via).AsSlice(), netlink.SCOPE_UNIVERSE
			r.SetFlag(netlink.FLAG_ONLINK)
		}
		return netlink.RouteReplace(r)
	}))
}

// bridge joins interfaces of a node by br0, which gets the node's address.
func (l *lab) bridge(node int, ports ...string) {
	l.t.Helper()
	l.inside(node, func() error {
		mac := tap.HardwareAddr(node)
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", HardwareAddr: net.HardwareAddr(mac[:])}}
		if err := netlink.LinkAdd(br); err != nil {
			return fmt.Errorf("bridge: %w", err)
		}
		for _, p := range ports {
			if err := withLink(p, func(link netlink.Link) error { return netlink.LinkSetMaster(link, br) })(); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(br)
	})
	l.attach(node, "br0")
}

// pairBoard is a board for the two nodes of pair, and what either sees of it.
func pairBoard(t testing.TB) (*board.Board, [2]*board.View) {
	b := newBoard(t, 2, 1)
	return b, [2]*board.View{openView(t, b, 0, 0), openView(t, b, 1, 1)}
}

// numbered sends count packets of size bytes (IP length) with their numbers, no
// more than the ring between kernel and emulator holds at a time, and returns
// when the emulator has taken all.
func (l *lab) numbered(src int, c *net.UDPConn, dst, port, size, first, count int, v *board.View) {
	l.t.Helper()
	const q = board.NumAC
	begin := v.State(q).Arrived
	p := make([]byte, size-28)
	for i := range count {
		binary.BigEndian.PutUint32(p, uint32(first+i))
		if _, err := c.WriteToUDPAddrPort(p, to(dst, port)); err != nil {
			l.t.Fatal(err)
		}
		if i%50 == 49 || i == count-1 {
			for end := time.Now().Add(20 * time.Second); v.State(q).Arrived-begin < uint32(i+1); time.Sleep(100 * time.Microsecond) {
				if time.Now().After(end) {
					l.t.Fatalf("the emulator took %d of %d packets of node %d", v.State(q).Arrived-begin, i+1, src)
				}
			}
		}
	}
}

// numbers reads n packets, fewer if none comes for ten seconds, and returns their
// numbers.
func numbers(c *net.UDPConn, n int) (got []int) {
	b := make([]byte, 2048)
	for len(got) < n {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, _, err := c.ReadFromUDPAddrPort(b); err != nil {
			return got
		}
		got = append(got, int(binary.BigEndian.Uint32(b)))
	}
	return got
}

// kill ends the process that keeps a node's namespace.
func (l *lab) kill(node int) {
	l.t.Helper()
	if err := syscall.Kill(l.pids[node], syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
}

// begin sets the run's clock: its time 0 comes lead from now.
func (l *lab) begin(lead, from, to vtime.Duration) (epoch int64) {
	l.t.Helper()
	epoch = now() + int64(lead)
	if err := l.proc.Begin(l.t.Context(), epoch, vtime.Time(from), vtime.Time(to)); err != nil {
		l.t.Fatal(err)
	}
	return epoch
}

// sleepUntil waits for a moment of the run's clock.
func sleepUntil(epoch int64, at vtime.Duration) {
	time.Sleep(time.Duration(epoch + int64(at) - now()))
}

// transfer sends size random bytes over a TCP connection of the kernel and
// returns how many arrived, whether they were the same, and how long it took. cc
// is the sender's congestion control, "" the kernel's choice.
func (l *lab) transfer(src, dst, size int, cc string) (n int, same bool, took time.Duration) {
	l.t.Helper()
	var ln net.Listener
	l.inside(dst, func() (err error) { ln, err = net.Listen("tcp4", to(dst, 9000).String()); return err })
	defer ln.Close()
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	got := make(chan []byte, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(60 * time.Second))
		b, _ := io.ReadAll(c)
		got <- b
	}()
	var c net.Conn
	t0 := time.Now()
	l.inside(src, func() (err error) {
		c, err = dialHere(&net.Dialer{Timeout: 20 * time.Second}, to(dst, 9000).String())
		return err
	})
	if cc != "" {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			l.t.Fatal(err)
		}
		var opt error
		err = raw.Control(func(fd uintptr) { opt = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, cc) })
		if err = errors.Join(err, opt); err != nil {
			l.t.Fatal(err)
		}
	}
	if _, err := c.Write(data); err != nil {
		l.t.Fatal(err)
	}
	c.Close()
	back := <-got
	return len(back), sha256.Sum256(back) == sha256.Sum256(data), time.Since(t0)
}
