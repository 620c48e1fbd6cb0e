package backend

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// maxMessages bounds what is kept of a run. A file is checked by the expected
// number of its messages (spec.MaxMessages); draws may be somewhat above.
const maxMessages = 2 * spec.MaxMessages

// Messages gathers what became of a run's messages. What nodes say is not taken
// for true without a look: they are compared with the schedule, which the
// controller computes as the nodes do.
type Messages struct {
	s     *plan.Scenario
	specs []workload.Spec // by flow
	rows  []store.Message
	wrong error // the first thing that cannot be true
	// clocks are those of the nodes, nil where all read one clock.
	clocks Clocks
}

// Clocks says what the clocks of different nodes do to the one-way delays of a
// flow's messages, which are a difference between two of them.
type Clocks interface {
	// Excess is what a delay that ends at a moment of the run has too much.
	Excess(flow int, at vtime.Time) vtime.Duration
	// Uncertainty bounds the error that is left when that was taken off.
	Uncertainty(flow int) vtime.Duration
}

// Clocks makes Finish correct the delays by what is known of the nodes' clocks,
// and withhold what these do not tell.
func (m *Messages) Clocks(c Clocks) { m.clocks = c }

// NewMessages begins to gather the messages of a run.
func NewMessages(s *plan.Scenario) *Messages {
	m := &Messages{s: s}
	for _, f := range s.Flows {
		m.specs = append(m.specs, workloadOf(s, f, &s.Config().Flows[f.Group].Workload))
	}
	return m
}

// Any tells that some flow of the run consists of messages.
func (m *Messages) Any() bool {
	return slices.ContainsFunc(m.specs, workload.Spec.HasMessages)
}

// Add takes what a node reports of one message. The error says why it cannot be
// true: nothing that the node says can be relied on then, and the run is invalid.
func (m *Messages) Add(node int, x *proto.Message) error {
	err := m.add(node, x)
	if err != nil && m.wrong == nil {
		m.wrong = fmt.Errorf("node %s reports %w", m.s.Topology.Nodes[node].Name, err)
	}
	return err
}

func (m *Messages) add(node int, x *proto.Message) error {
	if x.Flow < 0 || x.Flow >= len(m.specs) {
		return fmt.Errorf("a message of flow %d, which there is not", x.Flow)
	}
	c, f := m.s.Config(), m.s.Flows[x.Flow]
	g := &c.Flows[f.Group]
	end := vtime.Time(c.Warmup + c.Duration)
	switch {
	case !m.specs[x.Flow].HasMessages() || f.Role == spec.Requests:
		return fmt.Errorf("a message of flow %d, which has none", x.Flow)
	case node != f.Dst:
		return fmt.Errorf("a message of flow %d, which does not end there", x.Flow)
	case x.Message < 0 || x.Size < 1 || x.Ready < startOf(c, g) || x.Ready >= end:
		return fmt.Errorf("a message of flow %d that cannot be: number %d, %d bytes, ready at %v", x.Flow, x.Message, x.Size, x.Ready)
	case !x.Lost && (x.Delay < -vtime.Duration(end) || x.Delay > 2*vtime.Duration(end)+vtime.Minute):
		return fmt.Errorf("message %d of flow %d with a delay of %v in a run of %v", x.Message, x.Flow, x.Delay, end)
	case len(m.rows) >= maxMessages:
		return fmt.Errorf("messages beyond the %d that a run can have", maxMessages)
	}
	row := store.Message{Flow: x.Flow, Message: x.Message, Size: int64(x.Size), ReadyUs: micros(x.Ready)}
	if !x.Lost {
		row.DelayUs = store.Some(int64(x.Delay) / int64(vtime.Microsecond))
	}
	m.rows = append(m.rows, row)
	return nil
}

// Finish puts the messages into the record, and what they say of each flow. It
// comes after CollectFlows. A message of which nothing was reported was not
// delivered.
func (m *Messages) Finish(rec *store.RunRecord) {
	if m.wrong != nil {
		rec.Run.InvalidReasons = append(rec.Run.InvalidReasons, m.wrong.Error())
	}
	slices.SortStableFunc(m.rows, func(a, b store.Message) int {
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Message, b.Message))
	})
	c := m.s.Config()
	rest := m.rows
	var all []store.Message
	for i := range rec.Flows {
		n := 0
		for n < len(rest) && rest[n].Flow == i {
			n++
		}
		own := rest[:n]
		rest = rest[n:]
		if !m.specs[i].HasMessages() || m.s.Flows[i].Role == spec.Requests {
			continue
		}
		row := &rec.Flows[i]
		if row.Status == store.FlowFailed {
			continue // what it said before is no account of what arrived
		}
		own, err := m.complete(i, own)
		if err != nil {
			rec.Run.InvalidReasons = append(rec.Run.InvalidReasons, fmt.Sprintf("flow %d: %s: what its destination says of its messages cannot be relied on", i, err))
			row.Status, row.Error, row.GoodputBps = store.FlowFailed, err.Error(), store.None[float64]()
			continue
		}
		unsure := m.correct(i, own)
		all = append(all, own...)
		judgeMessages(row, own, micros(vtime.Time(c.Warmup)), micros(vtime.Time(c.Warmup+c.Duration)))
		if m.specs[i].Kind == workload.VoIP {
			judgeVoice(row, m.specs[i].Codec, own, micros(vtime.Time(c.Warmup)), micros(stopOf(c, &c.Flows[m.s.Flows[i].Group])))
		}
		withhold(rec, i, unsure)
	}
	rec.Messages = all
}

