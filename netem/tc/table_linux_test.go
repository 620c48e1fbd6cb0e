package tc

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// aMeasurement is one line of the table in DESIGN.md: what was asked, over a load
// that shows it, and what must have come of it. Delays are bounded below only by
// what was asked and above generously, since the lane's processors are emulated.
type aMeasurement struct {
	name  string
	cfg   *pipe.Config // nil: a pipe has nothing like it
	shape Shape        // the zero value: converted from cfg
	load  load
	show  func(m measured) string
	check func(t *testing.T, who string, m measured)
	alike func(t *testing.T, k, own measured)
	count func(t *testing.T, c Counters, st pipe.Stats, k measured)
}

func delays(m measured) string {
	return fmt.Sprintf("least %s, median %s, deviation %s ms", msText(m.least), msText(m.median), msText(m.spread))
}
func losses(m measured) string {
	return fmt.Sprintf("%s, bursts of %.2f", percent(m.loss), m.burst)
}
func rates(m measured) string {
	return fmt.Sprintf("%.3f Mbit/s, %d of %d", m.rate/1e6, m.arrived, m.sent)
}

// slack is how late a busy machine with emulated processors may be.
const slack = 100 * ms

func delayed(d vtime.Duration) func(*testing.T, string, measured) {
	return func(t *testing.T, who string, m measured) {
		t.Helper()
		if m.arrived != m.sent || m.least < d || m.median > d+slack {
			t.Errorf("%s: %d of %d arrived, delay at least %v, median %v: want all, %v", who, m.arrived, m.sent, m.least, m.median, d)
		}
	}
}

// varied wants the mean and the deviation of a distribution, kernel and pipe alike.
func varied(mean, deviation vtime.Duration) func(*testing.T, string, measured) {
	return func(t *testing.T, who string, m measured) {
		t.Helper()
		if m.arrived != m.sent {
			t.Errorf("%s: %d of %d arrived", who, m.arrived, m.sent)
		}
		// Lateness adds to both.
		if m.mean < mean-mean/10 || m.mean > mean+slack || float64(m.spread) < 0.85*float64(deviation) || m.spread > deviation+slack {
			t.Errorf("%s: mean %v, deviation %v: want %v, %v", who, m.mean, m.spread, mean, deviation)
		}
	}
}

func lossy(p, burst float64) func(*testing.T, string, measured) {
	return func(t *testing.T, who string, m measured) {
		t.Helper()
		if !within(m.loss, p, m.sent, burst) {
			t.Errorf("%s: loss %v, want %v", who, m.loss, p)
		}
		// The length of bursts has a geometric distribution.
		if n := float64(m.sent) * m.loss / burst; math.Abs(m.burst-burst) > 5*burst/math.Sqrt(n) {
			t.Errorf("%s: losses in runs of %v, want %v", who, m.burst, burst)
		}
	}
}

// atRate bounds the rate from above. Whether the load was enough depends on how
// busy the machine is: the pipe, which got the same packets at the same moments,
// says what is to be expected from below.
func atRate(bits float64) func(*testing.T, string, measured) {
	return func(t *testing.T, who string, m measured) {
		t.Helper()
		if m.rate > 1.03*bits || m.rate == 0 {
			t.Errorf("%s: rate %.4g, want %.4g", who, m.rate, bits)
		}
	}
}

// alikeRate wants what the pipe carried. A machine that stands still makes the
// kernel's timers late: buckets of tokens overflow meanwhile, and queues are emptied
// late. So less may come, but never more.
func alikeRate(t *testing.T, k, own measured) {
	t.Helper()
	if k.rate > 1.03*own.rate || k.rate < 0.4*own.rate || float64(k.arrived) > 1.03*float64(own.arrived)+2 || float64(k.arrived) < 0.4*float64(own.arrived) {
		t.Errorf("netem: %.4g bit/s, %d packets; the pipe %.4g, %d", k.rate, k.arrived, own.rate, own.arrived)
	}
}

