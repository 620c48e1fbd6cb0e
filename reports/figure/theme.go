package figure

import (
	"fmt"
	"strings"
)

// colours are the roles that the style sheet paints with, light and dark. The
// series colours are those of Okabe and Ito ("Color Universal Design", 2008);
// the dark ones are lighter tones of the same hues.
var colours = []struct{ name, light, dark string }{
	{"ink", "#1b1f24", "#e8eaed"},
	{"dim", "#57606a", "#a7b0ba"},
	{"grid", "#d8dee4", "#3a424c"},
	{"paper", "#ffffff", "#14181d"},
	{"s0", "#0072b2", "#56b4e9"}, // blue
	{"s1", "#d55e00", "#ff8a3d"}, // vermillion
	{"s2", "#009e73", "#2fd1a5"}, // bluish green
	{"s3", "#cc79a7", "#e39cc4"}, // reddish purple
	{"s4", "#e69f00", "#f2b632"}, // orange
	{"s5", "#56b4e9", "#8fd0f5"}, // sky blue
	{"s6", "#000000", "#ffffff"}, // black
	{"s7", "#b3a800", "#f0e442"}, // yellow, darkened on white
}

// maxSeries is how many series a figure can tell apart.
const maxSeries = 8

// dashes are the line styles of the series, so that they differ in grey.
var dashes = [maxSeries]string{"", "7 3", "2 2.2", "9 3 2 3", "5 2", "1 3", "12 4", "4 2 1 2"}

func seriesClass(i int) string { return fmt.Sprintf("hb-s%d", i%maxSeries) }

// rules is the style sheet, with {name} for a colour.
const rules = `
.hb-fig text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;font-size:11.5px;fill:{ink}}
.hb-fig text.hb-k{fill:{dim}}
.hb-fig text.hb-b{font-weight:600}
.hb-fig text.hb-n{font-size:7.5px;font-weight:600}
.hb-fig text.hb-x{font-size:9px;fill:{dim}}
.hb-fig text.hb-halo{paint-order:stroke;stroke:{paper};stroke-width:3px;stroke-linejoin:round}
.hb-axis{stroke:{dim};stroke-width:1;fill:none}
.hb-grid{stroke:{grid};stroke-width:.8;fill:none}
.hb-edge{stroke:{dim};stroke-width:.7;fill:none}
.hb-mark{stroke:{dim};stroke-width:1;stroke-dasharray:2 3;fill:none}
.hb-line{fill:none;stroke-width:2;stroke-linejoin:round}
.hb-thin{fill:none;stroke-width:1.2}
.hb-doubt{fill:none;stroke-width:1.2;stroke-dasharray:1.5 2.5}
.hb-median{fill:none;stroke-width:3.2}
.hb-box{fill-opacity:.28;stroke-width:1.3}
.hb-dot{fill-opacity:.55;stroke:none}
.hb-solid{stroke:none}
.hb-hollow{stroke-width:1.4}
.hb-outer{fill-opacity:.18;stroke:none}
.hb-inner{fill-opacity:.4;stroke:none}
.hb-warm{fill:{grid};fill-opacity:.45;stroke:none}
.hb-tx{fill:{s1};stroke:none}
.hb-rx{fill:{s0};stroke:none}
.hb-busy{fill:{dim};stroke:none}
.hb-idle{fill:none;stroke:{grid};stroke-width:.8}
.hb-hatch-rx{stroke:{s0};stroke-width:1.6;fill:none}
.hb-hatch-busy{fill:{dim};stroke:none}
.hb-node{fill:{paper};stroke:{ink};stroke-width:1.2}
.hb-lk{stroke:{s0};fill:none;stroke-width:1.4}
.hb-lk3{stroke-width:3.4}
.hb-lk2{stroke-width:2}
.hb-lk1{stroke-width:1.6;stroke-dasharray:6 3}
.hb-lk0{stroke-width:1.4;stroke-dasharray:1.6 2.6}
.hb-wire{stroke:{ink};fill:none;stroke-width:2.6}
.hb-un{stroke:{dim};stroke-opacity:.55;stroke-width:.8}
`

// CSS returns the style sheet of inline figures. A page includes it once; the
// colours are custom properties that follow the reader's preference for dark or
// light and are light in print.
func CSS() string {
	var b strings.Builder
	set := func(dark bool) {
		b.WriteString(":root{")
		for _, c := range colours {
			v := c.light
			if dark {
				v = c.dark
			}
			fmt.Fprintf(&b, "--hb-%s:%s;", c.name, v)
		}
		b.WriteString("}")
	}
	set(false)
	b.WriteString("\n@media screen and (prefers-color-scheme:dark){")
	set(true)
	b.WriteString("}")
	b.WriteString(expand(func(name, light string) string { return "var(--hb-" + name + ")" }))
	return b.String()
}

// fixedCSS is the style sheet of a figure that stands alone: many programs that
// take SVG into papers know no custom properties.
func fixedCSS() string {
	return expand(func(name, light string) string { return light })
}

func expand(colour func(name, light string) string) string {
	s := rules
	for i := range maxSeries {
		s += fmt.Sprintf(".hb-s%d{stroke:{s%d};fill:{s%d}}\n", i, i, i)
		if dashes[i] != "" {
			s += fmt.Sprintf(".hb-line.hb-s%d{stroke-dasharray:%s}\n", i, dashes[i])
		}
	}
	// After the series' own fill, so that a line is not filled nor a hollow
	// marker full.
	s += ".hb-line,.hb-thin,.hb-doubt{fill:none}\n.hb-hollow{fill:{paper}}\n.hb-dot,.hb-solid,.hb-outer,.hb-inner{stroke:none}\n"
	for _, c := range colours {
		s = strings.ReplaceAll(s, "{"+c.name+"}", colour(c.name, c.light))
	}
	return s
}
