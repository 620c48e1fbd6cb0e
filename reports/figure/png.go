package figure

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/vector"

	"github.com/hopbed/hopbed/reports/safetext"
)

// PNGScale is the usual number of pixels for a user unit: a figure 8.5 cm wide, a
// column of a paper, has 340 dots an inch.
const PNGScale = 3

// maxScale bounds the pixels of a drawing.
const maxScale = 16

// PNG writes the figure as an image in light colours on white, with so many
// pixels for a user unit. Its text is set in the Go fonts: an SVG file uses the
// reader's.
func (f *Figure) PNG(w io.Writer, scale int) error {
	if scale < 1 || scale > maxScale {
		return fmt.Errorf("figure %s: %d pixels for a unit: from 1 to %d", f.ID, scale, maxScale)
	}
	img, err := f.raster(scale)
	if err != nil {
		return fmt.Errorf("figure %s: %w", f.ID, err)
	}
	if err := png.Encode(w, img); err != nil {
		return fmt.Errorf("figure %s: %w", f.ID, err)
	}
	return nil
}

func (f *Figure) raster(scale int) (*image.NRGBA, error) {
	k := float64(scale)
	// Painted in premultiplied colours, on white: nothing is left transparent.
	img := image.NewRGBA(image.Rect(0, 0, int(math.Ceil(f.width*k)), int(math.Ceil(f.height*k))))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	p := &painter{to: img, scale: k}
	for i := range f.shapes {
		if err := p.shape(f, &f.shapes[i]); err != nil {
			return nil, err
		}
	}
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Bounds(), img, image.Point{}, draw.Src)
	return out, nil
}

// painter paints shapes in user units onto pixels.
type painter struct {
	to    *image.RGBA
	scale float64
}

func (p *painter) shape(f *Figure, s *shape) error {
	st, err := styleOf(s.class, s.kind == label)
	if err != nil {
		return err
	}
	if s.kind == label {
		return p.label(s, &st)
	}
	pts, closed := s.pts, s.kind == polygon
	if s.kind == circle {
		pts, closed = round(s.pts[0], s.r), true
	}
	var source image.Image = image.NewUniform(alpha(st.fill, st.fillOpacity))
	fill := st.hasFill
	if s.hatch > 0 {
		if source, err = p.hatch(&f.hatches[s.hatch-1]); err != nil {
			return err
		}
		fill = true
	}
	if fill && len(pts) > 2 {
		p.fill([][]pt{pts}, source)
	}
	if st.hasStroke && st.width > 0 {
		p.fill(stroke(pts, closed, st.width, st.dash), image.NewUniform(alpha(st.stroke, st.strokeOpacity)))
	}
	return nil
}

func alpha(c color.NRGBA, opacity float64) color.NRGBA {
	c.A = uint8(math.Round(255 * math.Min(math.Max(opacity, 0), 1)))
	return c
}

