package sim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// everyLoad is a file with every workload of messages over every transport that
// carries it, by the matrix.
const everyLoad = `hopbed: 1
name: loads
topology: {generate: {kind: chain, nodes: 3, spacing: 200m}}
radio: {standard: 802.11b, rate: 11mbit, path-loss: {kind: disk, range: 250m, sense-range: 550m}}
mac: {queues: {bk: {txop: 8160us, ack: none}}}
flows:
  - {pairs: [{src: n01, dst: n03}], transport: $case.transport, workload: $case.load}
  - {pairs: [{src: n03, dst: n02}], transport: $case.transport, workload: $case.load}
matrix:
  case:
    - {label: poisson tcp, transport: tcp/cubic, load: &poisson {kind: poisson, size: 4kB, interval: 50ms, sizes: exponential}}
    - {label: poisson hop, transport: hop, load: *poisson}
    - {label: poisson udp, transport: udp/no-arq+txop, load: *poisson}
    - {label: voip udp, transport: udp, load: &voip {kind: voip}}
    - {label: voip relayed, transport: hop-by-hop-tcp/reno, load: *voip}
    - {label: web tcp, transport: tcp/cubic, load: &web {kind: web, think: 300ms, object-size: 10kB, max-size: 100kB}}
    - {label: web hop, transport: hop, load: *web}
warmup: 1s
duration: 8s
sample: 200ms
`

// TestMessagesAreInTheRecord, in their order, those of the warm-up among them, with
// what the file's workload says of them; a page is a message of the responses.
func TestMessagesAreInTheRecord(t *testing.T) {
	for _, r := range parsed(t, everyLoad).Runs {
		t.Run(r.Label(), func(t *testing.T) {
			rec := carryOut(t, r)
			web := strings.Contains(r.Label(), "web")
			if want := map[bool]int{false: 2, true: 4}[web]; len(rec.Flows) != want {
				t.Fatalf("%d flows, want %d", len(rec.Flows), want)
			}
			for _, f := range rec.Flows {
				if f.Status != store.FlowOK || f.Bytes == 0 {
					t.Errorf("flow %d: %s %q, %d B", f.Flow, f.Status, f.Error, f.Bytes)
				}
			}
			count := map[int]int{}
			var before store.Message
			early, late := 0, 0
			for i, m := range rec.Messages {
				if i > 0 && (m.Flow < before.Flow || m.Flow == before.Flow && (m.Message != before.Message+1 || m.ReadyUs < before.ReadyUs)) {
					t.Errorf("%+v after %+v", m, before)
				}
				before = m
				count[m.Flow]++
				if m.ReadyUs < 1e6 {
					early++
				}
				if m.Flow > 1 || m.Size <= 0 || m.DelayUs.OK && m.DelayUs.V <= 0 {
					t.Errorf("%+v", m)
				}
				if !m.DelayUs.OK && m.ReadyUs < 8.5e6 && !strings.Contains(r.Label(), "no-arq") && !strings.Contains(r.Label(), "udp") {
					late++
				}
			}
			if count[0] < 5 || count[1] < 5 || late > 0 || early == 0 && !web {
				t.Errorf("%v messages, %d of the warm-up, %d not delivered though there was time", count, early, late)
			}
		})
	}
}

// TestFilesOfTheComparison are carried out, those that DESIGN.md has its tables from.
func TestFilesOfTheComparison(t *testing.T) {
	for _, name := range []string{"messages", "messages-loss"} {
		src, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range parsed(t, string(src), "duration=3s").Runs {
			if rec := carryOut(t, r); len(rec.Messages) == 0 || rec.Flows[0].Status != store.FlowOK {
				t.Errorf("%s, %s: %d messages, %s %s", name, r.Label(), len(rec.Messages), rec.Flows[0].Status, rec.Flows[0].Error)
			}
		}
	}
}

// TestProgramsAreUnavailable in virtual time, which has no kernel.
func TestProgramsAreUnavailable(t *testing.T) {
	err := carried(nil, 2, "iperf3/cubic")
	if _, ok := errors.AsType[*backend.ErrUnsupported](err); !ok || !strings.Contains(err.Error(), "flows[2].transport: iperf3/cubic is unavailable on the back end sim") {
		t.Errorf("%v", err)
	}
}

// TestVariantsOfUDPInAFile: without acknowledgements in bursts, 1.2 to 1.6 times as
// much comes over a clean hop of 802.11b.
func TestVariantsOfUDPInAFile(t *testing.T) {
	const file = `hopbed: 1
name: variants
topology: {generate: {kind: chain, nodes: 2, spacing: 100m}}
radio: {standard: 802.11b, rate: 11mbit, path-loss: {kind: disk, range: 250m, sense-range: 550m}}
flows: [{pairs: [{src: n01, dst: n02}], transport: $transport}]
matrix: {transport: [udp, udp/txop, udp/no-arq, udp/no-arq+txop]}
warmup: 1s
duration: 5s
`
	var mbit []float64
	for _, r := range parsed(t, file).Runs {
		mbit = append(mbit, carryOut(t, r).Flows[0].GoodputBps.V/1e6)
	}
	t.Logf("%.3f Mb/s", mbit)
	if r := mbit[3] / mbit[0]; r < 1.2 || r > 1.6 || mbit[1] <= mbit[0] || mbit[2] <= mbit[0] || mbit[3] <= max(mbit[1], mbit[2]) {
		t.Errorf("udp, with txop, without ARQ, both: %.3f Mb/s", mbit)
	}
}
