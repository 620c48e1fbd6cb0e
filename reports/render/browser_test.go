package render

import (
	"bytes"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/reports/internal/browser"
	"github.com/hopbed/hopbed/reports/internal/fixture"
)

// The report as a reader gets it: in a real browser, on a laptop, a phone, in
// the dark and on paper.
func TestInBrowser(t *testing.T) {
	b := browser.Start(t)
	full := fixture.Load30(3)
	full.SampleS = 5
	for name, r := range map[string]*Report{
		"load30":  build(t, Options{Published: published, Version: "v0.0.0-test"}, full),
		"hostile": hostileReport(t),
		"compare": build(t, Options{Version: "v0.0.0-test"}, twoBackEnds(6)...),
		"sweep":   buildRuns(t, 30, sweepRuns(5, 0)...),
	} {
		path := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(path, []byte(written(t, r)["html"]), 0o644); err != nil {
			t.Fatal(err)
		}
		url := "file://" + path
		for _, o := range []browser.Options{{Width: 1366, Height: 800}, {Width: 390, Height: 844, Mobile: true}, {Width: 390, Height: 844, Mobile: true, Dark: true}} {
			p := b.Open(url, o)
			var width int
			p.Eval("document.documentElement.scrollWidth", &width)
			if width > o.Width {
				t.Errorf("%s: the page is %d px wide on a screen of %d", name, width, o.Width)
			}
			// Text in figures must stay readable: no smaller than 10 px as shown,
			// and the names of nodes no smaller than 7.
			var sizes []float64
			p.Eval(`[...document.querySelectorAll("svg.hb-fig text")].filter(e => e.checkVisibility() && e.textContent).map(e => parseFloat(getComputedStyle(e).fontSize) * Math.hypot(e.getScreenCTM().a, e.getScreenCTM().b) * (e.matches(".hb-n,.hb-x") ? 10/7 : 1))`, &sizes)
			if len(sizes) < 50 {
				t.Errorf("%s: %d texts in figures", name, len(sizes))
			}
			for _, s := range sizes {
				if s < 10 {
					t.Errorf("%s: a text of %.1f px at a width of %d", name, s, o.Width)
					break
				}
			}
			var dark bool
			p.Eval(`(() => { const rgb = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number); return rgb[0] + rgb[1] + rgb[2] < 200 })()`, &dark)
			if dark != o.Dark {
				t.Errorf("%s: dark is %v, want %v", name, dark, o.Dark)
			}
			img, _, err := image.Decode(bytes.NewReader(p.Screenshot()))
			if err != nil || img.Bounds().Dx() < o.Width {
				t.Errorf("%s: no picture of the page: %v", name, err)
			}
			if !o.Mobile { // a page is printed in the same way whatever the screen
				if pdf := p.PDF(); !bytes.HasPrefix(pdf, []byte("%PDF")) || len(pdf) < 20_000 {
					t.Errorf("%s: printed to %d bytes", name, len(pdf))
				}
			}
			requests, complaints := p.Observed()
			if len(complaints) > 0 {
				t.Errorf("%s: the browser complains: %s", name, strings.Join(complaints, "\n"))
			}
			if len(requests) == 0 {
				t.Errorf("%s: not even the page was asked for, so this tests nothing", name)
			}
			for _, q := range requests {
				if q != url && !strings.HasPrefix(q, "data:") {
					t.Errorf("%s: the page asked for %s", name, q)
				}
			}
		}
	}
}
