package wifi

import (
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	us  = vtime.Microsecond
	ms  = vtime.Millisecond
	sec = vtime.Second
)

// lab runs a medium with sources that keep queues full.
type lab struct {
	t         testing.TB
	eng       *des.Engine
	m         *Medium
	sources   []source
	delivered [][]uint64 // frames [from][to]
	outcomes  []map[Outcome]int
	bound     vtime.Time // of TestNextVisibleIsALowerBound
	onDeliver func(now vtime.Time, node int, f *Frame)
	onDone    func(now vtime.Time, f *Frame, o Outcome)
}

type source struct {
	from, to int
	ac       AC
	len      vtime.Bytes
}

func newLab(t testing.TB, seed uint64, ch *Channel, macs ...MAC) *lab {
	t.Helper()
	l := &lab{t: t, eng: des.New()}
	m, err := NewMedium(l.eng, seed, ch, macs, l)
	if err != nil {
		t.Fatal(err)
	}
	l.m = m
	l.delivered = make([][]uint64, ch.N())
	for i := range l.delivered {
		l.delivered[i] = make([]uint64, ch.N())
		l.outcomes = append(l.outcomes, map[Outcome]int{})
	}
	return l
}

func (l *lab) Deliver(now vtime.Time, node int, f *Frame) {
	l.delivered[f.Src][node]++
	if l.onDeliver != nil {
		l.onDeliver(now, node, f)
	}
}

func (l *lab) Done(now vtime.Time, f *Frame, o Outcome) {
	l.outcomes[f.Src][o]++
	for i := range l.sources {
		s := &l.sources[i]
		if s.from == f.Src && s.ac == f.AC && s.to == f.Dst {
			l.send(s.from, s.to, s.ac, s.len)
			break
		}
	}
	if l.onDone != nil {
		l.onDone(now, f, o)
	}
}

func (l *lab) send(from, to int, ac AC, n vtime.Bytes) bool {
	f := l.m.NewFrame()
	f.Src, f.Dst, f.AC, f.Len = from, to, ac, n
	return l.m.Enqueue(f)
}

// saturate keeps depth frames queued.
func (l *lab) saturate(from, to int, ac AC, n vtime.Bytes, depth int) {
	l.sources = append(l.sources, source{from, to, ac, n})
	for i := 0; i < depth; i++ {
		if !l.send(from, to, ac, n) {
			l.t.Fatalf("queue of node %d full at frame %d", from, i)
		}
	}
}

func (l *lab) run(d vtime.Duration) { l.eng.RunUntil(l.eng.Now().Add(d)) }

// measure clears the counts, runs d and returns the frames delivered per second
// from → to.
func (l *lab) measure(d vtime.Duration) {
	for i := range l.delivered {
		clear(l.delivered[i])
	}
	l.m.ResetStats()
	l.run(d)
}

// goodput is the rate in Mb/s of UDP payload (28 bytes less than the packet) that
// arrived from → to during d; −1 stands for all nodes.
func (l *lab) goodput(from, to int, n vtime.Bytes, d vtime.Duration) float64 {
	var frames uint64
	for i := range l.delivered {
		for j, c := range l.delivered[i] {
			if (from < 0 || i == from) && (to < 0 || j == to) {
				frames += c
			}
		}
	}
	return float64(frames) * float64(n-28) * 8 / d.Seconds() / 1e6
}

// cell is a channel on which n nodes hear each other equally and every overlap
// destroys.
func cell(t testing.TB, n int) *Channel {
	t.Helper()
	r := DiskRadio(100, 100)
	r.Capture = 0
	ch, err := NewChannel(1, r, DefaultMAC(StandardB), make([]Position, n))
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// recorder keeps a copy of every transmission.
type recorder struct{ air []Transmission }

func (r *recorder) Air(t *Transmission) { r.air = append(r.air, *t) }
