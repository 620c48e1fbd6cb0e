package interchange

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

const jsoninfoOld = `{
  "topology": [
    {"lastHopIP": "10.9.0.1", "destinationIP": "10.9.0.2", "linkQuality": 0.8, "neighborLinkQuality": 0.5, "tcEdgeCost": 2560, "validityTime": 1},
    {"lastHopIP": "10.9.0.2", "destinationIP": "192.0.2.1", "linkQuality": 0.6, "neighborLinkQuality": 0.9, "tcEdgeCost": 1}
  ],
  "mid": [{"ipAddress": "10.9.0.1", "aliases": [{"ipAddress": "192.0.2.1", "validityTime": 1}]}]
}`

const jsoninfoNew = `{
  "topology": [
    {"lastHopIP": "10.9.0.2", "destinationIP": "10.9.0.1", "linkQuality": 0.5, "neighborLinkQuality": 0.8, "pathCost": 1},
    {"lastHopIP": "10.9.0.2", "destinationIP": "10.9.0.3", "linkQuality": 0, "neighborLinkQuality": 0}
  ],
  "mid": [{"main": {"ipAddress": "10.9.0.1"}, "aliases": [{"ipAddress": "192.0.2.1"}]}],
  "systemTime": 7
}`

const txtinfo = "Table: Links\nLocal IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost\n10.9.0.9\t10.9.0.8\t0.00\t1.000\t1.000\t1.000\n\n" +
	"Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\n10.9.0.2\t10.9.0.1\t0.800\t0.500\t2.500\n192.0.2.1\t10.9.0.2\t0.600\t0.900\t1.85\n\n" +
	"Table: HNA\nDestination\tGateway\n\nTable: MID\nIP address\tAliases\n10.9.0.1\t192.0.2.1;192.0.2.7\n"

const visdoc = `{"source_version": "2024.1", "algorithm": 4, "vis": [
  {"primary": "02:00:00:00:00:01", "secondary": ["02:00:00:00:01:01"], "neighbors": [{"router": "02:00:00:00:01:01", "neighbor": "02:00:00:00:00:02", "metric": "1.250"}], "clients": ["aa:bb:cc:dd:ee:ff"]},
  {"primary": "02:00:00:00:00:02", "neighbors": [{"router": "02:00:00:00:00:02", "neighbor": "02:00:00:00:01:01", "metric": "2.000"},
    {"router": "02:00:00:00:00:02", "neighbor": "02:00:00:00:00:03", "metric": "1.000"}], "clients": []}]}`

const vislines = `{ "primary" : "02:00:00:00:00:01" }
{ "secondary" : "02:00:00:00:01:01", "of" : "02:00:00:00:00:01" }
{ "router" : "02:00:00:00:01:01", "neighbor" : "02:00:00:00:00:02", "label" : "1.250" }
{ "router" : "02:00:00:00:00:01", "gateway" : "aa:bb:cc:dd:ee:ff", "label" : "TT" }
{ "primary" : "02:00:00:00:00:02" }
{ "router" : "02:00:00:00:00:02", "neighbor" : "02:00:00:00:01:01", "label" : "2.000" }
{ "router" : "02:00:00:00:00:02", "neighbor" : "02:00:00:00:00:03", "label" : "1.000" }
`

const origs = `[
  {"hard_ifindex": 3, "hard_ifname": "mesh0", "last_seen_msecs": 12, "neigh_address": "02:00:00:00:00:02", "orig_address": "02:00:00:00:00:02", "best": true, "tq": 204},
  {"hard_ifindex": 3, "hard_ifname": "mesh0", "neigh_address": "02:00:00:00:00:02", "orig_address": "02:00:00:00:00:03", "tq": 100},
  {"hard_ifindex": 4, "hard_ifname": "mesh1", "neigh_address": "02:00:00:00:00:02", "orig_address": "02:00:00:00:00:02", "tq": 51}
]`

