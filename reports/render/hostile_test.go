package render

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
)

const evil = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' |`**[a](javascript:alert(1))\x1b]0;pwn\x07\x1b[2J\u202e\x00"

// hostileCampaign stores a campaign in which everything that can be named by
// others is hostile: two values of a hostile variable, with two transports each.
func hostileCampaign(t *testing.T, st *store.Store, backend string) int64 {
	t.Helper()
	ctx := context.Background()
	c := &store.Campaign{Name: evil, Title: evil, Backend: backend, Reference: evil, FileText: "a: b\n```\n" + evil, Version: evil, HostFacts: store.Facts{evil: evil}, Note: evil, Planned: 5}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for i, transport := range []string{"tcp/cubic", evil, "tcp/cubic", evil} {
		value := fmt.Sprint(i/2) + evil // never the transport's name
		rec := &store.RunRecord{Run: store.Run{CampaignID: c.ID, Backend: backend, Repetition: 1, Params: store.Params{evil: value, "transport": transport}, Transport: transport, DurationS: 10, SampleS: store.Some(1.0),
			Status: store.RunComplete, Warnings: store.Strings{evil}, TraceHash: evil, Priority: evil}}
		for n := range 3 {
			rec.Nodes = append(rec.Nodes, store.Node{Node: n, Name: evil, Address: evil, XM: store.Some(float64(n)), YM: store.Some(float64(n))})
			rec.NodeStats = append(rec.NodeStats, store.NodeStat{Node: n, AC: store.ACAll, AirtimeTxUs: store.Some[int64](5), AirtimeIdleUs: store.Some[int64](5)})
		}
		rec.Links = []store.Link{{Src: 0, Dst: 1, Delivery: store.Some(0.5), Routed: true}}
		rec.Pipes = []store.Pipe{{Src: 1, Dst: 2, Interface: evil, Setting: evil, Entered: store.Some[int64](3)}}
		bytes := int64(1000 * (i + 1))
		rec.Flows = []store.Flow{{Transport: transport, Workload: evil, Src: 0, Dst: 2, Hops: 2, Bytes: bytes, GoodputBps: store.Goodput(bytes, 10), Status: store.FlowOK, Error: evil}}
		if err := st.SaveRun(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	failed := &store.RunRecord{Run: store.Run{CampaignID: c.ID, Backend: backend, Repetition: 2, Params: store.Params{evil: evil, "transport": evil}, Transport: evil, Status: store.RunFailed, Error: evil, InvalidReasons: store.Strings{evil}}}
	if err := st.SaveRun(ctx, failed); err != nil {
		t.Fatal(err)
	}
	if err := st.FinishCampaign(ctx, c.ID, store.CampaignFailed, evil); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// hostileReport is a report in which everything that can be named by others is
// hostile.
func hostileReport(t *testing.T) *Report {
	t.Helper()
	st := temp(t)
	r, err := Build(context.Background(), st, []int64{hostileCampaign(t, st, evil)}, Options{Version: evil, Published: func(*store.Campaign) ([]claims.Claim, error) {
		return []claims.Claim{{ID: evil, Text: evil, Unit: evil, Source: evil, Value: new(2.0), Measure: "median-ratio", Of: evil, To: evil, Threshold: &claims.Threshold{Min: new(1.0), Source: evil}}, {ID: evil, Text: evil, NotTestable: evil}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hostileComparison is likewise a comparison of two back ends.
func hostileComparison(t *testing.T) *Report {
	t.Helper()
	st := temp(t)
	r, err := Build(context.Background(), st, []int64{hostileCampaign(t, st, evil), hostileCampaign(t, st, "sim")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Comparisons) != 1 || r.Comparisons[0].Refused != "" || len(r.Comparisons[0].Data.Points) != 5 || len(r.Sections[0].Figures) != 1 {
		t.Fatalf("%d points, %d figures, %v", len(r.Comparisons[0].Data.Points), len(r.Sections[0].Figures), r.Comparisons[0].Data.Warnings)
	}
	return Compared(r.Comparisons[0].Data, evil)
}

func TestHostileTextInComparisons(t *testing.T) {
	text := written(t, hostileComparison(t))
	checkPage(t, text["html"])
	if c := control(text["html"]); c != "" {
		t.Errorf("the page contains %s", c)
	}
	if c := control(text["md"]); c != "" {
		t.Errorf("the text contains %s", c)
	}
	for _, bad := range []string{"<script", "<img", " [a](", "**[", " `*"} {
		if strings.Contains(text["md"], bad) {
			t.Errorf("the text contains %q", bad)
		}
	}
	if !json.Valid([]byte(text["json"])) || control(strings.ReplaceAll(text["json"], "\u202e", "")) != "" {
		t.Error("not JSON, or with control characters")
	}
}

// control reports characters that act on a terminal or on the direction of
// text.
func control(s string) string {
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

func TestHostileTextInHTML(t *testing.T) {
	page := written(t, hostileReport(t))["html"]
	if c := control(page); c != "" {
		t.Errorf("the page contains %s", c)
	}
	checkPage(t, page)
	if !strings.Contains(page, "&lt;script&gt;") {
		t.Error("the hostile text is not shown at all, so this tests nothing")
	}
}

// allowed are the elements that a report consists of.
var allowed = map[string]bool{}

func init() {
	for _, e := range strings.Fields("html head meta title link style body header main section footer h1 h2 h3 p dl dt dd div ul li table thead tbody tr th td figure figcaption span a details summary pre svg desc defs pattern path circle text") {
		allowed[e] = true
	}
}

// checkPage reads the page as a browser does: known elements only, no
// handlers, nothing from elsewhere, no id twice.
func checkPage(t *testing.T, page string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(page))
	ids := map[string]bool{}
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				t.Fatal(z.Err())
			}
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			if !allowed[tok.Data] {
				t.Fatalf("element %s", tok.Data)
			}
			for _, a := range tok.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on"):
					t.Errorf("handler %s", a.Key)
				case a.Key == "src", a.Key == "href" && !strings.HasPrefix(a.Val, "data:") && !strings.HasPrefix(a.Val, "#"):
					t.Errorf("%s=%q comes from elsewhere", a.Key, a.Val)
				case a.Key == "style" && !strings.HasPrefix(a.Val, "fill:url(#"):
					t.Errorf("style=%q", a.Val)
				case a.Key == "id":
					if ids[a.Val] {
						t.Errorf("the id %q is there twice", a.Val)
					}
					ids[a.Val] = true
				}
			}
		}
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	page := written(t, build(t, Options{Published: published}, small(2), small(2)))["html"]
	checkPage(t, page)
	for _, bad := range []string{"@import", "url(http", "<script", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"`) {
		t.Error("no content security policy")
	}
}

func TestHostileTextInMarkdown(t *testing.T) {
	md := written(t, hostileReport(t))["md"]
	if c := control(md); c != "" {
		t.Errorf("the text contains %s", c)
	}
	prose, code, ok := strings.Cut(md, "````yaml\n")
	if !ok {
		t.Fatal("the fence of the file is not longer than the one inside")
	}
	code, after, ok := strings.Cut(code, "\n````\n")
	if !ok || !strings.Contains(code, "```") {
		t.Fatal("the fence of the file was closed by its text")
	}
	for _, part := range []string{prose, after} {
		for _, bad := range []string{"<script", "<img", " [a](", "**[", " `*"} {
			if strings.Contains(part, bad) {
				t.Errorf("the text contains %q", bad)
			}
		}
	}
	// No cell broke out of its row.
	var columns int
	for _, line := range strings.Split(prose, "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns != 0 && n != columns {
			t.Errorf("a row of %d cells among rows of %d: %s", n-1, columns-1, line)
		}
		columns = n
	}
}

func TestHostileTextInJSON(t *testing.T) {
	text := written(t, hostileReport(t))["json"]
	if !json.Valid([]byte(text)) {
		t.Fatal("not JSON")
	}
	if c := control(strings.ReplaceAll(text, "\u202e", "")); c != "" {
		t.Errorf("the text contains %s unescaped", c)
	}
}
