package figure

import "math"

// Spread places nodes that have no positions so that those with good links stand
// close and the others apart (Fruchterman, Reingold 1991), in units of the wanted
// length of a link. It draws nothing: equal networks look the same. Parts that no
// link joins are pushed apart.
func Spread(nodes int, links []MapLink) (x, y []float64) {
	x, y = make([]float64, nodes), make([]float64, nodes)
	for i := range nodes {
		// A sunflower: even, and no two nodes at the same place.
		r, a := math.Sqrt(float64(i)+0.5), float64(i)*2.399963229728653
		x[i], y[i] = r*math.Cos(a), r*math.Sin(a)
	}
	dx, dy := make([]float64, nodes), make([]float64, nodes)
	const rounds = 300
	for round := range rounds {
		clear(dx)
		clear(dy)
		for i := range nodes {
			for j := range i {
				ex, ey := x[i]-x[j], y[i]-y[j]
				f := 1 / math.Max(ex*ex+ey*ey, 1e-4) // k²/d, along d/d
				dx[i], dy[i] = dx[i]+f*ex, dy[i]+f*ey
				dx[j], dy[j] = dx[j]-f*ex, dy[j]-f*ey
			}
			// Towards the middle, so that parts stay on the paper.
			dx[i], dy[i] = dx[i]-0.02*x[i], dy[i]-0.02*y[i]
		}
		for _, l := range links {
			if l.A >= nodes || l.B >= nodes || l.A == l.B {
				continue
			}
			ex, ey := x[l.A]-x[l.B], y[l.A]-y[l.B]
			f := math.Hypot(ex, ey) * (0.3 + 0.7*l.Delivery) // d²/k, along d/d
			dx[l.A], dy[l.A] = dx[l.A]-f*ex, dy[l.A]-f*ey
			dx[l.B], dy[l.B] = dx[l.B]+f*ex, dy[l.B]+f*ey
		}
		// It cools: large steps first, then finer ones.
		most := math.Sqrt(float64(nodes)) * 0.3 * (1 - float64(round)/rounds)
		for i := range nodes {
			if d := math.Hypot(dx[i], dy[i]); d > 0 {
				step := math.Min(d, most) / d
				x[i], y[i] = x[i]+step*dx[i], y[i]+step*dy[i]
			}
		}
	}
	return x, y
}
