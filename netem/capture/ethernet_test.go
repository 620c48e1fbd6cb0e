package capture

import (
	"bytes"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// frame is an Ethernet frame whose packet has n bytes 1, 2, 3…
func frame(kind uint16, n int) []byte {
	b := append(make([]byte, 12), byte(kind>>8), byte(kind))
	for i := range n {
		b = append(b, byte(i+1))
	}
	return b
}

// Live frames: the Ethernet header goes, its type and the packet stay; ARP is
// shown on the air and has no place on a wired link, which shows IP.
func TestLiveFrames(t *testing.T) {
	l := newLab(t, nil)
	l.cfg.Packets, l.cfg.SnapLen = Ethernet{}, 30
	var p bytes.Buffer
	s := l.watch(NewStream(&p), nil)
	s.Begin(0, "")
	for _, c := range []struct {
		kind uint16
		n    vtime.Bytes
	}{{typeARP, 28}, {typeIPv4, 100}} {
		f := l.med.NewFrame()
		f.Src, f.Dst, f.AC, f.Len = 0, wifi.Broadcast, wifi.BE, c.n
		f.Data = append(f.Data, frame(c.kind, int(c.n)+18)...) // a minimal frame is padded
		l.med.Enqueue(f)
		k := l.pipes[0].NewPacket()
		k.Len, k.Data = c.n, frame(c.kind, int(c.n))
		l.pipes[0].Send(k)
	}
	for l.eng.Step() {
	}
	s.End(l.eng.Now())
	f := readFile(t, p.Bytes())
	var air, wired [][]byte
	for _, p := range f.packets {
		if p.iface == 0 {
			air = append(air, p.data[22+26+6:])
		} else if p.direction == outbound {
			wired = append(wired, p.data)
			if p.original != 100 {
				t.Errorf("original length %d", p.original)
			}
		}
	}
	if len(air) != 2 || len(wired) != 1 {
		t.Fatalf("%d frames on the air, %d on the wire", len(air), len(wired))
	}
	if !bytes.Equal(air[0][:30], frame(typeARP, 28)[12:]) || len(air[0]) != 30+4 {
		t.Errorf("ARP on the air: % x", air[0])
	}
	if !bytes.Equal(air[1], frame(typeIPv4, 30)[12:]) || !bytes.Equal(wired[0], frame(typeIPv4, 30)[14:]) {
		t.Errorf("IP on the air % x, on the wire % x", air[1], wired[0])
	}
	if b, kind := (Ethernet{}).Append(nil, Packet{Data: make([]byte, 13)}, 10); kind != 0 || len(b) != 0 {
		t.Errorf("a frame that is too short: type %d, % x", kind, b)
	}
}
