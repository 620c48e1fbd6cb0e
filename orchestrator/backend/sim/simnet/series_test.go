package simnet

import (
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// sampled runs a lab and returns the largest value that each figure of the samples
// of a flow had at a side, and the last one.
func (l *lab) sampled(flow int, side proto.Side) (most, last proto.Sample) {
	for now := vtime.Time(0); now <= l.cfg.End; now += sec / 20 {
		l.runTo(now)
		l.net.Observe(now, func(_ int, s *proto.Sample) {
			if s.Flow != flow || s.Side != side {
				return
			}
			last = *s
			for _, v := range []struct{ to, of *int64 }{
				{&most.BlocksHeld, &last.BlocksHeld}, {&most.BlocksInFlight, &last.BlocksInFlight}, {&most.BlocksUnacked, &last.BlocksUnacked},
				{&most.Withheld, &last.Withheld}, {(*int64)(&most.Held), (*int64)(&last.Held)},
			} {
				*v.to = max(*v.to, *v.of)
			}
		})
	}
	l.finish()
	return most, last
}

// TestSamplesOfHop say what the node knows: two large flows towards one receiver
// wait for its grant in turn; a relay holds H blocks at most.
func TestSamplesOfHop(t *testing.T) {
	two := func() *lab {
		opt := proto.FlowOptions{BlockSize: 64 * vtime.KiB}
		return newLab(t, positions(0, 200, 400), testMAC(), nil,
			proto.Flow{Transport: "hop", Src: 0, Dst: 2, Path: []int{0, 1, 2}, Options: opt},
			proto.Flow{Transport: "hop", Src: 2, Dst: 1, Path: []int{2, 1}, Options: opt})
	}
	most, last := two().sampled(0, proto.Source)
	if most.BlocksInFlight != 1 || most.BlocksUnacked < 2 || most.Held < 2*64*vtime.KiB || last.BlocksDone < 10 || last.MicroBlocks != 0 {
		t.Errorf("source: at most %+v, at the end %+v", most, last)
	}
	most, last = two().sampled(0, proto.Relay)
	if most.BlocksHeld != 1 || most.Held != 64*vtime.KiB || most.Withheld != 1 || last.GrantsWithheld == 0 {
		t.Errorf("relay: at most %+v, at the end %+v", most, last)
	}
	_, last = two().sampled(1, proto.Destination)
	if last.GrantsWithheld == 0 || last.BlocksDone < 10 || last.Delivered == 0 {
		t.Errorf("destination of the other flow: %+v", last)
	}
	calls := newLab(t, positions(0, 200), testMAC(), nil, proto.Flow{Transport: "hop", Src: 0, Dst: 1, Workload: voipLoad})
	if _, last = calls.sampled(0, proto.Destination); last.MicroBlocks != last.BlocksDone || last.MicroBlocks < 500 {
		t.Errorf("a call: %+v", last)
	}
}

// TestSamplesOfUDP count what was sent, what came, and what must be lost.
func TestSamplesOfUDP(t *testing.T) {
	lossy := func() *lab {
		l := newLab(t, positions(0, 200, 400), testMAC(), nil, proto.Flow{Transport: "udp", Src: 0, Dst: 2, Path: []int{0, 1, 2}, Workload: poissonLoad})
		l.loss(1, 2, 0.1)
		return l
	}
	_, src := lossy().sampled(0, proto.Source)
	_, dst := lossy().sampled(0, proto.Destination)
	if src.DatagramsSent < 300 || dst.DatagramsLost < src.DatagramsSent/20 || src.DatagramsSent-dst.Datagrams-dst.DatagramsLost > 10 {
		t.Errorf("%d sent, %d came, %d lost", src.DatagramsSent, dst.Datagrams, dst.DatagramsLost)
	}
	if src.Sent < dst.Delivered || dst.Delivered == 0 || dst.Duplicates != 0 {
		t.Errorf("%v sent, %v delivered, %d twice", src.Sent, dst.Delivered, dst.Duplicates)
	}
}

// TestSamplesOfARelay: what a relay of hop-by-hop TCP holds.
func TestSamplesOfARelay(t *testing.T) {
	l := newLab(t, positions(0, 200, 400), testMAC(), nil, proto.Flow{Transport: "hop-by-hop-tcp/cubic", Src: 0, Dst: 2, Path: []int{0, 1, 2}})
	l.loss(1, 2, 0.1)
	if most, _ := l.sampled(0, proto.Relay); most.Held < 50*vtime.KiB || most.Held > 1*vtime.MiB {
		t.Errorf("the relay holds %v at most", most.Held)
	}
}

// TestRelayHoldsNothing once everything was acknowledged, the SYN and the FIN
// among it.
func TestRelayHoldsNothing(t *testing.T) {
	for _, load := range []workload.Spec{voipLoad, {Kind: workload.Sized, Size: 10 * vtime.KB}} {
		l := newLab(t, positions(0, 200, 400), testMAC(), nil, proto.Flow{Transport: "hop-by-hop-tcp/cubic", Src: 0, Dst: 2, Path: []int{0, 1, 2}, Workload: load})
		samples := 0
		for now := sec; now <= l.cfg.End; now += sec {
			l.runTo(now)
			l.net.Observe(now, func(_ int, s *proto.Sample) {
				if s.Side != proto.Relay {
					return
				}
				if samples++; s.Held < 0 || s.Held > 100 {
					t.Errorf("%s: the relay holds %v at %v", load.Kind, s.Held, now)
				}
			})
		}
		if l.finish(); samples == 0 {
			t.Errorf("%s: no sample of the relay", load.Kind)
		}
	}
}
