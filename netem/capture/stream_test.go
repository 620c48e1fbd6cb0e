package capture

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// fullDisk takes some bytes, then no more.
type fullDisk struct {
	*os.File
	left int
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) <= d.left {
		d.left -= len(b)
		return d.File.Write(b)
	}
	n, _ := d.File.Write(b[:d.left])
	d.left = 0
	return n, errFull
}

// A disk that fills up costs the rest of the capture, not what was written: the
// file stays one that can be read.
func TestFullDiskLeavesAReadableFile(t *testing.T) {
	for name, make := range map[string]func(*fullDisk) (*Stream, func()){
		"at once": func(d *fullDisk) (*Stream, func()) { return NewStream(d), func() {} },
		"background": func(d *fullDisk) (*Stream, func()) {
			s := NewBackground(d, 4*bufferSize)
			var wg sync.WaitGroup
			wg.Go(s.Drain)
			return s, wg.Wait
		},
	} {
		path := filepath.Join(t.TempDir(), "c.pcapng")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		l := newLab(t, nil)
		stream, wait := make(&fullDisk{f, bufferSize + bufferSize/2})
		s := l.watch(stream, nil)
		s.Begin(0, "")
		l.run(600)
		s.End(l.eng.Now())
		wait()
		if !errors.Is(stream.Err(), errFull) {
			t.Errorf("%s: the error is %v", name, stream.Err())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, b); len(got.packets) < 500 || len(b) > bufferSize {
			t.Errorf("%s: %d packets, %d bytes", name, len(got.packets), len(b))
		}
	}
}

// gate is a disk that stands still until it is opened.
type gate struct {
	bytes.Buffer
	open chan struct{}
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(b)
}

// A disk that stands still costs records, never time; they are counted, in the
// file as well.
func TestSlowDiskDropsAndCounts(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	packets := NewBackground(g, 3*bufferSize)
	var wg sync.WaitGroup
	wg.Go(packets.Drain)
	l := newLab(t, nil)
	s := l.watch(packets, nil)
	s.Begin(0, "")
	l.run(1500) // more than three buffers; it would hang here
	before := s.Stats()
	close(g.open)
	for s.packets.room() == nil { // until there is room for the statistics
		l.run(1)
	}
	s.End(l.eng.Now())
	wg.Wait()
	if before.Dropped() == 0 || packets.Err() != nil {
		t.Fatalf("%+v, %v", before, packets.Err())
	}
	f := readFile(t, g.Bytes())
	var seen, dropped uint64
	for i, st := range s.Stats().Interfaces {
		if f.interfaces[i].dropped != st.Dropped || f.interfaces[i].seen != st.Frames {
			t.Errorf("%s: the file says %+v, the statistics %+v", st.Name, f.interfaces[i], st)
		}
		seen, dropped = seen+st.Frames, dropped+st.Dropped
	}
	if uint64(len(f.packets)) != seen-dropped {
		t.Errorf("%d packets, seen %d, dropped %d", len(f.packets), seen, dropped)
	}
}

// What a background stream writes is what another one does.
func TestBackgroundWritesTheSame(t *testing.T) {
	one := newLab(t, nil)
	want, events, _ := one.record(300)
	var p, e bytes.Buffer
	ps, es := NewBackground(&p, 32*bufferSize), NewBackground(&e, 32*bufferSize)
	var wg sync.WaitGroup
	wg.Go(ps.Drain)
	wg.Go(es.Drain)
	l := newLab(t, nil)
	s := l.watch(ps, es)
	s.Begin(0, "")
	l.eng.Schedule(0, l, 300)
	for i := 0; l.eng.Step(); i++ {
		if i%500 == 0 {
			s.Flush()
		}
	}
	s.End(l.eng.Now())
	wg.Wait()
	if !bytes.Equal(p.Bytes(), want) || !bytes.Equal(e.Bytes(), events) {
		t.Errorf("%d and %d bytes, want %d and %d", p.Len(), e.Len(), len(want), len(events))
	}
}
