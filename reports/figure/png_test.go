package figure

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/reports/safetext"
)

// Images are compared with recorded ones, by pixels and with a tolerance: other
// processors round differently. -update writes them.
func TestPNGGolden(t *testing.T) {
	golden := map[string]bool{"cdf": true, "airtime": true, "wired": true}
	for _, f := range examples() {
		if !golden[f.ID] {
			continue
		}
		var b bytes.Buffer
		if err := f.PNG(&b, 1); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", f.ID+".png")
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		recorded, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := png.Decode(bytes.NewReader(recorded))
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got.Bounds() != want.Bounds() {
			t.Errorf("%s: %v, recorded %v", path, got.Bounds(), want.Bounds())
			continue
		}
		far := 0
		for y := range got.Bounds().Dy() {
			for x := range got.Bounds().Dx() {
				if math.Abs(luma(got.At(x, y))-luma(want.At(x, y))) > 0.02 {
					far++
				}
			}
		}
		if far > 20 {
			t.Errorf("%s: %d pixels are not as recorded: look at it and run the test with -update", path, far)
		}
	}
}

// luma is the lightness that a grey print has, 0 to 1 (ITU-R BT.601).
func luma(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	return (0.299*float64(r) + 0.587*float64(g) + 0.114*float64(b)) / 65535
}