func measurements() []aMeasurement {
	gentle := load{packets: 400, bytes: 200, gap: 2 * ms}
	many := load{packets: 20000, bytes: 60}
	jitter := func(d pipe.Distribution, spread vtime.Duration, overtake bool) pipe.Jitter {
		return pipe.Jitter{Distribution: d, Spread: spread, Overtake: overtake}
	}
	noLimit := pipe.Queue{}
	return []aMeasurement{
		{name: "delay 20 ms", cfg: &pipe.Config{Delay: 20 * ms}, load: gentle, show: delays, check: delayed(20 * ms)},
		{name: "delay 300 ms", cfg: &pipe.Config{Delay: 300 * ms}, load: gentle, show: delays, check: delayed(300 * ms)},
		{name: "delay 40 ms, uniform ± 10 ms, overtaking", cfg: &pipe.Config{Delay: 40 * ms, Jitter: jitter(pipe.Uniform, 10*ms, true)}, load: load{3000, 60, ms}, show: delays, check: varied(40*ms, vtime.Duration(float64(10*ms)/math.Sqrt(3)))},
		{name: "delay 40 ms, normal 8 ms, overtaking", cfg: &pipe.Config{Delay: 40 * ms, Jitter: jitter(pipe.Normal, 8*ms, true)}, load: load{3000, 60, ms}, show: delays, check: varied(40*ms, 8*ms)},
		{name: "delay 40 ms, normal 8 ms, in order", cfg: &pipe.Config{Delay: 40 * ms, Jitter: jitter(pipe.Normal, 8*ms, false)}, load: load{400, 60, 20 * ms}, show: delays, check: func(t *testing.T, who string, m measured) {
			if m.overtaken > 0 || m.arrived != m.sent {
				t.Errorf("%s: %v overtaken, %d of %d arrived", who, m.overtaken, m.arrived, m.sent)
			}
		}},
		{name: "delay 10 ms, exponential 15 ms, overtaking", cfg: &pipe.Config{Delay: 10 * ms, Jitter: jitter(pipe.Exponential, 15*ms, true)}, load: load{3000, 60, ms}, show: delays, check: varied(25*ms, 15*ms)},
		{name: "delay 10 ms, pareto 15 ms, overtaking", cfg: &pipe.Config{Delay: 10 * ms, Jitter: jitter(pipe.Pareto, 15*ms, true)}, load: load{3000, 60, ms}, show: delays, check: varied(25*ms, 6*ms)}, // its deviation converges slowly
		{name: "loss 1 %", cfg: &pipe.Config{Loss: pipe.Loss{Good: 0.01}}, load: many, show: losses, check: lossy(0.01, 1/0.99)},
		{name: "loss 20 %", cfg: &pipe.Config{Loss: pipe.Loss{Good: 0.2}}, load: many, show: losses, check: lossy(0.2, 1/0.8)},
		{name: "loss in bursts: to bad 1 %, to good 25 %, bad 100 %", cfg: &pipe.Config{Loss: pipe.Loss{Bad: 1, ToBad: 0.01, ToGood: 0.25}}, load: many, show: losses, check: lossy(0.01/0.26, 4)},
		{name: "loss in bursts: good 1 %, bad 50 %, to bad 5 %, to good 20 %", cfg: &pipe.Config{Loss: pipe.Loss{Good: 0.01, Bad: 0.5, ToBad: 0.05, ToGood: 0.2}}, load: many, show: losses, check: func(t *testing.T, who string, m measured) {
			if !within(m.loss, 0.01*0.8+0.5*0.2, m.sent, 5) {
				t.Errorf("%s: loss %v", who, m.loss)
			}
		}},
		{name: "rate 10 Mbit/s, queue of 50", cfg: &pipe.Config{Rate: 10 * mbit, Queue: pipe.Queue{Packets: 50}}, load: load{3000, 1500, 600 * vtime.Microsecond}, show: rates, check: atRate(10e6), alike: alikeRate},
		{name: "rate 1 Mbit/s, 38 bytes more a packet", cfg: &pipe.Config{Rate: mbit, Overhead: 38, Queue: noLimit}, load: load{1000, 100, 0}, show: rates, check: atRate(1e6 * 100 / 138), alike: alikeRate},
		{name: "rate 20 Mbit/s, delay 10 ms, queue of 1000", cfg: &pipe.Config{Rate: 20 * mbit, Delay: 10 * ms, Queue: pipe.Queue{Packets: 1000}}, load: load{900, 1500, 0}, show: rates, check: atRate(20e6), alike: alikeRate},
		{name: "rate 80 kbit/s, queue of 20, delay 200 ms, a burst of 50", cfg: &pipe.Config{Rate: 80 * vtime.KbitPerSecond, Delay: 200 * ms, Queue: pipe.Queue{Packets: 20}}, load: load{50, 1000, 0}, show: rates,
			check: func(t *testing.T, who string, m measured) {
				if m.arrived != 20 || m.least < 300*ms || m.median < 1200*ms {
					t.Errorf("%s: %d of 50 arrived, the first after %v, half after %v: want 20, 300 ms, 1.3 s", who, m.arrived, m.least, m.median)
				}
			},
			count: func(t *testing.T, c Counters, st pipe.Stats, _ measured) {
				if c.Dropped != 30 || c.Lost != 0 || c.Packets != 20 || st.Overflows != 30 {
					t.Errorf("counters %+v, pipe %+v: want 30 drops of the queue", c, st)
				}
			}},
		{name: "loss 10 % beside a full queue of 20 (80 kbit/s)", cfg: &pipe.Config{Rate: 80 * vtime.KbitPerSecond, Loss: pipe.Loss{Good: 0.1}, Queue: pipe.Queue{Packets: 20}}, load: load{200, 1000, 0}, show: rates,
			check: func(t *testing.T, who string, m measured) {
				if m.arrived < 20 || m.arrived > 22 { // one more for each 100 ms of sending
					t.Errorf("%s: %d arrived, want 20", who, m.arrived)
				}
			},
			count: func(t *testing.T, c Counters, _ pipe.Stats, k measured) {
				if int(c.Lost+c.Dropped+c.Packets) != k.sent || int(c.Packets) != k.arrived || c.Lost < 3 || c.Lost > 45 {
					t.Errorf("counters %+v of %d sent, %d arrived", c, k.sent, k.arrived)
				}
			}},
		{name: "5 % held back by 12 ms", cfg: &pipe.Config{Delay: 10 * ms, Reorder: pipe.Reorder{Share: 0.05, Extra: 12 * ms}}, load: load{4000, 60, ms / 2}, show: func(m measured) string { return percent(m.overtaken) + " overtaken" },
			check: func(t *testing.T, who string, m measured) {
				if m.arrived != m.sent || !within(m.overtaken, 0.05, m.sent, 1) {
					t.Errorf("%s: %v overtaken, %d of %d arrived", who, m.overtaken, m.arrived, m.sent)
				}
			},
			count: func(t *testing.T, c Counters, st pipe.Stats, k measured) {
				if int(c.Packets) != k.sent || c.Lost+c.Dropped > 0 {
					t.Errorf("counters %+v", c)
				}
			}},
		{name: "loss 10 % after the queue (10 Mbit/s)", cfg: &pipe.Config{Rate: 10 * mbit, Loss: pipe.Loss{Good: 0.1}, LossAfterQueue: true, Queue: pipe.Queue{Packets: 3000}}, load: load{3000, 500, 0}, show: losses, check: lossy(0.1, 1/0.9),
			count: func(t *testing.T, c Counters, st pipe.Stats, k measured) {
				if int(c.Lost) != k.sent-k.arrived || c.Dropped != 0 {
					t.Errorf("counters %+v of %d sent, %d arrived", c, k.sent, k.arrived)
				}
			}},
		{name: "10 % arrive twice", cfg: &pipe.Config{Duplicate: 0.1}, load: load{10000, 60, 0}, show: func(m measured) string { return percent(float64(m.copies)/float64(m.sent)) + " twice" },
			check: func(t *testing.T, who string, m measured) {
				if m.arrived != m.sent || !within(float64(m.copies)/float64(m.sent), 0.1, m.sent, 1) {
					t.Errorf("%s: %d copies of %d, %d arrived", who, m.copies, m.sent, m.arrived)
				}
			}},
		{name: "rate 10 Mbit/s, queue of 45,000 bytes (tbf)", cfg: &pipe.Config{Rate: 10 * mbit, Queue: pipe.Queue{Bytes: 45000}}, load: load{3000, 1500, 600 * vtime.Microsecond}, show: rates, check: atRate(10e6), alike: alikeRate},
		{name: "rate 5 Mbit/s (htb)", shape: Shape{Rate: 5 * mbit, Shaper: HTBShaper, Limit: 100}, cfg: &pipe.Config{Rate: 5 * mbit, Queue: pipe.Queue{Packets: 100}}, load: load{1500, 1500, vtime.Millisecond}, show: rates, check: atRate(5e6), alike: alikeRate},
		{name: "5 % with one bit inverted", shape: Shape{Corrupt: 0.05}, load: load{10000, 1000, 0}, show: func(m measured) string { return percent(m.damaged) + " damaged" },
			check: func(t *testing.T, who string, m measured) {
				// Bits of the headers and of our mark are not seen as damage.
				if m.damaged < 0.035 || m.damaged > 0.06 {
					t.Errorf("%s: %v damaged", who, m.damaged)
				}
			}},
		{name: "loss of four states: p13 2 %, p31 50 %", shape: Shape{LossStates: &LossStates{P13: 0.02, P31: 0.5}}, load: many, show: losses, check: lossy(0.02/0.52, 2)},
		{name: "slots of 20 ms", shape: Shape{Slots: &Slots{Min: 20 * ms, Max: 20 * ms}}, load: load{500, 60, 2 * ms}, show: delays, check: func(t *testing.T, who string, m measured) {
			if m.arrived != m.sent || m.median < 5*ms || m.median > 10*ms+slack {
				t.Errorf("%s: median %v, %d of %d: want 10 ms", who, m.median, m.arrived, m.sent)
			}
		}},
	}
}

func testMeasurements(t *testing.T) {
	for _, m := range measurements() {
		t.Run(m.name, func(t *testing.T) {
			s := m.shape
			if m.cfg != nil && s == (Shape{}) {
				var err error
				if s, err = FromPipe(m.cfg); err != nil {
					t.Fatal(err)
				}
			}
			quiet := max(300*ms, 2*s.Delay+100*ms)
			k, own, c, st := run(t, s, m.cfg, m.load, quiet)
			m.check(t, "netem", k)
			ownText := "–"
			if m.cfg != nil {
				m.check(t, "pipe", own)
				ownText = m.show(own)
			}
			if m.alike != nil {
				m.alike(t, k, own)
			}
			if m.count != nil {
				m.count(t, c, st, k)
			}
			t.Logf("| %s | %s | %s |", m.name, m.show(k), ownText)
		})
	}
}
