package main

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// results and show say what became of messages, and how a call would be judged;
// the requests of web pages are named as what they are and are no flow of a
// comparison.
func TestMessagesAreShown(t *testing.T) {
	dir := t.TempDir()
	flow := func(id int, transport, workload string, change func(*store.Flow)) store.Flow {
		f := store.Flow{Flow: id, Transport: transport, Workload: workload, Dst: 1, Hops: 1, Path: store.Path{0, 1}, StopS: 10, Bytes: 10_000, GoodputBps: store.Some(8000.0), Status: store.FlowOK,
			SentBytes: store.Some[int64](9), Counters: store.Counters{}}
		change(&f)
		return f
	}
	messages := func(f *store.Flow, all, delivered, p50 int64) {
		f.Messages, f.MessagesDelivered = store.Some(all), store.Some(delivered)
		f.DelayP50Us, f.DelayP95Us, f.DelayP99Us = store.Some(p50), store.Some(2*p50), store.Some(100*p50)
	}
	run := &store.RunRecord{Run: store.Run{Repetition: 1, Transport: "mixed"}, Flows: []store.Flow{
		flow(0, "udp", "voip", func(f *store.Flow) {
			messages(f, 500, 490, 15_250)
			f.RFactor, f.MOS, f.Counters["voice_mouth_to_ear_us"] = store.Some(78.04), store.Some(3.953), 61_234
		}),
		flow(1, "tcp/reno", "web", func(f *store.Flow) {
			messages(f, 10, 10, 800_000)
			f.Role, f.Peer = "responses", store.Some[int64](2)
		}),
		flow(2, "tcp/reno", "web", func(f *store.Flow) {
			f.Role, f.Peer, f.Src, f.Dst, f.Path = "requests", store.Some[int64](1), 1, 0, store.Path{1, 0}
		}),
	}, Messages: []store.Message{{Flow: 0, Message: 0, Size: 32, ReadyUs: 5, DelayUs: store.Some[int64](15_250)}, {Flow: 0, Message: 1, Size: 32, ReadyUs: 20_005}}}
	putRuns(t, dir, store.Campaign{Name: "calls", Backend: "sim"}, run)
	_, out, _ := hopbed(t, dir, "show", "1")
	says(t, out, "tcp/reno, requests of flow 1", "not delivered", "mouth to ear")
	rows := func(out, first string) string {
		for _, l := range strings.Split(out, "\n") {
			if strings.Join(strings.Fields(l), " ") != "" && strings.HasPrefix(strings.Join(strings.Fields(l), " "), first) {
				return strings.Join(strings.Fields(l), " ")
			}
		}
		return ""
	}
	if got, want := rows(out, "0 voip"), "0 voip 500 10 (2 %) 15.2 ms 30.5 ms 1.52 s 78.0 3.95 61ms"; got != want {
		t.Errorf("show says %q, want %q\n%s", got, want, out)
	}
	if got, want := rows(out, "1 web"), "1 web 10 0 (0 %) 800 ms 1.6 s 80 s"; got != want {
		t.Errorf("show says %q, want %q", got, want)
	}
	if strings.Contains(rows(out, "0 udp"), "%") {
		t.Errorf("a flow without retransmissions has a share of them: %s", rows(out, "0 udp"))
	}
	_, out, _ = hopbed(t, dir, "results", "--campaign", "1")
	if got, want := rows(out, "udp voip"), "udp voip 1 500 10 (2 %) 15.2 ms 30.5 ms 1.52 s 78.0 3.95"; got != want {
		t.Errorf("results say %q, want %q\n%s", got, want, out)
	}
	if got, want := rows(out, "tcp/reno 1 of 1"), "tcp/reno 1 of 1 1 1 8 kb/s 8 kb/s 8 kb/s 8 kb/s"; got != want {
		t.Errorf("results say %q, want %q\n%s", got, want, out)
	}
	_, out, _ = hopbed(t, dir, "export", "--table", "messages")
	says(t, out, "run_id,flow,message,size_bytes,ready_us,delay_us,backend\r\n", "1,0,0,32,5,15250,sim\r\n", "1,0,1,32,20005,,sim\r\n")
}
