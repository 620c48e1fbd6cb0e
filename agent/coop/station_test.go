package coop

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	ms  = vtime.Millisecond
	sec = vtime.Time(vtime.Second)
)

func addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

// TestIdealCwnd: the caps that follow from the paper's constants with its wired
// round-trip time of 256 ms, and bounds.
func TestIdealCwnd(t *testing.T) {
	for _, c := range []struct {
		rtt     vtime.Duration
		n, want int
	}{
		{256 * ms, 1, 324}, {256 * ms, 2, 146}, {256 * ms, 4, 66}, {256 * ms, 7, 35}, {256 * ms, 10, 23},
		{512 * ms, 4, 132}, {1 * ms, 10, 1}, {256 * ms, 1000, 1},
	} {
		if got := IdealCwnd(DefaultBandwidth, c.rtt, c.n); got != c.want {
			t.Errorf("%d stations, %v: %d segments, want %d", c.n, c.rtt, got, c.want)
		}
	}
}

// world drives a station by its deadlines.
type world struct {
	*Station
	now     vtime.Time
	beacons []vtime.Time
	changes []Change
}

func (w *world) runTo(t *testing.T, to vtime.Time, rtt vtime.Duration) {
	t.Helper()
	for w.Deadline() <= to {
		if w.Deadline() < w.now {
			t.Fatalf("the deadline %v is before %v", w.Deadline(), w.now)
		}
		w.now = w.Deadline()
		w.Measure(7, rtt)
		w.Expire(w.now)
		for {
			b, ok := w.Poll(w.now)
			if !ok {
				break
			}
			if !IsBeacon(b) {
				t.Fatalf("%q is no beacon", b)
			}
			w.beacons = append(w.beacons, w.now)
		}
		w.changes = append(w.changes, w.Changes()...)
	}
	w.now = to
}

// hear gives beacons of stations 2 to n, each 0.3 s, while time goes on to a moment.
func (w *world) hear(t *testing.T, n int, to vtime.Time, rtt vtime.Duration) {
	for at := w.now; at < to; at = at.Add(BeaconEvery) {
		w.runTo(t, at, rtt)
		for i := 2; i <= n; i++ {
			w.Receive(at, addr(i))
		}
	}
	w.runTo(t, to, rtt)
}

func (w *world) last() Change {
	if len(w.changes) == 0 {
		return Change{}
	}
	return w.changes[len(w.changes)-1]
}

func newWorld(cfg Config) *world {
	cfg.Addr = addr(1)
	w := &world{Station: New(cfg)}
	w.Begin(0, 7)
	return w
}

// TestStates goes through all states of a connection among four stations.
func TestStates(t *testing.T) {
	w := newWorld(Config{})
	expect := func(state State, cap int) {
		t.Helper()
		if got := w.last(); got.State != state || got.Cap != cap || got.Stations != 4 {
			t.Fatalf("at %v: %v, want %s with %d", w.now, got, state, cap)
		}
	}
	w.hear(t, 4, 3*sec, 256*ms)
	expect(Normal, 0)
	w.hear(t, 4, 4*sec, 1535*ms) // just below 6 times 256 ms
	expect(Normal, 0)
	w.hear(t, 4, w.now.Add(Tick), 1536*ms)
	expect(Capped, 66)
	w.hear(t, 4, w.now.Add(Tick), 1280*ms) // 5 times, while capped
	expect(Min, 1)
	before := len(w.changes)
	w.hear(t, 4, w.now.Add(3*Tick), 1280*ms)
	if len(w.changes) != before {
		t.Errorf("what does not change is told: %v", w.changes[before:])
	}
	w.hear(t, 4, w.now.Add(Tick), 1279*ms)
	expect(Capped, 66)
	w.hear(t, 4, w.now.Add(4*vtime.Second), 511*ms)
	w.hear(t, 4, w.now.Add(Tick), 512*ms) // not below 2: the 5 s begin anew
	w.hear(t, 4, w.now.Add(5*vtime.Second), 511*ms)
	expect(Capped, 66)
	w.hear(t, 4, w.now.Add(Tick), 511*ms)
	expect(Normal, 0)
}

