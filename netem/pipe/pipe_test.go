package pipe

import (
	"math"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// collector records what comes out.
type collector struct {
	at    []vtime.Time
	seq   []int
	drops []int
	cause []Cause
}

func (c *collector) Deliver(now vtime.Time, p *Packet) {
	c.at = append(c.at, now)
	c.seq = append(c.seq, p.Payload.(int))
}

func (c *collector) Drop(_ vtime.Time, p *Packet, why Cause) {
	c.drops = append(c.drops, p.Payload.(int))
	c.cause = append(c.cause, why)
}

// source sends one packet of n bytes every gap, count times.
type source struct {
	p     *Pipe
	eng   *des.Engine
	n     vtime.Bytes
	gap   vtime.Duration
	count int
	sent  int
}

func (s *source) Fire(now vtime.Time, _ uint64) {
	k := s.p.NewPacket()
	k.Len, k.Payload = s.n, s.sent
	s.sent++
	s.p.Send(k)
	if s.sent < s.count {
		s.eng.Schedule(now.Add(s.gap), s, 0)
	}
}

func build(t testing.TB, seed uint64, cfg Config) (*des.Engine, *Pipe, *collector) {
	t.Helper()
	eng, c := des.New(), new(collector)
	p, err := New(eng, seed, "link", cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	return eng, p, c
}

func feed(eng *des.Engine, p *Pipe, n vtime.Bytes, gap vtime.Duration, count int) {
	eng.Schedule(eng.Now(), &source{p: p, eng: eng, n: n, gap: gap, count: count}, 0)
	for eng.Step() {
	}
}

// TestDelayIsExact: rate and delay, to the nanosecond.
func TestDelayIsExact(t *testing.T) {
	const ms = vtime.Millisecond
	eng, p, c := build(t, 1, Config{Delay: 37*ms + 5})
	feed(eng, p, 1500, ms, 3)
	for i, at := range c.at {
		if want := vtime.Time(vtime.Duration(i)*ms + 37*ms + 5); at != want {
			t.Errorf("packet %d at %v, want %v", i, at, want)
		}
	}
	// 11 Mb/s: 1,538 bytes with framing take 1,118,546 ns (rounded up).
	eng, p, c = build(t, 1, Config{Rate: 11 * vtime.MbitPerSecond, Delay: 10 * ms, Overhead: 38})
	feed(eng, p, 1500, 0, 3)
	for i, at := range c.at {
		if want := vtime.Time(vtime.Duration(i+1)*1118546 + 10*ms); at != want {
			t.Errorf("packet %d at %d, want %d", i, at, want)
		}
	}
}

// TestQueueLimits: packets and bytes, the one in service included; FIFO.
func TestQueueLimits(t *testing.T) {
	for _, q := range []Queue{{Packets: 7}, {Bytes: 7500}} {
		eng, p, c := build(t, 1, Config{Rate: vtime.MbitPerSecond, Queue: q})
		feed(eng, p, 1000, 0, 30)
		if len(c.seq) != 7 || len(c.drops) != 23 {
			t.Errorf("%+v: %d delivered, %d dropped; want 7 and 23", q, len(c.seq), len(c.drops))
		}
		for i, s := range c.seq {
			if s != i {
				t.Errorf("%+v: packet %d came as number %d", q, s, i)
			}
		}
	}
}

// TestOrder: jitter keeps the order unless overtaking is allowed.
func TestOrder(t *testing.T) {
	for _, d := range []Distribution{Uniform, Normal, Exponential, Pareto} {
		for _, overtake := range []bool{false, true} {
			eng, p, c := build(t, 3, Config{Delay: 20 * vtime.Millisecond,
				Jitter: Jitter{Distribution: d, Spread: 10 * vtime.Millisecond, Overtake: overtake}})
			feed(eng, p, 1000, vtime.Millisecond, 2000)
			inversions := 0
			for i := 1; i < len(c.seq); i++ {
				if c.seq[i] < c.seq[i-1] {
					inversions++
				}
			}
			if (inversions > 0) != overtake || len(c.seq) != 2000 {
				t.Errorf("distribution %d, overtake %v: %d of %d out of order", d, overtake, inversions, len(c.seq))
			}
		}
	}
}

// TestJitterMoments: mean and spread of each distribution, within five
// standard errors.
func TestJitterMoments(t *testing.T) {
	const n, delay, spread = 20000, 100.0, 10.0 // ms
	for _, tc := range []struct {
		d        Distribution
		mean, sd float64
	}{
		{Uniform, delay, spread / math.Sqrt(3)},
		{Normal, delay, spread},
		{Exponential, delay + spread, spread},
		{Pareto, delay + spread, spread / math.Sqrt(3)}, // shape 3: variance mean²/3
	} {
		eng, p, c := build(t, 9, Config{Delay: 100 * vtime.Millisecond,
			Jitter: Jitter{Distribution: tc.d, Spread: 10 * vtime.Millisecond, Overtake: true}})
		feed(eng, p, 100, vtime.Millisecond, n)
		var sum, sq float64
		for i, s := range c.seq {
			x := c.at[i].Seconds()*1000 - float64(s)
			sum += x
			sq += x * x
		}
		mean := sum / n
		sd := math.Sqrt(sq/n - mean*mean)
		if math.Abs(mean-tc.mean) > 5*tc.sd/math.Sqrt(n) {
			t.Errorf("distribution %d: mean %.3f ms, want %.3f", tc.d, mean, tc.mean)
		}
		tol := 0.05
		if tc.d == Pareto {
			tol = 0.25 // the fourth moment is infinite: the estimate is coarse
		}
		if math.Abs(sd/tc.sd-1) > tol {
			t.Errorf("distribution %d: standard deviation %.3f ms, want %.3f", tc.d, sd, tc.sd)
		}
	}
}

// TestBernoulliLoss: the rate lies within the 99.99 % interval of the
// binomial, on entry and after the queue.
func TestBernoulliLoss(t *testing.T) {
	const n = 50000
	for _, after := range []bool{false, true} {
		for _, p := range []float64{0.001, 0.02, 0.3, 1} {
			eng, pp, c := build(t, 4, Config{Loss: Loss{Good: vtime.Fraction(p)}, LossAfterQueue: after, Rate: vtime.GbitPerSecond})
			feed(eng, pp, 100, 10*vtime.Microsecond, n)
			got := float64(len(c.drops)) / n
			if ci := 3.9 * math.Sqrt(p*(1-p)/n); math.Abs(got-p) > ci {
				t.Errorf("loss %g (after the queue: %v): measured %.5f, more than %.5f off", p, after, got, ci)
			}
			for _, w := range c.cause {
				if w != Lost {
					t.Fatalf("dropped by %v", w)
				}
			}
		}
	}
}

// TestLossAfterQueueOccupies: such a loss costs the link's time, one on entry
// does not.
func TestLossAfterQueueOccupies(t *testing.T) {
	for _, after := range []bool{false, true} {
		eng, p, c := build(t, 4, Config{Rate: vtime.MbitPerSecond, Loss: Loss{Good: 1}, LossAfterQueue: after})
		feed(eng, p, 1000, 0, 10)
		want := vtime.Duration(0)
		if after {
			want = 10 * vtime.MbitPerSecond.TxTime(1000)
		}
		if got := p.Stats().BusyTime; got != want || len(c.drops) != 10 {
			t.Errorf("after the queue: %v: busy %v, want %v; %d drops", after, got, want, len(c.drops))
		}
	}
}

// TestReorderAndDuplicate: the shares, and that each packet still comes.
func TestReorderAndDuplicate(t *testing.T) {
	const n = 20000
	eng, p, c := build(t, 7, Config{Delay: 10 * vtime.Millisecond, Reorder: Reorder{Share: 0.05, Extra: 5 * vtime.Millisecond}, Duplicate: 0.02})
	feed(eng, p, 100, vtime.Millisecond, n)
	seen := make([]int, n)
	for _, s := range c.seq {
		seen[s]++
	}
	dups := 0
	for i, k := range seen {
		if k == 0 {
			t.Fatalf("packet %d never came", i)
		}
		dups += k - 1
	}
	s := p.Stats()
	if uint64(dups) != s.Duplicates || math.Abs(float64(dups)/n-0.02) > 0.004 {
		t.Errorf("%d duplicates (counter %d), want 2 %%", dups, s.Duplicates)
	}
	if math.Abs(float64(s.HeldBack)/n-0.05) > 0.007 {
		t.Errorf("%d held back, want 5 %%", s.HeldBack)
	}
	late := 0
	high := -1
	for _, q := range c.seq {
		if q < high {
			late++
		}
		high = max(high, q)
	}
	if late < int(s.HeldBack)*9/10 {
		t.Errorf("%d packets were overtaken, %d held back", late, s.HeldBack)
	}
}

// cloning gives the second copy a payload of its own.
type cloning struct{ collector }

func (c *cloning) Clone(v any) any { return v.(int) + 1_000_000 }

func TestDuplicateIsCloned(t *testing.T) {
	eng, c := des.New(), new(cloning)
	p, err := New(eng, 1, "link", Config{Duplicate: 1}, c)
	if err != nil {
		t.Fatal(err)
	}
	feed(eng, p, 100, vtime.Millisecond, 2)
	if len(c.seq) != 4 || c.seq[1] != 1_000_000 || c.seq[3] != 1_000_001 {
		t.Errorf("payloads %v", c.seq)
	}
}

func ptr[T any](v T) *T { return &v }

// TestSchedule: a change of rate in mid-packet is exact; a pipe that is down
// keeps its queue and what has left arrives; the limit can be lifted.
func TestSchedule(t *testing.T) {
	ms := func(n int64) vtime.Time { return vtime.Time(n) * vtime.Time(vtime.Millisecond) }
	// 1,000 bytes at 1 Mb/s take 8 ms. At 4 ms half is left; 2 Mb/s send it in 2 ms.
	eng, p, c := build(t, 1, Config{Rate: vtime.MbitPerSecond, Delay: 3 * vtime.Millisecond, Schedule: []Change{
		{At: ms(4), Rate: ptr(2 * vtime.MbitPerSecond)},
		{At: ms(8), Up: ptr(false)},
		{At: ms(50), Up: ptr(true), Delay: ptr(vtime.Duration(0))},
		{At: ms(60), Rate: ptr(vtime.BitRate(0))},
	}})
	feed(eng, p, 1000, 0, 20)
	// Packet 0 leaves at 6 ms; 1 is half sent at 8 ms, when the link goes down,
	// and goes on at 50 ms: 52 ms; then one per 4 ms; the rest at 60 ms.
	want := []vtime.Time{ms(9), ms(52), ms(56), ms(60)}
	for i, w := range want {
		if c.at[i] != w {
			t.Errorf("packet %d at %v, want %v", i, c.at[i], w)
		}
	}
	if len(c.at) != 20 || c.at[19] != ms(60) {
		t.Errorf("%d packets, the last at %v; want 20, at 60 ms", len(c.at), c.at[len(c.at)-1])
	}
}

func TestScheduledLoss(t *testing.T) {
	eng, p, c := build(t, 1, Config{Schedule: []Change{
		{At: vtime.Time(100 * vtime.Millisecond), Loss: &Loss{Good: 1}},
		{At: vtime.Time(200 * vtime.Millisecond), Loss: &Loss{}},
	}})
	feed(eng, p, 100, vtime.Millisecond, 300)
	if len(c.drops) != 100 || c.drops[0] != 100 || c.drops[99] != 199 {
		t.Errorf("%d lost, from %v; want 100 to 199", len(c.drops), c.drops[:1])
	}
}

// TestDeterminism: one hash per seed; another pipe's draws do not matter.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64, extra bool) (uint64, []int) {
		eng, p, c := build(t, seed, Config{Rate: 8 * vtime.MbitPerSecond, Delay: vtime.Millisecond,
			Jitter: Jitter{Distribution: Exponential, Spread: vtime.Millisecond, Overtake: true},
			Loss:   Loss{Good: 0.1}, Duplicate: 0.1, Reorder: Reorder{0.1, vtime.Millisecond}})
		if extra {
			q, err := New(eng, seed, "other", Config{Loss: Loss{Good: 0.5}}, new(collector))
			if err != nil {
				t.Fatal(err)
			}
			eng.Schedule(0, &source{p: q, eng: eng, n: 10, gap: 100 * vtime.Microsecond, count: 500}, 0)
		}
		feed(eng, p, 1000, vtime.Millisecond, 500)
		return eng.TraceHash(), c.seq
	}
	h1, s1 := run(1, false)
	h2, s2 := run(1, false)
	if h1 != h2 {
		t.Error("equal seeds, different traces")
	}
	if !slices.Equal(s1, s2) {
		t.Errorf("equal seeds: %v arrived, then %v", s1, s2)
	}
	if h3, _ := run(2, false); h3 == h1 {
		t.Error("different seeds, equal traces")
	}
	_, s4 := run(1, true)
	if !slices.Equal(s1, s4) {
		t.Errorf("another pipe changed this one's draws: %v arrived, then %v", s1, s4)
	}
}

// TestNoSteadyAllocation: the pool and the slots are reused.
func TestNoSteadyAllocation(t *testing.T) {
	eng := des.New()
	p, err := New(eng, 1, "link", Config{Rate: 100 * vtime.MbitPerSecond, Delay: vtime.Millisecond, Loss: Loss{Good: 0.1}, Queue: Queue{Packets: 50}}, discard{})
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		for range 20 {
			k := p.NewPacket()
			k.Len = 1000
			p.Send(k)
		}
		eng.RunUntil(eng.Now().Add(2 * vtime.Millisecond))
	}
	for range 100 {
		send()
	}
	if n := testing.AllocsPerRun(200, send); n != 0 {
		t.Errorf("%.2f allocations per round", n)
	}
}

type discard struct{}

func (discard) Deliver(vtime.Time, *Packet)     {}
func (discard) Drop(vtime.Time, *Packet, Cause) {}
