package topology

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// DescribeDirection tells one direction of a pipe in a line for people:
// "10mbit, 20ms, queue 100 packets, loss 1%".
func DescribeDirection(c *pipe.Config) string {
	var s []string
	add := func(format string, a ...any) { s = append(s, fmt.Sprintf(format, a...)) }
	switch {
	case c.Trace != nil:
		add("trace of %v, mean %v", c.Trace.Period(), c.Trace.Rate())
		if c.TraceOffset > 0 {
			add("from its %v on", c.TraceOffset)
		}
	case c.Rate > 0:
		add("%v", c.Rate)
	default:
		add("unlimited")
	}
	delay := "no delay"
	if c.Delay > 0 {
		delay = c.Delay.String()
	}
	if j := c.Jitter; j.Distribution != pipe.Constant {
		delay += fmt.Sprintf(" ± %v %v", j.Spread, j.Distribution)
		if j.Overtake {
			delay += ", overtaking"
		}
	}
	s = append(s, delay)
	switch q := c.Queue; {
	case q.Packets > 0 && q.Bytes > 0:
		add("queue %d packets or %v", q.Packets, q.Bytes)
	case q.Packets > 0:
		add("queue %d packets", q.Packets)
	case q.Bytes > 0:
		add("queue %v", q.Bytes)
	}
	if m := c.Loss.Mean(); m > 0 {
		loss := fmt.Sprintf("loss %.3g%%", 100*m)
		if c.Loss.ToBad > 0 {
			loss += fmt.Sprintf(" in bursts of %.3g packets", 1/float64(c.Loss.ToGood))
		}
		if c.LossAfterQueue {
			loss += " after the queue"
		}
		s = append(s, loss)
	}
	if c.Reorder.Share > 0 {
		add("%v held back by %v", c.Reorder.Share, c.Reorder.Extra)
	}
	if c.Duplicate > 0 {
		add("%v doubled", c.Duplicate)
	}
	if c.Overhead > 0 {
		add("%v a packet more", c.Overhead)
	}
	for i, ch := range c.Schedule {
		if i == 4 {
			add("… %d more changes", len(c.Schedule)-i)
			break
		}
		s = append(s, describeChange(&ch))
	}
	return strings.Join(s, ", ")
}

func describeChange(ch *pipe.Change) string {
	var s []string
	if ch.Up != nil {
		s = append(s, map[bool]string{true: "up", false: "down"}[*ch.Up])
	}
	if ch.Rate != nil {
		s = append(s, ch.Rate.String())
	}
	if ch.Delay != nil {
		s = append(s, "delay "+ch.Delay.String())
	}
	if ch.Loss != nil {
		s = append(s, fmt.Sprintf("loss %.3g%%", 100*ch.Loss.Mean()))
	}
	if ch.Queue != nil {
		s = append(s, "another queue")
	}
	return "at " + vtime.Duration(ch.At).String() + " " + strings.Join(s, " ")
}

// InterfaceNames returns the interfaces of a node: the radio's first, then the
// pipes' in the order of their slots.
func (t *Topology) InterfaceNames(node int) []string {
	var out []string
	if t.Nodes[node].Radio {
		out = append(out, "wlan0")
	}
	for _, p := range t.Pipes {
		for e, n := range p.Ends {
			if n == node {
				out = append(out, p.Interfaces[e])
			}
		}
	}
	return out
}

// maxListed bounds the pipes that a summary lists.
const maxListed = 8

func (t *Topology) describePipes(b *strings.Builder) {
	for i := range t.Pipes {
		p := &t.Pipes[i]
		if i == maxListed {
			fmt.Fprintf(b, "… and %d more wires\n", len(t.Pipes)-i)
			break
		}
		there, back := DescribeDirection(&p.Config[0]), DescribeDirection(&p.Config[1])
		fmt.Fprintf(b, "wire %s (%s) – %s (%s): %s", t.Nodes[p.Ends[0]].Name, p.Interfaces[0], t.Nodes[p.Ends[1]].Name, p.Interfaces[1], there)
		if back != there {
			fmt.Fprintf(b, "; back: %s", back)
		}
		b.WriteByte('\n')
	}
	var bridges []string
	for i, n := range t.Nodes {
		if n.Bridge {
			bridges = append(bridges, fmt.Sprintf("%s (%s)", n.Name, strings.Join(t.InterfaceNames(i), " ")))
		}
	}
	if len(bridges) > maxListed {
		bridges = append(bridges[:maxListed], fmt.Sprintf("… %d more", len(bridges)-maxListed))
	}
	if len(bridges) > 0 {
		fmt.Fprintf(b, "bridges: %s\n", strings.Join(bridges, ", "))
	}
}
