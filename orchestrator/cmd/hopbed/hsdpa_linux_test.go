package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
)

// TestHSDPAInTheLane runs the downlink of hsdpa, shortened, on a kernel that has all
// four congestion controls. The lane's processors are emulated: a run may be invalid,
// and what is asserted is that each variant ran as itself and moved the cell's data.
func TestHSDPAInTheLane(t *testing.T) {
	lanetest.Run(t, lane.Config{Modules: lane.Network, Memory: 2048, Timeout: 8 * time.Minute},
		lanetest.Case{Name: "every variant is the kernel's own", Run: everyVariant})
}

func everyVariant(t *testing.T) {
	dir := liveLab(t)
	status, out, stderr := hopbed(t, dir, "run", "hsdpa", "--backend", "netns", "--db", "h.db", "--repeat", "1", "--duration", "15s",
		"--set", "matrix.direction=[down]", "--set", "limits.reruns=0")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d:\n%s%s", status, out, stderr)
	}
	nothingLeft(t, dir)
	runs := wiredRuns(t, filepath.Join(dir, "h.db"))
	if len(runs) != 4 {
		t.Fatalf("%d runs, want one of each variant", len(runs))
	}
	for _, r := range runs {
		f := r.flows[0]
		rtt := 0
		for _, s := range r.samples[0] {
			if s.SRTTUs.OK {
				rtt = max(rtt, int(s.SRTTUs.V))
			}
		}
		t.Logf("%s: %.2f Mb/s, %d of %d bytes sent again, %d timeouts, largest RTT %d ms, status %s", r.Transport, f.GoodputBps.V/1e6, f.RetransBytes.V, f.SentBytes.V, f.Timeouts.V, rtt/1000, r.Status)
		if "tcp/"+f.CC != r.Transport {
			t.Errorf("%s ran as %s", r.Transport, f.CC)
		}
		// The cell's best is 7.2 Mb/s; 100 ms are the wires.
		if g := f.GoodputBps.V; g < 50e3 || g > 7.2e6 || rtt < 100_000 || !f.RetransBytes.OK || !f.Timeouts.OK {
			t.Errorf("%s: goodput %.0f b/s, RTT %d µs, retransmissions %v, timeouts %v", r.Transport, g, rtt, f.RetransBytes, f.Timeouts)
		}
	}
}
