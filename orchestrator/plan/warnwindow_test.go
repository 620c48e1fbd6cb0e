package plan

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

// Each option that holds a connection below what its path could carry is told of
// once, with the goodput that it allows. What the goodputs are in a run of the
// model, over 100 Mb/s and a round trip of 200 ms: receive-window 20, 1.11 Mb/s;
// cwnd-cap 20, 1.16; send-buffer 64 KiB, 5.06; receive-buffer 64 KiB, 3.42.
func TestSmallWindows(t *testing.T) {
	const at = "rate: 100mbit, delay: 100ms, queue: {packets: 1000}}]}"
	const flow = "{pairs: [{src: a, dst: b}], transport: tcp/reno}"
	const product = " of the bandwidth-delay product from a to b, flows[0] (100mbit × 200ms = 2.5 MB): at most "
	for options, want := range map[string]string{
		"receive-window: 20":            "transports.tcp.receive-window: 20 × 1460B = 29.2 kB, 1.2 %" + product + "1.17 Mb/s of goodput",
		"receive-window: 20, mss: 500B": "transports.tcp.receive-window: 20 × 500B = 10 kB, 0.44 %" + product + "400 kb/s of goodput",
		"cwnd-cap: 20":                  "transports.tcp.cwnd-cap: 20 × 1448B = 29 kB, 1.2 %" + product + "1.16 Mb/s of goodput",
		"cwnd-cap: 20, mss: 500B":       "transports.tcp.cwnd-cap: 20 × 488B = 9.76 kB, 0.43 %" + product + "390 kb/s of goodput",
		"send-buffer: 64KiB":            "transports.tcp.send-buffer: 64KiB, doubled by the kernel, hold 131 kB, 5.4 %" + product + "5.24 Mb/s of goodput",
		"receive-buffer: 64KiB":         "transports.tcp.receive-buffer: 64KiB, doubled by the kernel, make a window of 87.2 kB, 3.6 %" + product + "3.49 Mb/s of goodput",
		// The window of small segments is the half with which the kernel begins.
		"receive-buffer: 64KiB, mss: 500B": "make a window of 65.5 kB, 2.9 %" + product + "2.62 Mb/s of goodput",
		// 2.5 MB are 1667 packets.
		"receive-window: 1720, cwnd-cap: 1667, send-buffer: 2MiB, receive-buffer: 3MiB": "",
		"receive-window: 1650": "transports.tcp.receive-window: 1650 × 1460B = 2.41 MB, 99 %" + product,
		"cwnd-cap: 1666":       "transports.tcp.cwnd-cap: 1666 × 1448B",
		"send-buffer: 1MiB":    "transports.tcp.send-buffer: 1MiB",
		"receive-buffer: 1MiB": "transports.tcp.receive-buffer: 1MiB",
		"mss: 1460B":           "",
	} {
		got := warnings(t, wire+at, flow, "transports: {tcp: {"+options+"}}\n")
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%s:\ngot  %q\nwant %q", options, got, want)
		}
	}
	// Of several options each, of several points the worst; other transports have no such windows.
	const flows = flow + ", {pairs: [{src: b, dst: a}], transport: tcp/reno}" // each way alone
	got := warnings(t, wire+at, flows, "transports: {tcp: {receive-window: $n, cwnd-cap: 40}}\nmatrix: {n: [2000, 10, 30]}\n")
	for _, w := range []string{"receive-window: 10 × 1460B", "584 kb/s of goodput (the worst of 2 points)", "cwnd-cap: 40 × 1448B", "2.32 Mb/s of goodput (the worst of 3 points)"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q lacks %q", got, w)
		}
	}
	if n := strings.Count(got, "goodput"); n != 2 {
		t.Errorf("%d findings of two options: %q", n, got)
	}
	if got := warnings(t, wire+at, "{pairs: [{src: a, dst: b}], transport: udp}", "transports: {tcp: {receive-window: 2}}\n"); got != "" {
		t.Errorf("udp: %q", got)
	}
}

