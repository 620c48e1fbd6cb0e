package render

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// Wired links have a table of what they did, and are drawn in the map with the
// nodes that have no radio.
func TestWiredLinksAreReported(t *testing.T) {
	ctx := context.Background()
	st := temp(t)
	c := &store.Campaign{Name: "ap", Backend: "sim", FileText: "hopbed: 1", Planned: 2}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for rep := 1; rep <= 2; rep++ {
		rec := &store.RunRecord{
			Run:   store.Run{CampaignID: c.ID, Backend: "sim", Repetition: rep, Seed: store.Seed(rep), Transport: "tcp/reno", DurationS: 10, Status: store.RunComplete},
			Nodes: []store.Node{{Node: 0, Name: "server", Wired: true}, {Node: 1, Name: "ap", XM: store.Some(0.0), YM: store.Some(0.0)}, {Node: 2, Name: "sta", XM: store.Some(10.0), YM: store.Some(0.0)}},
			Links: []store.Link{{Src: 1, Dst: 2, Delivery: store.Some(1.0), Routed: true}},
			Flows: []store.Flow{oneFlow(0, "tcp/reno")},
			Pipes: []store.Pipe{
				{Src: 0, Dst: 1, Interface: "eth0", RateBps: store.Some[int64](5e6), DelayUs: store.Some[int64](20_000), QueuePackets: store.Some[int64](100), Loss: store.Some(0.01), Setting: "jitter",
					Entered: store.Some[int64](1000), DeliveredBytes: store.Some(int64(rep) * 1e6), Lost: store.Some[int64](20), DropsQueue: store.Some[int64](50), BusyUs: store.Some[int64](5e6),
					QueueMeanPackets: store.Some(float64(rep)), QueueMaxPackets: store.Some(int64(10 * rep))},
				{Src: 1, Dst: 0, Interface: "eth0", Setting: "trace"}, // how busy it was is not known
			},
		}
		if err := st.SaveRun(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Build(ctx, st, []int64{c.ID}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, r)
	md := strings.ReplaceAll(text["md"], "\u00a0", " ")
	for _, want := range []string{"Wired links, mean over repetitions (sim)", "server → ap", "1.20 Mb/s", "2.0 %", "5.0 %", "50.0 %", "1.5", "20", "ap → server"} {
		if !strings.Contains(md, want) {
			t.Errorf("it does not say %q:\n%s", want, md)
		}
	}
	if !strings.Contains(text["json"], `"delivered_bps": 1200000`) || !strings.Contains(text["json"], `"drops_queue_share": 0.05`) || !strings.Contains(text["json"], `"busy_share": null`) {
		t.Error("the JSON report lacks the wired links")
	}
	for _, f := range r.Figures() {
		if !strings.Contains(f.ID, "network") {
			continue
		}
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(csv.String(), "wire,server,ap") || !strings.Contains(string(f.SVG()), "server – ap, wired: 5.00\u00a0Mb/s, 20 ms, queue of 100 packets, loss 1.00\u00a0%, jitter") {
			t.Errorf("the map lacks the wire:\n%s", csv.String())
		}
	}
}
