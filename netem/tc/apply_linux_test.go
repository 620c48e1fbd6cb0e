package tc

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// What needs netem runs in the lane, where the kernel has it.
func TestInTheLane(t *testing.T) {
	lanetest.Run(t, lane.Config{Modules: lane.Network},
		lanetest.Case{Name: "every setting is read back", Run: testEverySetting},
		lanetest.Case{Name: "changes in place", Run: testChangesInPlace},
		lanetest.Case{Name: "classes by peer", Run: testClasses},
		lanetest.Case{Name: "former disciplines", Run: testFormer},
		lanetest.Case{Name: "ingress", Run: testIngress},
		lanetest.Case{Name: "measurements", Run: testMeasurements},
	)
}

const (
	ms   = vtime.Millisecond
	mbit = vtime.MbitPerSecond
)

func full() Shape {
	return Shape{Rate: 10 * mbit, Overhead: 24, Delay: 20*ms + 3, Jitter: pipe.Jitter{Distribution: pipe.Pareto, Spread: 2 * ms}, Loss: pipe.Loss{Good: 0.01, Bad: 0.5, ToBad: 0.02, ToGood: 0.25},
		LossAfterQueue: true, Reorder: pipe.Reorder{Share: 0.02, Extra: 7 * ms}, Corrupt: 0.001, Limit: 77, Seed: 42, Slots: &Slots{Min: 2 * ms, Max: 3 * ms, Packets: 5}}
}

var settings = map[string]Shape{
	"nothing":           {},
	"all at once":       full(),
	"delay of hours":    {Delay: 2 * vtime.Hour}, // 32 bits of ticks end at 275 s
	"rate of 40 Gbit/s": {Rate: 40 * vtime.GbitPerSecond},
	"slow rate":         {Rate: 8 * vtime.KbitPerSecond, Limit: 3},
	"random loss":       {Loss: pipe.Loss{Good: 0.3}},
	"every packet lost": {Loss: pipe.Loss{Good: 1}},
	"four states":       {LossStates: &LossStates{P13: 0.1, P31: 0.5, P32: 0.2, P23: 0.3, P14: 0.01}},
	"copies":            {Duplicate: 0.1, Delay: ms},
	"copies and a rate": {Duplicate: 0.1, Delay: ms, Rate: 5 * mbit, Limit: 20},
	"queue of bytes":    {Rate: 5 * mbit, LimitBytes: 30000, Delay: 4 * ms},
	"tbf":               {Rate: 100 * mbit, Shaper: TBFShaper, Overhead: 38},
	"htb":               {Rate: 3 * mbit, Shaper: HTBShaper, Limit: 9},
	"slots alone":       {Slots: &Slots{Min: ms, Max: ms, Bytes: 3000}},
	"held back":         {Reorder: pipe.Reorder{Share: 0.5, Extra: ms}},
	"all held back":     {Reorder: pipe.Reorder{Share: 1, Extra: ms}},
	"normal":            {Delay: 30 * ms, Jitter: pipe.Jitter{Distribution: pipe.Normal, Spread: 5 * ms, Overtake: true}},
	"uniform":           {Delay: 30 * ms, Jitter: pipe.Jitter{Distribution: pipe.Uniform, Spread: 5 * ms}},
	"exponential":       {Delay: 30 * ms, Jitter: pipe.Jitter{Distribution: pipe.Exponential, Spread: 5 * ms}},
}

