package render

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessages: delays, losses and speech are in every form of a report, and as
// recorded.
func TestMessages(t *testing.T) {
	o := small(3)
	o.Speech = true
	r := build(t, Options{Version: "v0.0.0-test"}, o)
	out := written(t, r)
	for _, want := range []string{"Delay of packets (voip) (netns)", "Speech (netns)", "mouth to ear", "The playout buffer is adaptive", "read them together with the lost", "3 repetitions: the interval is not to be trusted", "**delay of messages**"} {
		if !strings.Contains(out["md"], want) {
			t.Errorf("the Markdown does not say %q", want)
		}
		if html := strings.Trim(want, "*"); !strings.Contains(out["html"], html) {
			t.Errorf("the page does not say %q", html)
		}
	}
	if strings.Contains(out["md"], "– of the flows starved") {
		t.Error("flows with a load of their own are said to starve")
	}
	path := filepath.Join("testdata", "messages.md")
	if *update {
		if err := os.WriteFile(path, []byte(out["md"]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out["md"] != string(want) {
		t.Errorf("%s is not as recorded: look at it and run the test with -update", path)
	}

	var j struct {
		Campaigns []struct {
			Groups []struct {
				Messages []struct {
					Transport, Workload   string
					Flows, Messages, Lost int
					P50                   struct{ Value float64 } `json:"delay_p50_s"`
					P95                   struct {
						Value    float64
						Interval *[2]float64
					} `json:"delay_p95_s"`
					Speech *struct {
						RFactor struct{ Value float64 } `json:"r_factor"`
					}
				}
			}
			Definitions map[string]string
		}
	}
	if err := json.Unmarshal([]byte(out["json"]), &j); err != nil {
		t.Fatal(err)
	}
	m := j.Campaigns[0].Groups[0].Messages
	if len(m) != 3 || m[0].Transport != "hop" || m[0].Workload != "voip" || m[0].Flows != 24 || m[0].Messages != 24*120 || m[0].Lost == 0 || m[0].Lost > 24*12 {
		t.Fatalf("messages: %+v", m)
	}
	// 8 ms × (0.5 + an exponential): the median is at 8 × (0.5 + ln 2), and 95 %
	// within 8 × (0.5 + ln 20).
	for i, x := range []struct{ got, want float64 }{{m[0].P50.Value, 0.008 * (0.5 + math.Ln2)}, {m[0].P95.Value, 0.008 * (0.5 + math.Log(20))}} {
		if math.Abs(x.got-x.want) > 0.1*x.want {
			t.Errorf("quantile %d is %v, want about %v", i, x.got, x.want)
		}
	}
	if m[0].P95.Interval == nil || m[0].Speech == nil || m[0].Speech.RFactor.Value < 79 || m[0].Speech.RFactor.Value > 80 || j.Campaigns[0].Definitions["delay of messages"] == "" {
		t.Errorf("%+v", m[0])
	}
	for _, f := range r.Sections[0].Groups[0].Figures {
		if !strings.HasSuffix(f.ID, "-delay-voip") {
			continue
		}
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(csv.String(), "\n")
		if !strings.HasPrefix(lines[0], "transport,delay_s,share_of_messages") || len(lines) > 3*maxDelayPoints+2 || !strings.Contains(f.Caption, "Delay: from when a packet is handed") {
			t.Errorf("%d lines, the first %q; caption %q", len(lines), lines[0], f.Caption)
		}
		return
	}
	t.Error("there is no figure of delays")
}

// TestMessagesOnTwoBackEnds: the sides are set beside each other, never pooled.
func TestMessagesOnTwoBackEnds(t *testing.T) {
	a, b := small(5), small(5)
	a.Speech, b.Speech = true, true
	a.Backend, b.Factor = "sim", 0.5
	r := build(t, Options{Version: "v0.0.0-test"}, a, b)
	md := written(t, r)["md"]
	for _, want := range []string{"Median delay of packets (voip): sim / netns", "95 % quantile of the delay of packets (voip)", "Share of messages that were not delivered", "R of speech (ITU-T G.107)"} {
		if !strings.Contains(md, want) {
			t.Errorf("the comparison does not say %q", want)
		}
	}
	c := r.Comparisons[0].Data
	for i := range c.Points {
		if k := c.Points[i].Find("delay_p50_voip"); k == nil || math.Abs(k.Ratio.Value-0.5) > 0.02 {
			t.Errorf("%s: %+v", c.Points[i].Name(), k)
		}
	}
}
