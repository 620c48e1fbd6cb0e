package topology

import (
	"reflect"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// TestVariantsOfUDPChangeTheirQueue and no other.
func TestVariantsOfUDPChangeTheirQueue(t *testing.T) {
	const chain = "{generate: {kind: chain, nodes: 3, spacing: 200m}}"
	mac := func(extra string, transports ...string) (wifi.MAC, error) {
		c := config(t, chain, oneFlow, disk+extra)
		c.Flows = nil
		for _, name := range transports {
			c.Flows = append(c.Flows, spec.Flow{Transport: spec.Transport(name)})
		}
		return MAC(c)
	}
	plain := wifi.DefaultMAC(wifi.StandardB)
	for _, k := range []struct {
		name string
		ack  wifi.AckPolicy
		txop vtime.Duration
	}{
		{"udp", wifi.AckNormal, 0}, {"udp/no-arq", wifi.AckNone, 0}, {"udp/txop", wifi.AckNormal, 8160 * vtime.Microsecond},
		{"udp/no-arq+txop", wifi.AckNone, 8160 * vtime.Microsecond},
	} {
		want := plain
		want.Queues[wifi.BE].Ack, want.Queues[wifi.BE].TXOP = k.ack, k.txop
		if m, err := mac("", k.name, "tcp/cubic", "hop"); err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %+v, %v, want %+v", k.name, m, err, want)
		}
	}
	// Left alone where the variants do not name it.
	if m, err := mac("mac: {queues: {be: {txop: 3008us, ack: none}}}\n", "udp"); err != nil || m.Queues[wifi.BE].TXOP != 3008*vtime.Microsecond || m.Queues[wifi.BE].Ack != wifi.AckNone {
		t.Errorf("%+v, %v", m.Queues[wifi.BE], err)
	}
	if m, err := mac("mac: {queues: {be: {txop: 3008us}}}\n", "udp/txop"); err != nil || m.Queues[wifi.BE].TXOP != 3008*vtime.Microsecond {
		t.Errorf("%+v, %v", m.Queues[wifi.BE], err)
	}
	// In the queue of the flow's code point.
	c := config(t, chain, oneFlow, disk)
	background := spec.DSCP(8)
	c.Flows = []spec.Flow{{Transport: "udp/no-arq", DSCP: &background}, {Transport: "udp/txop", Workload: spec.Workload{Kind: spec.VoIP}}}
	want := plain
	want.Queues[wifi.BK].Ack, want.Queues[wifi.VO].TXOP = wifi.AckNone, 8160*vtime.Microsecond
	if m, err := MAC(c); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
}
