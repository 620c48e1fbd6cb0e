package backend

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// The kinds of the events that topology.changes brings about.
const (
	eventLinkDown = "link-down"
	eventLinkUp   = "link-up"
	eventNodeDown = "node-down"
	eventNodeUp   = "node-up"
)

// changeRows are the events of a scenario's changes, at their moments.
func changeRows(s *plan.Scenario) []store.Event {
	var rows []store.Event
	for i := range s.Topology.Changes {
		c := &s.Topology.Changes[i]
		row := store.Event{TUs: store.Some(micros(c.At)), Node: store.Some(int64(c.Link[0])), Text: s.Topology.Place(c)}
		_, node := c.Node()
		switch {
		case node && c.Up:
			row.Kind = eventNodeUp
		case node:
			row.Kind = eventNodeDown
		case c.Up:
			row.Kind = eventLinkUp
		default:
			row.Kind = eventLinkDown
		}
		rows = append(rows, row)
	}
	return rows
}

// SortEvents brings a record's events into the order of time; what has no time comes
// first.
func SortEvents(rec *store.RunRecord) {
	slices.SortStableFunc(rec.Events, func(a, b store.Event) int { return cmp.Compare(a.TUs.Or(0), b.TUs.Or(0)) })
}

// switchedRelay returns a node between the ends of a flow that the experiment has
// switched off, with the moment.
func switchedRelay(s *plan.Scenario, flow int) (name string, at vtime.Time, ok bool) {
	path := s.Flows[flow].Path
	for i := range s.Topology.Changes {
		c := &s.Topology.Changes[i]
		if node, is := c.Node(); is && !c.Up && slices.Contains(path, node) {
			return s.Topology.Nodes[node].Name, c.At, true
		}
	}
	return "", 0, false
}

// outage turns the fault of a flow whose relay was switched off into an outcome: the
// relay forgot the connection, and whoever spoke to it was told so.
func outage(s *plan.Scenario, flow int, e *proto.Error) *proto.Error {
	if e == nil || e.Code != proto.CodeFlow {
		return e
	}
	name, at, ok := switchedRelay(s, flow)
	if !ok {
		return e
	}
	out := *e
	out.Code = proto.CodeTimeout
	out.Detail = fmt.Sprintf("%s; its relay %s was switched off at %v", e.Detail, name, vtime.Duration(at))
	return &out
}