const netjsonETX = `{"type": "NetworkGraph", "protocol": "OLSR", "version": "0.6", "metric": "ETX", "router_id": "x",
  "nodes": [{"id": "10.9.0.1", "label": "Node A", "properties": {"x": 1, "y": 2}}, {"id": "10.9.0.2", "label": "node-a"}, {"id": "10.9.0.3"}],
  "links": [{"source": "10.9.0.1", "target": "10.9.0.2", "cost": 4.0, "properties": {"k": true}}, {"source": "10.9.0.3", "target": "10.9.0.2", "cost": 1}]}`

const netjsonTQ = `{"type": "NetworkGraph", "protocol": "batman-adv", "version": "1", "metric": "TQ",
  "links": [{"source": "02:00:00:00:00:01", "target": "02:00:00:00:00:02", "cost": 1.25}, {"source": "02:00:00:00:00:02", "target": "02:00:00:00:00:01", "cost": 2}]}`

const meshlab = `{"nodes": [{"id": 0, "name": "Süd-Platz 3", "x": 51.34001, "y": 12.37001}, {"id": 1, "name": "Süd-Platz 3", "x": 51.35001, "y": 12.37001}, {"id": 2, "name": "…"}, {"id": "x1"}],
  "links": [{"source": 0, "target": 1, "source_tq": 0.9, "target_tq": 0.7, "type": "wifi"}, {"source": 2, "target": 1, "type": "vpn"}, {"source": 2, "target": "x1"}]}`

