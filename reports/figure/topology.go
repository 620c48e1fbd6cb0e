package figure

import (
	"fmt"
	"math"
	"strings"
)

// Map is a network to be drawn.
type Map struct {
	Nodes []MapNode
	Links []MapLink
	Wires []MapWire
	Flows []MapFlow
	// Caption is what the drawing shows, "" for the network of a run.
	Caption string
	// Spread: the positions are those of the drawing alone, see the function.
	Spread bool
}

// MapNode is a node. Nodes without a position stand above the others, or all on
// a circle when none has one.
type MapNode struct {
	Name   string
	XM, YM float64
	Placed bool
	Wired  bool // without a radio
}

// MapWire is a wired link, with what was asked of it in words.
type MapWire struct {
	A, B    int
	Setting string
}

// MapLink is a pair of nodes, the delivery being the mean of both directions.
type MapLink struct {
	A, B     int
	Delivery float64
	Routed   bool
}

// MapFlow is a flow's two ends.
type MapFlow struct{ Src, Dst int }

// classes of link quality, best first.
var linkClasses = []struct {
	least float64
	class string
	text  string
}{
	{0.8, "hb-lk3", "≥ 80 %"},
	{0.5, "hb-lk2", "50–80 %"},
	{0.25, "hb-lk1", "25–50 %"},
	{0, "hb-lk0", "< 25 %"},
}

// faintest is the delivery below which an unused link is not drawn.
const faintest = 0.1

// Topology draws the network: links with their quality, nodes, and where flows
// begin and end.
func Topology(id string, m Map) *Figure {
	f := &Figure{ID: id, Title: "The network", width: Width,
		Caption: "Lines: links that flows use, their style telling how many data frames survive alone and without repetition. Grey: other links that deliver at least 10 %. Below a node: flows that begin (↑) and end (↓) there."}
	if m.Caption != "" {
		f.Caption = m.Caption
	}
	f.data.cols = []string{"kind", "a", "b", "x_m", "y_m", "delivery", "routed"}
	entries := []entry{}
	for _, c := range linkClasses {
		entries = append(entries, entry{c.text, 24, func(x, y float64) { f.line("hb-lk "+c.class, pt{x, y}, pt{x + 24, y}) }})
	}
	y := f.legend(6, 10, entries)

	if len(m.Wires) > 0 {
		y = f.legend(6, y, []entry{{"wired", 24, func(x, y float64) { f.line("hb-wire", pt{x, y}, pt{x + 24, y}) }}})
		f.Caption += " Thick: wired links; square: a node without a radio."
	}
	pos, height, note := place(m.Nodes, y+12)
	if m.Spread && note.length > 0 {
		note = mapNote{text: "positions mean nothing: nodes with good links stand close"}
	}
	for _, w := range m.Wires {
		if w.A < len(pos) && w.B < len(pos) {
			f.line("hb-wire", pos[w.A], pos[w.B])
			f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s – %s, wired: %s", m.Nodes[w.A].Name, m.Nodes[w.B].Name, w.Setting)
			f.data.add("wire", m.Nodes[w.A].Name, m.Nodes[w.B].Name, "", "", "", "")
		}
	}
	for _, pass := range []bool{false, true} { // unused links lie below
		for _, l := range m.Links {
			if l.Routed != pass || l.A >= len(pos) || l.B >= len(pos) {
				continue
			}
			routed := 0
			class := "hb-un"
			if pass {
				routed, class = 1, "hb-lk "+linkClass(l.Delivery)
			} else if l.Delivery < faintest {
				continue
			}
			f.line(class, pos[l.A], pos[l.B])
			f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s – %s: %.0f %%", m.Nodes[l.A].Name, m.Nodes[l.B].Name, 100*l.Delivery)
			f.data.add("link", m.Nodes[l.A].Name, m.Nodes[l.B].Name, "", "", l.Delivery, routed)
		}
	}
	from, to := make([]int, len(pos)), make([]int, len(pos))
	for _, fl := range m.Flows {
		if fl.Src < len(pos) && fl.Dst < len(pos) {
			from[fl.Src]++
			to[fl.Dst]++
		}
	}
	r := 7.2
	if len(pos) > 60 {
		r = 4
	}
	for i, n := range m.Nodes {
		if n.Placed {
			f.data.add("node", n.Name, "", n.XM, n.YM, "", "")
		} else {
			f.data.add("node", n.Name, "", "", "", "", "")
		}
		if n.Wired {
			f.rect("hb-node", pos[i].x-r, pos[i].y-r, 2*r, 2*r)
		} else {
			f.add(shape{kind: circle, class: "hb-node", pts: []pt{pos[i]}, r: r})
		}
		f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s: %d flows begin, %d end", n.Name, from[i], to[i])
		if r > 5 {
			f.text("hb-n", "middle", pos[i].x, pos[i].y+2.7, nodeLabel(n.Name, i))
		}
	}
	if r > 5 {
		for i := range m.Nodes {
			if text := ends(from[i], to[i]); text != "" {
				f.text("hb-x hb-halo", "middle", pos[i].x, pos[i].y+r+8.5, text)
			}
		}
	}
	for _, fl := range m.Flows {
		if fl.Src < len(pos) && fl.Dst < len(pos) {
			f.data.add("flow", m.Nodes[fl.Src].Name, m.Nodes[fl.Dst].Name, "", "", "", "")
		}
	}
	f.height = height
	if note.text != "" {
		if note.length > 0 {
			f.line("hb-axis", pt{10, height - 14}, pt{10, height - 9}, pt{10 + note.length, height - 9}, pt{10 + note.length, height - 14})
			f.text("hb-k", "start", 16+note.length, height-8, note.text)
		} else {
			f.text("hb-k", "start", 10, height-8, note.text)
		}
	}
	return f
}

