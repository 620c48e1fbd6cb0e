package backend

import (
	"fmt"
	"strconv"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// measuredSlack is how far from its nominal moment a destination may have read
// its counter at either end of the measured interval, as a share of the
// interval: beyond it the goodput would be off by as much.
const measuredSlack = 0.01

// sides are the accounts that the ends of a flow gave of it.
type sides struct {
	src, dst *proto.FlowResult
	relays   []*proto.FlowResult
}

// all are the accounts of every node, the source's and the destination's first.
func (a sides) all() []*proto.FlowResult {
	return append([]*proto.FlowResult{a.src, a.dst}, a.relays...)
}

// CollectFlows turns the accounts of a run's nodes into the record's flows; an
// entry may be nil where a node gave none.
func CollectFlows(rec *store.RunRecord, s *plan.Scenario, results []*proto.Results) {
	byFlow := make([]sides, len(s.Flows))
	for _, r := range results {
		if r == nil {
			continue
		}
		for i := range r.Flows {
			f := &r.Flows[i]
			if f.Flow < 0 || f.Flow >= len(byFlow) {
				rec.Run.InvalidReasons = append(rec.Run.InvalidReasons, fmt.Sprintf("node %d reports a flow %d that nobody asked for", r.Node, f.Flow))
				continue
			}
			switch f.Side {
			case proto.Source:
				byFlow[f.Flow].src = f
			case proto.Destination:
				byFlow[f.Flow].dst = f
			case proto.Relay:
				byFlow[f.Flow].relays = append(byFlow[f.Flow].relays, f)
			}
		}
	}
	for i := range rec.Flows {
		settle(&rec.Flows[i], s, byFlow[i])
	}
	for i, f := range s.Flows {
		// Pages that nobody could ask for say nothing of the network.
		if row, requests := &rec.Flows[i], &rec.Flows[f.Peer]; f.Role == spec.Responses && requests.Status == store.FlowFailed && row.Status != store.FlowFailed {
			row.Status, row.Error = store.FlowFailed, fmt.Sprintf("its requests, flow %d, failed: %s", f.Peer, requests.Error)
			row.Bytes, row.GoodputBps = 0, store.None[float64]()
		}
	}
}

// settle decides what one flow's result is. A flow that could not get anything
// through is starved: its goodput of 0 is a measurement. A flow whose account
// is missing or damaged has no goodput at all.
func settle(row *store.Flow, s *plan.Scenario, a sides) {
	c := s.Config()
	g := &c.Flows[s.Flows[row.Flow].Group]
	if a.src == nil || a.dst == nil {
		row.Status, row.Error = store.FlowFailed, missing(a)
		return
	}
	if a.dst.Bytes < 0 || a.dst.Blocks < 0 {
		row.Status, row.Error = store.FlowFailed, fmt.Sprintf("the destination reports %d bytes and %d blocks", a.dst.Bytes, a.dst.Blocks)
		return
	}
	row.CC = a.src.CC
	// Set-up counts from the moment a connection stood; Hop has no connection.
	if a.src.Established > 0 {
		row.SetupS = store.Some(a.src.SetupTime.Seconds())
	}
	if g.Transport.Family() == spec.FamilyUDP || g.Transport.External() {
		// Datagrams are not repeated; of what repeats a program knows little.
		row.SentBytes = store.Some(int64(a.src.Total))
	} else if l := a.src.Last; l != nil {
		row.SentBytes = store.Some(int64(l.Sent))
		row.RetransBytes = store.Some(int64(l.Retrans))
		if l.CwndPackets > 0 {
			row.Timeouts = store.Some(l.Timeouts)
		}
	}
	row.Counters["source_bytes"] = int64(a.src.Total)
	row.Counters["total_bytes"] = int64(a.dst.Total)
	if a.src.Attempts > 0 {
		row.Counters["connect_attempts"] = int64(a.src.Attempts)
	}
	for _, r := range a.relays {
		if r.MaxHeld == 0 {
			continue // Hop counts blocks, not bytes
		}
		row.Counters["relay_max_held_bytes"] = max(row.Counters["relay_max_held_bytes"], int64(r.MaxHeld))
	}
	if g.Transport.Family() == spec.FamilyHop {
		row.Blocks = store.Some(a.dst.Blocks)
		row.CorruptBlocks = store.Some(a.dst.Corrupt)
		row.Counters["blocks_acknowledged"] = a.src.Blocks
	}
	for _, r := range a.all() {
		for _, c := range r.Counters {
			row.Counters[c.Name] += c.Delta
		}
	}
	if complete(row, a.dst) {
		row.CompletionS = store.Some(a.dst.FinishedAt.Seconds())
	}
	row.Status, row.Error = verdict(row, s, a)
	from, to := measured(c, g)
	if row.Status != store.FlowFailed {
		if err := measuredOverInterval(from, to, a.dst); err != nil {
			row.Status, row.Error = store.FlowFailed, err.Error()
		}
	}
	if row.Status == store.FlowFailed {
		return
	}
	row.Bytes = int64(a.dst.Bytes)
	row.GoodputBps = store.Goodput(row.Bytes, to.Sub(from).Seconds())
}

// verdict is how the flow ended. What is broken at one end may look like a silent
// network from the other, so that a fault comes before a set-up that never stood.
func verdict(row *store.Flow, s *plan.Scenario, a sides) (store.FlowStatus, string) {
	late := ""
	for _, r := range a.all() {
		if r.Error == nil {
			continue
		}
		err := excused(s, row.Flow, r.Error)
		if err.Code != proto.CodeTimeout {
			return store.FlowFailed, err.Error()
		}
		if late == "" {
			late = err.Error()
		}
	}
	if late != "" {
		return store.FlowTimeout, late
	}
	if row.Size.OK && !complete(row, a.dst) {
		return store.FlowTimeout, "not all of the " + strconv.FormatInt(row.Size.V, 10) + " bytes had arrived at the end"
	}
	return store.FlowOK, ""
}

// complete reports whether a flow with an end has arrived as a whole: a transport that
// promises nothing end to end may end without all of it (hop/no-vbsyn).
func complete(row *store.Flow, dst *proto.FlowResult) bool {
	return dst.Finished && (!row.Size.OK || int64(dst.Total) >= row.Size.V)
}

func missing(a sides) string {
	switch {
	case a.src == nil && a.dst == nil:
		return "neither end reported"
	case a.src == nil:
		return "the source did not report"
	}
	return "the destination did not report"
}

// measuredOverInterval checks that the destination read its counter at the
// ends of the flow's part of the measured interval.
func measuredOverInterval(from, to vtime.Time, dst *proto.FlowResult) error {
	if from == to {
		return fmt.Errorf("the flow was not meant to run in any part of the measured interval")
	}
	if dst.MeasuredTo == 0 && dst.Total == 0 {
		return nil // nothing ever arrived: there was nobody to read a counter
	}
	slack := vtime.Duration(measuredSlack * float64(to.Sub(from)))
	early, late := dst.MeasuredFrom.Sub(from), dst.MeasuredTo.Sub(to)
	if early > slack || early < -slack || late > slack || late < -slack {
		return fmt.Errorf("the destination read its counter %v and %v off the measured interval's ends (allowed: %v)", early, late, slack)
	}
	return nil
}
