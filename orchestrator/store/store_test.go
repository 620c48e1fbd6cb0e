package store

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"sort"
	"testing"
	"time"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func temp(t *testing.T) *Store { return open(t, filepath.Join(t.TempDir(), "results.db")) }

func campaign(t *testing.T, s *Store) *Campaign {
	t.Helper()
	c := &Campaign{Name: "two", Title: "Two nodes", Backend: "sim", Seed: 1<<64 - 1, FileText: "hopbed: 1\n", Version: "test", HostFacts: Facts{"cpus": "2"}, Planned: 2}
	if _, err := s.CreateCampaign(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// record is a run of two nodes and one flow with n samples.
func record(campaignID int64, rep, n int) *RunRecord {
	const bytes = 1_234_567
	rec := &RunRecord{
		Run: Run{CampaignID: campaignID, Backend: "sim", Seed: 1 << 63, Repetition: rep, Params: Params{"transport": "hop", "loss": "20%"}, Transport: "hop",
			WarmupS: 5, DurationS: 30, SampleS: Some(0.1), WallS: 1.5, Started: StampOf(time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)), Status: RunComplete,
			Warnings: Strings{"a warning"}, TraceHash: "00ff", LatenessP99Us: Some(120.5), Events: Some[int64](1 << 60)},
		Nodes: []Node{{Node: 0, Name: "n01", Address: "10.77.0.1", XM: Some(0.0), YM: Some(1.5)}, {Node: 1, Name: "n02", Address: "10.77.0.2", Wired: true, Bridge: true}},
		Links: []Link{{Src: 0, Dst: 1, Delivery: Some(0.9), ETX: Some(1.2), Routed: true, Measured: "model"}},
		Flows: []Flow{{Flow: 0, Transport: "hop", Workload: "continual", Src: 0, Dst: 1, Hops: 1, Path: Path{0, 1}, StopS: 35, Bytes: bytes,
			GoodputBps: Goodput(bytes, 30), Blocks: Some[int64](4), Counters: Counters{"vbsyn": 2}, Status: FlowOK,
			Role: "responses", Peer: Some[int64](1), DSCP: Some[int64](46), Messages: Some[int64](9), MessagesDelivered: Some[int64](8), DelayP50Us: Some[int64](5), DelayP99Us: Some[int64](7),
			RFactor: Some(82.5), MOS: Some(4.1)}},
		Messages:  []Message{{Message: 1, Size: 20, ReadyUs: 5_000_000, DelayUs: Some[int64](1)}, {Message: 0, Size: 1 << 40, ReadyUs: 4_999_999}},
		NodeStats: []NodeStat{{Node: 0, AC: ACAll, AirtimeTxUs: Some[int64](1), AirtimeIdleUs: Some[int64](0)}, {Node: 0, AC: "BK", Attempts: Some[int64](7)}},
		Pipes: []Pipe{{Pipe: 0, Src: 0, Dst: 1, Interface: "eth0", RateBps: Some[int64](10e6), DelayUs: Some[int64](20_000), QueuePackets: Some[int64](100), Loss: Some(0.01),
			Setting: "jitter normal 2ms", Entered: Some[int64](900), DropsQueue: Some[int64](3), BusyUs: Some[int64](1 << 40), QueueMeanPackets: Some(1.5)},
			{Pipe: 0, Src: 1, Dst: 0, Interface: "eth1"}},
		Events:    []Event{{Kind: "stall", Text: "twice", Count: 2}, {TUs: Some[int64](5), Kind: "x"}},
		Artifacts: []Artifact{{Kind: "pcap", Path: "a.pcap", SHA256: "00", Bytes: 3}},
	}
	for i := range n {
		rec.Samples = append(rec.Samples, Sample{Side: SideDst, Node: 1, TUs: int64(i) * 100_000, DeliveredBytes: Some(int64(i) * 1000), CwndPackets: Some(float64(i) / 3), Tokens: Counted(int64(i))})
	}
	return rec
}

func TestWhatWasSavedIsRead(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	c := campaign(t, s)
	rec := record(c.ID, 1, 100)
	if err := s.SaveRun(ctx, rec); err != nil {
		t.Fatal(err)
	}
	gotC, err := s.Campaign(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotC, c) {
		t.Errorf("campaign:\n got %+v\nwant %+v", gotC, c)
	}
	run, err := s.Run(ctx, rec.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	rec.Run.InvalidReasons = Strings{} // an empty list and none are the same in the database
	rec.Run.Facts = Facts{}
	if !reflect.DeepEqual(*run, rec.Run) {
		t.Errorf("run:\n got %+v\nwant %+v", *run, rec.Run)
	}
	for i := range rec.Nodes {
		rec.Nodes[i].Facts = Facts{}
	}
	f := Filter{RunIDs: []int64{run.ID}}
	compare(t, "nodes", rec.Nodes)(s.Nodes(ctx, f))
	compare(t, "links", rec.Links)(s.Links(ctx, f))
	compare(t, "flows", rec.Flows)(s.Flows(ctx, f))
	sort.Slice(rec.NodeStats, func(i, j int) bool { return rec.NodeStats[i].AC < rec.NodeStats[j].AC })
	compare(t, "node_stats", rec.NodeStats)(s.NodeStats(ctx, f))
	compare(t, "pipes", rec.Pipes)(s.Pipes(ctx, f))
	compare(t, "events", rec.Events)(s.Events(ctx, f))
	compare(t, "artifacts", rec.Artifacts)(s.Artifacts(ctx, f))
	var samples []Sample
	err = s.Samples(ctx, run.ID, func(smp *Sample) error { samples = append(samples, *smp); return nil })
	compare(t, "samples", rec.Samples)(samples, err)
	var messages []Message
	err = s.Messages(ctx, run.ID, func(m *Message) error { messages = append(messages, *m); return nil })
	compare(t, "messages", []Message{rec.Messages[1], rec.Messages[0]})(messages, err) // by number
	var sum, n int64
	err = s.Delivered(ctx, run.ID, func(flow int, tUs, bytes int64) {
		if flow != 0 || tUs != n*100_000 {
			t.Errorf("delivered by flow %d at %d", flow, tUs)
		}
		n++
		sum += bytes
	})
	if err != nil || n != 100 || sum != 4_950_000 {
		t.Errorf("delivered: %d samples, %d bytes, %v", n, sum, err)
	}
}

func compare[T any](t *testing.T, what string, want []T) func([]T, error) {
	return func(got []T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
		}
	}
}

// Every column has a field and every field a column, so that a migration
// cannot forget the types nor the types a migration.
func TestTypesMatchTables(t *testing.T) {
	s := temp(t)
	for _, c := range []struct {
		table
		all []string
	}{
		{campaignsTable, []string{"id"}}, {runsTable, []string{"id", "valid"}}, {nodesTable, nil}, {linksTable, nil}, {flowsTable, nil},
		{samplesTable, nil}, {messagesTable, nil}, {nodeStatsTable, nil}, {pipesTable, nil}, {eventsTable, nil}, {artifactsTable, nil},
	} {
		var cols []string
		if err := s.r.Select(&cols, "SELECT name FROM pragma_table_xinfo(?)", c.name); err != nil {
			t.Fatal(err)
		}
		want := append(append([]string{}, c.cols...), c.all...)
		sort.Strings(cols)
		sort.Strings(want)
		if !reflect.DeepEqual(cols, want) {
			t.Errorf("%s: columns %v, fields %v", c.name, cols, want)
		}
	}
}

func TestMissingIsNamed(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	if _, err := s.Run(ctx, 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("run 99: %v", err)
	}
	if _, err := s.Campaign(ctx, 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("campaign 99: %v", err)
	}
	if _, err := s.LatestCampaign(ctx); !errors.Is(err, ErrNotFound) {
		t.Errorf("latest of none: %v", err)
	}
	if err := s.FinishCampaign(ctx, 99, CampaignComplete, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("finish campaign 99: %v", err)
	}
}
