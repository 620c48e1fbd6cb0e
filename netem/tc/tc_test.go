package tc

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Requirement: netem's table times its spread has the mean and deviation that the
// distribution of package pipe has, in its spreads.
func TestTables(t *testing.T) {
	for _, c := range []struct {
		d               pipe.Distribution
		mean, deviation float64
	}{
		{pipe.Uniform, 0, 1 / math.Sqrt(3)},
		{pipe.Normal, 0, 1},
		{pipe.Exponential, 1, 1},
		{pipe.Pareto, 1, math.Sqrt(1.0/3.0) * 0.98}, // of a finite table: the variance has a long tail
	} {
		d := table(c.d)
		var sum, squares float64
		for i, v := range d.values() {
			x := float64(v) / distScale * d.unit()
			sum, squares = sum+x, squares+x*x
			if i > 0 && v < d.values()[i-1] {
				t.Errorf("%v: the quantiles descend at %d", c.d, i)
			}
		}
		mean := sum / distSize
		deviation := math.Sqrt(squares/distSize - mean*mean)
		if math.Abs(mean-c.mean) > 0.01 || math.Abs(deviation-c.deviation) > 0.03*c.deviation {
			t.Errorf("%v: mean %.4f, deviation %.4f, want %.4f, %.4f", c.d, mean, deviation, c.mean, c.deviation)
		}
	}
	for _, held := range []vtime.Fraction{1e-6, 0.25, 1} {
		n := 0
		for _, v := range twoPoints(held) {
			if v == distScale {
				n++
			} else if v != 0 {
				t.Fatalf("a value of %d", v)
			}
		}
		if want := max(1, int(math.Round(float64(held)*distSize))); n != want {
			t.Errorf("%v held: %d of %d, want %d", held, n, distSize, want)
		}
	}
}