// Where the file says nothing, the kernel's tuning has an end.
func TestWindowsThatTheKernelTunes(t *testing.T) {
	const at = "rate: 10gbit, delay: 100ms, queue: {packets: 100000}}]}"
	const flow = "{pairs: [{src: a, dst: b}], transport: tcp/cubic}"
	got := warnings(t, wire+at, flow, "")
	if want := "transports.tcp.send-buffer: left out, the kernel makes it as large as 4.19 MB, 1.7 % of the bandwidth-delay product from a to b, flows[0] (10gbit × 200ms = 250 MB): at most 168 Mb/s of goodput"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = warnings(t, wire+at, flow, "transports: {tcp: {send-buffer: 64MiB}}\n")
	if !strings.Contains(got, "transports.tcp.send-buffer: 64MiB, doubled") || !strings.Contains(got, "transports.tcp.receive-buffer: left out, the kernel makes it as large as 33.6 MB, a window of 22.3 MB") {
		t.Errorf("a large send buffer: %q", got)
	}
	if got := warnings(t, wire+at, flow, "transports: {tcp: {receive-window: 10}}\n"); strings.Contains(got, "left out") {
		t.Errorf("the smaller window is asked for: %q", got)
	}
	if got := warnings(t, wire+at, flow, "transports: {tcp: {send-buffer: 64MiB, receive-window: 65535}}\n"); strings.Contains(got, "left out") || !strings.Contains(got, "65535 × 1460B = 95.7 MB, 39 %") {
		t.Errorf("a window that is asked for has the buffer that it needs: %q", got)
	}
}

// The path counts: its least rate, the flows that share it, all of its wires both
// ways, and what the schedule has made of them when the measured interval begins.
func TestWindowsOverPaths(t *testing.T) {
	const tcp, two = "{pairs: [{src: a, dst: b}], transport: tcp/reno}", "{pairs: [{src: a, dst: b}, {src: a, dst: b}], transport: tcp/reno}"
	const row = "{nodes: [{name: a, radio: false}, {name: r, radio: false%s}, {name: b, radio: false}], pipes: [{ends: [a, r], rate: 8mbit, delay: 10ms, queue: {packets: 50}}, {ends: [r, b], rate: 4mbit, delay: 20ms, queue: {packets: 50}, reverse: {delay: 70ms, rate: 1mbit}}]}"
	const air = "{nodes: [{name: a, at: [0m, 0m]}, {name: r, at: [400m, 0m]}, {name: b, radio: false}], pipes: [{ends: [r, b], delay: 100ms}]}"
	const c10 = "transports: {tcp: {cwnd-cap: 10}}\n"
	for _, k := range []struct{ topology, flow, more, want string }{
		{strings.Replace(row, "%s", "", 1), tcp, c10, "from a to b, flows[0] (4mbit × 110ms = 55 kB): at most 1.05 Mb/s"},
		{strings.Replace(row, "%s", ", bridge: true", 1), tcp, c10, "from a to b, flows[0] (4mbit × 110ms = 55 kB)"},
		{strings.Replace(row, "%s", "", 1), two, c10, "(4mbit / 2 flows × 110ms = 27.5 kB): at most 1.05 Mb/s"},
		{strings.Replace(row, "%s", "", 1), "{pairs: [{src: b, dst: a}], transport: tcp/reno}", c10, ""}, // 1 Mb/s × 110 ms = 13.75 kB
		{air, tcp, c10 + "radio: {rate: 11mbit, path-loss: {kind: disk, range: 450m, sense-range: 550m}}\n", "from a to b, flows[0] (11mbit × 200ms = 275 kB)"},
		// Two hops over the air are one flow; what goes the other way does not share a wire.
		{strings.Replace(air, "{name: r,", "{name: m, at: [200m, 0m]}, {name: r,", 1), tcp, c10 + "radio: {rate: 11mbit, path-loss: {kind: disk, range: 250m, sense-range: 550m}}\n", "from a to b, flows[0] (11mbit × 200ms = 275 kB)"},
		{wire + "rate: 8mbit, delay: 50ms, queue: {packets: 50}}]}", "{pairs: [{src: a, dst: b}, {src: b, dst: a}], transport: tcp/reno}", c10, "from a to b, flows[0] (8mbit × 100ms = 100 kB)"},
		{air, "{pairs: [{src: r, dst: b}], transport: tcp/reno}", c10, ""}, // nothing limits the wire
		{"{nodes: [{name: a, at: [0m, 0m]}, {name: r, at: [10m, 0m]}]}", "{pairs: [{src: a, dst: r}], transport: tcp/reno}", "transports: {tcp: {cwnd-cap: 1}}\n", ""},
		{wire + "rate: 1mbit, delay: 1ms, queue: {packets: 900}, schedule: [{at: 1s, rate: 100mbit}, {at: 5s, delay: 50ms}, {at: 6s, rate: 1gbit}]}]}", tcp, c10, "(100mbit × 100ms = 1.25 MB)"},
	} {
		got := warnings(t, k.topology, k.flow, k.more)
		if k.want == "" && strings.Contains(got, "cwnd-cap") || !strings.Contains(got, k.want) {
			t.Errorf("%s %s %s:\ngot  %q\nwant %q", k.topology, k.flow, k.more, got, k.want)
		}
	}
}