// correct takes off a flow's delays what its ends' clocks put on them, and returns
// the bound of the error that is left. The delay of a page begins and ends at one
// node.
func (m *Messages) correct(flow int, own []store.Message) (unsure vtime.Duration) {
	if m.clocks == nil || m.specs[flow].Kind == workload.Web {
		return 0
	}
	for k := range own {
		if d := &own[k].DelayUs; d.OK {
			at := vtime.Time(own[k].ReadyUs+d.V) * vtime.Time(vtime.Microsecond)
			d.V -= int64(m.clocks.Excess(flow, at) / vtime.Microsecond)
		}
	}
	return m.clocks.Uncertainty(flow)
}

// CounterDelayUncertainty is the bound of the error of a flow's one-way delays, in
// µs, where its ends have different clocks.
const CounterDelayUncertainty = "delay_uncertainty_us"

// withhold notes how uncertain a flow's delays are. Those that are no more than
// their error are not given as results; the messages keep them.
func withhold(rec *store.RunRecord, flow int, unsure vtime.Duration) {
	if unsure <= 0 {
		return
	}
	row := &rec.Flows[flow]
	bound := int64((unsure + vtime.Microsecond - 1) / vtime.Microsecond)
	row.Counters[CounterDelayUncertainty] = bound
	if !row.DelayP50Us.OK || row.DelayP50Us.V > bound {
		return
	}
	rec.Run.Warnings = append(rec.Run.Warnings, fmt.Sprintf("flow %d (%s to %s): its one-way delays are withheld: the clocks of its ends are known to ±%v together, and the median would be %v",
		row.Flow, rec.Nodes[row.Src].Name, rec.Nodes[row.Dst].Name, vtime.Duration(bound)*vtime.Microsecond, vtime.Duration(row.DelayP50Us.V)*vtime.Microsecond))
	none := store.None[int64]()
	row.DelayP50Us, row.DelayP95Us, row.DelayP99Us = none, none, none
	row.RFactor, row.MOS = store.None[float64](), store.None[float64]()
}

// complete compares a flow's messages, in their order, with its schedule, and adds
// those that nobody reported as lost. The pages of a web flow have no schedule:
// those that were asked for are reported.
func (m *Messages) complete(flow int, own []store.Message) ([]store.Message, error) {
	for k := 1; k < len(own); k++ {
		if own[k].Message == own[k-1].Message {
			return nil, fmt.Errorf("message %d was reported twice", own[k].Message)
		}
	}
	if m.specs[flow].Kind == workload.Web {
		for k := range own {
			if own[k].Message != k {
				return nil, fmt.Errorf("page %d was reported, and page %d was not", own[k].Message, k)
			}
		}
		return own, nil
	}
	c := m.s.Config()
	g := &c.Flows[m.s.Flows[flow].Group]
	schedule, err := workload.NewReceipts(m.specs[flow], startOf(c, g), stopOf(c, g))
	if err != nil {
		return nil, err
	}
	schedule.Close(stopOf(c, g))
	out := make([]store.Message, 0, len(own))
	for want := range schedule.Take() {
		row := store.Message{Flow: flow, Message: want.Message, Size: int64(want.Size), ReadyUs: micros(want.Ready)}
		if len(own) > 0 && own[0].Message == want.Message {
			if own[0].Size != row.Size || own[0].ReadyUs != row.ReadyUs {
				return nil, fmt.Errorf("message %d was reported with %d bytes, ready at %d µs; it has %d, ready at %d µs", row.Message, own[0].Size, own[0].ReadyUs, row.Size, row.ReadyUs)
			}
			row, own = own[0], own[1:]
		}
		out = append(out, row)
	}
	if len(own) > 0 {
		return nil, fmt.Errorf("message %d was reported, which there is not", own[0].Message)
	}
	return out, nil
}

// judgeMessages fills in the counts and quantiles of the messages that became ready
// in the measured interval.
func judgeMessages(row *store.Flow, own []store.Message, from, to int64) {
	n := int64(0)
	var delays []int64
	for _, m := range own {
		if m.ReadyUs < from || m.ReadyUs >= to {
			continue
		}
		n++
		if m.DelayUs.OK {
			delays = append(delays, m.DelayUs.V)
		}
	}
	row.Messages, row.MessagesDelivered = store.Some(n), store.Some(int64(len(delays)))
	if len(delays) == 0 {
		return
	}
	slices.Sort(delays)
	row.DelayP50Us, row.DelayP95Us, row.DelayP99Us = store.Some(quantile(delays, 0.5)), store.Some(quantile(delays, 0.95)), store.Some(quantile(delays, 0.99))
}

// quantile is definition 7 of Hyndman and Fan, as reports have it: by linear
// interpolation between the order statistics at (n−1)p.
func quantile(sorted []int64, p float64) int64 {
	h := float64(float64(len(sorted)-1) * p)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + int64(float64((h-float64(i))*float64(sorted[i+1]-sorted[i])))
}