func mustRead(t *testing.T, format, text string) *Network {
	t.Helper()
	n, err := Read(format, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return n
}

func names(n *Network) []string {
	var out []string
	for _, k := range n.Nodes {
		out = append(out, k.Name)
	}
	return out
}

// TestRead: what each format says becomes deliveries of the right direction.
func TestRead(t *testing.T) {
	ids := []string{"10.9.0.1", "10.9.0.2"}
	macs := []string{"02-00-00-00-00-01", "02-00-00-00-00-02", "02-00-00-00-00-03"}
	for name, c := range map[string]struct {
		format, text string
		nodes        []string
		links        []Link
		notes        []string
	}{
		// The node of last hop 1 hears 80 % of 2 and is heard by it at 50 %; 2 says 60
		// and 90 %: two measurements of either direction.
		"jsoninfo, old": {"olsr-jsoninfo", jsoninfoOld, ids, []Link{{0, 1, 0.55, 0.85}}, nil},
		"jsoninfo, new": {"olsr-jsoninfo", jsoninfoNew, []string{"10.9.0.2", "10.9.0.1", "10.9.0.3"}, []Link{{0, 1, 0.8, 0.5}}, []string{"1 links carry nothing"}},
		"txtinfo":       {"olsr-txtinfo", txtinfo, ids, []Link{{0, 1, 0.55, 0.85}}, nil},
		"vis document":  {"batman-adv", visdoc, macs, []Link{{0, 1, 0.8, 0.5}, {1, 2, 1, 1}}, []string{"1 links are told in one direction"}},
		"vis lines":     {"batman-adv", vislines, macs, []Link{{0, 1, 0.8, 0.5}, {1, 2, 1, 1}}, []string{"1 links are told in one direction"}},
		"originators":   {"batman-adv", origs, []string{"self", macs[1]}, []Link{{0, 1, 0.8, 0.8}}, []string{"view of one node", "1 originators", "one direction only"}},
		"NetJSON, ETX":  {"netjson", netjsonETX, []string{"node-a", "node-a-2", "10.9.0.3"}, []Link{{0, 1, 0.5, 0.5}, {1, 2, 1, 1}}, []string{"of 2 links they are taken to be the same"}},
		"NetJSON, TQ":   {"netjson", netjsonTQ, macs[:2], []Link{{0, 1, 0.8, 0.5}}, nil},
		"meshnet-lab":   {"meshnet-lab", meshlab, []string{"s-d-platz-3", "s-d-platz-3-2", "2", "x1"}, []Link{{0, 1, 0.9, 0.7}, {2, 3, 1, 1}}, []string{"1 links are of another type", "degrees"}},
	} {
		n := mustRead(t, c.format, c.text)
		if !reflect.DeepEqual(names(n), c.nodes) {
			t.Errorf("%s: nodes %v, want %v", name, names(n), c.nodes)
		}
		if len(n.Links) != len(c.links) {
			t.Errorf("%s: links %v, want %v", name, n.Links, c.links)
			continue
		}
		for i, l := range n.Links {
			if w := c.links[i]; l.From != w.From || l.To != w.To || math.Abs(l.Delivery-w.Delivery) > 1e-9 || math.Abs(l.Reverse-w.Reverse) > 1e-9 {
				t.Errorf("%s: link %+v, want %+v", name, l, w)
			}
		}
		if len(n.Notes) != len(c.notes) {
			t.Errorf("%s: notes %q", name, n.Notes)
			continue
		}
		for i := range c.notes {
			if !strings.Contains(n.Notes[i], c.notes[i]) {
				t.Errorf("%s: note %q, want %q", name, n.Notes[i], c.notes[i])
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	n := mustRead(t, "meshnet-lab", meshlab)
	if a, b := n.Nodes[0], n.Nodes[1]; !a.Placed || a.X != 0 || a.Y != 0 || b.X != 0 || math.Abs(b.Y-1112) > 1 || n.Nodes[2].Placed {
		t.Errorf("%+v", n.Nodes)
	}
	if n = mustRead(t, "netjson", netjsonETX); n.Nodes[0].X != 1 || n.Nodes[0].Y != 2 || !n.Nodes[0].Placed || n.Nodes[1].Placed {
		t.Errorf("%+v", n.Nodes)
	}
	n = mustRead(t, "meshnet-lab", `{"nodes": [{"id": "a", "x": 10, "y": 20.5}, {"id": "b", "x": 30, "y": 20}], "links": [{"source": "a", "target": "b"}]}`)
	if n.Nodes[0].X != 10 || n.Nodes[0].Y != 20.5 || n.Nodes[1].X != 30 || n.Notes != nil {
		t.Errorf("a plan in metres: %+v", n)
	}
}

// TestRefused: a file that cannot be used is refused, with its reason and place.
func TestRefused(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	var many strings.Builder
	for i := range MaxNodes + 1 {
		fmt.Fprintf(&many, `%s{"source": "n%d", "target": "n%d"}`, map[bool]string{true: "", false: ", "}[i == 0], i, i+1)
	}
	for text, want := range map[[2]string]string{
		{"meshnet-lab", ``}:                                      "the file is empty",
		{"meshnet-lab", `[1]`}:                                   "1:1: the document is a list, want an object",
		{"meshnet-lab", "{\n \"links\": [}"}:                     "2:12: not JSON",
		{"meshnet-lab", `{"links": [`}:                           "the file ends in the middle",
		{"meshnet-lab", `{"links": []} x`}:                       "not JSON",
		{"meshnet-lab", `{"links": []} {"x":`}:                   "the file ends in the middle",
		{"meshnet-lab", `{"links": []}`}:                         "0 nodes",
		{"meshnet-lab", `{"links": [], "links": []}`}:            `the key "links" stands twice`,
		{"meshnet-lab", `{"nodes": []}`}:                         `no key "links"`,
		{"meshnet-lab", `{"type": "NetworkGraph", "links": []}`}: "read it as netjson",
		{"meshnet-lab", deep}:                                    "nested deeper than 32",
		{"meshnet-lab", "{\"links\": [\n{\"source\": 1, \"target\": 2,\n \"source_tq\": 1.5}]}"}:                                                                 `3:17: "source_tq" is 1.5, want a share`,
		{"meshnet-lab", `{"links": [{"source": 1, "target": 1}]}`}:                                                                                               `the link joins "1" to itself`,
		{"meshnet-lab", `{"links": [{"source": 1, "target": 2}, {"source": 2, "target": 1}]}`}:                                                                   "stands in the file twice",
		{"meshnet-lab", `{"links": [{"source": {}, "target": 2}]}`}:                                                                                              "want a text or a number",
		{"meshnet-lab", `{"links": [{"source": "", "target": 2}]}`}:                                                                                              "want 1 to 256",
		{"meshnet-lab", `{"nodes": [{"id": 1}, {"id": 1}], "links": []}`}:                                                                                        `a node "1" stands in the file twice`,
		{"meshnet-lab", `{"nodes": [{"id": 1, "x": 1e9, "y": 1}], "links": []}`}:                                                                                 "x is 1e+09",
		{"meshnet-lab", `{"nodes": [{"id": 1}, {"id": 2}], "links": []}`}:                                                                                        "no link that could be used",
		{"meshnet-lab", `{"links": [{"source": 1, "target": 2, "source_tq": 0, "target_tq": 0}]}`}:                                                               "no link that carries anything",
		{"meshnet-lab", `{"links": [` + many.String() + `]}`}:                                                                                                    "more than 1000 nodes",
		{"olsr-jsoninfo", `{"neighbors": []}`}:                                                                                                                   "neither topology nor links",
		{"olsr-jsoninfo", `{"topology": [{"lastHopIP": "a", "destinationIP": "b", "linkQuality": 2}]}`}:                                                          "want a share",
		{"olsr-jsoninfo", `{"topology": [{"lastHopIP": "a", "destinationIP": "b", "linkQuality": 1}]}`}:                                                          `no key "neighborLinkQuality"`,
		{"olsr-jsoninfo", `{"topology": [], "mid": [{"ipAddress": "a", "aliases": [{"ipAddress": "c"}]}, {"ipAddress": "b", "aliases": [{"ipAddress": "c"}]}]}`}: "an address of both",
		{"olsr-txtinfo", "Table: Routes\nDestination\tGateway IP\n"}:                                                                                             "no table Topology",
		{"olsr-txtinfo", "Table: Topology\nDest. IP\tLast hop IP\tLQ\n1\t2\t1.0\n"}:                                                                              `3:1: the table has no column "NLQ"`,
		{"olsr-txtinfo", "Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\n1\t2\t1.0\n"}:                                                                         `3:1: the row has no cell under "NLQ"`,
		{"olsr-txtinfo", "Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\n1\t2\tINFINITE\t1\n"}:                                                                 `3:1: the quality is "INFINITE"`,
		{"olsr-txtinfo", "HTTP/1.0 200 OK\n\nTable: Topology\n"}:                                                                                                 "HTTP answer",
		{"batman-adv", `{"x": 1}`}: `neither "vis"`,
		{"batman-adv", `{"vis": [{"primary": "a", "neighbors": [{"router": "a", "neighbor": "b", "metric": "0.5"}]}]}`}:    "at least 1",
		{"batman-adv", `{"vis": [{"primary": "a", "neighbors": [{"router": "a", "neighbor": "b", "metric": "x"}]}]}`}:      "want a number",
		{"batman-adv", `[{"orig_address": "a", "neigh_address": "a", "throughput": 100}]`}:                                 "B.A.T.M.A.N. V",
		{"batman-adv", `[{"orig_address": "a", "neigh_address": "a", "tq": 256}]`}:                                         "want 0 to 255",
		{"netjson", `{"type": "NetworkRoutes"}`}:                                                                           `not of the type "NetworkGraph"`,
		{"netjson", `{"type": "NetworkGraph", "metric": "Airtime", "links": [{"source": "a", "target": "b", "cost": 7}]}`}: `the metric is "Airtime"`,
		{"netjson", `{"type": "NetworkGraph", "metric": "ETX", "links": [{"source": "a", "target": "b", "cost": 0.5}]}`}:   "want at least 1",
		{"graphml", `<graphml/>`}: "there is no format",
	} {
		n, err := Read(text[0], []byte(text[1]))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %.60q: %v, %v; want %q", text[0], text[1], n, err, want)
		}
	}
	if _, err := Read("meshnet-lab", bytes.Repeat([]byte{' '}, MaxFile+1)); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestTheLargestComponent(t *testing.T) {
	n := mustRead(t, "meshnet-lab", `{"links": [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}, {"source": "e", "target": "d"},
		{"source": "b", "target": "c", "source_tq": 1, "target_tq": 0}]}`)
	if got := n.Parts(); !reflect.DeepEqual(got, []int{3, 2}) {
		t.Errorf("parts %v", got)
	}
	c := n.Component()
	if !reflect.DeepEqual(names(c), []string{"c", "d", "e"}) || !reflect.DeepEqual(c.Links, []Link{{0, 1, 1, 1}, {1, 2, 1, 1}}) || !strings.Contains(strings.Join(c.Notes, " "), "2 of 5 nodes") {
		t.Errorf("%+v", c)
	}
	if whole := c.Component(); len(whole.Notes) != len(c.Notes) || len(whole.Nodes) != 3 {
		t.Errorf("%+v", whole)
	}
}

// TestWhatIsWrittenIsRead: the network that comes back is the one that went out,
// as far as a format can tell.
func TestWhatIsWrittenIsRead(t *testing.T) {
	n := &Network{Nodes: []Node{{Name: "a", X: 1.5, Y: -2, Placed: true}, {Name: "b", X: 3, Y: 4, Placed: true}, {Name: "c.1"}},
		Links: []Link{{0, 1, 0.9, 0.25}, {1, 2, 1, 1}}}
	for _, f := range Writable() {
		var b bytes.Buffer
		if err := Write(&b, f, n); err != nil {
			t.Fatal(err)
		}
		got, err := Read(f, b.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n%s", f, err, b.String())
		}
		if !reflect.DeepEqual(names(got), names(n)) || !reflect.DeepEqual(got.Links, n.Links) {
			t.Errorf("%s: %+v\n%s", f, got, b.String())
		}
		if f != "olsr-jsoninfo" && (got.Nodes[0].X != 1.5 || got.Nodes[2].Placed) {
			t.Errorf("%s: places %+v", f, got.Nodes)
		}
	}
	if err := Write(&bytes.Buffer{}, "olsr-txtinfo", n); err == nil {
		t.Error("a format without a writer was written")
	}
	for _, f := range Formats() {
		if What(f) == "" {
			t.Errorf("%s is not described", f)
		}
	}
}

func TestValidNames(t *testing.T) {
	for in, want := range map[string]string{
		"A": "a", "10.0.0.1": "10.0.0.1", "fe80::1": "fe80--1", "-x-": "x", "…": "", "a b/c": "a-b-c", strings.Repeat("q", 99): strings.Repeat("q", 64), "İ": "i",
	} {
		if got := validName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, x := range [][2]string{{"olsr-jsoninfo", jsoninfoOld}, {"olsr-jsoninfo", jsoninfoNew}, {"olsr-txtinfo", txtinfo}, {"batman-adv", visdoc},
		{"batman-adv", vislines}, {"batman-adv", origs}, {"netjson", netjsonETX}, {"netjson", netjsonTQ}, {"meshnet-lab", meshlab}} {
		f.Add(x[0], []byte(x[1]))
	}
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		n, err := Read(format, data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.What == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, k := range n.Nodes {
			if seen[k.Name] || validName(k.Name) != k.Name || k.Name == "" {
				t.Fatalf("the name %q", k.Name)
			}
			seen[k.Name] = true
			if k.X-k.X != 0 || k.Y-k.Y != 0 {
				t.Fatalf("the place of %+v", k)
			}
		}
		for i, l := range n.Links {
			if l.From < 0 || l.From >= l.To || l.To >= len(n.Nodes) || !(l.Delivery >= 0 && l.Delivery <= 1) || !(l.Reverse >= 0 && l.Reverse <= 1) ||
				i > 0 && (n.Links[i-1].From > l.From || n.Links[i-1].From == l.From && n.Links[i-1].To >= l.To) {
				t.Fatalf("link %+v", l)
			}
		}
		if c := n.Component(); len(c.Nodes) < 1 || len(c.Nodes) > len(n.Nodes) {
			t.Fatalf("component %+v", c)
		}
	})
}
