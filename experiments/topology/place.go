package topology

import (
	"math"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// shape returns the positions of a generator that draws nothing: a chain along
// x, a grid filled row by row, a star with its hub first and the leaves on a
// circle.
func shape(g *spec.Generate) []wifi.Position {
	pos := make([]wifi.Position, g.Nodes)
	switch g.Kind {
	case spec.Chain:
		for i := range pos {
			pos[i].X = vtime.Metres(vtime.Metres(i) * g.Spacing)
		}
	case spec.Grid:
		cols := g.Columns
		if cols == 0 {
			cols = int(math.Ceil(math.Sqrt(float64(g.Nodes))))
		}
		for i := range pos {
			pos[i] = wifi.Position{X: vtime.Metres(vtime.Metres(i%cols) * g.Spacing), Y: vtime.Metres(vtime.Metres(i/cols) * g.Spacing)}
		}
	case spec.Star:
		for i := 1; i < len(pos); i++ {
			a := 2 * math.Pi * float64(i-1) / float64(len(pos)-1)
			pos[i] = wifi.Position{X: round(float64(float64(g.Spacing) * math.Cos(a))), Y: round(float64(float64(g.Spacing) * math.Sin(a)))}
		}
	}
	return pos
}

// scatter draws positions uniformly over an area.
func scatter(s *des.Stream, n int, a spec.Area) []wifi.Position {
	pos := make([]wifi.Position, n)
	for i := range pos {
		pos[i].X = round(float64(float64(a.Width) * s.Float64()))
		pos[i].Y = round(float64(float64(a.Height) * s.Float64()))
	}
	return pos
}

// round keeps positions to the centimetre: readable, and the same on every
// architecture whatever its cosine.
func round(m float64) vtime.Metres { return vtime.Metres(math.Round(m*100) / 100) }
