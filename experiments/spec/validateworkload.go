package spec

import "fmt"

// The checks of what a group of flows carries, and by what.

// carried checks a group's workload against its transport and the options of
// either.
func (k *check) carried(f *Flow, at string) {
	t := f.Transport.family()
	if t == nil {
		return // reported already
	}
	if t.pending != "" {
		k.at(at+".transport", Problem{What: "not available in this version: " + t.pending, Allowed: "another transport"})
	}
	if err := f.Transport.check(f.Workload); err != nil {
		k.at(at+".transport", Problem{What: err.Error(), Allowed: "another transport or another workload"})
	}
	if !t.dscp {
		k.only(fmt.Sprintf("%s chooses the code points of its packets itself", f.Transport), at+".dscp")
	}
	switch {
	case t.name == FamilyExec:
		for _, end := range []string{"send", "receive"} {
			if !k.given("transports.exec." + end) {
				k.at(at+".transport", Problem{What: "exec needs the program of the key transports.exec." + end, Allowed: "transports: {exec: {send: [program, argument], receive: [program, argument]}}"})
			}
		}
	case (t.name == FamilyIperf3 || t.name == FamilyIperf2) && f.Transport.Variant() == "udp":
		if !k.given("transports.iperf.rate") {
			k.at(at+".transport", Problem{What: string(f.Transport) + " needs the key transports.iperf.rate", Allowed: "transports: {iperf: {rate: 1mbit}}"})
		}
	}
	if w := &f.Workload; w.Kind == Web && w.MaxSize < w.ObjectSize {
		k.at(at+".workload.max-size", Problem{What: fmt.Sprintf("less than the mean size, %v", w.ObjectSize), Allowed: "more than object-size"})
	}
}

// messages bounds the messages that a run is expected to have, each of which is a
// row of its results.
func (k *check) messages() {
	sum := 0.0
	transfers := 0
	for i := range k.c.Flows {
		f := &k.c.Flows[i]
		if transfers += f.Number() * len(f.Workload.Transfers); transfers > MaxAllTransfers {
			k.at(fmt.Sprintf("flows[%d].workload", i), Problem{What: fmt.Sprintf("with these flows the nodes' orders would hold %d messages of traces", transfers),
				Allowed: fmt.Sprintf("up to %d, those of each flow counted: fewer flows, or shorter traces", MaxAllTransfers)})
			return
		}
		if sum += f.Messages(k.c.Warmup, k.c.Duration) * float64(f.Number()); sum > MaxMessages {
			k.at(fmt.Sprintf("flows[%d].workload", i), Problem{What: fmt.Sprintf("with these flows a run would have about %.3g messages", sum),
				Allowed: fmt.Sprintf("up to %d in a run: fewer flows, a shorter run, or rarer messages", MaxMessages)})
			return
		}
	}
}
