package spec

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The checks of flows, and of what they ask of transports and back ends.

func (k *check) flows() {
	total := 0
	variant := Transport("")
	for i := range k.c.Flows {
		f := &k.c.Flows[i]
		at := fmt.Sprintf("flows[%d]", i)
		if f.Pairs.Random() {
			if f.Count == 0 && k.given(at+".pairs") && !k.given(at+".count") {
				k.at(at, Problem{What: "random pairs need the key count", Allowed: "count: 30"})
			}
		} else {
			if f.Count != 0 && f.Count != len(f.Pairs.Listed) {
				k.at(at+".count", Problem{What: fmt.Sprintf("%d pairs are listed", len(f.Pairs.Listed)), Allowed: "leave it out: the list says it"})
			}
			k.only("the pairs are listed", at+".hops")
			f.Count = len(f.Pairs.Listed)
			k.pairs(f, at+".pairs")
		}
		k.hops(f, at+".hops")
		k.carried(f, at)
		if f.Transport.Family() == FamilyHop {
			if variant != "" && variant != f.Transport {
				k.at(at+".transport", Problem{What: "runs beside " + string(variant) + ", but a node has one Hop with one set of mechanisms", Allowed: "one of the two in a point of the matrix"})
			}
			variant = f.Transport
		}
		k.times(f, at)
		total += f.Count
		if f.Workload.Kind == Web {
			total += f.Count // their requests are flows of their own
		}
	}
	k.queues()
	k.messages()
	if total > MaxFlows {
		k.at("flows", Problem{Value: fmt.Sprint(total), What: "too many flows", Allowed: fmt.Sprintf("up to %d", MaxFlows)})
	}
}

// times checks when flows begin and end.
func (k *check) times(f *Flow, at string) {
	end := k.c.Warmup + k.c.Duration
	begin, why := f.Begin(k.c.Warmup), "at the begin of the run"
	switch {
	case f.Start != nil:
		why = "at " + f.Start.String()
		if k.c.Duration > 0 && *f.Start >= end {
			k.at(at+".start", Problem{What: "not before the end of the run", Allowed: fmt.Sprintf("less than %v, warm-up and measured interval together", end)})
			return
		}
	case f.Workload.BeginsMeasured():
		why = fmt.Sprintf("with the measured interval, at %v", k.c.Warmup)
	}
	switch {
	case f.Stop == nil:
	case *f.Stop <= begin:
		k.at(at+".stop", Problem{What: "not after the flow's begin, " + why, Allowed: "more than " + begin.String() + ", or another start"})
	case *f.Stop <= k.c.Warmup:
		k.at(at+".stop", Problem{What: fmt.Sprintf("the flow would be over before the measured interval begins, at %v", k.c.Warmup), Allowed: "more than " + k.c.Warmup.String()})
	}
}

func (k *check) transports() {
	t := &k.c.Transports.TCP
	if t.ReceiveWindow > 0 && t.ReceiveBuffer > 0 {
		mss := t.MSS
		if mss == 0 {
			mss = defaultMSS
		}
		if window := vtime.Bytes(t.ReceiveWindow) * mss; window > t.ReceiveBuffer {
			k.at("transports.tcp.receive-window", Problem{What: fmt.Sprintf("%d segments of %v are %v, more than the receive-buffer holds", t.ReceiveWindow, mss, window),
				Allowed: fmt.Sprintf("up to %d, or a larger receive-buffer", int(t.ReceiveBuffer/mss))})
		}
	}
	k.hostwide()
	if b := &k.c.Transports.Bundle; b.Bundle > b.Limit-bundleHeaders {
		k.at("transports.bundle.limit", Problem{What: fmt.Sprintf("no bundle of %v with its headers would fit", b.Bundle),
			Allowed: fmt.Sprintf("%v or more, or smaller bundles", b.Bundle+bundleHeaders)})
	}
}

// hostwide refuses options of TCP that are a node's own, and so hold for whatever
// else uses TCP there, beside flows that are something else and use it.
func (k *check) hostwide() {
	t := &k.c.Transports.TCP
	var other Transport
	for i := range k.c.Flows {
		switch k.c.Flows[i].Transport.Family() {
		case FamilyHopByHopTCP, FamilyBundle, FamilyIperf3, FamilyIperf2, FamilyExec:
			other = k.c.Flows[i].Transport
		}
	}
	if other == "" {
		return
	}
	for _, o := range []struct {
		key   string
		given bool
	}{{"sack", !t.SACK}, {"timestamps", !t.Timestamps}, {"quick-ack", t.QuickAck}} {
		if o.given {
			k.at("transports.tcp."+o.key, Problem{What: fmt.Sprintf("is a setting of the nodes, and would hold for the flows of %s as well", other),
				Allowed: "leave it out, or run these flows in an experiment, or a point, of their own"})
		}
	}
}

// bundleHeaders is more than a bundle is longer than its payload (agent/transport/bundle/cut).
const bundleHeaders = 1 * vtime.KiB

// defaultMSS is TCP's segment on a link of 1500 bytes with timestamps.
const defaultMSS = 1448 * vtime.Byte

func (k *check) backends() {
	for i, b := range k.c.Backends {
		if slices.Contains(k.c.Backends[:i], b) {
			k.at(fmt.Sprintf("backends[%d]", i), Problem{What: "the back end is listed twice", Allowed: "each back end once"})
		}
		for j, f := range k.c.Flows {
			if b == BackendSim && f.Transport.External() {
				k.at(fmt.Sprintf("flows[%d].transport", j), Problem{What: fmt.Sprintf("%s needs a kernel, and the back end sim has none", f.Transport),
					Allowed: "backends: [netns], or a transport that sim carries"})
			}
		}
	}
}

func (k *check) pairs(f *Flow, at string) {
	names := k.c.Topology.NodeNames()
	for i, p := range f.Pairs.Listed {
		at := fmt.Sprintf("%s[%d]", at, i)
		for _, end := range []struct{ key, name string }{{"src", p.Src}, {"dst", p.Dst}} {
			if end.name != "" && len(names) > 0 && !slices.Contains(names, end.name) {
				k.at(at+"."+end.key, Problem{What: "no node has this name", Allowed: names[0] + " … " + names[len(names)-1], Hint: suggest(end.name, names)})
			}
		}
		if p.Src == p.Dst && p.Src != "" {
			k.at(at, Problem{What: "source and destination are the same node", Allowed: "two nodes"})
		}
	}
}

func (k *check) hops(f *Flow, at string) {
	nodes := len(k.c.Topology.NodeNames())
	for _, c := range f.Hops.Classes {
		if nodes > 0 && c.Min >= nodes {
			k.at(at, Problem{What: fmt.Sprintf("%d nodes have no routes of %d hops", nodes, c.Min), Allowed: fmt.Sprintf("up to %d", nodes-1)})
		}
	}
}
