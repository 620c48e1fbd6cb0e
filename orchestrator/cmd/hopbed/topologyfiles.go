package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/experiments/topology/interchange"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/reports/figure"
)

// What export writes beside the formats of other tools.
const (
	exportJSON   = "json"   // nodes, links, wires and flows, as they are
	exportDot    = "dot"    // Graphviz
	exportHopbed = "hopbed" // the block topology of an experiment file
)

func exportFormats() []string {
	return append([]string{exportJSON, exportHopbed, exportDot}, interchange.Writable()...)
}

// writeOut is where a command writes: standard output, or the file of its option -o.
func writeOut(c *cli.Context, write func(io.Writer) error) error {
	if name := c.String("o"); name != "" {
		return writeFile(name, write)
	}
	return write(c.App.Writer)
}

// importTopology turns another tool's file into the block topology of an
// experiment file.
func importTopology(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return usagef("which file? Give the topology file of another tool")
	}
	name := c.Args().First()
	data, err := readBounded(name)
	if err != nil {
		return err
	}
	n, format, err := readTopology(name, c.String("format"), data)
	if err != nil {
		return err
	}
	if c.Bool("largest") {
		n = n.Component()
	}
	for _, note := range n.Notes {
		fmt.Fprintln(c.App.ErrWriter, clean(note))
	}
	if parts := n.Parts(); len(parts) > 1 {
		fmt.Fprintf(c.App.ErrWriter, "the network falls into %d parts, the largest of %d nodes: --largest takes it alone\n", len(parts), parts[0])
	}
	return writeOut(c, func(w io.Writer) error {
		fmt.Fprintf(w, "# %d nodes and %d links, from a file of the format %s.\n", len(n.Nodes), len(n.Links), format)
		nodes, links := spec.Imported(n)
		return writeTopology(w, nodes, links)
	})
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, interchange.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	return data, nil
}

