package figure

// Width is the width of every figure in user units. One unit is about a pixel
// on a phone, so that text keeps its size there.
const Width = 380

// Sizes of text and of the line that it needs, in user units.
const (
	textSize   = 11.5
	lineHeight = 14
	// emWidth is how wide a character of ordinary text is at most, on average.
	emWidth = 0.6
)

// Figure is a finished drawing with the numbers behind it.
type Figure struct {
	ID      string // fit for a file name and an element id, "goodput-cdf"
	Title   string
	Caption string // what is shown and how it is to be read

	stamps        []stamp
	width, height float64
	shapes        []shape
	hatches       []hatch
	data          table
}

// stamp is what stands below the drawing and beside every row of its numbers, so
// that neither goes without it when taken out of the report.
type stamp struct{ column, value string }

// Mark stamps a notice.
func (f *Figure) Mark(notice string) { f.stamp("hb-b", "note", notice, notice) }

// From stamps the back end that the numbers come from: "sim", or "sim / netns".
func (f *Figure) From(backend string) { f.stamp("hb-k", "backend", backend, "back end: "+backend) }

func (f *Figure) stamp(class, column, value, text string) {
	f.stamps = append(f.stamps, stamp{column, value})
	f.height += lineHeight + 4
	f.text(class, "start", 4, f.height-6, text)
}

type pt struct{ x, y float64 }

// shape is one element of the drawing; SVG and PNG are made of them.
type shape struct {
	kind   shapeKind
	pts    []pt
	r      float64 // radius of a circle, or 0
	text   string
	anchor string // of a text: start, middle, end
	rotate float64
	class  string
	hatch  int    // 1-based index of the hatch that fills it, 0 for the class's fill
	tip    string // shown when pointed at
}

type shapeKind int

const (
	polyline shapeKind = iota
	polygon
	circle
	label
)

// hatch is a fill for bars that is told apart in grey.
type hatch struct {
	class string
	kind  string // "diagonal", "dots"
}

func (f *Figure) add(s shape) { f.shapes = append(f.shapes, s) }

func (f *Figure) line(class string, pts ...pt) {
	f.add(shape{kind: polyline, class: class, pts: pts})
}

func (f *Figure) rect(class string, x, y, w, h float64) *shape {
	f.add(shape{kind: polygon, class: class, pts: []pt{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}})
	return &f.shapes[len(f.shapes)-1]
}

func (f *Figure) text(class, anchor string, x, y float64, s string) {
	f.add(shape{kind: label, class: class, anchor: anchor, pts: []pt{{x, y}}, text: s})
}

// marker draws the marker of series i.
func (f *Figure) marker(i int, class string, x, y, r float64) {
	class = seriesClass(i) + " " + class
	switch i % 4 {
	case 0:
		f.add(shape{kind: circle, class: class, pts: []pt{{x, y}}, r: r})
	case 1:
		s := r * 0.9
		f.add(shape{kind: polygon, class: class, pts: []pt{{x - s, y - s}, {x + s, y - s}, {x + s, y + s}, {x - s, y + s}}})
	case 2:
		s := r * 1.2
		f.add(shape{kind: polygon, class: class, pts: []pt{{x, y - s}, {x + s, y + s*0.75}, {x - s, y + s*0.75}}})
	case 3:
		s := r * 1.25
		f.add(shape{kind: polygon, class: class, pts: []pt{{x, y - s}, {x + s, y}, {x, y + s}, {x - s, y}}})
	}
}

// entry is one entry of a legend.
type entry struct {
	text   string
	width  float64 // of the sample that draw makes
	sample func(x, y float64)
}

// legend sets entries in rows from the point (x, y), where y is the middle of
// the first row, and returns the middle of the row after the last.
func (f *Figure) legend(x, y float64, entries []entry) float64 {
	at := x
	for i, e := range entries {
		w := e.width + 5 + textWidth(e.text)
		if i > 0 && at+w > f.width-4 {
			at = x
			y += lineHeight + 1
		}
		e.sample(at, y)
		f.text("hb-t", "start", at+e.width+5, y+4, e.text)
		at += w + 12
	}
	return y + lineHeight + 1
}

func textWidth(s string) float64 { return emWidth * textSize * float64(len([]rune(s))) }
