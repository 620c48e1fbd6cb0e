package figure

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/reports/safetext"
)

// SVG returns the figure as a file of its own, in light colours on white.
func (f *Figure) SVG() []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	f.write(&b, fixedCSS())
	return b.Bytes()
}

// Inline returns the figure as an element of an HTML page that has CSS's style
// sheet.
func (f *Figure) Inline() []byte {
	var b bytes.Buffer
	f.write(&b, "")
	return b.Bytes()
}

func (f *Figure) write(b *bytes.Buffer, css string) {
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hb-fig\" viewBox=\"0 0 %s %s\" role=\"img\" aria-labelledby=\"%s-t %s-d\"", num(f.width), num(f.height), esc(f.ID), esc(f.ID))
	if css != "" {
		fmt.Fprintf(b, " width=\"%s\" height=\"%s\"", num(f.width), num(f.height))
	}
	fmt.Fprintf(b, ">\n<title id=\"%s-t\">%s</title>\n<desc id=\"%s-d\">%s</desc>\n", esc(f.ID), esc(f.Title), esc(f.ID), esc(f.Caption))
	if css != "" {
		fmt.Fprintf(b, "<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", css)
	}
	if len(f.hatches) > 0 {
		b.WriteString("<defs>")
		for i, h := range f.hatches {
			fmt.Fprintf(b, "<pattern id=\"%s-h%d\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">", esc(f.ID), i+1)
			switch h.kind {
			case "diagonal":
				fmt.Fprintf(b, "<path class=\"%s\" d=\"M-1 1L1 -1M0 4L4 0M3 5L5 3\"/>", h.class)
			case "dots":
				fmt.Fprintf(b, "<circle class=\"%s\" cx=\"2\" cy=\"2\" r=\"1\"/>", h.class)
			}
			b.WriteString("</pattern>")
		}
		b.WriteString("</defs>\n")
	}
	for i := range f.shapes {
		f.element(b, &f.shapes[i])
	}
	b.WriteString("</svg>\n")
}

func (f *Figure) element(b *bytes.Buffer, s *shape) {
	attr := ""
	if s.class != "" {
		attr = " class=\"" + s.class + "\""
	}
	if s.hatch > 0 {
		// A style, not an attribute: the class sets a fill as well.
		attr += fmt.Sprintf(" style=\"fill:url(#%s-h%d)\"", esc(f.ID), s.hatch)
	}
	var name, body string
	switch s.kind {
	case polyline, polygon:
		var d strings.Builder
		for i, p := range s.pts {
			d.WriteByte("ML"[min(i, 1)])
			d.WriteString(num(p.x) + " " + num(p.y))
		}
		if s.kind == polygon {
			d.WriteByte('Z')
		}
		name, attr = "path", attr+" d=\""+d.String()+"\""
	case circle:
		name, attr = "circle", attr+fmt.Sprintf(" cx=\"%s\" cy=\"%s\" r=\"%s\"", num(s.pts[0].x), num(s.pts[0].y), num(s.r))
	case label:
		name, body = "text", esc(s.text)
		attr += fmt.Sprintf(" x=\"%s\" y=\"%s\"", num(s.pts[0].x), num(s.pts[0].y))
		if s.anchor != "" && s.anchor != "start" {
			attr += " text-anchor=\"" + s.anchor + "\""
		}
		if s.rotate != 0 {
			attr += fmt.Sprintf(" transform=\"rotate(%s %s %s)\"", num(s.rotate), num(s.pts[0].x), num(s.pts[0].y))
		}
	}
	if s.tip != "" {
		body += "<title>" + esc(s.tip) + "</title>"
	}
	if body == "" {
		fmt.Fprintf(b, "<%s%s/>\n", name, attr)
		return
	}
	fmt.Fprintf(b, "<%s%s>%s</%s>\n", name, attr, body, name)
}

// num writes a coordinate with at most two decimals.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func esc(s string) string { return escaper.Replace(safetext.Line(s, 0)) }
