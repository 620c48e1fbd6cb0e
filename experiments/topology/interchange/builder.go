package interchange

import (
	"fmt"
	"math"
	"strings"
)

// builder collects nodes and links of a file.
type builder struct {
	nodes []Node
	index map[string]int       // by id
	wants []string             // the name that each node would like
	ways  map[[2]int][]float64 // what is known of each direction
	alias map[string]string    // other addresses of a node → its id
	notes []string
}

func newBuilder() *builder {
	return &builder{index: map[string]int{}, ways: map[[2]int][]float64{}, alias: map[string]string{}}
}

func (b *builder) note(format string, a ...any) { b.notes = append(b.notes, fmt.Sprintf(format, a...)) }

// node returns the index of the node with an id, which is made if it is new.
func (b *builder) node(id string) (int, error) {
	if main, ok := b.alias[id]; ok {
		id = main
	}
	if i, ok := b.index[id]; ok {
		return i, nil
	}
	if len(b.nodes) == MaxNodes {
		return 0, refuse("more than %d nodes", MaxNodes)
	}
	b.index[id] = len(b.nodes)
	b.nodes = append(b.nodes, Node{ID: id})
	b.wants = append(b.wants, id)
	return len(b.nodes) - 1, nil
}

// way notes the delivery from one node to another. What is said several times of a
// direction, as by both of its ends, is averaged.
func (b *builder) way(from, to int, delivery float64) {
	b.ways[[2]int{from, to}] = append(b.ways[[2]int{from, to}], delivery)
}

// link notes both directions.
func (b *builder) link(from, to int, there, back float64) {
	b.way(from, to, there)
	b.way(to, from, back)
}

// network makes the network of what was collected. A link of which the file tells
// one direction only is the same in both; one that carries nothing is none.
func (b *builder) network() (*Network, error) {
	if len(b.nodes) < 2 {
		return nil, refuse("the file has %d nodes: a network needs two", len(b.nodes))
	}
	if len(b.ways) == 0 {
		return nil, refuse("the file has no link that could be used")
	}
	b.names()
	n := &Network{Nodes: b.nodes, Notes: b.notes}
	assumed, dead := 0, 0
	for at := range b.ways {
		from, to := min(at[0], at[1]), max(at[0], at[1])
		if at[0] > at[1] && b.ways[[2]int{from, to}] != nil {
			continue // it is there from the other side
		}
		l := Link{From: from, To: to}
		there, back := b.ways[[2]int{from, to}], b.ways[[2]int{to, from}]
		if there == nil || back == nil {
			assumed++
			if there == nil {
				there = back
			} else {
				back = there
			}
		}
		if l.Delivery, l.Reverse = mean(there), mean(back); l.Delivery > 0 || l.Reverse > 0 {
			n.Links = append(n.Links, l)
		} else {
			dead++
		}
	}
	if len(n.Links) == 0 {
		return nil, refuse("the file has no link that carries anything")
	}
	if assumed > 0 {
		n.Notes = append(n.Notes, fmt.Sprintf("%d links are told in one direction only, and taken to be the same in both", assumed))
	}
	if dead > 0 {
		n.Notes = append(n.Notes, fmt.Sprintf("%d links carry nothing and are left out", dead))
	}
	sortLinks(n.Links)
	return n, nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	if len(x) == 0 {
		return 0
	}
	return sum / float64(len(x))
}

// maxName is the longest name in an experiment file.
const maxName = 64

// names gives every node a name that is valid in an experiment file, as close to
// what the file calls it as can be; of equal ones the later ones are numbered.
func (b *builder) names() {
	taken := map[string]bool{}
	for i := range b.nodes {
		base := validName(b.wants[i])
		if base == "" {
			if base = validName(b.nodes[i].ID); base == "" {
				base = fmt.Sprintf("node-%d", i+1)
			}
		}
		name := base
		for k := 2; taken[name]; k++ {
			suffix := fmt.Sprintf("-%d", k)
			name = strings.TrimRight(base[:min(len(base), maxName-len(suffix))], ".-_") + suffix
		}
		taken[name] = true
		b.nodes[i].Name = name
	}
}

// validName writes a text in lower-case letters, digits, dots, dashes and
// underscores, beginning with a letter or a digit; "" where nothing is left.
func validName(s string) string {
	var out []byte
	for _, r := range strings.ToLower(s) {
		c := byte('-')
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			c = byte(r)
		}
		if len(out) == maxName {
			break
		}
		if len(out) == 0 && (c == '-' || c == '.' || c == '_') {
			continue
		}
		out = append(out, c)
	}
	return strings.TrimRight(string(out), "-._")
}

// earth is the mean radius of the earth in metres.
const earth = 6_371_000

// place takes the places of nodes over, in metres. Where all of them read as
// degrees of latitude and longitude they are projected to the plane, x to the east
// and y to the north of the south-west corner.
func (b *builder) place(degrees bool) {
	first := true
	var south, west, north float64
	for _, n := range b.nodes {
		if !n.Placed {
			continue
		}
		if first {
			south, west, north, first = n.X, n.Y, n.X, false
		}
		south, west, north = math.Min(south, n.X), math.Min(west, n.Y), math.Max(north, n.X)
	}
	if first || !degrees {
		return
	}
	shrink := math.Cos((south + north) / 2 * math.Pi / 180)
	for i := range b.nodes {
		if n := &b.nodes[i]; n.Placed {
			lat, lon := n.X, n.Y
			n.X = round((lon - west) * math.Pi / 180 * earth * shrink)
			n.Y = round((lat - south) * math.Pi / 180 * earth)
		}
	}
	b.note("places are taken for degrees of latitude and longitude, and projected to the plane")
}

// round keeps places to the centimetre.
func round(m float64) float64 { return math.Round(m*100) / 100 }

// geographic tells that places read as latitude (X) and longitude (Y): all within
// the globe, within two degrees of each other, and written with the decimals that
// a plan in metres has no use for.
func (b *builder) geographic() bool {
	first, fine := true, false
	var x0, x1, y0, y1 float64
	for _, n := range b.nodes {
		if !n.Placed {
			continue
		}
		if math.Abs(n.X) > 90 || math.Abs(n.Y) > 180 {
			return false
		}
		if first {
			x0, x1, y0, y1, first = n.X, n.X, n.Y, n.Y, false
		}
		x0, x1, y0, y1 = math.Min(x0, n.X), math.Max(x1, n.X), math.Min(y0, n.Y), math.Max(y1, n.Y)
		fine = fine || math.Abs(n.X*1000-math.Round(n.X*1000)) > 1e-6
	}
	return !first && fine && x1-x0 < 2 && y1-y0 < 2
}
