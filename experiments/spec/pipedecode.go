package spec

import (
	"fmt"
	"reflect"
	"slices"
)

// names2 reads a list of two names.
func (d *decoder) names2(n *node, at, form, kind string) (out [2]string) {
	if n.kind != sequence || len(n.items) != 2 {
		d.bad(n, at, "not a list of two names", form)
		return out
	}
	for i, it := range n.items {
		d.value(it, fmt.Sprintf("%s[%d]", at, i), reflect.ValueOf(&out[i]).Elem(), field{pattern: kind})
	}
	return out
}

func (e *Ends) decodeNode(d *decoder, n *node, at string) {
	*e = d.names2(n, at, "[node, node], for example [ap, server]", "name")
}

func (i *Interfaces) decodeNode(d *decoder, n *node, at string) {
	*i = d.names2(n, at, "[interface, interface], for example [eth0, eth0]", "interface")
}

// decodeNode reads the direction from the first end and, over a copy of it, the
// reverse one: a key that reverse names replaces the whole value.
func (p *Pipe) decodeNode(d *decoder, n *node, at string) {
	rev, i := n.get("reverse")
	if i >= 0 {
		own := *n
		own.keys = slices.Delete(slices.Clone(n.keys), i, i+1)
		own.items = slices.Delete(slices.Clone(n.items), i, i+1)
		n = &own
	}
	d.block(n, at, reflect.ValueOf(p).Elem())
	if rev == nil {
		return
	}
	at = join(at, "reverse")
	d.set[at] = rev
	back := p.Direction
	if r, _ := rev.get("rate"); r != nil {
		back.Trace = nil
	}
	if t, _ := rev.get("trace"); t != nil {
		back.Rate = 0
	}
	if s, _ := rev.get("schedule"); s != nil && s.kind == sequence && len(s.items) == 0 {
		// The one list that may be empty: the first direction's does not hold here.
		_, i := rev.get("schedule")
		without := *rev
		without.keys = slices.Delete(slices.Clone(rev.keys), i, i+1)
		without.items = slices.Delete(slices.Clone(rev.items), i, i+1)
		rev, back.Schedule = &without, nil
	}
	d.block(rev, at, reflect.ValueOf(&back).Elem())
	p.Reverse = &back
}

func (l *PipeLoss) decodeNode(d *decoder, n *node, at string) {
	*l = PipeLoss{}
	v := reflect.ValueOf(l).Elem()
	if n.kind == scalar && !n.null {
		f := fieldsOf(v.Type())[0]
		d.scalar(n, at, v.FieldByIndex(f.index), f)
		return
	}
	d.block(n, at, v)
}

func (t *PipeTrace) decodeNode(d *decoder, n *node, at string) {
	before := len(d.report.problems)
	d.block(n, at, reflect.ValueOf(t).Elem())
	if d.files == nil || len(d.report.problems) > before {
		return
	}
	var err error
	switch file, model := d.set[join(at, "file")], d.set[join(at, "generate")]; {
	case file != nil && model != nil:
		d.problem(model, join(at, "generate"), Problem{What: "beside a file", Allowed: "one of file and generate"})
	case file != nil:
		if t.Capacity, err = d.files.trace(t.File); err != nil {
			d.bad(file, join(at, "file"), err.Error(), "a Mahimahi trace: one line for each opportunity to deliver a packet, its time in whole milliseconds, not descending")
		}
	case model != nil:
		if t.Capacity, err = d.files.generated(t); err != nil {
			d.bad(model, join(at, "generate"), err.Error(), "values by which the cell delivers something")
		}
	default:
		d.problem(n, at, Problem{What: "neither a file nor a model", Allowed: "{file: umts.down}, or {generate: hsdpa}"})
	}
}
