package linkprobe

import (
	"errors"
	"reflect"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

func order() proto.Probe {
	return proto.Probe{Period: vtime.Second, Count: 100, Size: 134, Seed: 7, Tag: 0xfeed}
}

// run lets a prober send all its probes in virtual time.
func run(t *testing.T, p *Prober, each func(at vtime.Time, b []byte)) {
	t.Helper()
	for p.Deadline() != vtime.Never {
		at := p.Deadline()
		p.Expire(at - 1)
		if _, ok := p.Poll(at - 1); ok {
			t.Fatalf("a probe before its time %v", at)
		}
		p.Expire(at)
		b, ok := p.Poll(at)
		if !ok {
			t.Fatalf("no probe at %v", at)
		}
		each(at, b)
	}
}

// De Couto et al., section 3, RFC 3626, 18.1: probes at the period, each moved
// by a part of it; and every node at a phase of its own.
func TestProbesAreSentAtTheirPeriodWithJitter(t *testing.T) {
	var first []vtime.Time
	for node := range 3 {
		p, err := New(node, order())
		if err != nil {
			t.Fatal(err)
		}
		var at []vtime.Time
		run(t, p, func(now vtime.Time, b []byte) {
			if len(b) != 134-28 {
				t.Fatalf("%d bytes of payload", len(b))
			}
			at = append(at, now)
		})
		if len(at) != 100 || at[0] < 0 || at[99] > vtime.Time(Span(100, vtime.Second)) {
			t.Fatalf("node %d: %d probes from %v to %v, span %v", node, len(at), at[0], at[len(at)-1], Span(100, vtime.Second))
		}
		steps := map[vtime.Duration]bool{}
		for i := 1; i < len(at); i++ {
			d := at[i].Sub(at[i-1])
			if d < 750*vtime.Millisecond || d > 1250*vtime.Millisecond {
				t.Errorf("node %d: %v between probes %d and %d", node, d, i-1, i)
			}
			steps[d] = true
		}
		if len(steps) < 90 {
			t.Errorf("node %d: %d different steps: no jitter", node, len(steps))
		}
		first = append(first, at[0])
	}
	if first[0] == first[1] || first[1] == first[2] {
		t.Errorf("the nodes send at the same moments: %v", first)
	}
}

func TestCountsAreOfDifferentProbesOfThisMeasurement(t *testing.T) {
	a, _ := New(1, order())
	b, _ := New(2, order())
	other := order()
	other.Tag++
	foreign, _ := New(3, other)
	run(t, a, func(at vtime.Time, p []byte) {
		n := int(p[19])
		if n == 3 || n == 7 || n > 90 {
			return // lost
		}
		if !b.Receive(at, p) {
			t.Fatalf("probe %d was not counted", n)
		}
		if b.Receive(at, p) {
			t.Fatalf("a copy of probe %d was counted", n)
		}
		if a.Receive(at, p) {
			t.Fatal("its own probe was counted")
		}
		for name, x := range map[string][]byte{"shorter": p[:len(p)-1], "longer": append(p[:len(p):len(p)], 0), "empty": nil} {
			if b.Receive(at, x) {
				t.Fatalf("a packet that is %s was counted", name)
			}
		}
	})
	run(t, foreign, func(at vtime.Time, p []byte) {
		if b.Receive(at, p) {
			t.Fatal("a probe of another measurement was counted")
		}
	})
	want := &proto.Heard{Node: 2, From: []proto.HeardFrom{{Node: 1, Received: 89, Last: 90, Missing: []int{3, 7}}}}
	if got := b.Heard(); !reflect.DeepEqual(got, want) {
		t.Errorf("heard %+v, want %+v", got, want)
	}
	if got := a.Heard(); got.Sent != 100 || len(got.From) != 0 || got.From == nil {
		t.Errorf("heard %+v", got)
	}
}

// A node that was kept from running sends all that it is behind with.
func TestALateNodeSendsEverything(t *testing.T) {
	p, _ := New(0, order())
	p.Expire(vtime.Time(vtime.Hour))
	n := 0
	for {
		if _, ok := p.Poll(vtime.Time(vtime.Hour)); !ok {
			break
		}
		n++
	}
	h := p.Heard()
	if n != 100 || h.Sent != 100 || p.Deadline() != vtime.Never || h.Late != 100 || h.LateMax < vtime.Hour-2*vtime.Second || h.LateMax > vtime.Hour {
		t.Errorf("%d sent, deadline %v, heard %+v", n, p.Deadline(), h)
	}
	p, _ = New(0, order())
	at := p.Deadline().Add(Late)
	p.Expire(at)
	if _, ok := p.Poll(at); !ok || p.Heard().Late != 0 || p.Heard().LateMax != 0 {
		t.Errorf("%v after its time: %+v", Late, p.Heard())
	}
}

func TestEqualSeedsGiveEqualMoments(t *testing.T) {
	moments := func(seed uint64) []vtime.Time {
		o := order()
		o.Seed = seed
		p, _ := New(4, o)
		var at []vtime.Time
		run(t, p, func(now vtime.Time, _ []byte) { at = append(at, now) })
		return at
	}
	if !reflect.DeepEqual(moments(1), moments(1)) || reflect.DeepEqual(moments(1), moments(2)) {
		t.Error("the moments do not follow from the seed")
	}
}

func TestOrdersThatMakeNoSense(t *testing.T) {
	for name, change := range map[string]func(*proto.Probe){
		"no probes":     func(o *proto.Probe) { o.Count = 0 },
		"too many":      func(o *proto.Probe) { o.Count = MaxCount + 1 },
		"no period":     func(o *proto.Probe) { o.Period = 0 },
		"for ever":      func(o *proto.Probe) { o.Period = MaxPeriod + 1 },
		"too short":     func(o *proto.Probe) { o.Size = MinSize - 1 },
		"fragmented":    func(o *proto.Probe) { o.Size = MaxSize + 1 },
		"no such class": func(o *proto.Probe) { o.DSCP = 64 },
	} {
		o := order()
		change(&o)
		_, err := New(0, o)
		var e *proto.Error
		if !errors.As(err, &e) || e.Code != proto.CodeOrder {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, node := range []int{-1, MaxNodes} {
		if _, err := New(node, order()); err == nil {
			t.Errorf("node %d", node)
		}
	}
}

func FuzzReceive(f *testing.F) {
	o := order()
	o.Size = MinSize
	a, _ := New(1, o)
	a.Expire(vtime.Time(vtime.Hour))
	for range 3 {
		b, _ := a.Poll(vtime.Time(vtime.Hour))
		f.Add(append([]byte(nil), b...))
	}
	f.Add([]byte("hblp"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _ := New(2, o)
		counted := p.Receive(0, b)
		h := p.Heard()
		if counted != (len(h.From) == 1) || counted && (h.From[0].Received != 1 || h.From[0].Last >= o.Count || h.From[0].Node == 2) {
			t.Errorf("%x: counted %v, heard %+v", b, counted, h)
		}
	})
}
