package interchange

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readJSONInfo reads what olsrd's plugin jsoninfo writes, of old and new releases:
// the links of the whole mesh under topology (/topology or /all), or those of the
// one node under links alone, and the other addresses of nodes under mid.
//
// A node's linkQuality is the share of its neighbour's packets that it hears, its
// neighborLinkQuality what the neighbour hears of it.
func readJSONInfo(data []byte) (*Network, error) {
	doc, err := parseJSON(data)
	if err == nil {
		err = doc.is('{', "the document")
	}
	if err != nil {
		return nil, err
	}
	b := newBuilder()
	if err := b.readMID(doc.get("mid")); err != nil {
		return nil, err
	}
	key, from, to := "topology", "lastHopIP", "destinationIP"
	if doc.get(key) == nil {
		if doc.get("links") == nil {
			return nil, doc.errorf("neither topology nor links: ask jsoninfo for /topology or /all")
		}
		key, from, to = "links", "localIP", "remoteIP"
		b.note("the file has the links of one node only: there is no topology in it")
	}
	entries, err := doc.items(key)
	if err != nil {
		return nil, err
	}
	for _, l := range entries {
		i, j, err := b.ends(l, from, to)
		if err != nil {
			return nil, err
		}
		lq, err := l.share("linkQuality")
		if err != nil {
			return nil, err
		}
		nlq, err := l.share("neighborLinkQuality")
		if err != nil {
			return nil, err
		}
		b.link(i, j, nlq, lq)
	}
	return b.network()
}

// readMID takes the other addresses of nodes: new releases have the main address
// in an object of its own.
func (b *builder) readMID(mid *value) error {
	if mid == nil {
		return nil
	}
	entries, err := mid.objects(`"mid"`)
	if err != nil {
		return err
	}
	for _, m := range entries {
		main := m
		if x := m.get("main"); x != nil {
			if err := x.is('{', `"main"`); err != nil {
				return err
			}
			main = x
		}
		ip, err := main.name("ipAddress")
		if err != nil {
			return err
		}
		if m.get("aliases") == nil {
			continue
		}
		aliases, err := m.items("aliases")
		if err != nil {
			return err
		}
		for _, a := range aliases {
			other, err := a.name("ipAddress")
			if err != nil {
				return err
			}
			if was, twice := b.alias[other]; twice && was != ip {
				return a.errorf("%s is an address of both %s and %s", strconv.Quote(other), strconv.Quote(was), strconv.Quote(ip))
			}
			if other != ip {
				b.alias[other] = ip
			}
		}
	}
	return nil
}

// readTxtInfo reads what olsrd's plugin txtinfo writes: the table Topology, else
// the table Links of the one node, and the other addresses of nodes in the table
// MID. Columns are found by their heads.
func readTxtInfo(data []byte) (*Network, error) {
	tables, err := txtTables(data)
	if err != nil {
		return nil, err
	}
	b := newBuilder()
	if mid := tables["MID"]; mid != nil {
		for _, r := range mid.rows {
			if len(r.cells) < 2 {
				continue // no aliases
			}
			for _, a := range strings.FieldsFunc(r.cells[1], func(c rune) bool { return c == ';' || c == ' ' || c == ',' }) {
				if a != r.cells[0] {
					b.alias[a] = r.cells[0]
				}
			}
		}
	}
	t, from, to := tables["Topology"], "Last hop IP", "Dest. IP"
	if t == nil {
		if t, from, to = tables["Links"], "Local IP", "Remote IP"; t == nil {
			return nil, refuse("no table Topology and no table Links: ask txtinfo for /topo or /all")
		}
		b.note("the file has the links of one node only: there is no table Topology in it")
	}
	for _, r := range t.rows {
		var cells [4]string
		for k, head := range []string{from, to, "LQ", "NLQ"} {
			if cells[k], err = t.cell(r, head); err != nil {
				return nil, err
			}
		}
		var q [2]float64
		for k := range q {
			q[k], err = strconv.ParseFloat(cells[2+k], 64)
			if err != nil || !(q[k] >= 0 && q[k] <= 1) {
				return nil, &Error{r.line, 1, fmt.Sprintf("the quality is %s, want a share between 0 and 1", strconv.Quote(cells[2+k]))}
			}
		}
		i, err := b.node(cells[0])
		if err != nil {
			return nil, err
		}
		j, err := b.node(cells[1])
		if err != nil {
			return nil, err
		}
		if i == j {
			return nil, &Error{r.line, 1, fmt.Sprintf("the link joins %s to itself", strconv.Quote(cells[0]))}
		}
		b.link(i, j, q[1], q[0])
	}
	return b.network()
}