func TestWhatIsNotLikeAPipe(t *testing.T) {
	trace, err := pipe.NewTrace([]int64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	up := false
	const second = vtime.Second
	for name, c := range map[string]pipe.Config{
		"trace":         {Trace: trace},
		"schedule":      {Schedule: []pipe.Change{{Up: &up}}},
		"packets and":   {Rate: 8000, Queue: pipe.Queue{Packets: 1, Bytes: 2000}},
		"jitter of":     {Jitter: pipe.Jitter{Distribution: pipe.Pareto, Spread: second}},
		"holding back":  {Reorder: pipe.Reorder{Share: 0.1, Extra: 3 * second}},
		"rate of 12bit": {Rate: 12},
		"duplication":   {Duplicate: 0.1, Reorder: pipe.Reorder{Share: 0.1, Extra: second}},
		"queue of bytes": {Rate: 8000, Queue: pipe.Queue{Bytes: 2000}, Loss: pipe.Loss{Good: 0.1},
			LossAfterQueue: true},
	} {
		_, err := FromPipe(&c)
		var u *Unlike
		if !errors.As(err, &u) || !strings.Contains(err.Error(), name) || u.Do == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is converted is valid, and says what the pipe says.
	for _, c := range []pipe.Config{
		{},
		{Delay: second, Queue: pipe.Queue{Packets: 5}}, // nothing waits
		{Rate: 8000, Queue: pipe.Queue{Packets: 5}, Overhead: 38, Loss: pipe.Loss{Bad: 1, ToBad: 0.1, ToGood: 0.5}, LossAfterQueue: true},
		{Rate: 8000}, // without a limit
		{Rate: 8000, Queue: pipe.Queue{Bytes: 9000}, Duplicate: 0.5},
		{Delay: second, Jitter: pipe.Jitter{Distribution: pipe.Constant}, Reorder: pipe.Reorder{Extra: second}},
	} {
		s, err := FromPipe(&c)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		l := Link{Interface: "x", Egress: []Class{{Shape: s}}}
		if err := l.Validate(); err != nil {
			t.Errorf("%+v became %+v: %v", c, s, err)
		}
		if s.Rate != c.Rate || s.Delay != c.Delay || s.Loss != c.Loss || s.Duplicate != c.Duplicate || c.Rate > 0 && c.Queue.Packets > 0 && s.Limit != c.Queue.Packets {
			t.Errorf("%+v became %+v", c, s)
		}
	}
}

func TestWrongLinks(t *testing.T) {
	peer := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")} // has host bits
	for want, l := range map[string]Link{
		"1 to 15 characters":     {Interface: "a-name-that-is-too-long"},
		"peer 10.0.0.1/24":       {Interface: "x", Egress: []Class{{Peers: peer}}},
		"ingress class 1: delay": {Interface: "x", Ingress: []Class{{}, {Shape: Shape{Delay: -1}}}},
		"below 8bit":             {Interface: "x", Egress: []Class{{Shape: Shape{Rate: 5}}}},
		"without a rate":         {Interface: "x", Egress: []Class{{Shape: Shape{LimitBytes: 5}}}},
		"one of them":            {Interface: "x", Egress: []Class{{Shape: Shape{Rate: 8000, Limit: 1, LimitBytes: 5}}}},
		"corrupt 200%":           {Interface: "x", Egress: []Class{{Shape: Shape{Corrupt: 2}}}},
		"one model at a time":    {Interface: "x", Egress: []Class{{Shape: Shape{Loss: pipe.Loss{Good: 0.1}, LossStates: &LossStates{}}}}},
		"never left":             {Interface: "x", Egress: []Class{{Shape: Shape{LossStates: &LossStates{P13: 0.1}}}}},
		"slots of 5ns to 1ns":    {Interface: "x", Egress: []Class{{Shape: Shape{Slots: &Slots{Min: 5, Max: 1}}}}},
		"is unknown":             {Interface: "x", Egress: []Class{{Shape: Shape{Rate: 8000, Shaper: "cake"}}}},
		"htb keeps":              {Interface: "x", Egress: []Class{{Shape: Shape{Rate: 8000, Shaper: HTBShaper, Delay: 1}}}},
		"beside other classes":   {Interface: "x", Egress: []Class{{Shape: Shape{Duplicate: 0.1}}, {}}},
		"netem counts its queue": {Interface: "x", Egress: []Class{{Shape: Shape{Rate: 8000, Shaper: NetemShaper, LimitBytes: 3000}}}},
		"901 classes":            {Interface: "x", Egress: make([]Class, 901)},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}

// Requirement: no two disciplines of a device ever have one handle, and none has one
// of the kernel's, with as many classes as there may be.
func TestHandlesDiffer(t *testing.T) {
	classes := make([]Class, MaxClasses)
	for i := range classes {
		classes[i].Shape = []Shape{{Rate: 8000, Reorder: pipe.Reorder{Share: 0.1, Extra: 1}}, {Rate: 8000, LimitBytes: 3000}, {Rate: 8000, Shaper: HTBShaper}, {}}[i%4]
	}
	seen := map[uint32]string{}
	for _, q := range plan(classes, false, true).qdiscs {
		if other, ok := seen[q.handle]; ok || !isOurs(q.handle) || q.handle&0xffff != 0 {
			t.Fatalf("%s %s: also %q, or none of ours", q.kind, handleName(q.handle), other)
		}
		seen[q.handle] = q.kind
	}
	for kind := range majors {
		if h := handleOf(kind, MaxClasses, stages-1); !isOurs(h) {
			t.Errorf("the last %s would be %s", kind, handleName(h))
		}
	}
}

func TestFilters(t *testing.T) {
	c := Class{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/23"), netip.MustParsePrefix("fd00:1:ab00::/40"), netip.MustParsePrefix("0.0.0.0/0")}}
	got := filters(3, &c, 7, true)
	want := []filter{
		{7, protoIPv4, 7, []key{{0xfffffe00, 0x0a010200, 12}}},
		{8, protoIPv6, 7, []key{{0xffffffff, 0xfd000001, 8}, {0xff000000, 0xab000000, 12}}},
		{7, protoIPv4, 7, []key{{0, 0, 12}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("filters\n%x, want\n%x", got, want)
	}
}

func TestSizedLimit(t *testing.T) {
	for _, c := range []struct {
		rate  vtime.BitRate
		delay vtime.Duration
		want  int
	}{{vtime.MbitPerSecond, 0, 50}, {100 * vtime.MbitPerSecond, 100 * vtime.Millisecond, 834}, {100 * vtime.MbitPerSecond, 10 * vtime.Second, 8334}} {
		if got := SizedLimit(c.rate, c.delay); got != c.want {
			t.Errorf("%v over %v: %d, want %d", c.rate, c.delay, got, c.want)
		}
	}
}

func TestLinkAsJSON(t *testing.T) {
	l := Link{Interface: "x", Egress: []Class{{Peers: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}, Shape: Shape{Rate: 8000, Delay: 5, Loss: pipe.Loss{Good: 0.1}, Slots: &Slots{Max: 3}}}}}
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back Link
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(l, back) {
		t.Errorf("%s became %+v (%v)", b, back, err)
	}
}
