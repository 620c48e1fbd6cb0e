package inet

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The checksum of the example in RFC 1071 §3 is 0xddf2 before complement.
func TestChecksumOfRFC1071(t *testing.T) {
	if got := fold(sum(0, []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7})); got != 0xddf2 {
		t.Errorf("sum %04x, want ddf2", got)
	}
	if got := fold(sum(0, []byte{1, 2, 3})); got != 0x0102+0x0300 {
		t.Errorf("an odd length: %04x", got)
	}
}

// A receiver's test: header, or pseudo-header and the rest, sum up to ffff.
func verify(t *testing.T, p []byte) {
	t.Helper()
	if s := fold(sum(0, p[:IPv4Len])); s != 0xffff {
		t.Errorf("the IP header sums up to %04x", s)
	}
	h := IPv4{Length: uint16(p[2])<<8 | uint16(p[3]), Protocol: p[9], Src: [4]byte(p[12:]), Dst: [4]byte(p[16:])}
	if s := fold(sum(h.pseudo(), p[IPv4Len:])); s != 0xffff {
		t.Errorf("pseudo-header and payload sum up to %04x", s)
	}
}

// A SYN with its options in Linux's order, and a datagram.
func TestHeadersAreLaidOutAsLinuxDoes(t *testing.T) {
	h := IPv4{Length: 60, ID: 0x1234, TTL: 64, Protocol: ProtocolTCP, Src: [4]byte{10, 77, 0, 1}, Dst: [4]byte{10, 77, 0, 2}}
	o := AppendMSS(nil, 1460)
	o = AppendTimestamps(o, true, 7, 0)
	o = AppendWindowScale(o, 7)
	p := h.AppendTCP(h.Append(nil), &TCP{Src: 40000, Dst: 20000, Seq: 0xfffffff0, Flags: SYN, Window: 64240, Options: o})
	want := "4500003c123440004006" + "13ec" + "0a4d00010a4d0002" +
		"9c404e20fffffff000000000a002faf0" + "4e1a" + "0000" +
		"020405b4" + "0402080a0000000700000000" + "01030307"
	if got := hex.EncodeToString(p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	verify(t, p)

	h = IPv4{DSCP: 48, Length: 31, TTL: 1, Protocol: ProtocolUDP, Src: [4]byte{10, 77, 0, 1}, Dst: [4]byte{10, 77, 255, 2}}
	p = h.AppendUDP(h.Append(nil), 4410, 4410, []byte("abc"))
	verify(t, p)
	if p[1] != 48<<2 || !bytes.HasSuffix(p, []byte("abc")) || p[25] != 11 {
		t.Errorf("the datagram is % x", p)
	}
}

// Zeros at the end need not be there for the checksum to be right.
func TestMissingZerosDoNotChangeChecksums(t *testing.T) {
	h := IPv4{Length: IPv4Len + TCPLen + 1000, Protocol: ProtocolTCP, TTL: 64}
	p := h.AppendTCP(h.Append(nil), &TCP{Src: 1, Dst: 2, Flags: ACK})
	verify(t, append(p, make([]byte, 1000)...))
	h = IPv4{Length: IPv4Len + UDPLen + 1000, Protocol: ProtocolUDP, TTL: 64}
	p = h.AppendUDP(h.Append(nil), 1, 2, nil)
	verify(t, append(p, make([]byte, 1000)...))
}

// A UDP checksum of 0 is sent as ffff: 0 means that there is none (RFC 768).
func TestZeroChecksumOfUDP(t *testing.T) {
	h := IPv4{Length: IPv4Len + UDPLen, Protocol: ProtocolUDP}
	rest := fold(h.pseudo() + 8 + 0) // length again, ports 0
	p := h.AppendUDP(nil, ^rest, 0, nil)
	if p[6] != 0xff || p[7] != 0xff {
		t.Errorf("checksum % x, want ff ff", p[6:])
	}
}

func TestSACKBlocks(t *testing.T) {
	o := AppendTimestamps(nil, false, 1, 2)
	o = AppendSACK(o, 1)
	o = AppendEdge(AppendEdge(o, 100), 200)
	if got := hex.EncodeToString(o); got != "0101080a00000001000000020101050a00000064000000c8" {
		t.Error(got)
	}
	if o = AppendSACKPermitted(nil); !bytes.Equal(o, []byte{1, 1, 4, 2}) {
		t.Errorf("% x", o)
	}
}