// fill paints areas, in user units, that may overlap where all of them go round
// the same way; the direction of one alone does not matter.
func (p *painter) fill(areas [][]pt, source image.Image) {
	lo, hi := pt{math.Inf(1), math.Inf(1)}, pt{math.Inf(-1), math.Inf(-1)}
	for _, a := range areas {
		for _, q := range a {
			lo.x, lo.y = math.Min(lo.x, q.x*p.scale), math.Min(lo.y, q.y*p.scale)
			hi.x, hi.y = math.Max(hi.x, q.x*p.scale), math.Max(hi.y, q.y*p.scale)
		}
	}
	// Only the pixels that the areas touch are looked at.
	box := image.Rect(int(math.Floor(lo.x)), int(math.Floor(lo.y)), int(math.Ceil(hi.x))+1, int(math.Ceil(hi.y))+1).Intersect(p.to.Bounds())
	if len(areas) == 0 || box.Empty() {
		return
	}
	r := vector.NewRasterizer(box.Dx(), box.Dy())
	for _, a := range areas {
		for i, q := range a {
			x, y := float32(q.x*p.scale-float64(box.Min.X)), float32(q.y*p.scale-float64(box.Min.Y))
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	r.Draw(p.to, box, source, box.Min)
}

// hatch is the picture that fills bars told apart in grey: the tile of the SVG
// pattern, repeated.
func (p *painter) hatch(h *hatch) (image.Image, error) {
	st, err := styleOf(h.class, false)
	if err != nil {
		return nil, err
	}
	const size = 4 // of the tile, in user units
	n := int(math.Round(size * p.scale))
	tile := &painter{to: image.NewRGBA(image.Rect(0, 0, n, n)), scale: p.scale}
	switch h.kind {
	case "diagonal":
		for _, l := range [][]pt{{{-1, 1}, {1, -1}}, {{0, 4}, {4, 0}}, {{3, 5}, {5, 3}}} {
			tile.fill(stroke(l, false, st.width, nil), image.NewUniform(st.stroke))
		}
	case "dots":
		tile.fill([][]pt{round(pt{2, 2}, 1)}, image.NewUniform(st.fill))
	default:
		return nil, fmt.Errorf("there is no hatch %q", h.kind)
	}
	return tiled{tile.to}, nil
}

// tiled repeats a picture without end.
type tiled struct{ *image.RGBA }

func (t tiled) Bounds() image.Rectangle { return image.Rect(-1e9, -1e9, 1e9, 1e9) }

func (t tiled) At(x, y int) color.Color {
	b := t.RGBA.Bounds()
	wrap := func(v, n int) int { return (v%n + n) % n }
	return t.RGBA.At(wrap(x, b.Dx()), wrap(y, b.Dy()))
}

// round is a circle as a polygon that nobody tells from one.
func round(c pt, r float64) []pt {
	n := max(12, int(8*math.Sqrt(r)*4))
	pts := make([]pt, n)
	for i := range pts {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		pts[i] = pt{c.x + r*cos, c.y + r*sin}
	}
	return pts
}

// stroke returns the areas that a pen of the given width covers: a rectangle for
// each segment, and round joins between them. All go round the same way.
func stroke(pts []pt, closed bool, width float64, dash []float64) [][]pt {
	if closed && len(pts) > 1 {
		pts = append(append([]pt(nil), pts...), pts[0])
	}
	var out [][]pt
	for _, line := range dashed(pts, dash) {
		for i := 1; i < len(line); i++ {
			a, b := line[i-1], line[i]
			l := math.Hypot(b.x-a.x, b.y-a.y)
			if l == 0 {
				continue
			}
			nx, ny := -(b.y-a.y)/l*width/2, (b.x-a.x)/l*width/2
			out = append(out, []pt{{a.x - nx, a.y - ny}, {b.x - nx, b.y - ny}, {b.x + nx, b.y + ny}, {a.x + nx, a.y + ny}})
			if (i < len(line)-1 || closed && len(dash) == 0) && width > 1 { // the joins of a hairline are not seen
				out = append(out, round(b, width/2))
			}
		}
	}
	return out
}

// dashed cuts a line into its dashes.
func dashed(pts []pt, dash []float64) [][]pt {
	if len(dash) == 0 || len(pts) < 2 {
		return [][]pt{pts}
	}
	if len(dash)%2 == 1 { // as SVG does
		dash = append(append([]float64(nil), dash...), dash...)
	}
	var out [][]pt
	at, left := 0, dash[0]
	line := []pt{pts[0]}
	for i := 1; i < len(pts); i++ {
		a, b := pts[i-1], pts[i]
		l := math.Hypot(b.x-a.x, b.y-a.y)
		done := 0.0
		for l-done > left {
			done += left
			c := pt{a.x + (b.x-a.x)*done/l, a.y + (b.y-a.y)*done/l}
			if at%2 == 0 {
				out = append(out, append(line, c))
			}
			at = (at + 1) % len(dash)
			left = dash[at]
			line = []pt{c}
		}
		left -= l - done
		line = append(line, b)
	}
	if at%2 == 0 && len(line) > 1 {
		out = append(out, line)
	}
	return out
}

// label sets text.
func (p *painter) label(s *shape, st *style) error {
	face, err := faceOf(st.bold)
	if err != nil {
		return err
	}
	text := safetext.Line(s.text, 0)
	run, width, err := face.outline(text, st.fontSize)
	if err != nil {
		return err
	}
	shift := map[string]float64{"middle": width / 2, "end": width}[s.anchor]
	sin, cos := math.Sincos(s.rotate * math.Pi / 180)
	for _, glyph := range run {
		for _, contour := range glyph {
			for i, q := range contour {
				x, y := q.x-shift, q.y
				contour[i] = pt{s.pts[0].x + x*cos - y*sin, s.pts[0].y + x*sin + y*cos}
			}
		}
	}
	if st.strokeFirst && st.hasStroke {
		for _, glyph := range run {
			for _, contour := range glyph {
				p.fill(stroke(contour, true, st.width, nil), image.NewUniform(alpha(st.stroke, st.strokeOpacity)))
			}
		}
	}
	for _, glyph := range run { // each by itself: neighbours may touch
		p.fill(glyph, image.NewUniform(alpha(st.fill, st.fillOpacity)))
	}
	return nil
}
