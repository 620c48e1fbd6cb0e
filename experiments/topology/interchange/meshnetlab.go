package interchange

import (
	"encoding/json"
	"io"
	"strconv"
)

// readMeshnetLab reads a topology of mwarning/meshnet-lab, and with it those of
// Freifunk's maps that its tools convert: source_tq is the share of frames that
// get from source to target, target_tq that of the other direction; without them a
// link is perfect. Links of another type than wifi (vpn, other) are no radio links
// and left out.
func readMeshnetLab(data []byte) (*Network, error) {
	doc, err := parseJSON(data)
	if err == nil {
		err = doc.is('{', "the document")
	}
	if err != nil {
		return nil, err
	}
	if t := doc.get("type"); t != nil && t.kind == 's' {
		return nil, t.errorf("the document is of the type %s: read it as netjson", strconv.Quote(t.text))
	}
	b := newBuilder()
	if nodes := doc.get("nodes"); nodes != nil {
		if err := b.listNodes(nodes); err != nil {
			return nil, err
		}
	}
	links, err := doc.items("links")
	if err != nil {
		return nil, err
	}
	others, shaped := 0, 0
	for _, l := range links {
		if t := l.get("type"); t != nil && t.text != "wifi" {
			others++
			continue
		}
		from, to, err := b.ends(l, "source", "target")
		if err != nil {
			return nil, err
		}
		q := [2]float64{1, 1}
		for e, key := range []string{"source_tq", "target_tq"} {
			if l.get(key) == nil {
				continue
			}
			if q[e], err = l.share(key); err != nil {
				return nil, err
			}
		}
		if l.get("source_tc") != nil || l.get("target_tc") != nil {
			shaped++
		}
		if b.ways[[2]int{from, to}] != nil {
			return nil, l.errorf("a link between %s and %s stands in the file twice", strconv.Quote(b.nodes[from].ID), strconv.Quote(b.nodes[to].ID))
		}
		b.link(from, to, q[0], q[1])
	}
	if others > 0 {
		b.note("%d links are of another type than wifi (tunnels, wires) and left out", others)
	}
	if shaped > 0 {
		b.note("source_tc and target_tc of %d links are not followed", shaped)
	}
	b.place(b.geographic())
	return b.network()
}

// listNodes takes listed nodes with id, name or label, and place.
func (b *builder) listNodes(list *value) error {
	nodes, err := list.objects(`"nodes"`)
	if err != nil {
		return err
	}
	for _, v := range nodes {
		id, err := v.name("id")
		if err != nil {
			return err
		}
		if _, twice := b.index[id]; twice {
			return v.errorf("a node %s stands in the file twice", strconv.Quote(id))
		}
		i, err := b.node(id)
		if err != nil {
			return err
		}
		for _, key := range []string{"label", "name"} {
			if x := v.get(key); x != nil && x.kind == 's' && validName(x.text) != "" {
				b.wants[i] = x.text
			}
		}
		if x, y := v.get("x"), v.get("y"); x != nil && y != nil {
			n := &b.nodes[i]
			if n.X, err = x.coordinate("x"); err != nil {
				return err
			}
			if n.Y, err = y.coordinate("y"); err != nil {
				return err
			}
			n.Placed = true
		}
	}
	return nil
}

// maxPlace is the largest coordinate, in metres.
const maxPlace = 1e6

func (v *value) coordinate(what string) (float64, error) {
	f, err := v.number(what)
	if err == nil && (f > maxPlace || f < -maxPlace) {
		err = v.errorf("%s is %g, want at most %g", what, f, maxPlace)
	}
	return f, err
}

// ends returns the two nodes of a link.
func (b *builder) ends(l *value, from, to string) (i, j int, err error) {
	x, err := l.name(from)
	if err != nil {
		return 0, 0, err
	}
	y, err := l.name(to)
	if err != nil {
		return 0, 0, err
	}
	if i, err = b.node(x); err != nil {
		return 0, 0, err
	}
	if j, err = b.node(y); err != nil {
		return 0, 0, err
	}
	if i == j {
		return 0, 0, l.errorf("the link joins %s to itself", strconv.Quote(x))
	}
	return i, j, nil
}

func writeMeshnetLab(w io.Writer, n *Network) error {
	type node struct {
		ID string   `json:"id"`
		X  *float64 `json:"x,omitempty"`
		Y  *float64 `json:"y,omitempty"`
	}
	type link struct {
		Source   string  `json:"source"`
		Target   string  `json:"target"`
		SourceTQ float64 `json:"source_tq"`
		TargetTQ float64 `json:"target_tq"`
		Type     string  `json:"type"`
	}
	out := struct {
		Nodes []node `json:"nodes"`
		Links []link `json:"links"`
	}{Nodes: []node{}, Links: []link{}}
	for i := range n.Nodes {
		k := node{ID: n.Nodes[i].Name}
		if n.Nodes[i].Placed {
			k.X, k.Y = &n.Nodes[i].X, &n.Nodes[i].Y
		}
		out.Nodes = append(out.Nodes, k)
	}
	for _, l := range n.Links {
		out.Links = append(out.Links, link{n.Nodes[l.From].Name, n.Nodes[l.To].Name, l.Delivery, l.Reverse, "wifi"})
	}
	return writeJSON(w, out)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