func rastered(t *testing.T, f *Figure, scale int) *image.NRGBA {
	t.Helper()
	img, err := f.raster(scale)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Every figure becomes an image of its size, with something on it, and equal
// input gives equal bytes.
func TestPNGOfEveryFigure(t *testing.T) {
	again := examples()
	for i, f := range examples() {
		var a, b bytes.Buffer
		if err := f.PNG(&a, 2); err != nil {
			t.Fatal(err)
		}
		if err := again[i].PNG(&b, 2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs from one call to the next", f.ID)
		}
		c, err := png.DecodeConfig(&a)
		if err != nil || c.Width != 2*Width || c.Height != int(math.Ceil(2*f.height)) {
			t.Errorf("%s: %d × %d, %v", f.ID, c.Width, c.Height, err)
		}
		img := rastered(t, f, 1)
		ink := 0
		for i := 0; i < len(img.Pix); i += 4 {
			if img.Pix[i] != 255 || img.Pix[i+1] != 255 || img.Pix[i+2] != 255 {
				ink++
			}
			if img.Pix[i+3] != 255 {
				t.Fatalf("%s: a pixel is transparent", f.ID)
			}
		}
		if share := float64(ink) / float64(len(img.Pix)/4); share < 0.01 || share > 0.8 {
			t.Errorf("%s: %.1f %% of the pixels are painted", f.ID, 100*share)
		}
	}
	if err := examples()[0].PNG(&bytes.Buffer{}, 0); err == nil {
		t.Error("no pixels for a unit were taken")
	}
}

// Shapes are where they were put, in the colours of the style sheet.
func TestPainting(t *testing.T) {
	f := &Figure{ID: "x", width: 100, height: 100}
	f.rect("hb-solid "+seriesClass(0), 10, 10, 20, 20)
	f.line("hb-line "+seriesClass(1), pt{50, 10}, pt{50, 90})
	f.add(shape{kind: circle, class: "hb-solid " + seriesClass(2), pts: []pt{{80, 50}}, r: 10})
	f.rect("hb-dot "+seriesClass(0), 10, 50, 20, 20)
	img := rastered(t, f, 2)
	for _, c := range []struct {
		what string
		x, y int
		want color.NRGBA
	}{
		{"background", 90, 4, color.NRGBA{255, 255, 255, 255}},
		{"rectangle", 40, 40, color.NRGBA{0, 0x72, 0xb2, 255}},
		{"beside it", 18, 40, color.NRGBA{255, 255, 255, 255}},
		{"line", 100, 30, color.NRGBA{0xd5, 0x5e, 0, 255}},
		{"beside the line", 104, 30, color.NRGBA{255, 255, 255, 255}},
		{"circle", 160, 112, color.NRGBA{0, 0x9e, 0x73, 255}},
		{"beyond its radius", 160, 124, color.NRGBA{255, 255, 255, 255}},
		{"0.55 of blue on white", 40, 120, color.NRGBA{115, 178, 213, 255}},
	} {
		got := img.NRGBAAt(c.x, c.y)
		for _, d := range []int{int(got.R) - int(c.want.R), int(got.G) - int(c.want.G), int(got.B) - int(c.want.B)} {
			if d < -2 || d > 2 {
				t.Errorf("%s at %d, %d is %v, want %v", c.what, c.x, c.y, got, c.want)
				break
			}
		}
	}
}

// Dashes are as long as the style says, across corners too.
func TestDashes(t *testing.T) {
	got := dashed([]pt{{0, 0}, {10, 0}, {10, 10}}, []float64{7, 3})
	want := [][]pt{{{0, 0}, {7, 0}}, {{10, 0}, {10, 7}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := dashed([]pt{{0, 0}, {4, 0}, {4, 8}}, []float64{6, 2}); fmt.Sprint(got) != fmt.Sprint([][]pt{{{0, 0}, {4, 0}, {4, 2}}, {{4, 4}, {4, 8}}}) {
		t.Errorf("over a corner: %v", got)
	}
}

// The fonts have every character that figures use, and no text is wider than the
// room that the layout gave it.
func TestTextIsSet(t *testing.T) {
	for _, f := range examples() {
		for _, s := range f.shapes {
			if s.kind != label {
				continue
			}
			st, err := styleOf(s.class, true)
			if err != nil {
				t.Fatal(err)
			}
			face, err := faceOf(st.bold)
			if err != nil {
				t.Fatal(err)
			}
			glyphs, width, err := face.outline(safetext.Line(s.text, 0), st.fontSize)
			if err != nil {
				t.Fatal(err)
			}
			if st.fontSize == textSize && width > textWidth(s.text)*1.06 && len(s.text) > 8 {
				t.Errorf("%s: %q is %.0f wide, the layout counts on %.0f", f.ID, s.text, width, textWidth(s.text))
			}
			if strings.TrimSpace(s.text) != "" && len(glyphs) == 0 {
				t.Errorf("%s: %q has no glyph", f.ID, s.text)
			}
			for _, r := range s.text {
				i, err := face.font.GlyphIndex(nil, r)
				if _, ok := substitutes[r]; err != nil || i == 0 && !ok {
					t.Errorf("%s: the font has no %q (%v)", f.ID, r, err)
				}
			}
		}
	}
}

// Printed in grey, the lines of two series differ in style, and what is filled in
// lightness or hatch.
func TestLegibleInGrey(t *testing.T) {
	white := 1.0
	for i, c := range colours[4:] {
		col, _, err := paint(c.light)
		if err != nil {
			t.Fatal(err)
		}
		if l := luma(col); white-l < 0.25 {
			t.Errorf("series %d: %s is hardly seen on white in grey (%.2f)", i, c.light, l)
		}
	}
	f := &Figure{ID: "x", width: 60, height: 20}
	f.hatches = []hatch{{"hb-hatch-rx", "diagonal"}, {"hb-hatch-busy", "dots"}}
	f.rect("hb-tx", 0, 0, 20, 20)
	f.rect("hb-rx", 20, 0, 20, 20).hatch = 1
	f.rect("hb-busy", 40, 0, 20, 20).hatch = 2
	img := rastered(t, f, 4)
	var mean [3]float64
	for k := range mean {
		for x := range 80 {
			for y := range 80 {
				mean[k] += luma(img.At(80*k+x, y)) / 6400
			}
		}
	}
	for k := range mean {
		for j := range k {
			if math.Abs(mean[k]-mean[j]) < 0.08 {
				t.Errorf("bars %d and %d have the same grey: %.2f and %.2f", j, k, mean[j], mean[k])
			}
		}
	}
}

func TestStyleSheetIsUnderstood(t *testing.T) {
	s, err := styleOf("hb-k", true)
	if err != nil {
		t.Fatal(err)
	}
	if s.fontSize != 11.5 || s.fill != (color.NRGBA{0x57, 0x60, 0x6a, 255}) || s.bold {
		t.Errorf("a text of class hb-k: %+v", s)
	}
	if s, err = styleOf("hb-line hb-s1", false); err != nil || s.hasFill || !s.hasStroke || s.width != 2 || fmt.Sprint(s.dash) != "[7 3]" {
		t.Errorf("a line: %+v, %v", s, err)
	}
	if s, err = styleOf("hb-s1 hb-hollow", false); err != nil || s.fill != (color.NRGBA{255, 255, 255, 255}) || s.stroke != (color.NRGBA{0xd5, 0x5e, 0, 255}) {
		t.Errorf("a hollow marker: %+v, %v", s, err)
	}
	for _, bad := range []string{".a>.b{fill:none}", ".a{fill:none}x", ".a{fill"} {
		if _, err := parseRules(bad); err == nil {
			t.Errorf("%q was understood", bad)
		}
	}
	if _, _, err := paint("blue"); err == nil {
		t.Error("a colour by name was taken")
	}
}
