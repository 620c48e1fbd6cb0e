package topology

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Pipe is a wired link between two nodes.
type Pipe struct {
	ID         int
	Ends       [2]int    // node ids
	Interfaces [2]string // the link's interface at either end
	// Slot is the interface's number among the node's pipe interfaces, from 0,
	// at either end.
	Slot [2]int
	// Config describes either direction: Config[0] from Ends[0] to Ends[1].
	Config [2]pipe.Config
	// Emulator is who makes the link on namespaces.
	Emulator spec.Emulator
}

// Egress is how a packet leaves a node for its next hop.
type Egress struct {
	// Pipe is the index in Topology.Pipes, or RadioEgress; End is the node's end
	// of it, so that the direction is Pipes[Pipe].Config[End].
	Pipe, End int
	// Next is the node that takes the frame from the link: the next hop
	// itself, or the first of the bridges before it.
	Next int
}

// RadioEgress is Egress.Pipe of what leaves through the radio.
const RadioEgress = -1

// ETX is the expected number of times that a packet has to be sent until it
// and its answer both arrive: 1/((1−loss there)·(1−loss back)), for the
// long-run loss.
func (p *Pipe) ETX() float64 {
	return etx.Link(1-p.Config[0].Loss.Mean(), 1-p.Config[1].Loss.Mean())
}

// pipes lays the wired links of a Config between the nodes, as one repetition has
// them.
func (t *Topology) pipes(c *spec.Config, repetition int) error {
	names := c.Topology.PipeInterfaces()
	slots := make([]int, len(t.Nodes))
	for i := range c.Topology.Pipes {
		from := &c.Topology.Pipes[i]
		p := Pipe{ID: i, Interfaces: names[i], Emulator: from.Emulator}
		for e, name := range from.Ends {
			n := t.index(name)
			if n < 0 {
				return fmt.Errorf("topology.pipes[%d].ends: there is no node %s", i, name)
			}
			p.Ends[e], p.Slot[e] = n, slots[n]
			slots[n]++
		}
		random := des.NewStream(spec.RepetitionSeed(c.Seed, repetition), fmt.Sprintf("topology/pipes/%d/trace", i)).Float64()
		for e, d := range []*spec.Direction{&from.Direction, from.Backward()} {
			var err error
			if p.Config[e], err = direction(d); err == nil {
				if d.Trace != nil && d.Trace.RandomOffset {
					p.Config[e].TraceOffset = share(p.Config[e].Trace.Period(), random)
				}
				err = p.Config[e].Validate()
			}
			if err != nil {
				return fmt.Errorf("topology.pipes[%d], from %s to %s: %w", i, from.Ends[e], from.Ends[1-e], err)
			}
		}
		t.Pipes = append(t.Pipes, p)
	}
	return nil
}

// share is a share, below 1, of a trace, in the whole milliseconds of its times.
func share(of vtime.Duration, x float64) vtime.Duration {
	return vtime.Duration(float64(x*float64(of/vtime.Millisecond))) * vtime.Millisecond
}

var distributions = map[spec.Distribution]pipe.Distribution{
	spec.Constant: pipe.Constant, spec.Uniform: pipe.Uniform, spec.Normal: pipe.Normal,
	spec.Exponential: pipe.Exponential, spec.Pareto: pipe.Pareto,
}

// direction translates one direction of a pipe.
func direction(d *spec.Direction) (pipe.Config, error) {
	c := pipe.Config{Rate: d.Rate, Overhead: d.Overhead, Delay: d.Delay, Duplicate: d.Duplicate}
	if j := d.Jitter; j != nil {
		c.Jitter = pipe.Jitter{Distribution: distributions[j.Distribution], Spread: j.Spread, Overtake: j.Overtake}
	}
	if l := d.Loss; l != nil {
		c.Loss, c.LossAfterQueue = loss(l), l.AfterQueue
	}
	if q := d.Queue; q != nil {
		c.Queue = pipe.Queue{Packets: q.Packets, Bytes: q.Bytes}
	}
	if r := d.Reorder; r != nil {
		c.Reorder = pipe.Reorder{Share: r.Share, Extra: r.Extra}
	}
	if tr := d.Trace; tr != nil {
		if c.Trace, c.TraceOffset = tr.Capacity, tr.Offset; tr.Capacity == nil {
			return c, fmt.Errorf("the trace %s was left unread: the experiment was loaded without its files", tr.File)
		}
	}
	for _, ch := range d.Schedule {
		to := pipe.Change{At: vtime.Time(ch.At), Up: ch.Up, Rate: ch.Rate, Delay: ch.Delay}
		if ch.Loss != nil {
			l := loss(ch.Loss)
			to.Loss = &l
		}
		if ch.Queue != nil {
			to.Queue = &pipe.Queue{Packets: ch.Queue.Packets, Bytes: ch.Queue.Bytes}
		}
		c.Schedule = append(c.Schedule, to)
	}
	return c, nil
}

func loss(l *spec.PipeLoss) pipe.Loss {
	return pipe.Loss{Good: l.Good, Bad: l.Bad, ToBad: l.ToBad, ToGood: l.ToGood}
}
