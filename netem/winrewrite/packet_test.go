package winrewrite

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/inet"
)

// checksum of a TCP packet's segment, computed anew (RFC 9293 §3.1, RFC 8200 §8.1).
func checksum(p []byte) uint16 {
	at, pseudo := ipv6Len, p[8:40]
	if p[0]>>4 == 4 {
		at, pseudo = int(p[0]&0xf)*4, p[12:20]
	}
	segment := append([]byte(nil), p[at:]...)
	segment[offsetChecksum], segment[offsetChecksum+1] = 0, 0
	sum := uint32(inet.ProtocolTCP + len(segment))
	for _, b := range [][]byte{pseudo, append(segment, make([]byte, len(segment)%2)...)} {
		for ; len(b) > 0; b = b[2:] {
			sum += uint32(binary.BigEndian.Uint16(b))
		}
	}
	for sum>>16 > 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A SYN as Linux lays it out, with the checksum that its kernel computed, is read
// with its options, and gets a window and a checksum that a receiver takes.
func TestASynOfLinux(t *testing.T) {
	p := unhex(t, "4500003c12344000400613ec0a4d00010a4d0002"+"9c404e20fffffff000000000a002faf04e1a0000"+"020405b40402080a000000070000000001030307")
	if checksum(p) != 0x4e1a {
		t.Fatalf("the test's own checksum gives %04x, want 4e1a", checksum(p))
	}
	r, err := New(Config{Buffer: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, at, ok := parse(p)
	if !ok || at != 20 || !s.SYN || s.MSS != 1460 || s.WScale != 7 || s.Window != 64240 || s.Payload != 0 || s.Src.Port != 40000 {
		t.Fatalf("read as %+v at %d, %v", s, at, ok)
	}
	c := r.SeePacket(0, p, Up)
	if !c.Any() {
		t.Fatal("no change")
	}
	before := bytes.Clone(p)
	c.Apply(p)
	if w := binary.BigEndian.Uint16(p[34:]); w != 8*1460 {
		t.Errorf("a window of %d, want %d", w, 8*1460)
	}
	if got := binary.BigEndian.Uint16(p[36:]); got != checksum(p) {
		t.Errorf("checksum %04x, want %04x", got, checksum(p))
	}
	copy(before[34:38], p[34:38])
	if !bytes.Equal(before, p) {
		t.Error("more than the window and the checksum have changed")
	}
}

// The checksum is right for every window and payload, of odd length as well, over
// IPv4 with and without options, and IPv6.
func TestChecksumsAreRepaired(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		payload := rng.IntN(64)
		var p []byte
		switch i % 3 {
		case 0:
			h := inet.IPv4{Length: uint16(40 + payload), TTL: 64, Protocol: inet.ProtocolTCP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}
			p = h.Append(nil)
		case 1:
			p = make([]byte, 24)
			p[0], p[9] = 0x46, inet.ProtocolTCP
			binary.BigEndian.PutUint16(p[2:], uint16(24+20+payload))
			p[20] = 1
		default:
			p = make([]byte, ipv6Len)
			p[0], p[6] = 0x60, inet.ProtocolTCP
			binary.BigEndian.PutUint16(p[4:], uint16(20+payload))
		}
		at := len(p)
		for range 20 + payload {
			p = append(p, byte(rng.Uint32()))
		}
		p[at+offsetData], p[at+offsetFlags] = 0x50, 0x10
		binary.BigEndian.PutUint16(p[at+offsetChecksum:], checksum(p))
		from, to := binary.BigEndian.Uint16(p[at+offsetWindow:]), uint16(rng.Uint32())
		Change{at: at, from: from, to: to}.Apply(p)
		if got, want := binary.BigEndian.Uint16(p[at+offsetChecksum:]), checksum(p); got != want {
			t.Fatalf("packet %d, window %d to %d: checksum %04x, want %04x", i, from, to, got, want)
		}
		// One that was damaged stays damaged: a receiver would drop it.
		p[len(p)-1] ^= 0x10
		Change{at: at, from: to, to: from}.Apply(p)
		if binary.BigEndian.Uint16(p[at+offsetChecksum:]) == checksum(p) {
			t.Fatalf("packet %d: a damaged packet got a right checksum", i)
		}
	}
}

func TestWhatIsNoSegmentPasses(t *testing.T) {
	h := inet.IPv4{Length: 40, TTL: 64, Protocol: inet.ProtocolTCP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}
	syn := h.AppendTCP(h.Append(nil), &inet.TCP{Src: 1, Dst: 2, Flags: inet.SYN, Window: 60000})
	change := func(f func(p []byte) []byte) []byte { return f(bytes.Clone(syn)) }
	for name, p := range map[string][]byte{
		"nothing":            nil,
		"UDP":                change(func(p []byte) []byte { p[9] = inet.ProtocolUDP; return p }),
		"a later fragment":   change(func(p []byte) []byte { p[7] = 1; return p }),
		"cut short":          syn[:39],
		"a short IP header":  change(func(p []byte) []byte { p[0] = 0x44; return p }),
		"a short TCP header": change(func(p []byte) []byte { p[32] = 0x40; return p }),
		"a long TCP header":  change(func(p []byte) []byte { p[32] = 0x60; return p }),
		"another version":    change(func(p []byte) []byte { p[0] = 0x55; return p }),
	} {
		r, err := New(Config{Buffer: 1})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.SeePacket(0, p, Down); c.Any() || r.Stats().Segments != 0 {
			t.Errorf("%s: change %+v, %+v", name, c, r.Stats())
		}
	}
	r, err := New(Config{Buffer: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.SeePacket(0, append(syn, 0, 0, 0, 0, 0, 0), Down); !c.Any() || c.to != defaultMSS {
		t.Errorf("a SYN with Ethernet's padding: %+v", c)
	}
}

// No input makes the filter panic, raise a window, or touch anything but the
// window and the checksum; a checksum that was right stays right.
func FuzzPacket(f *testing.F) {
	h := inet.IPv4{Length: 60, TTL: 64, Protocol: inet.ProtocolTCP, Src: [4]byte{10, 77, 0, 1}, Dst: [4]byte{10, 77, 0, 2}}
	o := inet.AppendWindowScale(inet.AppendTimestamps(inet.AppendMSS(nil, 1460), true, 7, 0), 7)
	f.Add(h.AppendTCP(h.Append(nil), &inet.TCP{Src: 40000, Dst: 20000, Flags: inet.SYN, Window: 64240, Options: o}), uint16(50))
	h.Length = 40
	f.Add(h.AppendTCP(h.Append(nil), &inet.TCP{Src: 40000, Dst: 20000, Flags: inet.ACK, Window: 500}), uint16(1))
	f.Add(append([]byte{0x60, 0, 0, 0, 0, 20, 6, 64}, make([]byte, 52)...), uint16(3))
	f.Fuzz(func(t *testing.T, p []byte, buffer uint16) {
		r, err := New(Config{Buffer: int(buffer) + 1, Weighted: buffer%2 == 1, Acks: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		was := bytes.Clone(p)
		for d := range Direction(2) {
			before := bytes.Clone(p)
			c := r.SeePacket(0, p, d)
			if !bytes.Equal(before, p) {
				t.Fatal("looking at a packet changed it")
			}
			if !c.Any() {
				continue
			}
			right := binary.BigEndian.Uint16(p[c.at+offsetChecksum:])
			c.Apply(p)
			if c.to >= c.from || c.to == 0 || binary.BigEndian.Uint16(p[c.at+offsetWindow:]) != c.to {
				t.Fatalf("the window %d became %d", c.from, c.to)
			}
			if p[0]>>4 == 4 && int(binary.BigEndian.Uint16(p[2:])) == len(p) || p[0]>>4 == 6 && ipv6Len+int(binary.BigEndian.Uint16(p[4:])) == len(p) {
				if checksum(before) == right && right != 0 && checksum(p) != binary.BigEndian.Uint16(p[c.at+offsetChecksum:]) {
					t.Fatal("the checksum is wrong")
				}
			}
			copy(was[c.at+offsetWindow:c.at+offsetChecksum+2], p[c.at+offsetWindow:])
			if !bytes.Equal(was, p) {
				t.Fatal("something else has changed")
			}
		}
	})
}
