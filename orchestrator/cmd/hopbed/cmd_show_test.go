package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// putRuns puts runs of one campaign into dir's results.db, each with two nodes.
func putRuns(t *testing.T, dir string, c store.Campaign, recs ...*store.RunRecord) int64 {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c.FileText, c.Planned = "hopbed: 1\nname: "+c.Name+"\n", int64(len(recs))
	id, err := st.CreateCampaign(ctx, &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		r.Run.CampaignID, r.Run.Backend, r.Run.DurationS, r.Run.Status = id, c.Backend, 10, store.RunComplete
		r.Run.Seed = store.Seed(r.Run.Repetition)
		if r.Nodes == nil {
			r.Nodes = []store.Node{{Node: 0, Name: "ap"}, {Node: 1, Name: "server", Wired: true}}
		}
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.FinishCampaign(ctx, id, store.CampaignComplete, ""); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestShowSaysWhatWiredLinksDidAndWhichFilesThereAre(t *testing.T) {
	dir := t.TempDir()
	putRuns(t, dir, store.Campaign{Name: "wired", Backend: "sim"}, &store.RunRecord{
		Run: store.Run{Repetition: 1, Transport: "tcp/cubic"},
		Pipes: []store.Pipe{
			{Src: 0, Dst: 1, Interface: "eth0", RateBps: store.Some[int64](5e6), DelayUs: store.Some[int64](20_500), QueuePackets: store.Some[int64](100), Loss: store.Some(0.015),
				Setting: "jitter normal 2ms", Entered: store.Some[int64](4321), Delivered: store.Some[int64](4300), Lost: store.Some[int64](14), DropsQueue: store.Some[int64](7),
				BusyUs: store.Some[int64](9_500_000), QueueMaxPackets: store.Some[int64](99), QueueMeanPackets: store.Some(41.25)},
			{Src: 1, Dst: 0, Interface: "eth1", Setting: "trace umts.down"},
		},
		Artifacts: []store.Artifact{{Kind: "pcapng", Path: "out.pcapng", SHA256: strings.Repeat("ab", 32), Bytes: 4711}},
	})
	status, out, stderr := hopbed(t, dir, "show", "1")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, out, "back end sim", "ap → server", "eth0", "5 Mb/s", "20.5 ms", "100 packets", "1.5 %", "4321", "95.0 %", "41.2", "99", "jitter normal 2ms",
		"server → ap", "by trace", "none", "out.pcapng", "pcapng", "4711", strings.Repeat("ab", 32))
	_, out, _ = hopbed(t, dir, "export", "--table", "pipes")
	says(t, out, "run_id,pipe,src,dst,interface,rate_bps", ",backend\r\n", "1,0,0,1,eth0,5000000,20500,100,,0.015,jitter normal 2ms,4321,")
	_, out, _ = hopbed(t, dir, "export", "--table", "artifacts", "--format", "json")
	says(t, out, `"path":"out.pcapng"`, `"backend":"sim"`)
}

// What the file left to the host, and what real nodes were read back as, is said where
// a run is looked at; emulated nodes, of which there is nothing to say, are not.
func TestShowSaysWhatWasMadeOfSettings(t *testing.T) {
	dir := t.TempDir()
	putRuns(t, dir, store.Campaign{Name: "auto", Backend: "netns"}, &store.RunRecord{
		Run:   store.Run{Repetition: 1, Transport: "hop", Facts: store.Facts{"pipe_0_emulator": "user: the kernel has no sch_netem", "wakes": "7"}},
		Nodes: []store.Node{{Node: 0, Name: "a", Facts: store.Facts{"clock": "this host's", "mtu": "1500"}}, {Node: 1, Name: "b"}},
	})
	putRuns(t, dir, store.Campaign{Name: "lab", Backend: "ssh"}, &store.RunRecord{
		Run: store.Run{Repetition: 1, Transport: "hop"},
		Nodes: []store.Node{
			{Node: 0, Name: "a", Facts: store.Facts{"host": "roof", "matched": "in order, number 1", "interface": "ath0", "radio_driver": "madwifi",
				"radio.rate": "11 Mb/s (verified)", "radio.basic-rate": "2 Mb/s (unverified: the hardware's)", "clock_offset_us": "4999999980.1", "clock_bound_us": "46.7",
				"clock_offset_after_us": "4999999990.0", "clock_bound_after_us": "40.0", "clock_drift_ppm": "6.74 ± 36.55"}},
			{Node: 1, Name: "b", Facts: store.Facts{"host": "door", "matched": "by name", "interface": "eth1", "radio_driver": "none", "clock": "this host's", "shaper_eth1": "2 classes out, 1 in"}},
		},
	})
	status, out, stderr := hopbed(t, dir, "show", "1")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	says(t, out, "\nwired link 0 of the file: emulator user: the kernel has no sch_netem\n")
	if strings.Contains(out, "node a:") || strings.Contains(out, "wakes") {
		t.Errorf("says of nodes that are as always:\n%s", out)
	}
	_, out, _ = hopbed(t, dir, "show", "2")
	says(t, out,
		"node a: roof of the inventory (in order, number 1), interface ath0, radio driver madwifi; clock 4999999980.1 µs ± 46.7 µs from this host's, afterwards 4999999990.0 µs ± 40.0 µs, drift 6.74 ± 36.55 ppm; radio.basic-rate = 2 Mb/s (unverified: the hardware's); radio.rate = 11 Mb/s (verified)\n",
		"node b: door of the inventory (by name), interface eth1, radio driver none; clock this host's; shaper_eth1 = 2 classes out, 1 in\n")
}