// A trace counts with its mean: 1500 bytes each millisecond.
func TestWindowBesideATrace(t *testing.T) {
	const file = "hopbed: 1\nname: x\nrepeat: 5\nwarmup: 5s\nduration: 20s\nflows: [{pairs: [{src: a, dst: b}], transport: tcp/reno}]\ntransports: {tcp: {cwnd-cap: 10}}\n" +
		"topology: " + wire + "trace: {file: t}, delay: 50ms, queue: {packets: 900}}]}\n"
	e, err := spec.ParseFiles("x.yaml", []byte(file), func(string) ([]byte, error) { return []byte("1\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
	p := Build(e)
	if got := strings.Join(p.Warnings(), "\n"); !strings.Contains(got, "transports.tcp.cwnd-cap: 10 × 1448B = 14.5 kB, 10 %") || !strings.Contains(got, "(12mbit × 100ms = 150 kB)") {
		t.Errorf("%q", got)
	}
}

// A relay's sockets bound each hop of hop-by-hop TCP by that hop's product. The
// model's goodput over two wires of 100 Mb/s and 100 ms: 0.70 Mb/s with 64 KiB,
// 3.36 with 256 KiB, 13.8 with 1 MiB.
func TestRelayWindows(t *testing.T) {
	const flow = "{pairs: [{src: a, dst: b}], transport: hop-by-hop-tcp/reno}"
	row := func(first, second string) string {
		return "{nodes: [{name: a, radio: false}, {name: r, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, r], " + first + "}, {ends: [r, b], " + second + "}]}"
	}
	const long, short = "rate: 100mbit, delay: 50ms, queue: {packets: 1000}", "rate: 100mbit, delay: 1ms, queue: {packets: 1000}"
	const at = "transports.hop-by-hop-tcp.relay-buffer: of "
	for _, k := range []struct{ topology, size, want string }{
		{row(long, long), "64KiB", at + "64KiB the socket before a relay has a window of 10.9 kB, 0.9 % of the bandwidth-delay product from a to r, flows[0] (100mbit × 100ms = 1.25 MB): at most 872 kb/s of goodput"},
		{row(long, long), "256KiB", "at most 3.49 Mb/s"},
		{row(long, long), "1MiB", "at most 14 Mb/s"},
		{row(long, long), "8MiB", ""},
		{row(short, long), "64KiB", at + "64KiB the socket behind a relay holds 16.4 kB, 1.4 % of the bandwidth-delay product from r to b, flows[0] (100mbit × 100ms = 1.25 MB): at most 1.31 Mb/s of goodput"},
		{row(short, short), "256KiB", ""},
		// One hop has no relay.
		{wire + long + "}]}", "64KiB", ""},
		{wire + "rate: 1gbit, delay: 50ms, queue: {packets: 9000}}]}", "64KiB", "transports.hop-by-hop-tcp: the kernel makes the source's send buffer as large as 4.19 MB, 34 %"},
	} {
		got := warnings(t, k.topology, flow, "transports: {tcp: {mss: 100B, receive-window: 1}, hop-by-hop-tcp: {relay-buffer: "+k.size+"}}\n") // tcp's are not its own
		if k.want == "" && got != "" || !strings.Contains(got, k.want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%s, %s:\ngot  %q\nwant %q", k.topology, k.size, got, k.want)
		}
	}
}
