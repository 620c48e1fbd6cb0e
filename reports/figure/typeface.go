package figure

import (
	"fmt"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// typeface is a font whose outlines are drawn. It may be used by one goroutine at
// a time, which mu sees to.
type typeface struct {
	mu   sync.Mutex
	font *sfnt.Font
	buf  sfnt.Buffer
}

// The Go fonts (Bigelow and Holmes, BSD licence) are part of x/image: an image
// needs no font of the machine, and equal figures look the same everywhere.
var (
	regular = sync.OnceValues(func() (*typeface, error) { return parseFace(goregular.TTF) })
	medium  = sync.OnceValues(func() (*typeface, error) { return parseFace(gomedium.TTF) })
)

func parseFace(ttf []byte) (*typeface, error) {
	f, err := sfnt.Parse(ttf)
	if err != nil {
		return nil, fmt.Errorf("font: %w", err)
	}
	return &typeface{font: f}, nil
}

func faceOf(bold bool) (*typeface, error) {
	if bold {
		return medium()
	}
	return regular()
}

// substitutes stand for characters that the fonts lack.
var substitutes = map[rune]rune{'\u2060': 0, '\u200b': 0, '\u202f': ' ', '‑': '-', '’': '\'', '⌀': 'ø'}

// outlineUnits is the size at which outlines are read: fine enough that no scale
// shows the steps.
const outlineUnits = 1000

// outline returns the contours of each glyph of a text in a font size, from the
// origin at the start of its base line, y down, and the text's width. Characters
// that the font does not have become a box, as everywhere.
func (t *typeface) outline(text string, size float64) (glyphs [][][]pt, width float64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ppem := fixed.I(outlineUnits)
	unit := func(v fixed.Int26_6) float64 { return float64(v) / 64 * size / outlineUnits }
	previous := sfnt.GlyphIndex(0)
	for _, r := range text {
		i, err := t.font.GlyphIndex(&t.buf, r)
		if err != nil {
			return nil, 0, fmt.Errorf("font: %w", err)
		}
		if i == 0 {
			other, ok := substitutes[r]
			if ok && other == 0 {
				continue
			}
			if ok {
				if i, err = t.font.GlyphIndex(&t.buf, other); err != nil {
					return nil, 0, fmt.Errorf("font: %w", err)
				}
			}
		}
		if previous != 0 {
			if k, err := t.font.Kern(&t.buf, previous, i, ppem, font.HintingNone); err == nil { // a font without kerning has none
				width += unit(k)
			}
		}
		previous = i
		segments, err := t.font.LoadGlyph(&t.buf, i, ppem, nil)
		if err != nil {
			return nil, 0, fmt.Errorf("font: %w", err)
		}
		var contours [][]pt
		at := func(p fixed.Point26_6) pt { return pt{width + unit(p.X), unit(p.Y)} }
		for _, s := range segments {
			if s.Op == sfnt.SegmentOpMoveTo {
				contours = append(contours, []pt{at(s.Args[0])})
				continue
			}
			c := &contours[len(contours)-1]
			from := (*c)[len(*c)-1]
			switch s.Op {
			case sfnt.SegmentOpLineTo:
				*c = append(*c, at(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				*c = append(*c, curve(from, at(s.Args[0]), at(s.Args[0]), at(s.Args[1]), true)...)
			case sfnt.SegmentOpCubeTo:
				*c = append(*c, curve(from, at(s.Args[0]), at(s.Args[1]), at(s.Args[2]), false)...)
			}
		}
		glyphs = append(glyphs, contours)
		advance, err := t.font.GlyphAdvance(&t.buf, i, ppem, font.HintingNone)
		if err != nil {
			return nil, 0, fmt.Errorf("font: %w", err)
		}
		width += unit(advance)
	}
	return glyphs, width, nil
}

// curve is a Bézier curve as lines, without its begin: quadratic with the control
// point b, or cubic with b and c.
func curve(a, b, c, d pt, quadratic bool) []pt {
	const steps = 6
	out := make([]pt, steps)
	for i := range out {
		t := float64(i+1) / steps
		u := 1 - t
		if quadratic {
			out[i] = pt{u*u*a.x + 2*u*t*b.x + t*t*d.x, u*u*a.y + 2*u*t*b.y + t*t*d.y}
			continue
		}
		out[i] = pt{u*u*u*a.x + 3*u*u*t*b.x + 3*u*t*t*c.x + t*t*t*d.x, u*u*u*a.y + 3*u*u*t*b.y + 3*u*t*t*c.y + t*t*t*d.y}
	}
	return out
}
