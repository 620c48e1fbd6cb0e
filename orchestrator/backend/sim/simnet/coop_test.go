package simnet

import (
	"net/netip"
	"testing"

	"github.com/hopbed/hopbed/agent/coop"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

func coopFlow(src int, o proto.Coop) proto.Flow {
	return proto.Flow{Transport: "coop-tcp/cubic", Src: src, Dst: 3, SrcAddr: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + src)}), Options: proto.FlowOptions{Coop: &o}}
}

// coopLab is three stations in one cell with node 3, at which their flows end.
func coopLab(t *testing.T, flows ...proto.Flow) *lab {
	l := newLab(t, positions(0, 10, 20, 30), testMAC(), func(c *Config) {
		r := c.Routes.(*lab)
		for i := range 4 {
			for j := range 4 {
				if i != j {
					r.next[[2]int{i, j}] = j
				}
			}
		}
	}, flows...)
	return l
}

// changes are those of a flow's window, in the order of time.
func (l *lab) changes(flow int) []coop.Change {
	l.t.Helper()
	var out []coop.Change
	for _, e := range l.net.Events() {
		if e.Kind != proto.Window || e.Flow != flow {
			continue
		}
		c, err := coop.ParseChange(e.Text)
		if err != nil {
			l.t.Fatal(err)
		}
		c.T, c.Flow = e.T, e.Flow
		out = append(out, c)
	}
	return out
}

// TestCoopCounts: stations hear each other's beacons over the medium, know within a
// second when one begins or ends, and cap what the model TCP has under way. A flow
// of plain TCP beside them is no station, and is not capped.
func TestCoopCounts(t *testing.T) {
	o := proto.Coop{Always: true, Bandwidth: 10 * vtime.MbitPerSecond}
	late, plain := coopFlow(1, o), tcpFlow(2, 3)
	late.Start, late.Stop = 3*sec, 7*sec
	l := coopLab(t, coopFlow(0, o), late, plain)
	most := [3]int64{}
	for now := vtime.Time(0); now < l.cfg.End; now += sec / 20 {
		l.runTo(now)
		l.net.Observe(now, func(_ int, s *proto.Sample) {
			// Two samples and a tick after the second station came until it goes.
			if s.Side == proto.Source && now > 4*sec && now < 7*sec {
				most[s.Flow] = max(most[s.Flow], s.CwndPackets)
			}
		})
	}
	l.finish()
	var two, one vtime.Time
	limit := 0
	for _, c := range l.changes(0) {
		switch {
		case c.Stations == 2 && two == 0:
			two = c.T
		case c.Stations == 1 && two > 0:
			one = c.T
		case c.State == coop.Capped:
			if want := coop.IdealCwnd(o.Bandwidth, c.MinRTT, c.Stations); c.Cap != want {
				t.Errorf("%v: want a cap of %d", c, want)
			}
			limit = max(limit, c.Cap)
		}
		if c.Stations > 2 {
			t.Errorf("%v: plain TCP was counted", c)
		}
	}
	if two < 3*sec || two > 4*sec || one < 7*sec || one > 8*sec+sec/10 {
		t.Errorf("two stations at %v, one at %v", two, one)
	}
	if limit == 0 || most[0] > int64(limit) || most[2] <= int64(limit) {
		t.Errorf("capped at %d: windows of at most %v", limit, most)
	}
	if last := l.changes(0); last[len(last)-1].State != coop.Normal {
		t.Errorf("alone: %v", last[len(last)-1])
	}
}

// TestCoopEndsWithItsData: a station that has sent everything is silent.
func TestCoopEndsWithItsData(t *testing.T) {
	f := coopFlow(0, proto.Coop{})
	f.Workload = workload.Spec{Kind: workload.Sized, Size: 100 * vtime.KB}
	l := coopLab(t, f, coopFlow(1, proto.Coop{}))
	l.finish()
	if r := l.src(0); !r.Finished {
		t.Fatalf("%+v", r)
	}
	c := l.changes(1)
	if last := c[len(c)-1]; last.Stations != 1 || last.T > l.src(0).FinishedAt.Add(1100*vtime.Millisecond) {
		t.Errorf("the other station: %v at %v, the data were through at %v", last, last.T, l.src(0).FinishedAt)
	}
	if k := l.net.stations[0]; k.event != des.EventID(0) || len(k.flows) != 0 {
		// It may still wait for the other station to fall silent.
		if k.coop.Deadline() == vtime.Never {
			t.Errorf("an event is left over: %+v", k)
		}
	}
}
