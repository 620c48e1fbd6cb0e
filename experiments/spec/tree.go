package spec

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/hopbed/hopbed/internal/problem"
)

// The bounds of a document. Aliases are followed, so that a few bytes could
// stand for millions of values: the bound counts what they stand for.
const (
	maxNodes = 50_000
	maxDepth = 32
	maxText  = 16 << 10 // bytes of one value
)

type kind uint8

const (
	scalar kind = iota
	sequence
	mapping
)

func (k kind) String() string { return [...]string{"a value", "a list", "a mapping"}[k] }

// node is a value of the document with its place. It differs from yaml.Node in
// that aliases are resolved, keys are checked, and places survive the
// replacement of variables and of values by the command line.
type node struct {
	kind  kind
	pos   Pos
	text  string // of a scalar
	null  bool   // nothing was written
	via   string // the variable through which the value came here
	keys  []*node
	items []*node // of a sequence, or the values of a mapping
}

// get returns the value of a key and its index, or nil and -1.
func (n *node) get(key string) (*node, int) {
	if n == nil || n.kind != mapping {
		return nil, -1
	}
	for i, k := range n.keys {
		if k.text == key {
			return n.items[i], i
		}
	}
	return nil, -1
}

// clone copies the tree, not the texts.
func (n *node) clone() *node {
	c := *n
	c.keys = append([]*node(nil), n.keys...)
	c.items = make([]*node, len(n.items))
	for i, it := range n.items {
		c.items[i] = it.clone()
	}
	return &c
}

