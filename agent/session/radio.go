//go:build linux

package session

import (
	"context"
	"errors"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
)

// checkRadio refuses a radio that is none of the node's interfaces.
func checkRadio(c *proto.Configure) error {
	if c.Radio == nil || slices.ContainsFunc(c.Interfaces, func(i proto.Interface) bool { return i.Name == c.Radio.Interface }) {
		return nil
	}
	return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: "radio", Got: c.Radio.Interface, Detail: "it is not among the interfaces of the order, and the agent touches no other"}
}

// applyRadio comes before the interface is looked up: a driver may make it anew.
func (s *session) applyRadio(ctx context.Context, c *proto.Configure) error {
	if c.Radio == nil {
		return nil
	}
	_, err := radio.Configure(ctx, radio.System(), *c.Radio, s.undo.Push)
	return radioError(err)
}

// readRadio asks the driver for every setting.
func (s *session) readRadio(ctx context.Context) ([]radio.Setting, error) {
	if s.cfg.Radio == nil {
		return nil, nil
	}
	d, err := radio.Lookup(s.cfg.Radio.Driver)
	if err != nil {
		return nil, radioError(err)
	}
	list, err := d.Readback(ctx, radio.System(), *s.cfg.Radio)
	return list, radioError(err)
}

// radioError is a driver's error as the controller is told.
func radioError(err error) error {
	r, ok := errors.AsType[*radio.Error](err)
	if !ok {
		return err
	}
	e := &proto.Error{Code: proto.CodeSystem, What: "radio " + r.Interface + " (" + r.Driver + ")", Wanted: r.Wanted, Got: r.Got, Detail: r.Detail, Remedy: r.Remedy}
	if r.Setting != "" {
		e.What += ": " + r.Setting
	}
	switch r.Kind {
	case radio.Invalid:
		e.Code = proto.CodeOrder
	case radio.Unsupported, radio.Unavailable:
		e.Code = proto.CodeUnavailable
	case radio.NotTaken, radio.Rejected:
		e.Code = proto.CodeNotApplied
	}
	return e
}
