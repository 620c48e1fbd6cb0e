//go:build linux

package sock

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// fixed is a clock that stands.
type fixed vtime.Time

func (f fixed) Now() vtime.Time { return vtime.Time(f) }

// datagramEnds returns a source and a sink of a flow, without sockets.
func datagramEnds(t testing.TB, spec workload.Spec, size vtime.Bytes) (*udpSource, *udpSink) {
	t.Helper()
	f := proto.Flow{ID: 7, Transport: "udp", Src: 0, Dst: 1, SrcAddr: netip.MustParseAddr("10.77.0.1"), DstAddr: netip.MustParseAddr("10.77.0.2"), Workload: spec}
	f.Options.PacketSize = size
	n := &transport.Node{ID: 1, Event: func(proto.Event) {}, Log: func(string, string) {}}
	src, dst := &udpSource{node: n, flow: f}, &udpSink{node: n, flow: f, pattern: workload.NewPattern(f.ID)}
	sched := transport.Schedule{Clock: fixed(0), End: vtime.Time(10 * vtime.Second)}
	if err := src.begin(sched); err != nil {
		t.Fatal(err)
	}
	if err := dst.begin(sched); err != nil {
		t.Fatal(err)
	}
	return src, dst
}

// all returns every datagram that the source has ready at now.
func (s *udpSource) all(now vtime.Time) (out [][]byte) {
	buf, pattern := make([]byte, datagram(&s.flow)), workload.NewPattern(s.flow.ID)
	for s.app.Ready(now) > 0 {
		n, carried := s.fill(buf, pattern, now)
		out = append(out, bytes.Clone(buf[:n]))
		s.app.Take(now, carried)
		s.seq++
	}
	return out
}

func transfers() workload.Spec {
	return workload.Spec{Kind: workload.Trace, Transfers: []workload.Transfer{{At: 0, Size: 205}, {At: 0, Size: 100}, {At: 0, Size: 1}, {At: 0, Size: 32}, {At: 3 * vtime.Second, Size: 50}}}
}

func TestMessagesAreCutIntoDatagrams(t *testing.T) {
	src, dst := datagramEnds(t, transfers(), 100)
	got := src.all(vtime.Time(3 * vtime.Second))
	var lengths []int
	for _, d := range got {
		lengths = append(lengths, len(d))
	}
	// The pieces of 5 B and 1 B are sent as long as the header.
	if want := []int{100, 100, 28, 100, 28, 32, 50}; !slices.Equal(lengths, want) {
		t.Fatalf("datagrams of %v bytes, want %v", lengths, want)
	}
	now := vtime.Time(4 * vtime.Second)
	for _, i := range []int{2, 0, 4, 4, 6, 5, 1} { // not 3: the second message is lost
		dst.take(now, src.flow.SrcAddr.As4(), got[i])
	}
	dst.account.Close(now)
	var receipts []int
	for _, m := range dst.messages(nil, 100) {
		k := m.Message
		if m.Lost {
			k = -k
		}
		receipts = append(receipts, k)
	}
	if want := []int{2, 4, 3, 0, -1}; !slices.Equal(receipts, want) {
		t.Errorf("complete (−: lost) are %v, want %v", receipts, want)
	}
	r := dst.outcome()
	if r.Total != 205+1+50+32 || r.Datagrams != 6 || r.Duplicates != 1 || r.Reordered != 3 || r.Error != nil {
		t.Errorf("%+v", r)
	}
	if s := dst.sample(now); s.DatagramsLost != 1 || s.Datagrams != 6 {
		t.Errorf("%+v", s)
	}
}

// What was not sent by the source is dropped, or, when it claims to be, damages
// the flow's result; it never counts.
func TestForgedDatagrams(t *testing.T) {
	src, _ := datagramEnds(t, transfers(), 100)
	good := src.all(0)[0]
	change := func(at int, b ...byte) []byte {
		d := bytes.Clone(good)
		copy(d[at:], b)
		return d
	}
	for name, c := range map[string]struct {
		data    []byte
		corrupt bool
	}{
		"empty":                    {nil, false},
		"a part of the header":     {good[:27], false},
		"magic":                    {change(3, 1), false},
		"another flow":             {change(7, 8), false},
		"shorter than its piece":   {good[:99], false},
		"longer than its piece":    {append(bytes.Clone(good), 0), false},
		"offset beyond the size":   {change(20, 0, 0, 1, 0), false},
		"offset between pieces":    {change(20, 0, 0, 0, 50), false},
		"no size":                  {change(24, 0, 0, 0, 0), false},
		"another size":             {change(24, 0, 0, 1, 200), true},
		"content":                  {change(60, ^good[60]), true},
		"another sequence number":  {change(15, 9), true},
		"a message that is not":    {change(16, 0x7f, 0xff, 0xff, 0xff), false},
		"a message that is to be":  {change(19, 4), false},
		"a negative sequence":      {change(8, 0xff, 0xff), false},
		"an absurd sequence":       {change(8, 0x7f), false},
		"a piece of an earlier to": {change(16, 0, 0, 0, 1), true}, // message 1 has another size
	} {
		_, dst := datagramEnds(t, transfers(), 100)
		dst.take(0, src.flow.SrcAddr.As4(), c.data)
		if r := dst.outcome(); r.Total != 0 || r.Corrupt > 0 != c.corrupt || (r.Error != nil) != c.corrupt {
			t.Errorf("%s: %+v", name, r)
		}
	}
	_, dst := datagramEnds(t, transfers(), 100)
	if dst.take(0, [4]byte{10, 77, 0, 9}, good); dst.outcome().Datagrams != 0 {
		t.Error("a stranger's datagram is counted")
	}
}

func FuzzDatagram(f *testing.F) {
	src, _ := datagramEnds(f, transfers(), 100)
	for _, d := range src.all(vtime.Time(3 * vtime.Second)) {
		f.Add(d)
	}
	plain, _ := datagramEnds(f, workload.Spec{Kind: workload.Sized, Size: 250}, 100)
	for _, d := range plain.all(0) {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, spec := range []workload.Spec{transfers(), {Kind: workload.Sized, Size: 250}, {Kind: workload.VoIP, Codec: "g729"}} {
			_, dst := datagramEnds(t, spec, 100)
			dst.take(vtime.Time(3*vtime.Second), src.flow.SrcAddr.As4(), data)
			if r := dst.outcome(); r.Total > 100 {
				t.Fatalf("%v of a datagram of %d bytes", r.Total, len(data))
			}
			if len(data) >= 16 && binary.BigEndian.Uint32(data) == 0 && dst.outcome().Datagrams > 0 {
				t.Fatal("a datagram without magic is counted")
			}
		}
	})
}