// String renders the value on one line, as YAML in flow style.
func (n *node) String() string {
	switch n.kind {
	case sequence:
		parts := make([]string, len(n.items))
		for i, it := range n.items {
			parts[i] = it.String()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapping:
		parts := make([]string, len(n.items))
		for i, it := range n.items {
			parts[i] = n.keys[i].text + ": " + it.String()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return n.text
}

type treeBuilder struct {
	file   string
	origin string // replaces places, for values of the command line
	report *report
	left   int
	active map[*yaml.Node]bool // anchors being expanded
	full   bool
	broken bool // a value was left out: what follows from that is not the file's fault
}

// parseTree reads one YAML document. A nil node means that the report says
// why.
func parseTree(file, origin string, data []byte, r *report) *node {
	b := &treeBuilder{file: file, origin: origin, report: r, left: maxNodes, active: map[*yaml.Node]bool{}}
	top := b.at(1, 1)
	switch {
	case len(data) > MaxSources:
		r.add(&Problem{Pos: top, What: fmt.Sprintf("the file has %d bytes", len(data)), Allowed: fmt.Sprintf("up to %d", MaxSources)})
		return nil
	case !utf8.Valid(data):
		line, col := problem.BadUTF8(data)
		r.add(&Problem{Pos: b.at(line, col), What: "not valid UTF-8"})
		return nil
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && (doc.Kind != yaml.DocumentNode || len(doc.Content) == 0) {
		r.add(&Problem{Pos: top, What: "the file is empty", Allowed: "an experiment that begins with hopbed: 1"})
		return nil
	}
	if err != nil {
		r.add(b.syntax(err, data))
		return nil
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			r.add(b.syntax(err, data))
		} else {
			r.add(&Problem{Pos: b.at(second.Line, second.Column), What: "a second document begins here", Allowed: "one experiment in a file"})
		}
		return nil
	}
	n := b.build(doc.Content[0], 0)
	if b.broken {
		return nil
	}
	return n
}

func (b *treeBuilder) at(line, col int) Pos {
	return Pos{File: b.file, Line: max(line, 1), Col: max(col, 1), Origin: b.origin}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax places an error of the YAML parser, which gives the line only: the
// column is where that line's text begins.
func (b *treeBuilder) syntax(err error, data []byte) *Problem {
	msg := err.Error()
	line, col := 1, 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
	}
	lines := strings.Split(string(data), "\n")
	line = min(max(line, 1), len(lines))
	col += len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
	p := &Problem{Pos: b.at(line, col), What: "not YAML: " + msg}
	if strings.Contains(lines[line-1], "\t") {
		p.Allowed = "spaces for indentation, no tabs"
	}
	// YAML reads > and | after a key as the begin of a text over several lines, and
	// says so at the line below. The parser's line may also be where a block began.
	for i := min(line, len(lines)) - 1; i >= max(0, line-2); i-- {
		if m := unquoted.FindStringSubmatchIndex(lines[i]); m != nil {
			value := strings.TrimSpace(lines[i][m[2]:m[3]])
			p.Pos = b.at(i+1, utf8.RuneCountInString(lines[i][:m[2]])+1)
			p.What, p.Value = "not YAML: a value cannot begin with "+value[:1]+" here", quote(value)
			p.Allowed = "the same in quotes: " + strconv.Quote(value)
			break
		}
	}
	return p
}

// unquoted finds a comparison such as hops: >=2, which needs quotes.
var unquoted = regexp.MustCompile(`[:\[,]\s+(>=?\s*[0-9]+)`)

func (b *treeBuilder) fail(y *yaml.Node, what, allowed string) *node {
	b.broken = true
	b.report.add(&Problem{Pos: b.at(y.Line, y.Column), What: what, Allowed: allowed})
	return nil
}

// build converts a value. It returns nil when the value cannot be used at all;
// the report has been told.
func (b *treeBuilder) build(y *yaml.Node, depth int) *node {
	if b.full {
		return nil
	}
	if b.left--; b.left < 0 {
		b.full = true
		return b.fail(y, fmt.Sprintf("the file stands for more than %d values", maxNodes), "fewer, or fewer aliases")
	}
	if depth > maxDepth {
		return b.fail(y, fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
	}
	n := &node{pos: b.at(y.Line, y.Column)}
	switch y.Kind {
	case yaml.AliasNode:
		if b.active[y.Alias] {
			return b.fail(y, "the anchor "+quote(y.Value)+" contains itself", "")
		}
		b.active[y.Alias] = true
		defer delete(b.active, y.Alias)
		return b.build(y.Alias, depth)
	case yaml.ScalarNode:
		switch y.ShortTag() {
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		case "!!null":
			n.null = true
		case "!!merge":
			return b.fail(y, "merge keys (<<) are not part of the format", "the keys themselves")
		default:
			return b.fail(y, "the tag "+quote(y.Tag)+" is not part of the format", "plain values")
		}
		if len(y.Value) > maxText {
			return b.fail(y, fmt.Sprintf("the value has %d bytes", len(y.Value)), fmt.Sprintf("up to %d", maxText))
		}
		n.text = y.Value
		return n
	case yaml.SequenceNode, yaml.MappingNode:
		if y.Style&yaml.TaggedStyle != 0 {
			return b.fail(y, "the tag "+quote(y.Tag)+" is not part of the format", "plain values")
		}
	}
	if y.Kind == yaml.SequenceNode {
		n.kind = sequence
		for _, c := range y.Content {
			if it := b.build(c, depth+1); it != nil {
				n.items = append(n.items, it)
			}
		}
		return n
	}
	n.kind = mapping
	first := map[string]*node{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := b.build(y.Content[i], depth+1)
		if k == nil {
			continue
		}
		if k.kind != scalar || k.null {
			b.fail(y.Content[i], "a key must be a word, not "+k.kind.String(), "key: value")
			continue
		}
		v := b.build(y.Content[i+1], depth+1)
		if f := first[k.text]; f != nil {
			b.report.add(&Problem{Pos: k.pos, Value: quote(k.text), What: fmt.Sprintf("the key is given twice; first at line %d", f.pos.Line), Allowed: "each key once"})
			continue
		}
		first[k.text] = k
		if v != nil {
			n.keys, n.items = append(n.keys, k), append(n.items, v)
		}
	}
	return n
}
