package inventory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/hopbed/hopbed/internal/problem"
)

// The bounds of an inventory.
const (
	MaxBytes = 1 << 20 // of the file
	MaxNodes = 1000    // as many as an experiment may have
	maxList  = 32      // entries of a list in a node
)

// Read reads an inventory. What is wrong in it is a *problem.Errors with file, line
// and column of each mistake.
func Read(path string) (*Inventory, error) {
	// Before it is opened: to open a pipe waits until somebody writes to it.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("inventory %s: is no plain file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the text of an inventory. Files that it names are relative to the
// folder of path; none is opened.
func Parse(path string, data []byte) (*Inventory, error) {
	d := &decoder{file: path, folder: filepath.Dir(path)}
	if doc := d.document(data); doc != nil {
		d.top(doc)
	}
	if err := problem.Join(d.problems, d.more); err != nil {
		return nil, err
	}
	return d.inv, nil
}

type decoder struct {
	file, folder string
	problems     []*problem.Problem
	more         int
	inv          *Inventory
	network      *yaml.Node
	places       map[string]*yaml.Node // of values that are compared with others: "3.experiment"
}

// surplus bounds what is collected before the first problems are chosen.
const surplus = 1000

func (d *decoder) pos(y *yaml.Node) problem.Pos {
	return problem.Pos{File: d.file, Line: max(y.Line, 1), Col: max(y.Column, 1)}
}

func (d *decoder) add(y *yaml.Node, p problem.Problem) {
	if len(d.problems) >= surplus {
		d.more++
		return
	}
	p.Pos = d.pos(y)
	// The same mistake in a value that several nodes share by an anchor counts once.
	text := p.Error()
	if !slices.ContainsFunc(d.problems, func(o *problem.Problem) bool { return o.Error() == text }) {
		d.problems = append(d.problems, &p)
	}
}

// bad reports a value that is wrong by itself.
func (d *decoder) bad(y *yaml.Node, at, what, allowed string) {
	d.add(y, problem.Problem{Path: at, Value: shown(y), What: what, Allowed: allowed})
}

func shown(y *yaml.Node) string {
	if y.Kind == yaml.ScalarNode && y.ShortTag() != "!!null" {
		return problem.Quote(y.Value)
	}
	return ""
}

func describe(y *yaml.Node) string {
	switch {
	case y.Kind == yaml.SequenceNode:
		return "is a list"
	case y.Kind == yaml.MappingNode:
		return "is a mapping"
	case y.ShortTag() == "!!null":
		return "is empty"
	}
	return "is a value"
}

// document parses the YAML; nil means that a problem was reported.
func (d *decoder) document(data []byte) *yaml.Node {
	top := &yaml.Node{Line: 1, Column: 1}
	switch {
	case len(data) > MaxBytes:
		d.add(top, problem.Problem{What: "the file is larger than an inventory can be", Allowed: fmt.Sprintf("up to %d bytes", MaxBytes)})
		return nil
	case !utf8.Valid(data):
		line, col := problem.BadUTF8(data)
		d.add(&yaml.Node{Line: line, Column: col}, problem.Problem{What: "not valid UTF-8"})
		return nil
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && (doc.Kind != yaml.DocumentNode || len(doc.Content) == 0) {
		d.add(top, problem.Problem{What: "the file is empty", Allowed: "an inventory that begins with inventory: 1"})
		return nil
	}
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			d.add(&second, problem.Problem{What: "a second document begins here", Allowed: "one inventory in a file"})
			return nil
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		d.syntax(err, data)
		return nil
	}
	return deref(doc.Content[0])
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax places an error of the YAML parser, which gives the line only.
func (d *decoder) syntax(err error, data []byte) {
	msg, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
	}
	lines := strings.Split(string(data), "\n")
	line = min(max(line, 1), len(lines))
	text := lines[line-1]
	p := problem.Problem{What: "not YAML: " + oneLine(msg)}
	if strings.Contains(text, "\t") {
		p.Allowed = "spaces for indentation, no tabs"
	}
	d.add(&yaml.Node{Line: line, Column: 1 + len(text) - len(strings.TrimLeft(text, " \t"))}, p)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// deref follows an alias. An anchor that contains itself needs no care: the format
// has no values of any depth, so that it ends where a list stands for a word.
func deref(y *yaml.Node) *yaml.Node {
	for range 100 {
		if y.Kind != yaml.AliasNode || y.Alias == nil {
			return y
		}
		y = y.Alias
	}
	return y
}

// block calls f for every key of a mapping, with the place of its value.
func (d *decoder) block(y *yaml.Node, at string, keys []string, f func(key string, k, v *yaml.Node)) {
	if y.Kind != yaml.MappingNode || y.Style&yaml.TaggedStyle != 0 {
		d.bad(y, at, describe(y), "a mapping with the keys "+strings.Join(keys, ", "))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := deref(y.Content[i]), deref(y.Content[i+1])
		if k.Kind != yaml.ScalarNode {
			d.bad(k, at, "a key must be a word", "key: value")
			continue
		}
		if line, twice := first[k.Value]; twice {
			d.add(k, problem.Problem{Path: at, Value: problem.Quote(k.Value), What: fmt.Sprintf("the key is given twice; first at line %d", line), Allowed: "each key once"})
			continue
		}
		first[k.Value] = k.Line
		switch {
		case k.ShortTag() == "!!merge":
			d.add(k, problem.Problem{Path: at, Value: problem.Quote(k.Value), What: "merge keys are not part of the format", Allowed: "what is the same for all nodes stands under defaults"})
		case !slices.Contains(keys, k.Value):
			d.add(k, problem.Problem{Path: at, Value: problem.Quote(k.Value), What: "unknown key", Allowed: strings.Join(keys, ", "), Hint: problem.Suggest(k.Value, keys)})
		default:
			f(k.Value, k, v)
		}
	}
}

// word returns a scalar's text.
func (d *decoder) word(y *yaml.Node, at, allowed string) (string, bool) {
	switch {
	case y.Kind != yaml.ScalarNode || y.ShortTag() == "!!null":
		d.bad(y, at, describe(y), allowed)
		return "", false
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp"}, y.ShortTag()):
		d.bad(y, at, "the tag "+problem.Quote(y.Tag)+" is not part of the format", allowed)
		return "", false
	}
	return y.Value, true
}

// words reads a list of words; a single word is a list of one.
func (d *decoder) words(y *yaml.Node, at, allowed string, ok func(string) bool) []string {
	items := []*yaml.Node{y}
	if y.Kind == yaml.SequenceNode {
		items = y.Content
	}
	if len(items) > maxList {
		d.bad(y, at, fmt.Sprintf("the list has %d entries", len(items)), fmt.Sprintf("up to %d", maxList))
		return nil
	}
	out := []string{}
	for i, it := range items {
		it = deref(it)
		p := at
		if y.Kind == yaml.SequenceNode {
			p = fmt.Sprintf("%s[%d]", at, i)
		}
		w, good := d.word(it, p, allowed)
		switch {
		case !good:
		case !ok(w):
			d.bad(it, p, "not allowed here", allowed)
		case slices.Contains(out, w):
			d.bad(it, p, "is in the list twice", "each entry once")
		default:
			out = append(out, w)
		}
	}
	return out
}
