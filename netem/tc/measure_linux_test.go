package tc

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// load is what is sent over a link under measurement.
type load struct {
	packets, bytes int            // of IP each
	gap            vtime.Duration // 0 = as fast as it goes
}

// sent is one packet as it was given to the link.
type sent struct {
	number int
	at     vtime.Duration
}

// offer sends the load from one end of the link.
func (w *wire) offer(t *testing.T, l load) []sent {
	t.Helper()
	out := make([]sent, 0, l.packets)
	next := now()
	for i := range l.packets {
		if l.gap > 0 {
			for d := next - now(); d > 0; d = next - now() {
				ts := unix.NsecToTimespec(int64(d))
				_ = unix.Nanosleep(&ts, nil)
			}
			next += l.gap
		}
		at, err := w.trySend(anySource, anyPeer, i, l.bytes)
		// The kernel says that a discipline dropped the packet: it was offered.
		if err != nil && err != unix.ENOBUFS {
			t.Fatal(err)
		}
		out = append(out, sent{i, at})
	}
	return out
}

// sink collects what a pipe delivers.
type sink struct{ got []arrival }

func (s *sink) Deliver(now vtime.Time, p *pipe.Packet) {
	s.got = append(s.got, arrival{number: p.Payload.(int), at: vtime.Duration(now), delay: vtime.Duration(now.Sub(p.Sent)), intact: true})
}
func (s *sink) Drop(vtime.Time, *pipe.Packet, pipe.Cause) {}

// feed sends packets at their moments into a pipe.
type feed struct {
	p     *pipe.Pipe
	bytes int
	list  []sent
}

func (f *feed) Fire(_ vtime.Time, arg uint64) {
	k := f.p.NewPacket()
	k.Len, k.Payload = vtime.Bytes(f.bytes), f.list[arg].number
	f.p.Send(k)
}

// throughPipe gives the same packets at the same moments to this program's own
// pipe, in virtual time.
func throughPipe(t *testing.T, cfg pipe.Config, list []sent, bytes int) ([]arrival, pipe.Stats) {
	t.Helper()
	eng, s := des.New(), &sink{}
	p, err := pipe.New(eng, 7, "measured", cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{p, bytes, list}
	for i := range list {
		eng.Schedule(vtime.Time(list[i].at-list[0].at), f, uint64(i))
	}
	for eng.Step() {
	}
	return s.got, p.Stats()
}

// measured is what a link did to a load.
type measured struct {
	sent, arrived, copies int
	least, median, spread vtime.Duration // of the delay
	mean                  vtime.Duration
	loss                  float64 // share of the packets
	burst                 float64 // mean length of a run of losses
	rate                  float64 // bit/s of IP between the first and the last arrival
	overtaken             float64 // share that a later one overtook
	damaged               float64
}

func measure(offered []sent, got []arrival, bytes int) measured {
	m := measured{sent: len(offered)}
	seen := make([]bool, len(offered))
	var delays []vtime.Duration
	late, highest, bad := 0, -1, 0
	for _, a := range got {
		if !a.intact {
			bad++
		}
		if a.number >= len(seen) { // its number was damaged
			continue
		}
		if seen[a.number] {
			m.copies++
			continue
		}
		seen[a.number] = true
		m.arrived++
		delays = append(delays, a.delay)
		if a.number < highest {
			late++
		}
		highest = max(highest, a.number)
	}
	runs, lost := 0, 0
	for i, ok := range seen {
		if !ok {
			lost++
			if i == 0 || seen[i-1] {
				runs++
			}
		}
	}
	m.loss = float64(lost) / float64(len(seen))
	if runs > 0 {
		m.burst = float64(lost) / float64(runs)
	}
	if len(delays) == 0 {
		return m
	}
	m.overtaken, m.damaged = float64(late)/float64(len(delays)), float64(bad)/float64(len(got))
	if n := len(got); n > 1 {
		m.rate = float64(n-1) * float64(bytes) * 8 / (got[n-1].at - got[0].at).Seconds()
	}
	slices.Sort(delays)
	m.least, m.median = delays[0], delays[len(delays)/2]
	var sum, squares float64
	for _, d := range delays {
		sum += float64(d)
	}
	mean := sum / float64(len(delays))
	for _, d := range delays {
		squares += (float64(d) - mean) * (float64(d) - mean)
	}
	m.mean, m.spread = vtime.Duration(mean), vtime.Duration(math.Sqrt(squares/float64(len(delays))))
	return m
}

// run measures a shape in the kernel and, where cfg is set, the same in a pipe.
func run(t *testing.T, s Shape, cfg *pipe.Config, l load, quiet vtime.Duration) (kernel, own measured, c Counters, st pipe.Stats) {
	t.Helper()
	a, b := lab(t)
	from, to := attach(t, a), attach(t, b)
	link := &Link{Interface: "a", Egress: []Class{{Shape: s}}}
	if _, err := Prepare(link); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(link); err != nil {
		t.Fatal(err)
	}
	offered := from.offer(t, l)
	got := to.collect(t, quiet)
	kernel = measure(offered, got, l.bytes)
	c = oneClass(t, link)
	if cfg != nil {
		arrived, stats := throughPipe(t, *cfg, offered, l.bytes)
		own, st = measure(offered, arrived, l.bytes), stats
	}
	return kernel, own, c, st
}

// within says whether a share of n draws can come from the probability p: five
// standard deviations, bursts of a mean length counted as one draw each.
func within(got, p float64, n int, burst float64) bool {
	return math.Abs(got-p) <= 5*math.Sqrt(p*(1-p)*(2*burst-1)/float64(n))+1e-9
}

func msText(d vtime.Duration) string { return fmt.Sprintf("%.2f", float64(d)/1e6) }
func percent(f float64) string       { return fmt.Sprintf("%.2f %%", 100*f) }
