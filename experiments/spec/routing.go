package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// RoutingKind names how routes come to be. They are frozen for the run in any
// case.
type RoutingKind string

// The kinds of routing.
const (
	// RoutingStatic computes shortest paths from the radio model and the wires.
	RoutingStatic RoutingKind = "static"
	// RoutingMeasured measures the radio links by probes once, before the first
	// run of a campaign.
	RoutingMeasured RoutingKind = "measured"
)

// Metric names a path metric.
type Metric string

// The path metrics.
const (
	MetricETX  Metric = "etx"
	MetricHops Metric = "hops"
)

// Routing says how paths are chosen.
type Routing struct {
	// Kind is the kind of routing: static routes are computed from the radio model and the wires, measured ones from probes that are sent before the first run; both are frozen.
	Kind RoutingKind `key:"kind" enum:"static|measured" default:"static"`
	// Metric is what the shortest paths minimise.
	Metric Metric `key:"metric" enum:"etx|hops" default:"etx"`
	// MinDelivery is the delivery probability that a link needs in both directions to carry a route.
	MinDelivery vtime.Fraction `key:"min-delivery" min:"1%" max:"100%" default:"10%"`
	// Probes is the number of broadcast probes that each node sends to measure its links.
	Probes int `key:"probes" min:"10" max:"1000" default:"100"`
	// Period is the mean time between two probes of a node; each is moved by up to a quarter of it at random.
	Period vtime.Duration `key:"period" min:"10ms" max:"10min" default:"1s"`
	// Size is the size of a probe as an IP packet.
	Size vtime.Bytes `key:"size" min:"48B" max:"1500B" default:"134B"`
	// Rate is the rate at which probes are sent; the default is the basic rate, as that of every broadcast.
	Rate vtime.BitRate `key:"rate" min:"1mbit" max:"54mbit"`
	// Window is the number of a node's latest probes that count; the default is all of them.
	Window int `key:"window" min:"10" max:"1000"`
	// Hysteresis keeps links out of the routes that come and go.
	Hysteresis *Hysteresis `key:"hysteresis"`
}

// Hysteresis is the link hysteresis of OLSR (RFC 3626, section 14): a direction's
// quality is smoothed over its probes.
type Hysteresis struct {
	// Scaling is the weight of the newest probe.
	Scaling vtime.Fraction `key:"scaling" min:"1%" max:"100%" default:"50%"`
	// High is the quality above which a direction is established.
	High vtime.Fraction `key:"high" min:"1%" max:"100%" default:"80%"`
	// Low is the quality below which an established direction is given up.
	Low vtime.Fraction `key:"low" min:"0%" max:"99%" default:"30%"`
}

// ProbeRate is the rate at which the probes of measured routing are sent.
func (c *Config) ProbeRate() vtime.BitRate {
	if c.Routing.Rate > 0 {
		return c.Routing.Rate
	}
	return c.Radio.BasicRate
}

func (k *check) routing() {
	r := &k.c.Routing
	const at = "routing"
	if r.Kind != RoutingMeasured {
		k.only("static routes are computed, not measured", at+".probes", at+".period", at+".size", at+".rate", at+".window", at+".hysteresis")
		return
	}
	if k.given("topology.nodes") || k.given("topology.generate") {
		all := k.c.Topology.AllNodes()
		if len(all) > 0 && !slices.ContainsFunc(all, func(n Node) bool { return n.Radio }) {
			k.at(at+".kind", Problem{What: "no node has a radio, and wires are not measured", Allowed: "kind: static"})
		}
	}
	if r.Window > r.Probes {
		k.at(at+".window", Problem{What: fmt.Sprintf("more than the %d probes", r.Probes), Allowed: fmt.Sprintf("up to %d", r.Probes)})
	}
	rates := k.c.Radio.Standard.Rates()
	if r.Rate > 0 && !slices.Contains(rates, r.Rate) {
		var list []string
		for _, x := range rates {
			list = append(list, x.String())
		}
		k.at(at+".rate", Problem{What: "not a rate of " + string(k.c.Radio.Standard), Allowed: strings.Join(list, ", ")})
	}
	if h := r.Hysteresis; h != nil && h.Low >= h.High {
		k.at(at+".hysteresis", Problem{What: fmt.Sprintf("low: %v is not below high: %v", h.Low, h.High), Allowed: "low: 30%, high: 80%"})
	}
}
