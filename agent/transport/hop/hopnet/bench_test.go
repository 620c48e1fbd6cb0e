package hopnet

import (
	"io"
	"testing"
)

// BenchmarkStream is a stream over loopback between two nodes of this process:
// what a core and a half carry. `hopbed bench hop` measures two processes.
func BenchmarkStream(b *testing.B) {
	x, y := join(b, Config{}, Config{})
	c, d := dial(b, x, listen(b, y, 1))
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	b.ResetTimer()
	go func() {
		for range b.N {
			if _, err := c.Write(data); err != nil {
				b.Error(err)
			}
		}
		c.Close()
	}()
	if n, err := io.Copy(io.Discard, d); n != int64(b.N)*int64(len(data)) || err != nil {
		b.Errorf("%d bytes, %v", n, err)
	}
	b.StopTimer()
	f := y.Counts()
	b.ReportMetric(float64(f.Socket.Received)/float64(max(1, f.Socket.ReadCalls)), "datagrams/read")
	s := x.Counts()
	b.ReportMetric(float64(s.Socket.Sent)/float64(max(1, s.Socket.SendCalls)), "datagrams/send")
	fs := s.Hop
	b.Logf("%+v", fs)
}