// readTopology reads a file of a format; of none, it is the one that the file
// reads as.
func readTopology(name, format string, data []byte) (*interchange.Network, string, error) {
	in := func(err error) error {
		var e *interchange.Error
		if errors.As(err, &e) && e.Line > 0 {
			return fmt.Errorf("%s:%w", name, err)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if format != "" {
		if !slices.Contains(interchange.Formats(), format) {
			return nil, "", usagef("--format %s: one of %s", format, strings.Join(interchange.Formats(), ", "))
		}
		n, err := interchange.Read(format, data)
		if err != nil {
			return nil, "", in(err)
		}
		return n, format, nil
	}
	var why []string
	for _, f := range interchange.Formats() {
		n, err := interchange.Read(f, data)
		if err == nil {
			return n, f, nil
		}
		why = append(why, fmt.Sprintf("  as %s: %v", f, err))
	}
	return nil, "", fmt.Errorf("%s is of none of the formats that hopbed reads:\n%s", name, strings.Join(why, "\n"))
}

// writeTopology writes nodes and links as an experiment file has them.
func writeTopology(w io.Writer, nodes []spec.Node, links []spec.Link) error {
	var b strings.Builder
	b.WriteString("topology:\n  nodes:\n")
	for _, n := range nodes {
		at := ""
		if n.At != nil {
			at = fmt.Sprintf(", at: [%gm, %gm]", float64(n.At.X), float64(n.At.Y))
		}
		if !n.Radio {
			at += ", radio: false"
		}
		fmt.Fprintf(&b, "    - {name: %s%s}\n", yamlName(n.Name), at)
	}
	if len(links) > 0 {
		b.WriteString("  links:\n")
	}
	for _, l := range links {
		back := ""
		if l.Reverse != nil {
			back = fmt.Sprintf(", reverse: %s", percent(float64(*l.Reverse)))
		}
		fmt.Fprintf(&b, "    - {from: %s, to: %s, delivery: %s%s}\n", yamlName(l.From), yamlName(l.To), percent(float64(l.Delivery)), back)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// percent writes a share to a thousandth of a percent.
func percent(p float64) string {
	s := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", 100*p), "0"), ".")
	return s + "%"
}

// yamlName quotes a name that YAML would take for something else than a text.
func yamlName(name string) string {
	if strings.Trim(name, "0123456789._-") == "" || slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, name) || strings.ContainsAny(name[:1], "0123456789") {
		return `"` + name + `"`
	}
	return name
}

// exportAs writes a scenario's network.
func exportAs(c *cli.Context, s *plan.Scenario) error {
	format := c.String("format")
	if !slices.Contains(exportFormats(), format) {
		return usagef("--format %s: one of %s", format, strings.Join(exportFormats(), ", "))
	}
	t := s.Topology
	if format == exportJSON {
		tellUnmeasured(c.App.ErrWriter, s)
	}
	if format != exportJSON && len(t.Pipes) > 0 {
		fmt.Fprintf(c.App.ErrWriter, "the %d wires are left out: the format %s has radio links only\n", len(t.Pipes), format)
	}
	return writeOut(c, func(w io.Writer) error {
		switch format {
		case exportJSON:
			return exportTopology(w, s)
		case exportDot:
			return writeDot(w, networkOf(s))
		case exportHopbed:
			nodes, links := spec.Imported(networkOf(s))
			for i := range nodes {
				nodes[i].Radio = t.Nodes[i].Radio
			}
			return writeTopology(w, nodes, links)
		}
		return interchange.Write(w, format, networkOf(s))
	})
}

// networkOf is a topology as other tools know one: its links that carry something,
// by what is known of either direction's full data frames.
func networkOf(s *plan.Scenario) *interchange.Network {
	t := s.Topology
	n := &interchange.Network{}
	listed := s.Config().Topology.AllNodes()
	generated := 0
	if g := s.Config().Topology.Generate; g != nil {
		generated = g.Nodes
	}
	for i, k := range t.Nodes {
		n.Nodes = append(n.Nodes, interchange.Node{Name: k.Name, ID: k.Name, X: float64(k.Position.X), Y: float64(k.Position.Y),
			Placed: i < generated || listed[i].At != nil})
	}
	at := map[[2]int]float64{}
	for _, l := range t.Links {
		at[[2]int{l.From, l.To}] = l.Delivery
	}
	for _, l := range t.Links {
		back, both := at[[2]int{l.To, l.From}]
		if l.From > l.To && both || l.Delivery < worthWriting && back < worthWriting {
			continue
		}
		k := interchange.Link{From: l.From, To: l.To, Delivery: l.Delivery, Reverse: back}
		if k.From > k.To {
			k = interchange.Link{From: l.To, To: l.From, Delivery: back, Reverse: l.Delivery}
		}
		n.Links = append(n.Links, k)
	}
	return n
}

// worthWriting is the delivery below which both directions of a link have to be
// for it to be left out of a file.
const worthWriting = 0.001

// writeDot writes the links for Graphviz: an undirected graph whose edges have the
// ETX as their weight's inverse and both deliveries as a label.
func writeDot(w io.Writer, n *interchange.Network) error {
	var b strings.Builder
	b.WriteString("graph network {\n  node [shape=circle];\n")
	for _, k := range n.Nodes {
		at := ""
		if k.Placed {
			at = fmt.Sprintf(" [pos=\"%g,%g!\"]", k.X, k.Y)
		}
		fmt.Fprintf(&b, "  \"%s\"%s;\n", k.Name, at)
	}
	for _, l := range n.Links {
		fmt.Fprintf(&b, "  \"%s\" -- \"%s\" [label=\"%s / %s\", penwidth=%.2f];\n", n.Nodes[l.From].Name, n.Nodes[l.To].Name,
			percent(l.Delivery), percent(l.Reverse), 0.3+2.7*l.Delivery*l.Reverse)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawTopology draws the network with its usable links.
func drawTopology(c *cli.Context, s *plan.Scenario) error {
	t := s.Topology
	m := figure.Map{Caption: "Lines: links that may carry a route, wide ones delivering more (the mean of both directions, of full data frames). Grey: other links that deliver at least 10 %."}
	n := networkOf(s)
	usable := map[[2]int]bool{}
	for _, l := range t.Links {
		usable[[2]int{min(l.From, l.To), max(l.From, l.To)}] = usable[[2]int{min(l.From, l.To), max(l.From, l.To)}] || l.Usable
	}
	for _, l := range n.Links {
		m.Links = append(m.Links, figure.MapLink{A: l.From, B: l.To, Delivery: (l.Delivery + l.Reverse) / 2, Routed: usable[[2]int{l.From, l.To}]})
	}
	known := false
	for i, k := range n.Nodes {
		known = known || k.Placed
		m.Nodes = append(m.Nodes, figure.MapNode{Name: k.Name, XM: k.X, YM: k.Y, Placed: k.Placed, Wired: !t.Nodes[i].Radio})
	}
	for i := range t.Pipes {
		p := &t.Pipes[i]
		m.Wires = append(m.Wires, figure.MapWire{A: p.Ends[0], B: p.Ends[1], Setting: topology.DescribeDirection(&p.Config[0])})
	}
	if !known || c.Bool("spread") {
		links := slices.Clone(m.Links)
		for _, w := range m.Wires {
			links = append(links, figure.MapLink{A: w.A, B: w.B, Delivery: 1})
		}
		x, y := figure.Spread(len(m.Nodes), links)
		for i := range m.Nodes {
			m.Nodes[i].XM, m.Nodes[i].YM, m.Nodes[i].Placed = x[i], y[i], true
		}
		m.Spread = true
	}
	return writeOut(c, func(w io.Writer) error {
		_, err := w.Write(figure.Topology("topology", m).SVG())
		return err
	})
}
