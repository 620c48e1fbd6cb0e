package bundle

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// sample is a bundle with all blocks that this package makes.
func sample(payload []byte) *Bundle {
	b := &Bundle{Flags: FlagNoFragment, CRC: CRC32C, Destination: IPN(3, 20000), Source: IPN(1, 20000), Created: Timestamp{Time: 821210400000, Seq: 7},
		Lifetime: 86400000, Payload: Bytes(payload), PayloadCRC: CRC32C}
	b.SetHops(64, 1)
	b.SetPreviousNode(IPN(1, 0))
	b.SetAge(1500)
	return b
}

func octets(t testing.TB, b *Bundle) []byte {
	t.Helper()
	e := b.Encode()
	out, err := e.Append(nil, 0, e.Len())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEncoding compares with octets that were written by hand from RFC 9171, with
// zeros where the checksums stand; Decode checks those.
func TestEncoding(t *testing.T) {
	want := unhex(t, `9f
		89 07 04 02 82 02 82 03 19 4e20 82 02 82 01 19 4e20 82 01 00 82 1b 000000bf33f44500 07 1a 05265c00 44 00000000
		86 0a 02 00 02 44 82 18 40 01 44 00000000
		86 06 03 00 02 45 82 02 82 01 00 44 00000000
		86 07 04 00 02 43 19 05dc 44 00000000
		86 01 01 00 02 45 68656c6c6f 44 00000000
		ff`)
	got := octets(t, sample([]byte("hello")))
	if len(got) != len(want) {
		t.Fatalf("%x\nwant\n%x", got, want)
	}
	for i := range want {
		if want[i] != got[i] && want[i] != 0 {
			t.Fatalf("octet %d of\n%x\nwant\n%x", i, got, want)
		}
	}
	b, err := Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if prev, ok := b.PreviousNode(); !ok || prev != IPN(1, 0) {
		t.Errorf("the previous node is %v", prev)
	}
	if age, ok := b.Age(); !ok || age != 1500 {
		t.Errorf("the age is %d", age)
	}
	if limit, count, ok := b.Hops(); !ok || limit != 64 || count != 1 {
		t.Errorf("hop %d of %d", count, limit)
	}
	if string(b.Payload.(Bytes)) != "hello" || b.Source != IPN(1, 20000) || b.Destination != IPN(3, 20000) || b.Report != (EID{}) || b.Lifetime != 86400000 {
		t.Errorf("decoded %+v", b)
	}
	if again := octets(t, b); !bytes.Equal(again, got) {
		t.Errorf("encoded again:\n%x\nwant\n%x", again, got)
	}
}

// TestLengthsWithoutBytes: in virtual time the lengths are those of the octets.
func TestLengthsWithoutBytes(t *testing.T) {
	for _, n := range []int{0, 1, 23, 24, 255, 256, 65535, 65536, 1 << 20} {
		b := sample(make([]byte, n))
		real := b.Encode().Len()
		b.Payload = Zeros(n)
		if got := b.Encode().Len(); got != real {
			t.Errorf("a payload of %d: %d octets without bytes, %d with", n, got, real)
		}
	}
}

// TestEncodedInPieces: every piece is that part of the whole.
func TestEncodedInPieces(t *testing.T) {
	e := sample([]byte("the quick brown fox")).Encode()
	all, _ := e.Append(nil, 0, e.Len())
	for size := 1; size <= e.Len(); size++ {
		var got []byte
		for at := 0; at < e.Len(); at += size {
			var err error
			if got, err = e.Append(got, at, min(size, e.Len()-at)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, all) {
			t.Fatalf("in pieces of %d:\n%x\nwant\n%x", size, got, all)
		}
	}
}

func TestChecksums(t *testing.T) {
	for _, c := range []struct {
		typ  CRCType
		want string
	}{{CRC16, "906e"}, {CRC32C, "e3069283"}, {CRCNone, ""}} { // the catalogue's check values
		s := newSum(c.typ)
		s.add([]byte("12345"))
		s.add([]byte("6789"))
		if got := hex.EncodeToString(s.value()); got != c.want {
			t.Errorf("checksum %d of 123456789 is %s, want %s", c.typ, got, c.want)
		}
	}
}

func TestEndpointIDs(t *testing.T) {
	for _, c := range []struct{ text, cbor string }{
		{"dtn:none", "820100"},
		{"ipn:1.0", "8202820100"},
		{"ipn:4294967296.20000", "8202821b0000000100000000194e20"},
		{"dtn://node/service", "82016e2f2f6e6f64652f73657276696365"},
	} {
		e, err := ParseEID(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(encode(e)); got != c.cbor {
			t.Errorf("%s is %s, want %s", c.text, got, c.cbor)
		}
		var back EID
		if err := decoder.Unmarshal(unhex(t, c.cbor), &back); err != nil || back != e || back.String() != c.text {
			t.Errorf("%s read back as %v (%v)", c.text, back, err)
		}
	}
	for _, bad := range []string{"", "ipn:1", "ipn:01.0", "ipn:1.-1", "ipn:1.2.3", "ipn:x.0", "dtn:", "dtn:node", "http://x", "dtn://" + strings.Repeat("x", maxEID)} {
		if e, err := ParseEID(bad); err == nil {
			t.Errorf("%q was read as %v", bad, e)
		}
	}
	for _, bad := range []string{"820101", "820300", "8101", "82016464746e3a", "820263612e62", "83020101", "82028201", "8202f6", "f6", "820164" + "6e6f6e65"} {
		var e EID
		if err := decoder.Unmarshal(unhex(t, bad), &e); err == nil && e != (EID{}) {
			t.Errorf("%s was read as %v", bad, e)
		}
	}
}

// TestDecodeRefuses: one thing is wrong with each.
func TestDecodeRefuses(t *testing.T) {
	good := octets(t, sample([]byte("hello")))
	edit := func(f func(b *Bundle)) []byte {
		b := sample([]byte("hello"))
		f(b)
		return octets(t, b)
	}
	replace := func(old, new string) []byte {
		if !bytes.Contains(good, unhex(t, old)) {
			t.Fatalf("no %s in %x", old, good)
		}
		return bytes.Replace(good, unhex(t, old), unhex(t, new), 1)
	}
	flip := func(i int) []byte {
		b := bytes.Clone(good)
		b[i] ^= 1
		return b
	}
	for name, data := range map[string][]byte{
		"nothing":                  {},
		"an array":                 append([]byte{0x86}, good[1:]...),
		"a wrong primary checksum": flip(20),
		"a wrong payload":          flip(bytes.Index(good, []byte("hello"))),
		"version 6":                replace("89070402", "89060402"),
		"no end":                   good[:len(good)-1],
		"more after the end":       append(bytes.Clone(good), 0),
		"no CRC":                   unhex(t, "9f88070000820282010282028202018202820201820018281a000f4240850101000043414243ff"),
		"the same number twice": edit(func(b *Bundle) {
			b.Blocks = append(b.Blocks, Block{Type: 200, Number: 2, Data: []byte{0}})
		}),
		"the same block twice": edit(func(b *Bundle) {
			b.Blocks = append(b.Blocks, Block{Type: HopCountBlock, Number: 9, Data: encode(hops{Limit: 4})})
		}),
		"hop limit 0":         edit(func(b *Bundle) { b.SetHops(0, 0) }),
		"hop limit 256":       edit(func(b *Bundle) { b.SetHops(256, 0) }),
		"an age that is none": edit(func(b *Bundle) { b.set(BundleAgeBlock, []byte{0x41, 0}) }),
		"neither time nor age": edit(func(b *Bundle) {
			b.Created.Time = 0
			b.Blocks = b.Blocks[:2]
		}),
		"block number 1":      edit(func(b *Bundle) { b.Blocks[0].Number = 1 }),
		"a large block":       edit(func(b *Bundle) { b.Blocks[0].Data = make([]byte, maxBlockData+1) }),
		"a fragment too long": edit(func(b *Bundle) { b.Flags, b.TotalLength = FlagFragment, 4 }),
		"a fragment of what must not be": edit(func(b *Bundle) {
			b.Flags, b.TotalLength = FlagFragment|FlagNoFragment, 10
		}),
		"many blocks": edit(func(b *Bundle) {
			for i := range maxBlocks {
				b.Blocks = append(b.Blocks, Block{Type: 200, Number: uint64(10 + i), Data: []byte{0}})
			}
		}),
		"an indefinite payload":    replace("4568656c6c6f", "5f4568656c6c6fff"),
		"a long form of a number":  replace("4568656c6c6f", "580568656c6c6f"),
		"null instead of a number": replace("8601010002", "860101f602"),
	} {
		if b, err := Decode(data); err == nil {
			t.Errorf("%s: it was read as %+v", name, b)
		}
	}
	if _, err := Decode(edit(func(b *Bundle) { b.Flags, b.TotalLength = FlagFragment, 5 })); err != nil {
		t.Errorf("a sound fragment: %v", err)
	}
	if _, err := Decode(edit(func(b *Bundle) { b.CRC, b.PayloadCRC, b.Blocks[0].CRC = CRC16, CRC16, CRCNone })); err != nil {
		t.Errorf("CRC 16: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, n := range []int{0, 5, 300} {
		f.Add(octets(f, sample(make([]byte, n))))
	}
	b := sample([]byte("x"))
	b.CRC, b.PayloadCRC, b.Destination, b.Flags = CRC16, CRCNone, EID{Scheme: SchemeDTN, SSP: "//a/b"}, FlagFragment
	b.TotalLength = 9
	f.Add(octets(f, b))
	f.Add([]byte{0x9f, 0x89, 0x07, 0x07, 0x00, 0x82, 0x07, 0x30, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Decode(data)
		if err != nil {
			return
		}
		if again := octets(t, b); !bytes.Equal(again, data) {
			t.Fatalf("%x was read and written as %x", data, again)
		}
		c := *b
		c.SetHops(9, 9)
		c.SetPreviousNode(IPN(1, 0))
		if _, err := Decode(octets(t, &c)); err != nil && len(b.Blocks) < maxBlocks-2 {
			t.Fatalf("%x with new blocks: %v", data, err)
		}
	})
}

// TestOtherImplementation reads bundles that dtn7-go's bpv7 package wrote, which
// reads this package's, too (DESIGN.md).
func TestOtherImplementation(t *testing.T) {
	for _, c := range []struct {
		octets, src, dst string
		blocks           int
	}{
		{"9f89070002820282090782028201058202820105821b000000c5c5272300001a000927c0442943b635860a0201024482182000442c6893c1860603010245820282040144a3f069bc86070401024100442fe0771c86010100024966726f6d2064746e3744f2f2c9a9ff", "ipn:1.5", "ipn:9.7", 3},
		{"9f890700018201652f2f622f798201652f2f612f788201652f2f612f78821b000000c5c5272300001a000927c042e94486010100014966726f6d2064746e37420d94ff", "dtn://a/x", "dtn://b/y", 0},
	} {
		data := unhex(t, c.octets)
		b, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if b.Source.String() != c.src || b.Destination.String() != c.dst || len(b.Blocks) != c.blocks || string(b.Payload.(Bytes)) != "from dtn7" {
			t.Errorf("%+v", b)
		}
		if again := octets(t, b); !bytes.Equal(again, data) {
			t.Errorf("written again as %x", again)
		}
	}
}