// Requirement: from any setting to any other, in place, every value is what was
// asked.
func testEverySetting(t *testing.T) {
	lab(t)
	undo, err := Prepare(&Link{Interface: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range settings {
		for other, o := range settings {
			for step, s := range []Shape{s, o} {
				l := &Link{Interface: "a", Egress: []Class{{Shape: s}}}
				if _, err := Apply(l); err != nil {
					t.Fatalf("%s, step %d (then %s): %v", name, step, other, err)
				}
				if _, err := Verify(l); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if _, err := Stats(l); err != nil {
					t.Errorf("%s: counters: %v", name, err)
				}
			}
		}
	}
	for range 2 {
		if err := Revert(undo); err != nil {
			t.Fatal(err)
		}
		wantRoot(t, "a", "noqueue")
	}
}

func rootOfInterface(t *testing.T, name string) object {
	t.Helper()
	k, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	have, err := k.byParent(&device{name: name, index: l.Attrs().Index})
	if err != nil {
		t.Fatal(err)
	}
	return have[rootOf]
}

func wantRoot(t *testing.T, name, kind string) {
	t.Helper()
	if o := rootOfInterface(t, name); o.kind != kind {
		t.Errorf("%s has the root discipline %q, want %q", name, o.kind, kind)
	}
}

// Requirement: what is in a queue survives a change, and so does the discipline.
func testChangesInPlace(t *testing.T) {
	a, _ := lab(t)
	w := attach(t, a)
	l := &Link{Interface: "a", Egress: []Class{{Shape: Shape{Rate: 16 * vtime.KbitPerSecond, Limit: 50}}}}
	if _, err := Prepare(l); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		w.send(t, i, 500)
	}
	before := oneClass(t, l)
	if before.Backlog < 15 {
		t.Fatalf("%d packets wait, want about 19", before.Backlog)
	}
	l.Egress[0].Shape = Shape{Rate: 8 * vtime.KbitPerSecond, Limit: 60, Delay: 5 * ms, Loss: pipe.Loss{Good: 0.5}}
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	if c := oneClass(t, l); c.Backlog < before.Backlog-2 || c.Dropped+c.Lost > 0 {
		t.Errorf("after the change %+v, before %+v: packets were lost by it", c, before)
	}
}

func oneClass(t *testing.T, l *Link) Counters {
	t.Helper()
	c, err := Stats(l)
	if err != nil || len(c) != 1 {
		t.Fatalf("counters %+v, %v", c, err)
	}
	return c[0]
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func testClasses(t *testing.T) {
	a, b := lab(t)
	from, to := attach(t, a), attach(t, b)
	l := &Link{Interface: "a", Egress: []Class{
		{Peers: []netip.Prefix{prefix("10.1.0.1/32"), prefix("10.1.1.0/24"), prefix("fd00:1::/64")}, Shape: Shape{Loss: pipe.Loss{Good: 1}}},
		{Peers: []netip.Prefix{prefix("10.1.0.0/16")}, Shape: Shape{Delay: 30 * ms}},
	}}
	if _, err := Prepare(l); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	counts := func(want ...uint64) {
		t.Helper()
		c, err := Stats(l)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for i := range c {
			got = append(got, c[i].Packets, c[i].Lost)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("packets and losses of the classes %v, want %v", got, want)
		}
	}
	for i, dst := range []string{"10.1.0.1", "10.1.1.9", "10.1.2.3", "10.1.0.2", "10.2.0.1", "fd00:1::5", "fd00:2::5"} {
		from.sendTo(t, netip.MustParseAddr(dst), i, 100)
	}
	got := to.collect(t, 400*ms)
	if len(got) != 4 { // 10.1.2.3, 10.1.0.2 delayed; 10.2.0.1, fd00:2::5 left alone
		t.Errorf("%d packets arrived, want 4: %+v", len(got), got)
	}
	for _, p := range got {
		if delayed := p.number == 2 || p.number == 3; delayed != (p.delay >= 30*ms) {
			t.Errorf("packet %d took %v", p.number, p.delay)
		}
	}
	counts(0, 3, 2, 0)
	// A class more, and peers that move to another one, while it runs.
	l.Egress = append([]Class{{Peers: []netip.Prefix{prefix("10.2.0.1/32")}, Shape: Shape{Loss: pipe.Loss{Good: 1}}}}, l.Egress...)
	l.Egress[2].Peers = nil
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	from.sendTo(t, netip.MustParseAddr("10.2.0.1"), 10, 100)
	from.sendTo(t, netip.MustParseAddr("10.9.0.1"), 11, 100)
	if got := to.collect(t, 400*ms); len(got) != 1 || got[0].number != 11 || got[0].delay < 30*ms {
		t.Errorf("arrived %+v, want 11 alone, delayed by the class of all", got)
	}
	if _, err := Verify(l); err != nil {
		t.Error(err)
	}
	changed := *l
	changed.Egress = append([]Class{}, l.Egress...)
	changed.Egress[0].Peers = []netip.Prefix{prefix("10.2.0.2/32")}
	var differs *NotApplied
	if _, err := Verify(&changed); !errors.As(err, &differs) || differs.Interface != "a" {
		t.Errorf("another peer: %v", err)
	}
	changed.Egress[0] = l.Egress[0]
	changed.Egress[1].Delay = 31 * ms
	if _, err := Verify(&changed); !errors.As(err, &differs) {
		t.Errorf("another delay: %v", err)
	}
	// And back to two, then to one of everything.
	for _, n := range []int{2, 1} {
		l.Egress = l.Egress[len(l.Egress)-n:]
		if _, err := Apply(l); err != nil {
			t.Fatal(err)
		}
	}
	wantRoot(t, "a", "netem")
}

func testFormer(t *testing.T) {
	a, _ := lab(t)
	l := &Link{Interface: "a", Egress: []Class{{Shape: Shape{Delay: ms}}}}
	codel := &netlink.FqCodel{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: a.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(0x12, 0)}, Target: 7000, Limit: 123, Flows: 64}
	if err := netlink.QdiscAdd(codel); err != nil {
		t.Fatal(err)
	}
	before := rootOfInterface(t, "a")
	u, err := Prepare(l)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	var later Undo // by another process
	if err := json.Unmarshal(text, &later); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Revert(&later); err != nil {
			t.Fatal(err)
		}
		if o := rootOfInterface(t, "a"); o.kind != "fq_codel" || o.handle != before.handle || len(o.options) != len(before.options) || native.Uint32(o.options[12:]) != 123 { // its times are rounded by the kernel
			t.Errorf("restored %+v, want %+v", o, before)
		}
	}
	if err := netlink.QdiscReplace(netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: a.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)})); err != nil {
		t.Fatal(err)
	}
	var foreign *Foreign
	if _, err := Prepare(l); !errors.As(err, &foreign) || !strings.Contains(err.Error(), "htb 1:") {
		t.Errorf("somebody else's htb: %v", err)
	}
	// Somebody else's root in place of ours is not touched.
	if err := Revert(&later); err != nil {
		t.Fatal(err)
	}
	wantRoot(t, "a", "htb")
	if err := netlink.LinkDel(a); err != nil {
		t.Fatal(err)
	}
	if err := Revert(&later); err != nil {
		t.Errorf("the interface has gone: %v", err)
	}
}

