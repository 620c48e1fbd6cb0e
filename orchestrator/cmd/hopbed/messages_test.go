package main

import (
	"path/filepath"
	"slices"
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

// From the file to the tables, in virtual time: each workload of messages over each
// transport that carries it.
func TestMessagesOfARun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.txt"), "# seconds bytes\n0 2000\n0.5 50000\n1.5 100\n9 1 # after the end\n")
	write(t, filepath.Join(dir, "all.yaml"), `hopbed: 1
name: all
topology: {generate: {kind: chain, nodes: 3, spacing: 100m}}
radio: {path-loss: {kind: disk, range: 150m, sense-range: 300m}}
mac: {queues: {bk: {txop: 8160us, ack: none}}}
flows:
  - {pairs: [{src: n01, dst: n03}], transport: $t, workload: {kind: poisson, size: 5kB, interval: 200ms, sizes: exponential}}
  - {pairs: [{src: n03, dst: n01}], transport: $t, workload: {kind: web, think: 500ms}}
  - {pairs: [{src: n01, dst: n02}], transport: $t, workload: {kind: trace, file: m.txt}}
  - {pairs: [{src: n01, dst: n03}], transport: $t, workload: voip}
  - {pairs: [{src: n03, dst: n01}], transport: udp/txop, workload: {kind: voip, codec: g711}}
warmup: 1s
duration: 5s
repeat: 1
matrix: {t: [hop, tcp/cubic, hop-by-hop-tcp/cubic, bundle/cubic]}
`)
	status, out, stderr := hopbed(t, dir, "run", "all.yaml", "--backend", "sim")
	if status != 0 {
		t.Fatalf("status %d: %s\n%s", status, stderr, out)
	}
	says(t, stderr, "messages delivered", "flows[2].workload.file: 1 of the 4 messages come after the flow's end")
	st, err := store.OpenRead(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	runs, err := st.Runs(t.Context(), store.Filter{ValidOnly: true})
	if err != nil || len(runs) != 4 {
		t.Fatalf("%d valid runs, %v", len(runs), err)
	}
	var ready [4][]int64 // of the Poisson messages: the same in all points
	for i, r := range runs {
		flows, err := st.Flows(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
		if err != nil || len(flows) != 6 || flows[5].Role != store.RoleRequests || flows[1].Peer != store.Some[int64](5) {
			t.Fatalf("run %d: %d flows, %v", r.ID, len(flows), err)
		}
		count, bytes := map[int]int{}, map[int]int64{}
		err = st.Messages(t.Context(), r.ID, func(m *store.Message) error {
			count[m.Flow]++
			if m.Flow == 0 {
				ready[i] = append(ready[i], m.ReadyUs, m.Size)
			}
			if m.DelayUs.OK {
				bytes[m.Flow] += m.Size
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range flows[:5] {
			if f.Status != store.FlowOK || !f.Messages.OK || f.MessagesDelivered.V < f.Messages.V-2 || f.DelayP50Us.V <= 0 || f.MOS.OK != (f.Workload == "voip") || f.MOS.OK && f.MOS.V < 3.5 {
				t.Errorf("run %d (%s), flow %d: %+v", r.ID, r.Transport, f.Flow, f)
			}
		}
		if count[2] != 3 || count[3] != 300 || count[4] != 300 || count[5] != 0 || count[1] < 3 || bytes[2] != 52_100 {
			t.Errorf("run %d: messages by flow %v, bytes %v", r.ID, count, bytes)
		}
		if !slices.Equal(ready[i], ready[0]) {
			t.Errorf("run %d has other messages than the first", r.ID)
		}
	}
}