// TestAloneAgain: without others there is nothing to share.
func TestAloneAgain(t *testing.T) {
	w := newWorld(Config{})
	w.hear(t, 3, 2*sec, 256*ms)
	w.hear(t, 3, 3*sec, 2000*ms)
	if got := w.last(); got.State != Min {
		t.Fatalf("%v", got)
	}
	w.hear(t, 3, 4*sec, 1000*ms)
	if got := w.last(); got.State != Capped || got.Cap != IdealCwnd(DefaultBandwidth, 256*ms, 3) {
		t.Fatalf("%v", got)
	}
	w.runTo(t, w.now.Add(PeerTimeout+Tick), 1000*ms)
	if got := w.last(); got.State != Normal || got.Cap != 0 || got.Stations != 1 {
		t.Errorf("%v", got)
	}
	// One station alone is never capped.
	w.runTo(t, w.now.Add(5*vtime.Second), 5000*ms)
	if got := w.last(); got.State != Normal {
		t.Errorf("alone: %v", got)
	}
}

// TestAlways caps by the number of stations alone and knows no minimum.
func TestAlways(t *testing.T) {
	w := newWorld(Config{Always: true, Bandwidth: 2 * DefaultBandwidth})
	w.hear(t, 10, 2*sec, 256*ms)
	if got := w.last(); got.State != Capped || got.Cap != 46 {
		t.Errorf("%v", got)
	}
	w.hear(t, 10, 4*sec, 5000*ms)
	if got := w.last(); got.State != Capped || got.Cap != 46 {
		t.Errorf("with a long round-trip time: %v", got)
	}
}

// TestStations are counted by address and forgotten after a second of silence; both
// are told at the moment.
func TestStations(t *testing.T) {
	w := newWorld(Config{})
	w.Receive(0, addr(2))
	w.Receive(0, addr(1)) // its own
	w.changes = append(w.changes, w.Changes()...)
	w.Receive(sec/10, addr(3))
	w.Receive(sec/10, addr(3))
	w.runTo(t, 3*sec, 0)
	var at []vtime.Time
	var n []int
	for _, c := range w.changes {
		at, n = append(at, c.T), append(n, c.Stations)
	}
	if want := []vtime.Time{0, 0, sec / 10, sec, sec + sec/10}; !slices.Equal(at, want) || !slices.Equal(n, []int{1, 2, 3, 2, 1}) {
		t.Errorf("%v at %v", n, at)
	}
	w.End(7)
	if w.Stations() != 0 || w.Deadline() != vtime.Never {
		t.Errorf("%d stations, the next deadline at %v", w.Stations(), w.Deadline())
	}
}

// TestBeacons come each 0.3 s while a connection transmits, from a phase of the
// station's own, and what was missed is not made up for.
func TestBeacons(t *testing.T) {
	w := newWorld(Config{Seed: 3})
	w.runTo(t, 3*sec, 0)
	if len(w.beacons) != 10 || w.beacons[0] >= vtime.Time(BeaconEvery) {
		t.Fatalf("%v", w.beacons)
	}
	for i := range w.beacons {
		if i > 0 && w.beacons[i].Sub(w.beacons[i-1]) != BeaconEvery {
			t.Errorf("%v", w.beacons)
		}
	}
	late := w.Deadline().Add(10 * vtime.Second)
	w.Expire(late)
	_, one := w.Poll(late)
	_, two := w.Poll(late)
	if !one || two || w.Deadline() <= late {
		t.Errorf("after a pause: %v, %v, next at %v", one, two, w.Deadline())
	}
	if other := New(Config{Addr: addr(2), Seed: 3}); other.phase == w.phase {
		t.Error("two stations have one phase")
	}
}

// TestSeveralConnections of a station share its window.
func TestSeveralConnections(t *testing.T) {
	w := newWorld(Config{Always: true})
	w.Begin(0, 8)
	w.Begin(0, 8)
	w.Measure(8, 256*ms)
	w.hear(t, 4, 2*sec, 256*ms)
	for _, f := range w.flows {
		if f.cap != 33 {
			t.Errorf("flow %d: %d segments", f.id, f.cap)
		}
	}
	if len(w.flows) != 2 {
		t.Errorf("%d connections", len(w.flows))
	}
}

func TestChangeText(t *testing.T) {
	c := Change{State: Capped, Stations: 4, RTT: 1600 * ms, MinRTT: 256 * ms, Cap: 66}
	if got, err := ParseChange(c.String()); err != nil || got != c {
		t.Errorf("%v from %q: %v", got, c, err)
	}
	if _, err := ParseChange("src"); err == nil {
		t.Error("another event's text was taken")
	}
	if IsBeacon(nil) || IsBeacon([]byte("hbco")) || IsBeacon(append(slices.Clone(beacon), 0)) {
		t.Error("taken for a beacon")
	}
}
