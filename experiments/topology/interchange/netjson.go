package interchange

import (
	"io"
	"math"
	"strconv"
)

// readNetJSON reads a NetworkGraph (NetJSON, rfc.html#name4). Costs are understood
// for the metrics ETX, of which only the product of both directions is known, and
// TQ (255/TQ towards the target, as of batman-adv); where every cost is 1, whatever
// the metric, links are perfect. The shares delivery and reverse among the
// properties of a link, as written here, say more than its cost.
func readNetJSON(data []byte) (*Network, error) {
	doc, err := parseJSON(data)
	if err == nil {
		err = doc.is('{', "the document")
	}
	if err != nil {
		return nil, err
	}
	if t := doc.get("type"); t == nil || t.text != "NetworkGraph" {
		return nil, doc.errorf(`the document is not of the type "NetworkGraph"`)
	}
	b := newBuilder()
	if nodes := doc.get("nodes"); nodes != nil {
		if err := b.listNodes(nodes); err != nil {
			return nil, err
		}
		if err := b.netJSONPlaces(nodes.list); err != nil {
			return nil, err
		}
	}
	links, err := doc.items("links")
	if err != nil {
		return nil, err
	}
	costs, least, most := make([]float64, len(links)), math.Inf(1), 0.0
	for k, l := range links {
		c, err := l.need("cost")
		if err != nil {
			return nil, err
		}
		if costs[k], err = c.number(`"cost"`); err != nil {
			return nil, err
		}
		if costs[k] < 1 {
			return nil, c.errorf(`"cost" is %g, want at least 1`, costs[k])
		}
		least, most = math.Min(least, costs[k]), math.Max(most, costs[k])
	}
	metric := ""
	if m := doc.get("metric"); m != nil {
		metric = m.text
	}
	switch {
	case most == 1, metric == "TQ":
	case metric == "ETX":
		if least >= linkCost {
			b.note("costs are taken for ETX × %d, as olsrd writes them", linkCost)
			for k := range costs {
				costs[k] /= linkCost
			}
		}
	default:
		return nil, doc.errorf("the metric is %s: a delivery follows from ETX or TQ only", strconv.Quote(metric))
	}
	halved := 0
	for k, l := range links {
		from, to, err := b.ends(l, "source", "target")
		if err != nil {
			return nil, err
		}
		if p := l.get("properties"); p != nil && p.kind == '{' && p.get("delivery") != nil && p.get("reverse") != nil {
			there, err := p.share("delivery")
			if err != nil {
				return nil, err
			}
			back, err := p.share("reverse")
			if err != nil {
				return nil, err
			}
			b.link(from, to, there, back)
			continue
		}
		if metric == "ETX" {
			p := math.Sqrt(1 / costs[k])
			b.link(from, to, p, p)
			halved++
		} else {
			b.way(from, to, 1/costs[k])
		}
	}
	if halved > 0 {
		b.note("an ETX is the product of both directions: of %d links they are taken to be the same", halved)
	}
	return b.network()
}

// netJSONPlaces takes the places that are among the properties of nodes: x and y
// in metres, as written here.
func (b *builder) netJSONPlaces(nodes []*value) error {
	for i, v := range nodes {
		p := v.get("properties")
		if p == nil || p.kind != '{' || p.get("x") == nil || p.get("y") == nil {
			continue
		}
		n := &b.nodes[i]
		var err error
		if n.X, err = p.get("x").coordinate("x"); err != nil {
			return err
		}
		if n.Y, err = p.get("y").coordinate("y"); err != nil {
			return err
		}
		n.Placed = true
	}
	return nil
}

func writeNetJSON(w io.Writer, n *Network) error {
	type node struct {
		ID         string             `json:"id"`
		Properties map[string]float64 `json:"properties,omitempty"`
	}
	type link struct {
		Source     string             `json:"source"`
		Target     string             `json:"target"`
		Cost       float64            `json:"cost"`
		Properties map[string]float64 `json:"properties"`
	}
	out := struct {
		Type     string  `json:"type"`
		Protocol string  `json:"protocol"`
		Version  *string `json:"version"`
		Metric   string  `json:"metric"`
		Nodes    []node  `json:"nodes"`
		Links    []link  `json:"links"`
	}{"NetworkGraph", "static", nil, "ETX", []node{}, []link{}}
	for _, k := range n.Nodes {
		v := node{ID: k.Name}
		if k.Placed {
			v.Properties = map[string]float64{"x": k.X, "y": k.Y}
		}
		out.Nodes = append(out.Nodes, v)
	}
	for _, l := range n.Links {
		// A link that carries nothing in one direction has no ETX, and no place in a
		// graph of costs.
		if p := l.Delivery * l.Reverse; p > 0 {
			out.Links = append(out.Links, link{n.Nodes[l.From].Name, n.Nodes[l.To].Name, 1 / p,
				map[string]float64{"delivery": l.Delivery, "reverse": l.Reverse}})
		}
	}
	return writeJSON(w, out)
}
