package sim

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// captured carries a run out with a capture and returns the paths of its files.
func captured(t testing.TB, r plan.Run, edit func(*backend.Capture)) (rec *store.RunRecord, packets, events string, c *backend.Capture) {
	t.Helper()
	dir := t.TempDir()
	packets, events = filepath.Join(dir, "c.pcapng"), filepath.Join(dir, "c.log")
	c = &backend.Capture{SnapLen: 128, Comment: r.Label()}
	for path, f := range map[string]**os.File{packets: &c.Packets, events: &c.Events} {
		var err error
		if *f, err = os.Create(path); err != nil {
			t.Fatal(err)
		}
		defer (*f).Close()
	}
	if edit != nil {
		edit(c)
	}
	rec, err := New().Run(t.Context(), scenario(t, r), silent, c)
	if err != nil {
		t.Fatalf("%s: %v", r.Label(), err)
	}
	if c.PacketsErr != nil || c.EventsErr != nil || c.Stats.Dropped() > 0 {
		t.Errorf("%s: %v, %v, %+v", r.Label(), c.PacketsErr, c.EventsErr, c.Stats)
	}
	return rec, packets, events, c
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A captured run gives the record that it gives without, and the same files each
// time.
func TestCaptureChangesNoRun(t *testing.T) {
	for _, r := range append(shipped(t, "smoke").Runs, parsed(t, pointFile).Runs...) {
		plain := carryOut(t, r)
		one, packets, events, _ := captured(t, r, nil)
		_, again, eventsAgain, _ := captured(t, r, nil)
		if one.Run.TraceHash != plain.Run.TraceHash || !reflect.DeepEqual(one, plain) {
			t.Errorf("%s: the captured run is another one", r.Label())
		}
		if !bytes.Equal(read(t, packets), read(t, again)) || !bytes.Equal(read(t, events), read(t, eventsAgain)) {
			t.Errorf("%s: two captures differ", r.Label())
		}
	}
}

// Wireshark reads the captures of all transports over radio and wires, cut and
// whole, without a complaint but for what TCP's losses and the air's repeats
// give cause for.
func TestWiresharkReadsEveryTransport(t *testing.T) {
	tshark.Need(t)
	runs := shipped(t, "smoke", "duration=500ms").Runs
	runs = append(runs, parsed(t, pointFile).Runs...)
	runs = append(runs, parsed(t, wiredFile, "matrix.transport=[udp, tcp/reno]").Runs...)
	for i, r := range runs {
		snap := vtime.Bytes(128)
		if i%2 == 1 {
			snap = 0
		}
		_, packets, _, _ := captured(t, r, func(c *backend.Capture) { c.SnapLen = snap })
		tshark.Sound(t, packets, tshark.TCPRemarks)
	}
}

// pointFile is an access point, routing or bridging, between two stations and a
// server; all transports at once.
const pointFile = `hopbed: 1
name: point
title: All transports over an access point
topology:
  nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m], bridge: $bridge}, {name: sta1, at: [10m, 0m]}, {name: sta2, at: [0m, 10m]}]
  pipes: [{ends: [ap, server], rate: 5mbit, delay: 10ms, loss: 0.5%, duplicate: 0.5%, queue: {packets: 30}}]
flows:
  - {pairs: [{src: server, dst: sta1}], transport: tcp/cubic, workload: continual}
  - {pairs: [{src: sta2, dst: server}], transport: hop, workload: continual}
  - {pairs: [{src: sta1, dst: server}], transport: udp, workload: continual}
matrix: {bridge: [true, false]}
transports: {udp: {rate: 500kbit}}
warmup: 100ms
duration: 500ms
repeat: 1
`

// wiredFile is a network of wires: a lossy and slow one in the middle.
const wiredFile = `hopbed: 1
name: wired
title: A flow over a lossy link
topology:
  nodes: [{name: src, radio: false}, {name: r, radio: false}, {name: dst, radio: false}]
  pipes:
    - {ends: [src, r], rate: 100mbit, delay: 1ms, queue: {packets: 1000}}
    - {ends: [r, dst], rate: 10mbit, delay: 20ms, queue: {packets: 50}, loss: 1%}
flows:
  - {pairs: [{src: src, dst: dst}], transport: $transport, workload: continual}
matrix: {transport: [tcp/cubic, tcp/reno]}
transports: {udp: {rate: 5mbit}}
warmup: 1s
duration: 20s
repeat: 1
backends: [sim]
`

// Wireshark's analysis of TCP at the sender's interface finds what our counters
// say: segments, bytes, repeats, and round-trip times.
func TestWiresharkCountsWhatWeCount(t *testing.T) {
	tshark.Need(t)
	testenv.Long(t)
	for _, r := range parsed(t, wiredFile).Runs {
		rec, packets, _, _ := captured(t, r, nil)
		src := filepath.Join(t.TempDir(), "src.pcapng")
		tshark.Select(t, packets, `frame.interface_name == "src:eth0"`, src)
		fields := tshark.Fields(t, src, "tcp", "ip.src", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.ack_rtt", "tcp.analysis.duplicate_ack")
		var segments, bytes, again, againBytes int64
		var rtt []float64
		least := math.Inf(1)
		for _, f := range fields {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if f[0] != rec.Nodes[0].Address {
				if v, err := strconv.ParseFloat(f[4], 64); err == nil {
					rtt = append(rtt, v)
					least = min(least, v)
				}
				continue
			}
			segments++
			bytes += n
			// Nothing is reordered at the sender: what Wireshark takes for that, by
			// its closeness to the last new segment, is a repeat as well.
			if f[2] != "" || f[3] != "" {
				again++
				againBytes += n
			}
		}
		flow := rec.Flows[0]
		if flow.RetransBytes.V == 0 {
			t.Fatalf("%s: nothing was lost: the case is too easy", r.Label())
		}
		facts := rec.Nodes[0].Facts
		for what, c := range map[string][2]string{
			"bytes":            {fmt.Sprint(bytes), fmt.Sprint(flow.SentBytes.V)},
			"bytes sent again": {fmt.Sprint(againBytes), fmt.Sprint(flow.RetransBytes.V)},
			"segments again":   {fmt.Sprint(again), facts["Tcp.RetransSegs"]},
			"other segments":   {fmt.Sprint(segments - again), facts["Tcp.OutSegs"]},
		} {
			if c[0] != c[1] {
				t.Errorf("%s: %s: Wireshark finds %s, our counters say %s", r.Label(), what, c[0], c[1])
			}
		}
		var min, mean float64
		var n int
		for _, s := range rec.Samples {
			if s.Side == store.SideSrc && s.SRTTUs.OK {
				min, mean, n = float64(s.MinRTTUs.V)/1e6, mean+float64(s.SRTTUs.V)/1e6, n+1
			}
		}
		mean /= float64(n)
		var sum float64
		for _, v := range rtt {
			sum += v
		}
		if got := sum / float64(len(rtt)); math.Abs(got/mean-1) > 0.1 || math.Abs(least-min) > 0.002 {
			t.Errorf("%s: round-trip times: Wireshark %.4f s on average, %.4f at least; we %.4f and %.4f", r.Label(), got, least, mean, min)
		}
		t.Logf("%s: %d segments, %d again, mean RTT %.1f ms (%.1f)", r.Label(), segments, again, sum/float64(len(rtt))*1e3, mean*1e3)
	}
}
