//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/tc"
)

// kindShaper undoes the kernel's emulation of a link.
const kindShaper = "tc"

// undoShaper is its undo.Func.
var undoShaper = undo.On(func(_ context.Context, u tc.Undo) error { return tc.Revert(&u) })

// checkShapers refuses links at interfaces that are none of the node's.
func checkShapers(c *proto.Configure) error {
	seen := make(map[string]bool)
	for _, i := range c.Interfaces {
		seen[i.Name] = true
	}
	for _, l := range c.Shapers {
		if !seen[l.Interface] {
			return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: "emulated link", Got: l.Interface, Detail: "it is none of the interfaces of the order, or given twice"}
		}
		seen[l.Interface] = false
	}
	return nil
}

// applyShapers makes the kernel emulate the links.
func (s *session) applyShapers(c *proto.Configure) error {
	for i := range c.Shapers {
		l := &c.Shapers[i]
		u, err := tc.Prepare(l)
		if err != nil {
			return shaperError(l, err)
		}
		if err := s.push(kindShaper, "emulated link at "+l.Interface, u); err != nil {
			return err
		}
		if _, err := tc.Apply(l); err != nil {
			return shaperError(l, err)
		}
	}
	return nil
}

// readShapers reads the links back.
func (s *session) readShapers() ([]tc.Link, error) {
	var out []tc.Link
	for i := range s.cfg.Shapers {
		l := &s.cfg.Shapers[i]
		got, err := tc.Verify(l)
		if err != nil {
			return nil, shaperError(l, err)
		}
		out = append(out, *got)
	}
	return out, nil
}

// countShapers reads the counters of all links.
func (s *session) countShapers() ([]tc.Counters, error) {
	var out []tc.Counters
	for i := range s.cfg.Shapers {
		l := &s.cfg.Shapers[i]
		n, err := tc.Stats(l)
		if err != nil {
			return nil, shaperError(l, err)
		}
		out = append(out, n...)
	}
	return out, nil
}

// since returns what happened between two readings; what waits is that of the
// second.
func since(before, after []tc.Counters) ([]tc.Counters, error) {
	if len(before) != len(after) {
		return nil, fmt.Errorf("the counters of %d classes at the start, and of %d at the stop", len(before), len(after))
	}
	out := make([]tc.Counters, len(after))
	for i, a := range after {
		b := before[i]
		a.Packets, a.Bytes, a.Lost, a.Dropped = a.Packets-b.Packets, a.Bytes-b.Bytes, a.Lost-b.Lost, a.Dropped-b.Dropped
		out[i] = a
	}
	return out, nil
}

// shaperError is an error of tc as the controller is told.
func shaperError(l *tc.Link, err error) error {
	e := &proto.Error{Code: proto.CodeSystem, What: "emulated link at " + l.Interface, Detail: err.Error()}
	var lacks *tap.Unavailable
	var not *tc.NotApplied
	var foreign *tc.Foreign
	switch {
	case errors.As(err, &lacks):
		e.Code, e.Wanted, e.Detail, e.Remedy = proto.CodeUnavailable, lacks.What, lacks.Because, lacks.Do
	case errors.As(err, &not):
		e.Code, e.Wanted, e.Got, e.Detail = proto.CodeNotApplied, not.Wanted, not.Got, ""
		e.What += ": " + not.What
	case errors.As(err, &foreign):
		e.Code = proto.CodeOrder
	}
	return e
}
