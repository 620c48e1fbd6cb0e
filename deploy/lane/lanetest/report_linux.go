package lanetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// report is what the tests in the lane said.
type report struct {
	status int
	tests  map[string]*outcome // by the name below the test
	order  []string            // in which they began
	rest   bytes.Buffer        // what belongs to no subtest
}

type outcome struct {
	verdict string // pass, fail, skip; "" = it never ended
	output  strings.Builder
}

// parse reads a test binary's output (-test.v=test2json).
func parse(ctx context.Context, out []byte, test string) (*report, error) {
	events, err := toJSON(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("the output of the tests in the lane: %w", err)
	}
	r := &report{tests: map[string]*outcome{}}
	dec := json.NewDecoder(bytes.NewReader(events))
	for {
		var e struct{ Action, Test, Output string }
		if err := dec.Decode(&e); err == io.EOF {
			return r, nil
		} else if err != nil {
			return nil, fmt.Errorf("the output of the tests in the lane: %w", err)
		}
		sub, ok := strings.CutPrefix(e.Test, test+"/")
		if !ok {
			r.rest.WriteString(e.Output)
			continue
		}
		o := r.tests[sub]
		if o == nil {
			o = &outcome{}
			r.tests[sub] = o
			r.order = append(r.order, sub)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			o.verdict = e.Action
		case "output":
			o.output.WriteString(e.Output)
		}
	}
}

// fold makes subtests of the cases that ran, with those inside them as output, and
// returns how many ran.
func (r *report) fold(t *testing.T, cases []Case) (seen int) {
	if r == nil {
		return 0
	}
	for _, c := range cases {
		name := rewrite(c.Name)
		o := r.tests[name]
		if o == nil {
			continue
		}
		seen++
		t.Run(c.Name, func(t *testing.T) { o.replay(t, r.below(name)) })
	}
	return seen
}

// rewrite is what package testing makes of a subtest's name.
func rewrite(name string) string { return strings.ReplaceAll(name, " ", "_") }

// below collects the output of a case's own subtests: of those that did not pass,
// or, where go test -v asks for it, of all.
func (r *report) below(name string) string {
	var b strings.Builder
	for _, sub := range r.order {
		o := r.tests[sub]
		if strings.HasPrefix(sub, name+"/") && (testing.Verbose() || o.verdict != "pass") {
			fmt.Fprintf(&b, "%s: %s\n%s", sub, o.verdict, o.output.String())
		}
	}
	return b.String()
}

func (o *outcome) replay(t *testing.T, below string) {
	text := strings.TrimSpace(o.output.String() + below)
	switch o.verdict {
	case "pass":
		t.Log("in the lane:\n" + text)
	case "skip":
		t.Skip("in the lane:\n" + text) // its typed reason is in the text
	case "fail":
		t.Error("in the lane:\n" + text)
	default:
		t.Error("it did not end in the lane:\n" + text)
	}
}
