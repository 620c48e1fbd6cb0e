package backend

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// PipeRows are the rows of a run's wired links, two for each. stats has the
// counters of the measured interval, in the order of the topology's pipes and by
// end; nil where there are none.
func PipeRows(s *plan.Scenario, stats [][2]pipe.Stats) []store.Pipe {
	var rows []store.Pipe
	for i := range s.Topology.Pipes {
		p := &s.Topology.Pipes[i]
		for e := range p.Ends {
			row := pipeRow(&p.Config[e])
			row.Pipe, row.Src, row.Dst, row.Interface = p.ID, p.Ends[e], p.Ends[1-e], p.Interfaces[e]
			if i < len(stats) {
				fillPipe(&row, &stats[i][e], s.Config().Duration)
				if p.Config[e].Trace != nil {
					row.BusyUs = store.Opt[int64]{} // opportunities have no length
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func pipeRow(c *pipe.Config) store.Pipe {
	row := store.Pipe{DelayUs: store.Some(int64(c.Delay) / 1000), Loss: store.Some(c.Loss.Mean()), Setting: pipeSetting(c)}
	if c.Rate > 0 {
		row.RateBps = store.Some(int64(c.Rate))
	}
	if c.Queue.Packets > 0 {
		row.QueuePackets = store.Some(int64(c.Queue.Packets))
	}
	if c.Queue.Bytes > 0 {
		row.QueueBytes = store.Some(int64(c.Queue.Bytes))
	}
	return row
}

func fillPipe(row *store.Pipe, s *pipe.Stats, measured vtime.Duration) {
	row.Entered, row.Delivered = store.Some(int64(s.Entered)), store.Some(int64(s.Delivered))
	row.DeliveredBytes = store.Some(int64(s.DeliveredBytes))
	row.Lost, row.DropsQueue = store.Some(int64(s.LostPackets)), store.Some(int64(s.Overflows))
	row.Duplicates, row.HeldBack = store.Some(int64(s.Duplicates)), store.Some(int64(s.HeldBack))
	row.BusyUs = store.Some(int64(s.BusyTime) / 1000)
	row.QueueMaxPackets = store.Some(int64(s.MaxQueued))
	if measured > 0 {
		row.QueueMeanPackets = store.Some(s.QueueIntegral / measured.Seconds())
	}
}

// pipeSetting says in words what of a direction has no column of its own.
func pipeSetting(c *pipe.Config) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if j := c.Jitter; j.Distribution != pipe.Constant && j.Spread > 0 {
		overtake := ""
		if j.Overtake {
			overtake = ", packets overtake"
		}
		add("jitter %v %v%s", j.Distribution, j.Spread, overtake)
	}
	if c.Loss.ToBad > 0 {
		add("loss %s", lossText(c.Loss))
	}
	if c.LossAfterQueue && c.Loss != (pipe.Loss{}) {
		add("lost after the queue")
	}
	if c.Reorder.Share > 0 {
		add("%v held back by %v", c.Reorder.Share, c.Reorder.Extra)
	}
	if c.Duplicate > 0 {
		add("%v twice", c.Duplicate)
	}
	if c.Overhead > 0 {
		add("overhead %v", c.Overhead)
	}
	if c.Trace != nil {
		add("trace of %v on average, period %v, from %v on", c.Trace.Rate(), c.Trace.Period(), c.TraceOffset)
	}
	for i := range c.Schedule {
		add("at %v %s", vtime.Duration(c.Schedule[i].At), changeText(&c.Schedule[i]))
	}
	return strings.Join(out, "; ")
}

func lossText(l pipe.Loss) string {
	if l.ToBad == 0 {
		return l.Good.String()
	}
	return fmt.Sprintf("%v good, %v bad, to bad %v, to good %v", l.Good, l.Bad, l.ToBad, l.ToGood)
}

func changeText(ch *pipe.Change) string {
	var out []string
	if ch.Up != nil {
		out = append(out, map[bool]string{true: "up", false: "down"}[*ch.Up])
	}
	if ch.Rate != nil {
		out = append(out, fmt.Sprintf("rate %v", *ch.Rate))
	}
	if ch.Delay != nil {
		out = append(out, fmt.Sprintf("delay %v", *ch.Delay))
	}
	if ch.Loss != nil {
		out = append(out, "loss "+lossText(*ch.Loss))
	}
	if q := ch.Queue; q != nil {
		if q.Packets > 0 {
			out = append(out, fmt.Sprintf("queue %d packets", q.Packets))
		}
		if q.Bytes > 0 {
			out = append(out, fmt.Sprintf("queue %v", q.Bytes))
		}
	}
	return strings.Join(out, ", ")
}
