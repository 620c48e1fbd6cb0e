package emulator_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// echo reports whether a node answers an echo request within a time.
func (l *lab) echo(from, dst int, within time.Duration) bool {
	l.t.Helper()
	var fd int
	l.inside(from, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		return err
	})
	defer unix.Close(fd)
	l.seq++
	if err := unix.Sendto(fd, echoRequest(l.seq), 0, &unix.SockaddrInet4{Addr: tap.Addr(dst).As4()}); err != nil {
		l.t.Fatal(err)
	}
	b := make([]byte, 1500)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
		if err == nil && n >= 28 && b[20] == 0 && b[26] == byte(l.seq>>8) && b[27] == byte(l.seq) {
			return true
		}
	}
	return false
}

// best is the shortest of some round trips: what a busy host adds is left out.
func (l *lab) best(from, dst int) time.Duration {
	l.t.Helper()
	least := time.Hour
	for range 6 {
		rtt, _ := l.ping(from, dst)
		least = min(least, rtt)
	}
	return least
}

func (l *lab) set(s emulator.Set) {
	l.t.Helper()
	if err := l.proc.Set(l.t.Context(), s); err != nil {
		l.t.Fatal(err)
	}
}

// A wire's delay, loss and state follow each order, in one direction only where
// one is named; a change of which one part is refused changes nothing.
func TestSetAWire(t *testing.T) {
	l := pair(t, pipe.Config{Delay: 10 * ms}, emulator.Options{})
	rtt := func(want time.Duration) {
		t.Helper()
		if got := l.best(0, 1); got < want || got > want+25*time.Millisecond {
			t.Errorf("round trip %v, want %v", got, want)
		}
	}
	rtt(20 * time.Millisecond)
	far, nothing, all := 80*ms, pipe.Loss{}, pipe.Loss{Good: 1}
	up, down := true, false
	l.set(emulator.Set{Pipes: []emulator.SetPipe{{Pipe: 0, End: 1, Change: pipe.Change{Delay: &far}}}})
	rtt(90 * time.Millisecond)
	l.set(emulator.Set{Pipes: []emulator.SetPipe{{Pipe: 0, End: 0, Change: pipe.Change{Loss: &all}}}})
	if l.echo(0, 1, 300*time.Millisecond) {
		t.Error("an echo came over a wire that loses everything")
	}
	l.set(emulator.Set{Pipes: []emulator.SetPipe{{Pipe: 0, End: 0, Change: pipe.Change{Loss: &nothing}}, {Pipe: 0, End: 1, Change: pipe.Change{Up: &down}}}})
	if l.echo(0, 1, 300*time.Millisecond) {
		t.Error("an echo came over a wire that is down")
	}
	l.set(emulator.Set{Pipes: []emulator.SetPipe{{Pipe: 0, End: 1, Change: pipe.Change{Up: &up}}}})
	rtt(90 * time.Millisecond)

	negative, near := -ms, ms
	for want, s := range map[string]emulator.Set{
		"change of nothing": {},
		"does not exist (there are 1": {Pipes: []emulator.SetPipe{
			{Pipe: 0, Change: pipe.Change{Delay: &near}}, {Pipe: 1, Change: pipe.Change{Delay: &near}}}},
		"delay":                       {Pipes: []emulator.SetPipe{{Pipe: 0, Change: pipe.Change{Delay: &near}}, {Pipe: 0, End: 1, Change: pipe.Change{Delay: &negative}}}},
		"has no radio":                {Pipes: []emulator.SetPipe{{Pipe: 0, Change: pipe.Change{Delay: &near}}}, Radio: []emulator.SetLink{{From: 0, To: 1, Up: &down}}},
		"does not exist (there are 2": {Pipes: []emulator.SetPipe{{Pipe: 0, Change: pipe.Change{Delay: &near}}}, Nodes: []emulator.SetNode{{Node: 2}}},
	} {
		if err := l.proc.Set(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	rtt(90 * time.Millisecond)
	l.set(emulator.Set{Nodes: []emulator.SetNode{{Node: 1}}})
	if l.echo(0, 1, 300*time.Millisecond) {
		t.Error("a node that is off answered")
	}
	l.set(emulator.Set{Nodes: []emulator.SetNode{{Node: 1, Up: true}}})
	rtt(90 * time.Millisecond)
	l.stop()
}

// The rate of a radio, and what it hears, follow each order.
func TestSetTheAir(t *testing.T) {
	cfg := line(2, 10, 100, 300)
	l := newLab(t, cfg, emulator.Options{}, nil)
	slow := cfg.MACs[0]
	slow.Rate, slow.BasicRate = 1*vtime.MbitPerSecond, 0
	rx, tx := l.udp(1, 9000, 0), l.udp(0, 9001, 0)
	throughput := func() float64 {
		stop := make(chan struct{})
		defer close(stop)
		go blast(tx, to(1, 9000), 1500, stop)
		from := time.Now().Add(1300 * time.Millisecond) // after what a full queue holds at 1 Mb/s
		return float64(receive(rx, from, from.Add(time.Second))) * 8 / 1e6
	}
	if got := throughput(); got < 3 {
		t.Errorf("%.2f Mb/s at 11 Mb/s", got)
	}
	l.set(emulator.Set{MACs: []emulator.SetMAC{{Node: 0, MAC: slow}}})
	if got := throughput(); got > 0.95 || got < 0.3 {
		t.Errorf("%.2f Mb/s at 1 Mb/s", got)
	}
	time.Sleep(1500 * time.Millisecond) // a full queue at 1 Mb/s
	loss, none, down, up := vtime.Fraction(1), vtime.Fraction(0), false, true
	l.set(emulator.Set{Radio: []emulator.SetLink{{From: 0, To: 1, Loss: &loss}}})
	if l.echo(0, 1, 400*time.Millisecond) {
		t.Error("an echo came although everything is lost")
	}
	l.set(emulator.Set{Radio: []emulator.SetLink{{From: 0, To: 1, Loss: &none, Up: &down}}})
	if l.echo(0, 1, 400*time.Millisecond) {
		t.Error("an echo came over a link that is down")
	}
	l.set(emulator.Set{Radio: []emulator.SetLink{{From: 1, To: 0, Up: &up}}})
	l.ping(0, 1)
	half := vtime.Fraction(0.5)
	err := l.proc.Set(t.Context(), emulator.Set{Radio: []emulator.SetLink{{From: 0, To: 1, Loss: &loss}, {From: 0, To: 1, Delivery: &half}}})
	if err == nil || !strings.Contains(err.Error(), "radio model") {
		t.Errorf("delivery on a disk: %v", err)
	}
	l.ping(0, 1)
	l.stop()
}
