package interchange

import (
	"strconv"
)

// maxTQ is batman-adv's transmit quality of a perfect link (BATADV_TQ_MAX_VALUE).
const maxTQ = 255

// readBatman reads what is to be had of a batman-adv mesh:
//
//   - batadv-vis, alfred's vis, as jsondoc: a document with "vis", an entry for each
//     node with its neighbours; the metric is 255/TQ, TQ the transmit quality
//     towards the neighbour.
//   - the same as JSON lines (batadv-vis -f json), where the metric is in "label".
//   - batctl meshif bat0 originators_json: what one node knows. Its direct
//     neighbours are the originators that are their own next hop; what lies between
//     others is not in it.
func readBatman(data []byte) (*Network, error) {
	docs, err := parseJSONs(data, 4*MaxLinks)
	if err != nil {
		return nil, err
	}
	switch first := docs[0]; {
	case first.kind == '[' && len(docs) == 1:
		return originators(first)
	case first.kind == '{' && len(docs) == 1 && first.get("vis") != nil:
		return visDocument(first)
	case first.kind == '{' && (first.get("primary") != nil || first.get("router") != nil || first.get("secondary") != nil):
		return visLines(docs)
	}
	return nil, docs[0].errorf(`neither "vis", nor lines of batadv-vis, nor a list of originators`)
}

func visDocument(doc *value) (*Network, error) {
	entries, err := doc.items("vis")
	if err != nil {
		return nil, err
	}
	b := newBuilder()
	for _, e := range entries {
		primary, err := e.name("primary")
		if err != nil {
			return nil, err
		}
		if e.get("secondary") == nil {
			continue
		}
		list := e.get("secondary")
		if err := list.is('[', `"secondary"`); err != nil {
			return nil, err
		}
		for _, s := range list.list {
			if err := s.is('s', `an entry of "secondary"`); err != nil {
				return nil, err
			}
			if s.text != primary {
				b.alias[s.text] = primary
			}
		}
	}
	for _, e := range entries {
		primary, _ := e.name("primary") // read before
		if _, err := b.node(primary); err != nil {
			return nil, err
		}
		neighbours, err := e.items("neighbors")
		if err != nil {
			return nil, err
		}
		for _, l := range neighbours {
			if err := b.visLink(l, "metric"); err != nil {
				return nil, err
			}
		}
	}
	return b.network()
}

func visLines(lines []*value) (*Network, error) {
	b := newBuilder()
	for _, l := range lines {
		if err := l.is('{', "a line"); err != nil {
			return nil, err
		}
		if l.get("secondary") == nil {
			continue
		}
		other, err := l.name("secondary")
		if err != nil {
			return nil, err
		}
		of, err := l.name("of")
		if err != nil {
			return nil, err
		}
		if other != of {
			b.alias[other] = of
		}
	}
	for _, l := range lines {
		switch {
		case l.get("router") != nil && l.get("neighbor") != nil:
			if err := b.visLink(l, "label"); err != nil {
				return nil, err
			}
		case l.get("primary") != nil:
			p, err := l.name("primary")
			if err != nil {
				return nil, err
			}
			if _, err := b.node(p); err != nil {
				return nil, err
			}
		case l.get("secondary") != nil, l.get("router") != nil && l.get("gateway") != nil: // an address; a client
		default:
			return nil, l.errorf("not a line of batadv-vis")
		}
	}
	return b.network()
}

// visLink takes the way from router to neighbor with a metric of 255/TQ.
func (b *builder) visLink(l *value, key string) error {
	from, to, err := b.ends(l, "router", "neighbor")
	if err != nil {
		return err
	}
	x, err := l.need(key)
	if err != nil {
		return err
	}
	m, err := x.number(strconv.Quote(key))
	if err != nil {
		return err
	}
	if m < 1 {
		return x.errorf("%s is %g, want 255/TQ, which is at least 1", strconv.Quote(key), m)
	}
	b.way(from, to, 1/m)
	return nil
}

func originators(list *value) (*Network, error) {
	entries, err := list.objects("the list of originators")
	if err != nil {
		return nil, err
	}
	b := newBuilder()
	self, err := b.node("self")
	if err != nil {
		return nil, err
	}
	best := map[string]float64{}
	var order []string
	far := map[string]bool{}
	for _, e := range entries {
		orig, err := e.name("orig_address")
		if err != nil {
			return nil, err
		}
		via, err := e.name("neigh_address")
		if err != nil {
			return nil, err
		}
		if orig != via {
			far[orig] = true
			continue
		}
		if e.get("tq") == nil {
			return nil, e.errorf("the entry has no tq: B.A.T.M.A.N. V knows throughputs, which say nothing of delivery")
		}
		tq, err := e.get("tq").number(`"tq"`)
		if err != nil {
			return nil, err
		}
		if tq < 0 || tq > maxTQ {
			return nil, e.get("tq").errorf(`"tq" is %g, want 0 to %d`, tq, maxTQ)
		}
		if _, seen := best[orig]; !seen {
			order = append(order, orig)
		}
		best[orig] = max(best[orig], tq/maxTQ)
	}
	hidden := 0
	for o := range far {
		if _, near := best[o]; !near {
			hidden++
		}
	}
	for _, o := range order {
		i, err := b.node(o)
		if err != nil {
			return nil, err
		}
		if i == self {
			return nil, refuse("an originator is called self")
		}
		b.way(self, i, best[o])
	}
	b.note(`the file is the view of one node, here called self: links between others are not in it`)
	if hidden > 0 {
		b.note("%d originators that are no neighbours of it are left out", hidden)
	}
	return b.network()
}
