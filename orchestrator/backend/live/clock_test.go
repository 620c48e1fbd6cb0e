//go:build linux

package live

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// look asks a clock that is offset ahead at our moment 0 and runs by ppm too fast,
// over a way whose two directions have very different queues.
func look(r *rand.Rand, at int64, offset vtime.Duration, ppm float64, unix int64) estimate {
	var all []exchange
	for range clockExchanges {
		there, back := int64(50_000+r.ExpFloat64()*2e6), int64(50_000+r.ExpFloat64()*200_000)
		x := exchange{Sent: at, Received: at + there + back}
		x.Remote = at + there + int64(offset) + int64(float64(at+there)*ppm*1e-6)
		x.RemoteUnix, x.Unix = x.Remote+unix, x.Received+unix
		all = append(all, x)
		at = x.Received
	}
	return nearest(all)
}

// Whatever the queues are, the true offset is within the bound, which is half of
// the quickest round trip.
func TestOffsetIsWithinItsBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		at := int64(r.Uint64N(1e15))
		offset := vtime.Duration(r.Int64N(2e15) - 1e15)
		e := look(r, at, offset, 0, 1e18)
		if d := e.Offset - offset; max(d, -d) > e.Bound {
			t.Fatalf("offset %v, estimated %v ± %v", offset, e.Offset, e.Bound)
		}
		if e.Bound > e.RTT/2+1 || e.RTT <= 0 {
			t.Fatalf("bound %v of a round trip of %v", e.Bound, e.RTT)
		}
		if d := e.WallOffset - offset; max(d, -d) > e.Bound+1 {
			t.Fatalf("wall offset %v, want about %v", e.WallOffset, offset)
		}
	}
}

// Two looks give the drift within its bound, and what the clock was astray in
// between within the larger of the two.
func TestDriftIsWithinItsBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		ppm := r.Float64()*200 - 100
		const length = 60e9
		k := clock{Before: look(r, 1e12, 5*vtime.Second, ppm, 0)}
		after := look(r, 1e12+length, 5*vtime.Second, ppm, 0)
		k.After = &after
		ratio, bound, ok := k.drift()
		if !ok || ratio*1e6 < ppm-bound*1e6-0.01 || ratio*1e6 > ppm+bound*1e6+0.01 {
			t.Fatalf("drift %.3f ± %.3f ppm, true %.3f", ratio*1e6, bound*1e6, ppm)
		}
		at := int64(1e12 + length/2)
		truly := vtime.Duration(float64(at)*ppm*1e-6) + 5*vtime.Second
		if d := k.Before.Offset + k.astray(at) - truly; max(d, -d) > k.uncertainty()+1 {
			t.Fatalf("in the middle the clock is taken for %v wrong, more than %v", d, k.uncertainty())
		}
	}
}

func TestSharedClockHasNoOffset(t *testing.T) {
	k := clock{Shared: true}
	if k.epoch(77) != 77 || k.astray(1e18) != 0 || k.uncertainty() != 0 || k.step() != 0 {
		t.Errorf("%+v", k)
	}
	k = clock{Before: estimate{Offset: -5}}
	if k.epoch(77) != 72 {
		t.Errorf("epoch %d", k.epoch(77))
	}
}

// The time of day that is set is told; slewing, which moves both clocks, is not.
func TestSteps(t *testing.T) {
	k := clock{Before: estimate{Wall: 1e18}, After: &estimate{Wall: 1e18 + 5e6}}
	if k.step() != 0 {
		t.Errorf("5 ms of jitter taken for a step of %v", k.step())
	}
	k.After.Wall = 1e18 - 2e9
	if k.step() != -2*vtime.Second {
		t.Errorf("step %v", k.step())
	}
}

func TestJudgeClocks(t *testing.T) {
	nodes := []store.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	after := func(offset, bound vtime.Duration, wall int64) *estimate {
		return &estimate{Offset: offset, Bound: bound, At: 10e9, Wall: wall}
	}
	for _, c := range []struct {
		name     string
		clocks   []clock
		invalid  string
		warnings string
	}{
		{"fine", []clock{{Shared: true}, {Before: estimate{Bound: 100_000, Wall: 1}, After: after(200_000, 90_000, 1)}, {Shared: true}}, "", ""},
		{"slow way", []clock{{Shared: true}, {Before: estimate{Bound: 90 * vtime.Millisecond}, After: after(0, 110*vtime.Millisecond, 0)}, {Shared: true}}, "node b is known to ±110ms only", ""},
		{"runs away", []clock{{Shared: true}, {Shared: true}, {Before: estimate{Bound: 1000}, After: after(20*vtime.Millisecond, 1000, 0)}}, "node c ran more than 2000 ppm", ""},
		// What the bounds may have made of it is not held against it.
		{"unsure drift", []clock{{Before: estimate{Bound: 3 * vtime.Millisecond}, After: after(7*vtime.Millisecond, 3*vtime.Millisecond, 0)}, {Shared: true}, {Shared: true}}, "", ""},
		{"set", []clock{{Before: estimate{Wall: 1e18}, After: after(0, 0, 1e18+3e9)}, {Shared: true}, {Shared: true}}, "", "node a was set by 3s"},
	} {
		run := &store.Run{DurationS: 10}
		judgeClocks(run, nodes, c.clocks)
		for what, pair := range map[string][2]string{"invalid": {c.invalid, strings.Join(run.InvalidReasons, ";")}, "warning": {c.warnings, strings.Join(run.Warnings, ";")}} {
			if (pair[0] == "") != (pair[1] == "") || !strings.Contains(pair[1], pair[0]) {
				t.Errorf("%s: %s %q, want %q", c.name, what, pair[1], pair[0])
			}
		}
	}
}