func testIngress(t *testing.T) {
	a, b := lab(t)
	from, to := attach(t, b), attach(t, a)
	l := &Link{Interface: "a", Ingress: []Class{
		{Peers: []netip.Prefix{prefix("10.77.0.2/32")}, Shape: Shape{Loss: pipe.Loss{Good: 1}}},
		{Peers: []netip.Prefix{prefix("10.77.0.3/32")}, Shape: Shape{Delay: 5 * ms}},
	}}
	u, err := Prepare(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(l); err != nil {
		t.Error(err)
	}
	// A packet socket at a sees what arrives before the ifb, so that the counters
	// tell.
	_ = to
	for i, src := range []string{"10.77.0.2", "10.77.0.3", "10.77.0.4"} {
		from.sendFrom(t, netip.MustParseAddr(src), netip.MustParseAddr("10.77.0.1"), i, 100)
	}
	to.collect(t, 200*ms)
	c, err := Stats(l)
	if err != nil {
		t.Fatal(err)
	}
	if len(c) != 2 || c[0].Lost != 1 || c[0].Packets != 0 || c[1].Packets != 1 || !c[1].Ingress {
		t.Errorf("counters %+v", c)
	}
	for range 2 {
		if err := Revert(u); err != nil {
			t.Fatal(err)
		}
		if _, err := netlink.LinkByName(ifbName(a.Attrs().Index)); err == nil {
			t.Error("the ifb is still there")
		}
		k, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		if kind, err := k.arriving(&device{name: "a", index: a.Attrs().Index}); err != nil || kind != "" {
			t.Errorf("what arrives has still %q, %v", kind, err)
		}
		k.close()
	}
}

// Who reverts may be killed when half of it is done: the next one does the rest.
func TestHalfReverted(t *testing.T) {
	a, _ := lab(t)
	f, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	if f.TBF != nil {
		t.Skipf("SKIP[unavailable: tbf] %v", f.TBF)
	}
	l := &Link{Interface: "a", Ingress: []Class{{Shape: Shape{Rate: 5 * mbit, Limit: 9, Shaper: TBFShaper}}}}
	u, err := Prepare(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(l); err != nil {
		t.Fatal(err)
	}
	k, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	d := &device{name: "a", index: a.Attrs().Index}
	if err := k.unsteer(d, true); err != nil { // the redirection alone
		t.Fatal(err)
	}
	if kind, err := k.arriving(d); err != nil || kind != "clsact" {
		t.Fatalf("what arrives has %q, %v", kind, err)
	}
	if err := Revert(u); err != nil {
		t.Fatal(err)
	}
	if kind, err := k.arriving(d); err != nil || kind != "" {
		t.Errorf("what arrives has still %q, %v", kind, err)
	}
}

// Requirement: on a kernel without netem what needs it is refused, before anything
// is changed, with the remedy; and a rate works by tbf and htb.
func TestWithoutNetem(t *testing.T) {
	lab(t)
	f, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{Interface: "a", Egress: []Class{{Shape: Shape{Delay: ms}}}}
	u, err := Prepare(l)
	var lack *tap.Unavailable
	if f.Netem == nil {
		if err != nil {
			t.Errorf("a kernel with netem: %v", err)
		}
	} else if !errors.As(err, &lack) || u != nil {
		t.Errorf("a kernel without netem: %v", err)
	} else {
		for _, part := range []string{"sch_netem", "linux-modules-extra-", "emulator \"user\""} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		wantRoot(t, "a", "noqueue")
	}
	if f.TBF != nil || f.HTB != nil {
		t.Skipf("SKIP[unavailable: tbf and htb] %v, %v", f.TBF, f.HTB)
	}
	packetsInOne := func(want uint32) {
		t.Helper()
		a, err := netlink.LinkByName("a")
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Attrs().GSOMaxSegs; got != want {
			t.Errorf("the interface takes %d packets in one, want %d", got, want)
		}
	}
	for _, s := range []Shape{{Rate: 5 * mbit, Limit: 9, Shaper: TBFShaper}, {Rate: 5 * mbit, LimitBytes: 15000}, {Rate: 5 * mbit, Shaper: HTBShaper}} {
		l.Egress[0].Shape = s
		u, err := Prepare(l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Apply(l)
		if err != nil {
			t.Fatal(err)
		}
		if g := got.Egress[0]; g.Shaper == AnyShaper || g.Limit == 0 && g.LimitBytes == 0 {
			t.Errorf("what was left open is not filled in: %+v", g)
		}
		packetsInOne(1)
		if err := Revert(u); err != nil {
			t.Fatal(err)
		}
		wantRoot(t, "a", "noqueue")
		packetsInOne(65535)
	}
}
