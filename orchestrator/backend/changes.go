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

// outage tells of the first node on a flow's path that the experiment switched off,
// or else of the first link; empty when there is none.
func outage(s *plan.Scenario, flow int) string {
	path, link := s.Flows[flow].Path, ""
	for i := range s.Topology.Changes {
		c := &s.Topology.Changes[i]
		if c.Up {
			continue
		}
		if node, is := c.Node(); is && slices.Contains(path, node) {
			return fmt.Sprintf("its relay %s was switched off at %v", s.Topology.Nodes[node].Name, vtime.Duration(c.At))
		}
		for k := 1; k < len(path) && link == ""; k++ {
			if pair := [2]int{path[k-1], path[k]}; pair == c.Link || pair == [2]int{c.Link[1], c.Link[0]} {
				link = fmt.Sprintf("the link %s of its path was down at %v", s.Topology.Place(c), vtime.Duration(c.At))
			}
		}
	}
	return link
}

// excused turns the fault of a flow whose path the experiment cut into an outcome: a
// relay forgot the connection and whoever spoke to it was told so, or the kernel gave
// it up.
func excused(s *plan.Scenario, flow int, e *proto.Error) *proto.Error {
	if e == nil || e.Code != proto.CodeFlow {
		return e
	}
	why := outage(s, flow)
	if why == "" {
		return e
	}
	out := *e
	out.Code = proto.CodeTimeout
	out.Detail = e.Detail + "; " + why
	return &out
}
