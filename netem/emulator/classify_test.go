package emulator

import (
	"testing"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

func ether(dst tap.HardwareAddress, kind uint16, payload ...byte) []byte {
	src := tap.HardwareAddr(0)
	f := append(append([]byte{}, dst[:]...), src[:]...)
	return append(append(f, byte(kind>>8), byte(kind)), payload...)
}

func ipv4(tos byte, total, have int) []byte {
	p := make([]byte, max(have, 4))
	p[0], p[1], p[2], p[3] = 0x45, tos, byte(total>>8), byte(total)
	return p[:have]
}

func TestClassify(t *testing.T) {
	all := tap.HardwareAddress{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	group := tap.HardwareAddress{0x01, 0, 0x5e, 0, 0, 1}
	for _, c := range []struct {
		name  string
		frame []byte
		want  class
		why   refusal
	}{
		{"unicast", ether(tap.HardwareAddr(3), typeIPv4, ipv4(0, 100, 100)...), class{wifi.BE, 100}, accepted},
		{"the packet's own length counts, not the padding", ether(tap.HardwareAddr(3), typeIPv4, ipv4(0, 28, 46)...), class{wifi.BE, 28}, accepted},
		{"background", ether(tap.HardwareAddr(9), typeIPv4, ipv4(1<<5, 1500, 1500)...), class{wifi.BK, 1500}, accepted},
		{"voice with ECN bits", ether(tap.HardwareAddr(9), typeIPv4, ipv4(6<<5|3, 60, 60)...), class{wifi.VO, 60}, accepted},
		{"broadcast", ether(all, typeIPv4, ipv4(0, 60, 60)...), class{wifi.BE, 60}, accepted},
		{"multicast", ether(group, typeIPv4, ipv4(0, 60, 60)...), class{wifi.BE, 60}, accepted},
		{"ARP request", ether(all, typeARP, make([]byte, 28)...), class{wifi.BE, 28}, accepted},
		{"IPv6", ether(all, 0x86dd, make([]byte, 60)...), class{}, foreign},
		{"802.3 length field", ether(all, 60, make([]byte, 60)...), class{}, foreign},
		{"no header", make([]byte, 13), class{}, foreign},
		{"no packet", ether(tap.HardwareAddr(3), typeIPv4), class{}, foreign},
		{"IP header cut", ether(tap.HardwareAddr(3), typeIPv4, ipv4(0, 100, 19)...), class{}, foreign},
		{"IP longer than the frame", ether(tap.HardwareAddr(3), typeIPv4, ipv4(0, 101, 100)...), class{}, foreign},
		{"IP shorter than its header", ether(tap.HardwareAddr(3), typeIPv4, ipv4(0, 19, 100)...), class{}, foreign},
		{"version 6 in IPv4", ether(tap.HardwareAddr(3), typeIPv4, append([]byte{0x60}, make([]byte, 60)...)...), class{}, foreign},
		{"ARP cut", ether(all, typeARP, make([]byte, 27)...), class{}, foreign},
		{"any address", ether(tap.HardwareAddress{2, 1, 2, 3, 4, 5}, typeIPv4, ipv4(0, 60, 60)...), class{wifi.BE, 60}, accepted},
	} {
		if got, why := classify(c.frame, false); got != c.want || why != c.why {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, why, c.want, c.why)
		}
	}
	ipv6 := append([]byte{0x6c, 0, 0, 0, 0, 24}, make([]byte, 58)...) // CS6, 24 bytes behind the header
	for _, c := range []struct {
		name  string
		frame []byte
		on    bool
		want  class
		why   refusal
	}{
		{"IPv6 where it is off", ether(all, typeIPv6, ipv6...), false, class{}, foreign},
		{"IPv6", ether(tap.HardwareAddress{0x33, 0x33, 0, 1, 0, 6}, typeIPv6, ipv6...), true, class{wifi.VO, 64}, accepted},
		{"IPv6 cut", ether(all, typeIPv6, ipv6[:63]...), true, class{}, foreign},
		{"IPv6 without its header", ether(all, typeIPv6, ipv6[:39]...), true, class{}, foreign},
		{"version 4 in IPv6", ether(all, typeIPv6, ipv4(0, 60, 60)...), true, class{}, foreign},
		{"IPv4 beside it", ether(all, typeIPv4, ipv4(0, 60, 60)...), true, class{wifi.BE, 60}, accepted},
	} {
		if got, why := classify(c.frame, c.on); got != c.want || why != c.why {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, why, c.want, c.why)
		}
	}
	f := ether(tap.HardwareAddr(3), typeIPv4, ipv4(0, 100, 100)...)
	if n := testing.AllocsPerRun(100, func() { classify(f, false) }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// The destination address chooses the radio: the owner's, whichever of its
// interfaces is meant, or that of a bridge before it.
func TestReceiver(t *testing.T) {
	c := &Config{Nodes: make([]Node, 6)}
	c.Nodes[4].NoRadio, c.Nodes[5].NoRadio = true, true
	c.Nodes[0].Via = map[int]int{4: 2, 3: 2}
	group := tap.HardwareAddress{0x01, 0, 0x5e, 0, 0, 1}
	for _, w := range []struct {
		name string
		dst  tap.HardwareAddress
		to   int
		ok   bool
	}{
		{"a radio", tap.HardwareAddr(1), 1, true},
		{"a wired interface of a node with a radio", tap.PipeHardwareAddr(1, 3), 1, true},
		{"a radio behind a bridge", tap.HardwareAddr(3), 2, true},
		{"a wired node behind a bridge", tap.PipeHardwareAddr(4, 0), 2, true},
		{"a wired node that no bridge leads to", tap.PipeHardwareAddr(5, 0), 0, false},
		{"a group", group, wifi.Broadcast, true},
		{"itself", tap.HardwareAddr(0), 0, false},
		{"a node that does not exist", tap.HardwareAddr(6), 0, false},
		{"a wired interface of a node that does not exist", tap.PipeHardwareAddr(6, 0), 0, false},
		{"somebody else's address", tap.HardwareAddress{2, 1, 2, 3, 4, 5}, 0, false},
	} {
		to, ok := c.receiver(0, ether(w.dst, typeIPv4, ipv4(0, 60, 60)...))
		if ok != w.ok || ok && to != w.to {
			t.Errorf("%s: radio %d, %v; want %d, %v", w.name, to, ok, w.to, w.ok)
		}
	}
	f := ether(tap.PipeHardwareAddr(4, 0), typeIPv4, ipv4(0, 100, 100)...)
	if n := testing.AllocsPerRun(100, func() { c.receiver(0, f) }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func TestJudge(t *testing.T) {
	good := func() *Report {
		return &Report{Priority: "SCHED_FIFO 20", Measured: Span{
			To:       10 * vtime.Time(vtime.Second),
			Lateness: LatenessSummary{Events: 1e6, P50: 20 * vtime.Microsecond, P99: 100 * vtime.Microsecond},
			Frames:   FrameCounts{Written: 1e6},
		}}
	}
	for _, c := range []struct {
		name              string
		change            func(*Report)
		valid             bool
		reasons, warnings int
	}{
		{"good", func(r *Report) {}, true, 0, 0},
		{"at the bound", func(r *Report) { r.Measured.Lateness.P99 = ValidP99 }, true, 0, 0},
		{"warn", func(r *Report) { r.Measured.Lateness.P99 = ValidP99 + 1 }, true, 0, 1},
		{"at the second bound", func(r *Report) { r.Measured.Lateness.P99 = WarnP99 }, true, 0, 1},
		{"late", func(r *Report) { r.Measured.Lateness.P99 = WarnP99 + 1 }, false, 1, 0},
		{"a long tail", func(r *Report) { r.Measured.Lateness.Above2ms = 0.0101 }, false, 1, 0},
		{"a bearable tail", func(r *Report) { r.Measured.Lateness.Above2ms = 0.01 }, true, 0, 0},
		{"a short standstill", func(r *Report) { r.Measured.Lateness.Stall = 50 * vtime.Millisecond }, true, 0, 0},
		{"a standstill of note", func(r *Report) { r.Measured.Lateness.Stall = 51 * vtime.Millisecond }, true, 0, 1},
		{"a standstill of more than 1 %", func(r *Report) { r.Measured.Lateness.Stall = 101 * vtime.Millisecond }, false, 1, 0},
		{"a long turn", func(r *Report) { r.Measured.Lateness.Turn = 101 * vtime.Millisecond }, false, 1, 0},
		{"one event very late", func(r *Report) { r.Measured.Lateness.Max = 101 * vtime.Millisecond }, false, 1, 0},
		{"a standstill beyond TCP's time-out", func(r *Report) {
			r.Measured.To, r.Measured.Lateness.Stall = 300*vtime.Time(vtime.Second), 201*vtime.Millisecond
		}, false, 1, 0},
		{"a standstill in a very short run", func(r *Report) {
			r.Measured.To, r.Measured.Lateness.Stall = vtime.Time(vtime.Second), 19*vtime.Millisecond
		}, true, 0, 1},
		{"a standstill shorter than a wire's queue", func(r *Report) {
			r.Measured.Lateness.Stall, r.ShortestDrain = 29*vtime.Millisecond, 60*vtime.Millisecond
		}, true, 0, 0},
		{"a standstill longer than a wire's queue", func(r *Report) {
			r.Measured.Lateness.Stall, r.ShortestDrain = 61*vtime.Millisecond, 60*vtime.Millisecond
		}, false, 1, 0},
		{"a standstill longer than a very short queue", func(r *Report) {
			r.Measured.Lateness.Stall, r.ShortestDrain = 19*vtime.Millisecond, 6*vtime.Millisecond
		}, true, 0, 1},
		{"hardly any events", func(r *Report) { r.Measured.Lateness.Events = 5 }, true, 0, 1},
		{"ring drops", func(r *Report) { r.RingDrops = 1 }, true, 0, 1},
		{"a refused frame", func(r *Report) { r.Measured.Frames.WriteErrors = 1 }, true, 0, 1},
		{"many refused frames", func(r *Report) { r.Measured.Frames.WriteErrors = 1000 }, false, 1, 0},
		{"a broken device", func(r *Report) { r.Measured.Frames.ReadErrors = 1 }, false, 1, 0},
		{"a change at the bound", func(r *Report) { r.Changes = &ChangesReport{Applied: 1, MaxLate: MaxChangeLate} }, true, 0, 0},
		{"a change that came late", func(r *Report) { r.Changes = &ChangesReport{Applied: 1, MaxLate: MaxChangeLate + 1} }, false, 1, 0},
		{"unknown addresses", func(r *Report) { r.Measured.Frames.Unknown = 1 }, true, 0, 1},
		{"no counters of a wire", func(r *Report) { r.PipeEnds = [][2]EndReport{{{}, {Interface: "eth0", DeviceError: "gone"}}} }, true, 0, 1},
		{"no counters", func(r *Report) { r.Nodes = []NodeReport{{Name: "n01", DeviceError: "gone"}} }, true, 0, 1},
	} {
		r := good()
		c.change(r)
		if v := Judge(r); v.Valid != c.valid || len(v.Reasons) != c.reasons || len(v.Warnings) != c.warnings {
			t.Errorf("%s: %+v; want valid %v with %d reasons and %d warnings", c.name, v, c.valid, c.reasons, c.warnings)
		}
	}
}

func TestShortestDrain(t *testing.T) {
	wire := func(rate vtime.BitRate, q pipe.Queue, back pipe.Config) Pipe {
		return Pipe{Config: [2]pipe.Config{{Rate: rate, Queue: q}, back}}
	}
	const mbit = vtime.MbitPerSecond
	for _, c := range []struct {
		name  string
		pipes []Pipe
		want  vtime.Duration
	}{
		{"no wires", nil, 0},
		{"no rate", []Pipe{wire(0, pipe.Queue{Packets: 10}, pipe.Config{})}, 0},
		{"no limit", []Pipe{wire(10*mbit, pipe.Queue{}, pipe.Config{})}, 0},
		{"100 packets at 20 Mb/s", []Pipe{wire(20*mbit, pipe.Queue{Packets: 100}, pipe.Config{})}, 60 * vtime.Millisecond},
		{"bytes bind", []Pipe{wire(20*mbit, pipe.Queue{Packets: 100, Bytes: 15000}, pipe.Config{})}, 6 * vtime.Millisecond},
		{"the other direction, the second wire", []Pipe{
			wire(20*mbit, pipe.Queue{Packets: 100}, pipe.Config{}),
			wire(5*mbit, pipe.Queue{Packets: 100}, pipe.Config{Rate: 50 * mbit, Queue: pipe.Queue{Packets: 100}}),
		}, 24 * vtime.Millisecond},
	} {
		if got := shortestDrain(&Config{Pipes: c.pipes}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