type txtTable struct {
	heads []string
	rows  []txtRow
}

type txtRow struct {
	line  int
	cells []string
}

// cell returns the cell of a row under a head.
func (t *txtTable) cell(r txtRow, head string) (string, error) {
	for k, h := range t.heads {
		if h == head {
			if k >= len(r.cells) || r.cells[k] == "" {
				return "", &Error{r.line, 1, fmt.Sprintf("the row has no cell under %s", strconv.Quote(head))}
			}
			if len(r.cells[k]) > 256 {
				return "", &Error{r.line, 1, fmt.Sprintf("the cell under %s is longer than 256 bytes", strconv.Quote(head))}
			}
			return r.cells[k], nil
		}
	}
	return "", &Error{r.line, 1, fmt.Sprintf("the table has no column %s", strconv.Quote(head))}
}

// txtTables finds the tables: "Table: NAME", a line of heads, rows, an empty line,
// the cells apart by tabs.
func txtTables(data []byte) (map[string]*txtTable, error) {
	tables := map[string]*txtTable{}
	var now *txtTable
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimRight(line, "\r")
		switch name, is := strings.CutPrefix(line, "Table: "); {
		case is:
			name = strings.TrimSpace(name)
			if tables[name] != nil {
				return nil, &Error{i + 1, 1, fmt.Sprintf("the table %s stands in the file twice", strconv.Quote(name))}
			}
			now = &txtTable{}
			tables[name] = now
		case strings.TrimSpace(line) == "":
			now = nil
		case now == nil:
			if strings.HasPrefix(line, "HTTP/") {
				return nil, &Error{i + 1, 1, "the file begins with the head of an HTTP answer: leave it out"}
			}
		default:
			cells := strings.Split(line, "\t")
			for k := range cells {
				cells[k] = strings.TrimSpace(cells[k])
			}
			if now.heads == nil {
				now.heads = cells
			} else {
				now.rows = append(now.rows, txtRow{i + 1, cells})
			}
		}
	}
	return tables, nil
}

// linkCost is what olsrd multiplies ETX by in its costs (LQ_PLUGIN_LC_MULTIPLIER).
const linkCost = 1024

// infinite is olsrd's cost of a broken link.
const infinite = 4194304

func writeJSONInfo(w io.Writer, n *Network) error {
	type entry struct {
		LastHop     string  `json:"lastHopIP"`
		Destination string  `json:"destinationIP"`
		LQ          float64 `json:"linkQuality"`
		NLQ         float64 `json:"neighborLinkQuality"`
		Cost        int64   `json:"tcEdgeCost"`
	}
	out := struct {
		Topology []entry    `json:"topology"`
		MID      []struct{} `json:"mid"`
	}{[]entry{}, []struct{}{}}
	for _, l := range n.Links {
		cost := int64(infinite)
		if p := l.Delivery * l.Reverse; p > 0 {
			cost = min(infinite, int64(linkCost/p+0.5))
		}
		from, to := n.Nodes[l.From].Name, n.Nodes[l.To].Name
		// As either end tells it.
		out.Topology = append(out.Topology, entry{from, to, l.Reverse, l.Delivery, cost}, entry{to, from, l.Delivery, l.Reverse, cost})
	}
	return writeJSON(w, out)
}
