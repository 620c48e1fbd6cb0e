package plan

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

// busyProbes is the share of the time that probes may take of a channel on which
// all nodes hear each other; above it those that collide show in what is measured.
const busyProbes = 0.05

// surveyWarnings looks at how a point's links are to be measured.
func surveyWarnings(c *spec.Config) []string {
	r := &c.Routing
	if r.Kind != spec.RoutingMeasured {
		return nil
	}
	var w []string
	radios := 0
	for _, n := range c.Topology.AllNodes() {
		if n.Radio {
			radios++
		}
	}
	if load := float64(radios) * probeAirtime(c).Seconds() / r.Period.Seconds(); load > busyProbes {
		w = append(w, fmt.Sprintf("routing.period: %v: probes of %v at %v from %d nodes take up to %.0f %% of the channel where all hear each other: some collide, and links seem worse than they are; a longer period or smaller probes",
			r.Period, r.Size, c.ProbeRate(), radios, 100*load))
	}
	n := r.Probes
	if r.Window > 0 {
		n = r.Window
	}
	if n < 50 {
		low, high := etx.Wilson(n/2, n)
		w = append(w, fmt.Sprintf("routing: %d probes leave a delivery of 50 %% anywhere between %.0f %% and %.0f %%: use 100 or more for conclusions", n, 100*low, 100*high))
	}
	return w
}

// probeAirtime is about how long a probe takes of the air: preamble and header at
// their rates, LLC, MAC and FCS with the packet, and the wait before it.
func probeAirtime(c *spec.Config) vtime.Duration {
	const around = 36 // bytes of LLC/SNAP, MAC header and FCS
	d := c.ProbeRate().TxTime(c.Routing.Size + around)
	switch {
	case c.Radio.Standard != spec.Standard11b:
		return d + 20*vtime.Microsecond + 100*vtime.Microsecond
	case c.Radio.Preamble == spec.PreambleShort:
		return d + 96*vtime.Microsecond + 360*vtime.Microsecond
	}
	return d + 192*vtime.Microsecond + 360*vtime.Microsecond
}

// SurveyTime is how long the links are measured before the first run, where
// virtual time is real time.
func (p *Plan) SurveyTime() (networks int, total vtime.Duration) {
	for _, n := range p.Surveys() {
		c := n.Run.Config().Routing
		networks++
		total += vtime.Duration(c.Probes) * c.Period
	}
	return networks, total
}
