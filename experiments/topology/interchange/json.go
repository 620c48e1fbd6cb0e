package interchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth and maxValues bound what a hostile file may cost.
const (
	maxDepth  = 32
	maxValues = 2_000_000
)

// value is one JSON value with its place.
type value struct {
	doc    *document
	at     int  // offset of its end
	kind   byte // one of { [ s n b 0: object, list, text, number, boolean, null
	text   string
	list   []*value
	keys   []string
	fields map[string]*value
}

// document finds lines in a file.
type document struct{ data []byte }

func (d *document) place(at int) (line, col int) {
	before := d.data[:min(at, len(d.data))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// errorf is an error at a value.
func (v *value) errorf(format string, a ...any) error {
	line, col := v.doc.place(v.at)
	return &Error{line, col, fmt.Sprintf(format, a...)}
}

// parseJSON reads exactly one JSON value.
func parseJSON(data []byte) (*value, error) {
	vs, err := parseJSONs(data, 1)
	if err != nil {
		return nil, err
	}
	return vs[0], nil
}

// parseJSONs reads JSON values one after the other: at least one, and at most
// most.
func parseJSONs(data []byte, most int) ([]*value, error) {
	p := &jsonParser{doc: &document{data}, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	var out []*value
	for {
		if len(out) > 0 && len(bytes.TrimSpace(data[p.dec.InputOffset():])) == 0 {
			return out, nil
		}
		v, err := p.next(0) // the end is inside of a value here: the file was cut off
		if err != nil {
			return nil, p.explain(err)
		}
		if len(out) == most {
			return nil, v.errorf("something follows the end of the document")
		}
		out = append(out, v)
	}
}

type jsonParser struct {
	doc    *document
	dec    *json.Decoder
	values int
}

// explain gives the decoder's errors their place.
func (p *jsonParser) explain(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	at := int(p.dec.InputOffset())
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// An offset of bytes read: the bad one is the last of them.
		at = max(at, int(syntax.Offset)-1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err, at = errors.New("the file ends in the middle"), len(p.doc.data)
	}
	line, col := p.doc.place(at)
	return &Error{line, col, "not JSON: " + err.Error()}
}

func (p *jsonParser) next(depth int) (*value, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	v := &value{doc: p.doc, at: int(p.dec.InputOffset()) - 1}
	if p.values++; p.values > maxValues {
		return nil, v.errorf("more than %d values", maxValues)
	}
	switch t := t.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, v.errorf("nested deeper than %d", maxDepth)
		}
		v.kind = byte(t)
		if t == '{' {
			return v, p.object(v, depth)
		}
		for p.dec.More() {
			x, err := p.next(depth + 1)
			if err != nil {
				return nil, err
			}
			v.list = append(v.list, x)
		}
		_, err := p.dec.Token()
		return v, err
	case string:
		v.kind, v.text = 's', t
	case json.Number:
		v.kind, v.text = 'n', t.String()
	case bool:
		v.kind, v.text = 'b', strconv.FormatBool(t)
	default:
		v.kind = '0'
	}
	return v, nil
}

func (p *jsonParser) object(v *value, depth int) error {
	v.fields = map[string]*value{}
	for p.dec.More() {
		k, err := p.dec.Token()
		if err != nil {
			return err
		}
		key := k.(string) // the decoder lets nothing else through
		at := int(p.dec.InputOffset()) - 1
		x, err := p.next(depth + 1)
		if err != nil {
			return err
		}
		if v.fields[key] != nil {
			line, col := p.doc.place(at)
			return &Error{line, col, fmt.Sprintf("the key %s stands twice in one object", strconv.Quote(key))}
		}
		v.fields[key] = x
		v.keys = append(v.keys, key)
	}
	_, err := p.dec.Token()
	return err
}

var kinds = map[byte]string{'{': "an object", '[': "a list", 's': "a text", 'n': "a number", 'b': "true or false", '0': "null"}

// is checks the kind of a value.
func (v *value) is(kind byte, what string) error {
	if v.kind != kind {
		return v.errorf("%s is %s, want %s", what, kinds[v.kind], kinds[kind])
	}
	return nil
}

// get returns a field; nil where there is none, or null.
func (v *value) get(key string) *value {
	x := v.fields[key]
	if x == nil || x.kind == '0' {
		return nil
	}
	return x
}

// need returns a field that has to be there.
func (v *value) need(key string) (*value, error) {
	if x := v.get(key); x != nil {
		return x, nil
	}
	return nil, v.errorf("the object has no key %s", strconv.Quote(key))
}

// items returns the list in a field, all of whose entries are objects.
func (v *value) items(key string) ([]*value, error) {
	x, err := v.need(key)
	if err != nil {
		return nil, err
	}
	return x.objects(strconv.Quote(key))
}

func (v *value) objects(what string) ([]*value, error) {
	if err := v.is('[', what); err != nil {
		return nil, err
	}
	for _, x := range v.list {
		if err := x.is('{', "an entry of "+what); err != nil {
			return nil, err
		}
	}
	return v.list, nil
}

// name returns the text or the number in a field, which names something.
func (v *value) name(key string) (string, error) {
	x, err := v.need(key)
	if err != nil {
		return "", err
	}
	if x.kind != 's' && x.kind != 'n' {
		return "", x.errorf("%s is %s, want a text or a number", strconv.Quote(key), kinds[x.kind])
	}
	if x.text == "" || len(x.text) > 256 {
		return "", x.errorf("%s is a text of %d bytes, want 1 to 256", strconv.Quote(key), len(x.text))
	}
	return x.text, nil
}

// number returns the number in a value; texts that are numbers are numbers, too
// (alfred writes metrics so).
func (v *value) number(what string) (float64, error) {
	if v.kind == 'n' || v.kind == 's' {
		if f, err := strconv.ParseFloat(v.text, 64); err == nil && f-f == 0 {
			return f, nil
		}
	}
	return 0, v.errorf("%s is %s %s, want a number", what, kinds[v.kind], strconv.Quote(v.text))
}

// share returns the number in a field, between 0 and 1.
func (v *value) share(key string) (float64, error) {
	x, err := v.need(key)
	if err != nil {
		return 0, err
	}
	f, err := x.number(strconv.Quote(key))
	if err == nil && (f < 0 || f > 1) {
		err = x.errorf("%s is %g, want a share between 0 and 1", strconv.Quote(key), f)
	}
	return f, err
}