func linkClass(delivery float64) string {
	for _, c := range linkClasses {
		if delivery >= c.least {
			return c.class
		}
	}
	return linkClasses[len(linkClasses)-1].class
}

// nodeLabel is what fits into a node: its number where the name ends in one.
func nodeLabel(name string, i int) string {
	if digits := strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."); digits != "" && len(digits) <= 3 && strings.Trim(digits, "0123456789") == "" {
		if t := strings.TrimLeft(digits, "0"); t != "" {
			return t
		}
		return "0"
	}
	return fmt.Sprint(i + 1)
}

func ends(from, to int) string {
	var parts []string
	if from > 0 {
		parts = append(parts, fmt.Sprintf("↑%d", from))
	}
	if to > 0 {
		parts = append(parts, fmt.Sprintf("↓%d", to))
	}
	return strings.Join(parts, " ")
}

// aboveOthers is the room for nodes without a position above those with one.
const aboveOthers = 44.0

type mapNote struct {
	text   string
	length float64 // of the scale bar, 0 for none
}

// place turns positions in metres into positions of the drawing, keeping the
// scale equal in both directions, and returns the figure's height.
func place(nodes []MapNode, top float64) (pos []pt, height float64, note mapNote) {
	const margin = 20.0
	width := Width - 2*margin
	placed, others := false, 0
	minX, minY, maxX, maxY := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, n := range nodes {
		if !n.Placed {
			others++
			continue
		}
		placed = true
		minX, maxX = math.Min(minX, n.XM), math.Max(maxX, n.XM)
		minY, maxY = math.Min(minY, n.YM), math.Max(maxY, n.YM)
	}
	if !placed {
		r := width / 2.3
		for i := range nodes {
			a := 2 * math.Pi * float64(i) / float64(len(nodes))
			pos = append(pos, pt{Width/2 + r*math.Sin(a), top + 14 + r - r*math.Cos(a)})
		}
		if len(nodes) == 0 {
			return nil, top + 30, mapNote{text: "no nodes"}
		}
		return pos, top + 2*r + 56, mapNote{text: "positions are not known: the nodes stand on a circle"}
	}
	dx, dy := math.Max(maxX-minX, 1e-9), math.Max(maxY-minY, 1e-9)
	scale := width / dx
	const tallest = 420
	if dy*scale > tallest {
		scale = tallest / dy
	}
	if dx < 1e-6 && dy < 1e-6 {
		scale = 1
	}
	row := top + 14
	if others > 0 {
		top += aboveOthers
	}
	at := 0
	for _, n := range nodes {
		if !n.Placed {
			at++
			pos = append(pos, pt{margin + width*float64(at)/float64(others+1), row})
			continue
		}
		x := margin + (width-dx*scale)/2 + (n.XM-minX)*scale
		pos = append(pos, pt{x, top + 14 + (maxY-n.YM)*scale})
	}
	bar := decade(dx/3, math.Floor)
	for _, m := range []float64{5, 2} {
		if bar*m <= dx/3 {
			bar *= m
			break
		}
	}
	h := math.Min(dy*scale, tallest)
	if h > 0 && bar > 0 && dx > 1e-6 {
		note = mapNote{fmt.Sprintf("%g m", bar), bar * scale}
	}
	if others > 0 {
		note.text += "; nodes at the top have no position"
		note.text = strings.TrimPrefix(note.text, "; ")
	}
	return pos, top + h + 62, note
}
