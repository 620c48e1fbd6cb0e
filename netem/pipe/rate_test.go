package pipe

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A saturated pipe carries exactly its rate, and counts what it did.
func TestSaturatedPipe(t *testing.T) {
	eng, p, c := build(t, 1, Config{Rate: 5 * vtime.MbitPerSecond, Queue: Queue{Packets: 20}})
	feed(eng, p, 1000, vtime.Millisecond, 5000) // 8 Mb/s offered
	one := (5 * vtime.MbitPerSecond).TxTime(1000)
	got := float64(len(c.at)-1) * 8000 / c.at[len(c.at)-1].Sub(c.at[0]).Seconds()
	if math.Abs(got/5e6-1) > 1e-9 {
		t.Errorf("a saturated pipe of 5 Mb/s carried %.0f b/s", got)
	}
	s := p.Stats()
	if s.Overflows == 0 || s.MaxQueued != 20 || s.Entered != s.Delivered+s.Overflows || int(s.Overflows) != len(c.drops) {
		t.Errorf("counters %+v", s)
	}
	if busy := vtime.Duration(s.Delivered) * one; s.BusyTime != busy {
		t.Errorf("busy %v, want %v", s.BusyTime, busy)
	}
}

// lengths records when packets arrive and what they occupy of the link, in bytes.
type lengths struct {
	over vtime.Bytes
	at   []vtime.Time
	n    []vtime.Bytes
	lost int
}

func (l *lengths) Deliver(now vtime.Time, p *Packet) {
	l.at = append(l.at, now)
	l.n = append(l.n, p.Len+l.over)
}

func (l *lengths) Drop(vtime.Time, *Packet, Cause) { l.lost++ }

// mixed offers packets of random length, up to 1500 bytes, in bursts of random
// length.
type mixed struct {
	p     *Pipe
	eng   *des.Engine
	draw  *des.Stream
	count int
}

func (m *mixed) Fire(now vtime.Time, _ uint64) {
	for range 1 + m.draw.IntN(12) {
		k := m.p.NewPacket()
		k.Len = vtime.Bytes(40 + m.draw.IntN(1461))
		m.p.Send(k)
	}
	if m.count--; m.count > 0 {
		m.eng.Schedule(now.Add(vtime.Duration(m.draw.IntN(10_000_000))), m, 0)
	}
}

// TestRateBound: in no interval, from any departure to any later one, leaves
// more than what the rates in force let through: with packets of mixed lengths,
// an idle link in between, and after changes of the rate, one in mid-packet, a
// link that is down and one that comes back with another rate. The packet that
// leaves at the interval's begin was sent before it; every other was sent in it
// as a whole, but for what the rounding up to the nanosecond leaves.
func TestRateBound(t *testing.T) {
	const kbit, ms = 1000 * vtime.BitPerSecond, vtime.Millisecond
	at := func(n int64) vtime.Time { return vtime.Time(n) * vtime.Time(ms) }
	for _, tc := range []struct {
		name     string
		schedule []Change
	}{
		{"one rate", nil},
		{"faster, slower", []Change{{At: at(317), Rate: ptr(23 * vtime.MbitPerSecond)}, {At: at(701), Rate: ptr(900 * kbit)}, {At: at(1300), Rate: ptr(7 * vtime.MbitPerSecond)}}},
		{"down in between", []Change{{At: at(300), Up: ptr(false)}, {At: at(340), Rate: ptr(50 * vtime.MbitPerSecond)}, {At: at(400), Up: ptr(true)}, {At: at(900), Rate: ptr(2 * vtime.MbitPerSecond)}}},
	} {
		const first, overhead = 5 * vtime.MbitPerSecond, 38
		eng, l := des.New(), &lengths{over: overhead}
		p, err := New(eng, 1, "link", Config{Rate: first, Overhead: overhead, Delay: 3 * ms, Queue: Queue{Packets: 60}, Schedule: tc.schedule}, l)
		if err != nil {
			t.Fatal(err)
		}
		eng.Schedule(0, &mixed{p: p, eng: eng, draw: des.NewStream(11, "lengths"), count: 400}, 0)
		for eng.Step() {
		}
		if len(l.at) < 1000 || l.lost == 0 {
			t.Fatalf("%s: %d arrived, %d lost: the link was hardly full", tc.name, len(l.at), l.lost)
		}
		// could is what the link could carry until a departure, in bit·ns/s.
		could := make([]int64, len(l.at))
		for i, a := range l.at {
			could[i] = allowed(first, tc.schedule, a.Add(-3*ms))
		}
		worst := math.Inf(-1)
		for i := range l.at {
			sent := int64(0)
			for j := i + 1; j < len(l.at); j++ {
				sent += int64(l.n[j]) * bitNanos
				over := sent - (could[j] - could[i])
				if over > 0 {
					t.Fatalf("%s: after %v, until %v, %d packets left that need %d bit·ns/s more than the rate allows", tc.name, l.at[i], l.at[j], j-i, over)
				}
				worst = max(worst, float64(over)/bitNanos)
			}
		}
		// And a link that is full uses what it may: some interval of back-to-back
		// packets is used but for the rounding, far less than a byte.
		if worst < -1 {
			t.Errorf("%s: every interval has %.1f bytes unused: the link never was full", tc.name, -worst)
		}
	}
}

// allowed is what a link can carry from 0 to a time, in bit·ns/s.
func allowed(rate vtime.BitRate, schedule []Change, until vtime.Time) int64 {
	sum, since, up := int64(0), vtime.Time(0), true
	add := func(to vtime.Time) {
		if up {
			sum += int64(to.Sub(since)) * int64(rate)
		}
		since = to
	}
	for _, ch := range schedule {
		if ch.At >= until {
			break
		}
		add(ch.At)
		if ch.Rate != nil {
			rate = *ch.Rate
		}
		if ch.Up != nil {
			up = *ch.Up
		}
	}
	add(until)
	return sum
}
