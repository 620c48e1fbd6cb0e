package backend

import (
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

func micros(t vtime.Time) int64 { return int64(t) / 1000 }

// SampleRow is the row of one observation.
func SampleRow(node int, s *proto.Sample) (row store.Sample) {
	FillSample(&row, node, s)
	return row
}

// FillSample fills an empty row with one observation; what the side or the
// transport does not know stays missing.
func FillSample(row *store.Sample, node int, s *proto.Sample) {
	row.Flow, row.Side, row.Node, row.TUs = s.Flow, string(s.Side), node, micros(s.T)
	if s.Sparse {
		sparseColumns(row, s)
		return
	}
	if s.Side == proto.Destination {
		row.DeliveredBytes = store.Some(int64(s.Delivered))
	}
	isHop := knowsHop(s)
	if s.Side == proto.Source || s.Sent > 0 {
		row.SentBytes = store.Some(int64(s.Sent))
		if s.CwndPackets > 0 || isHop { // datagrams are never repeated
			row.RetransBytes = store.Some(int64(s.Retrans))
		}
	}
	if s.CwndPackets > 0 { // a TCP connection's sender
		tcpColumns(row, s)
	}
	if s.Side == proto.Relay && (s.Held > 0 || s.CwndPackets > 0) || isHop || hasBlocks(s) || s.Held > 0 {
		row.HeldBytes = store.Some(int64(s.Held))
	}
	if s.SRTT > 0 {
		row.SRTTUs = store.Some(int64(s.SRTT) / 1000)
		row.RTTVarUs = store.Some(int64(s.RTTVar) / 1000)
	}
	if s.MinRTT > 0 {
		row.MinRTTUs = store.Some(int64(s.MinRTT) / 1000)
	}
	if isHop || hasBlocks(s) {
		row.BlocksHeld = store.Some(s.BlocksHeld)
		row.BlocksDone = store.Some(s.BlocksDone)
	}
	if isHop {
		hopColumns(row, s)
	}
	datagramColumns(row, s)
}

// knowsHop tells that a sample is one of Hop's: a node that has done anything for
// the flow counts something.
func knowsHop(s *proto.Sample) bool {
	return s.Withheld > 0 || s.DataFrames > 0 || s.ControlFrames > 0 || s.BlocksUnacked > 0
}

// hasBlocks tells that a sample is one of Hop's or of a bundle relay's, whose bundles
// are counted as blocks. The rest of Hop's columns is not for bundles.
func hasBlocks(s *proto.Sample) bool { return s.BlocksHeld > 0 || s.BlocksDone > 0 }

func hopColumns(row *store.Sample, s *proto.Sample) {
	row.BlocksWithheld = store.Some(s.Withheld)
	row.DataFrames = store.Some(s.DataFrames)
	row.ControlFrames = store.Some(s.ControlFrames)
	row.BlocksInFlight = store.Counted(s.BlocksInFlight)
	row.BlocksCached = store.Counted(s.BlocksCached)
	if s.Side == proto.Source {
		row.BlocksUnacked = store.Counted(s.BlocksUnacked)
	}
	row.MicroBlocks = store.Counted(s.MicroBlocks)
	row.GrantsWithheld = store.Counted(s.GrantsWithheld)
	row.Blocked = store.Counted(s.Blocked)
	row.Tokens = store.Counted(s.Tokens)
}

// datagramColumns are those of UDP: an end that has sent or received nothing
// knows none of them.
func datagramColumns(row *store.Sample, s *proto.Sample) {
	if s.Side == proto.Source && (s.DatagramsSent > 0 || s.DatagramsRefused > 0) {
		row.DatagramsSent, row.Refused = store.Counted(s.DatagramsSent), store.Counted(s.DatagramsRefused)
	}
	if s.Side == proto.Destination && s.Datagrams > 0 {
		row.Datagrams, row.DatagramsLost = store.Counted(s.Datagrams), store.Counted(s.DatagramsLost)
		row.Duplicates, row.Reordered = store.Counted(s.Duplicates), store.Counted(s.Reordered)
	}
}

// sparseColumns are those of an external program, which knows little.
func sparseColumns(row *store.Sample, s *proto.Sample) {
	switch s.Side {
	case proto.Destination:
		row.DeliveredBytes = store.Some(int64(s.Delivered))
	case proto.Source:
		row.SentBytes = store.Some(int64(s.Sent))
	}
	if s.CwndPackets > 0 {
		row.CwndPackets = store.Some(float64(s.CwndPackets))
		row.RetransSegments = store.Some(s.RetransPackets)
	}
	if s.SRTT > 0 {
		row.SRTTUs = store.Some(int64(s.SRTT) / 1000)
	}
	if s.RTTVar > 0 {
		row.RTTVarUs = store.Some(int64(s.RTTVar) / 1000)
	}
	if s.DatagramsSent > 0 {
		row.DatagramsSent = store.Counted(s.DatagramsSent)
	}
	if s.Datagrams > 0 || s.DatagramsLost > 0 {
		row.Datagrams, row.DatagramsLost = store.Counted(s.Datagrams), store.Counted(s.DatagramsLost)
	}
}

func tcpColumns(row *store.Sample, s *proto.Sample) {
	row.CwndPackets = store.Some(float64(s.CwndPackets))
	row.InFlightPackets = store.Some(float64(s.InFlight))
	row.RetransSegments = store.Some(s.RetransPackets)
	row.LostPackets = store.Some(s.LostPackets)
	row.AckedBytes = store.Some(int64(s.Acked))
	row.NotSentBytes = store.Some(int64(s.NotSent))
	if s.SsthreshPackets > 0 {
		row.SsthreshPackets = store.Some(float64(s.SsthreshPackets))
	}
	if s.RTO > 0 {
		row.RTOUs = store.Some(int64(s.RTO) / 1000)
	}
	if s.DeliveryRate > 0 {
		row.DeliveryRateBps = store.Some(int64(s.DeliveryRate))
	}
	if s.CAState != "" {
		row.CAState = store.Some(s.CAState)
	}
}

// EventRow is the row of one change in a flow's life.
func EventRow(node int, e *proto.Event) store.Event {
	row := store.Event{
		TUs: store.Some(micros(e.T)), Node: store.Some(int64(node)), Flow: store.Some(int64(e.Flow)),
		Kind: string(e.Kind), Text: string(e.Side),
	}
	if e.Text != "" {
		row.Text = e.Text
	}
	if e.Error != nil {
		row.Text = e.Error.Error()
	}
	return row
}
