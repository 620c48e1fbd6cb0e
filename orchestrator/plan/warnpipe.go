package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

// packet is what queues are compared by: a full IP packet.
const packet = 1500 * vtime.Byte

// shallow is the share of the bandwidth-delay product below which a queue is
// worth a word: a quarter of it keeps loss-based congestion control from
// filling the link (Villamizar and Song 1994; Appenzeller, Keslassy and McKeown
// 2004 for many flows).
const shallow = 0.25

// pipeWarnings looks at the wires of all points. Of each direction it tells the
// worst, and in how many points it is found.
func pipeWarnings(points []spec.Point) []string {
	type direction struct{ pipe, end int }
	type finding struct {
		direction
		share  float64
		text   string
		points int
	}
	var found []*finding
	var late, down []string
	for _, pt := range points {
		c := pt.Config
		length := c.Warmup + c.Duration
		for i := range c.Topology.Pipes {
			p := &c.Topology.Pipes[i]
			rtt := p.Delay + p.Backward().Delay
			for end, d := range []*spec.Direction{&p.Direction, p.Backward()} {
				where := fmt.Sprintf("topology.pipes[%d], from %s to %s", i, p.Ends[end], p.Ends[1-end])
				for _, ch := range d.Schedule {
					if ch.At >= length {
						late = append(late, fmt.Sprintf("%s: the change at %v comes after the end of the run, at %v", where, ch.At, length))
					}
				}
				if off, ok := downThroughout(d.Schedule, c.Warmup, length); ok {
					down = append(down, fmt.Sprintf("%s: the link is down from %v on, in the whole of the measured interval: all that arrives is what was on its way", where, off))
				}
				rate := capacity(d)
				product := float64(rate) / 8 * rtt.Seconds() / float64(packet)
				queue := depth(d.Queue)
				if !(product >= 1 && queue < shallow*product) {
					continue
				}
				k := direction{i, end}
				n := slices.IndexFunc(found, func(f *finding) bool { return f.direction == k })
				if n < 0 {
					n = len(found)
					found = append(found, &finding{direction: k, share: math.Inf(1)})
				}
				f := found[n]
				f.points++
				if s := queue / product; s < f.share {
					f.share = s
					f.text = fmt.Sprintf("%s: the queue holds %.0f packets of 1500 B, %.2g %% of the bandwidth-delay product (%v × %v = %.0f packets): one flow of loss-based TCP will not fill the link",
						where, queue, 100*s, rate, rtt, product)
				}
			}
		}
	}
	var w []string
	for i, f := range found {
		if i == 5 {
			w = append(w, fmt.Sprintf("%d more directions of wires have queues far below their bandwidth-delay product", len(found)-i))
			break
		}
		if f.points > 1 {
			f.text += fmt.Sprintf(" (the worst of %d points)", f.points)
		}
		w = append(w, f.text)
	}
	return append(append(w, unique(down)...), unique(late)...)
}

// downThroughout tells since when a link is down that is so from the begin of the
// measured interval to its end.
func downThroughout(schedule []spec.PipeChange, warmup, end vtime.Duration) (since vtime.Duration, down bool) {
	for _, ch := range schedule {
		switch {
		case ch.Up == nil || ch.At >= end || down == !*ch.Up:
			continue // no change of that
		case ch.At > warmup:
			return 0, false // it is up in one part of the interval, down in another
		}
		since, down = ch.At, !*ch.Up
	}
	return since, down
}

// depth is the length of a queue in full packets.
func depth(q *spec.PipeQueue) float64 {
	n := math.Inf(1)
	if q != nil && q.Packets > 0 {
		n = float64(q.Packets)
	}
	if q != nil && q.Bytes > 0 {
		n = min(n, float64(q.Bytes/packet))
	}
	return n
}

// flowWarnings looks at when flows begin and end.
func flowWarnings(c *spec.Config) []string {
	var w []string
	for i, f := range c.Flows {
		if f.Stop != nil && *f.Stop > c.Warmup+c.Duration {
			w = append(w, fmt.Sprintf("flows[%d].stop: %v is after the end of the run, at %v: the flows run to its end", i, *f.Stop, c.Warmup+c.Duration))
		}
		if f.Workload.Kind == spec.Sized && f.Start != nil && *f.Start < c.Warmup {
			w = append(w, fmt.Sprintf("flows[%d].start: the transfer begins at %v, in the warm-up of %v: what arrives before the measured interval is no part of its goodput, which is 0 if all of it does; the completion time holds", i, *f.Start, c.Warmup))
		}
	}
	return w
}

// bottleneck is the least rate that everything has to pass: the radio's, or in a
// network without one the slowest wire's, of its faster direction; 0 when nothing
// has a limit.
func bottleneck(c *spec.Config) vtime.BitRate {
	if wiredNodes(c) < len(c.Topology.AllNodes()) {
		return c.Radio.Rate
	}
	least := vtime.BitRate(0)
	for i := range c.Topology.Pipes {
		p := &c.Topology.Pipes[i]
		there, back := capacity(&p.Direction), capacity(p.Backward())
		rate := max(there, back)
		if there == 0 || back == 0 {
			continue // one direction has no limit
		}
		if least == 0 || rate < least {
			least = rate
		}
	}
	return least
}

// capacity is the rate of one direction, its trace's mean; 0 without a limit.
func capacity(d *spec.Direction) vtime.BitRate {
	if d.Trace != nil && d.Trace.Capacity != nil {
		return d.Trace.Capacity.Rate()
	}
	return d.Rate
}
