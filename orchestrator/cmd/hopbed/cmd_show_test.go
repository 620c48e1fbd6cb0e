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
		r.Nodes = []store.Node{{Node: 0, Name: "ap"}, {Node: 1, Name: "server", Wired: true}}
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
