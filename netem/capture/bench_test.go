package capture

import (
	"fmt"
	"sync"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// BenchmarkFrame is what the pacing thread of a live run pays for a frame of
// 1500 bytes: encoding into the buffers. The writing is another thread's.
func BenchmarkFrame(b *testing.B) {
	for _, snap := range []vtime.Bytes{DefaultSnapLen, 0} {
		for _, what := range []string{"packets", "events"} {
			b.Run(fmt.Sprintf("%s/snap=%d", what, snap), func(b *testing.B) {
				l := newLab(b, nil)
				l.cfg.Packets, l.cfg.SnapLen = Ethernet{}, snap
				stream := NewBackground(discardWriter{}, 64*bufferSize)
				var wg sync.WaitGroup
				wg.Go(stream.Drain)
				packets, events := stream, (*Stream)(nil)
				if what == "events" {
					packets, events = nil, stream
				}
				s, err := NewSniffer(l.cfg, packets, events)
				if err != nil {
					b.Fatal(err)
				}
				s.Begin(0, "")
				f := &wifi.Frame{Src: 0, Dst: 1, AC: wifi.BE, Len: 1500, Data: frame(typeIPv4, 1500)}
				t := &wifi.Transmission{Kind: wifi.KindData, Src: 0, Dst: 1, AC: wifi.BE, Rate: 11 * vtime.MbitPerSecond, Frame: f, Fate: wifi.FateReceived}
				b.ReportAllocs()
				for b.Loop() {
					t.Start, t.End = t.End, t.End.Add(ms)
					t.Seq++
					s.Landed(t.End, t)
				}
				s.End(t.End)
				wg.Wait()
			})
		}
	}
}
