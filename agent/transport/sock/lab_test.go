//go:build linux

package sock_test

import (
	"testing"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

const second = vtime.Time(vtime.Second)

func continual(id int, transport string, src, dst int) proto.Flow {
	return proto.Flow{ID: id, Transport: transport, Src: src, Dst: dst, Workload: workload.Spec{Kind: workload.Continual}}
}

func sized(id int, transport string, src, dst int, size vtime.Bytes) proto.Flow {
	return proto.Flow{ID: id, Transport: transport, Src: src, Dst: dst, Workload: workload.Spec{Kind: workload.Sized, Size: size}}
}

// goodput in bits per second over the measured interval.
func goodput(r proto.FlowResult) float64 {
	return float64(r.Bytes) * 8 / r.MeasuredTo.Sub(r.MeasuredFrom).Seconds()
}
