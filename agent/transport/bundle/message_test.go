package bundle

import (
	"bytes"
	"errors"
	"testing"
)

// messages are one of each type.
func messages() []Message {
	e := sample([]byte("hello")).Encode()
	return []Message{
		{Type: Contact, Version: 4},
		{Type: SessInit, Keepalive: 10, SegmentMRU: 65536, TransferMRU: 1 << 26, NodeID: "ipn:1.0"},
		{Type: XferSegment, Flags: FlagStart, Transfer: 3, Total: uint64(e.Len()), hasLength: true, Data: Part{Of: e, N: 10}},
		{Type: XferSegment, Transfer: 3, Data: Part{Of: e, Off: 10, N: 20}},
		{Type: XferSegment, Flags: FlagEnd, Transfer: 3, Data: Part{Of: e, Off: 30, N: e.Len() - 30}},
		{Type: XferSegment, Flags: FlagStart | FlagEnd, Transfer: 4, Data: Part{Of: e, N: e.Len()}},
		{Type: XferAck, Flags: FlagStart, Transfer: 3, Acked: 10},
		{Type: XferRefuse, Reason: RefuseNoResources, Transfer: 3},
		{Type: Keepalive},
		{Type: MsgReject, Reason: RejectUnexpected, Rejected: SessInit},
		{Type: SessTerm, Flags: flagReply, Reason: TermIdle},
	}
}

// TestMessages: each message has its length, and is read back, however the
// octets come.
func TestMessages(t *testing.T) {
	var stream []byte
	for _, m := range messages() {
		at := len(stream)
		var err error
		if stream, err = m.Append(stream); err != nil {
			t.Fatal(err)
		}
		if got := len(stream) - at; got != m.WireLen() {
			t.Errorf("%v has %d octets, WireLen says %d", m.Type, got, m.WireLen())
		}
	}
	for step := 1; step < len(stream); step += 7 {
		p, n := NewParser(1<<16), 0
		for at := 0; at < len(stream); at += step {
			p.Filled(copy(p.Space(), stream[at:min(at+step, len(stream))]))
			for {
				got, ok, err := p.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				checkMessage(t, &got, &messages()[n])
				n++
			}
		}
		if n != len(messages()) {
			t.Fatalf("%d messages in steps of %d", n, step)
		}
	}
}

func checkMessage(t *testing.T, got, want *Message) {
	t.Helper()
	if want.Data.Of != nil {
		b, _ := want.Data.Of.Append(nil, want.Data.Off, want.Data.N)
		if !bytes.Equal(got.Data.Bytes, b) || got.Data.N != len(b) {
			t.Errorf("%v: data %x, want %x", want.Type, got.Data.Bytes, b)
		}
	}
	g, w := *got, *want
	g.Data, w.Data = Part{}, Part{}
	a, _ := g.Append(nil)
	b, _ := w.Append(nil)
	if !bytes.Equal(a, b) || g.hasLength != w.hasLength || g.BadExtension {
		t.Errorf("%+v, want %+v", g, w)
	}
}

// TestWireLayout: octets as in the figures of RFC 9174.
func TestWireLayout(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Message{Type: Contact, Version: 4}, "64746e21 04 00"},
		{Message{Type: SessInit, Keepalive: 10, SegmentMRU: 65536, TransferMRU: 1 << 20, NodeID: "ipn:1.0"},
			"07 000a 0000000000010000 0000000000100000 0007 69706e3a312e30 00000000"},
		{Message{Type: XferSegment, Flags: FlagStart, Transfer: 5, Total: 300, Data: Part{N: 2, Bytes: []byte{1, 2}}},
			"01 02 0000000000000005 0000000d 00 0001 0008 000000000000012c 0000000000000002 0102"},
		{Message{Type: XferSegment, Flags: FlagEnd, Transfer: 5, Data: Part{N: 1, Bytes: []byte{9}}}, "01 01 0000000000000005 0000000000000001 09"},
		{Message{Type: XferAck, Flags: FlagStart | FlagEnd, Transfer: 5, Acked: 300}, "02 03 0000000000000005 000000000000012c"},
		{Message{Type: XferRefuse, Reason: RefuseCompleted, Transfer: 5}, "03 01 0000000000000005"},
		{Message{Type: Keepalive}, "04"},
		{Message{Type: SessTerm, Flags: flagReply, Reason: TermIdle}, "05 01 01"},
		{Message{Type: MsgReject, Reason: RejectType, Rejected: 0x33}, "06 01 33"},
	} {
		got, _ := c.m.Append(nil)
		if want := unhex(t, c.want); !bytes.Equal(got, want) {
			t.Errorf("%v: %x, want %x", c.m.Type, got, want)
		}
	}
}

// TestParserRefuses what would need memory without bound, and what is no message.
func TestParserRefuses(t *testing.T) {
	contact := "64746e21 04 00"
	for name, s := range map[string]string{
		"another protocol":             "48545450",
		"an unknown type":              contact + "2a",
		"a long node id":               contact + "07 000a 0000000000010000 0000000000100000 ffff",
		"long session extensions":      contact + "07 000a 0000000000010000 0000000000100000 0000 7fffffff",
		"a segment above the MRU":      contact + "01 00 0000000000000005 0000000000010001",
		"an endless segment":           contact + "01 00 0000000000000005 ffffffffffffffff",
		"long transfer extensions":     contact + "01 02 0000000000000005 ffffffff",
		"an item longer than its list": contact + "01 02 0000000000000005 00000005 00 0002 0001 0000000000000000",
	} {
		p := NewParser(1 << 16)
		p.Filled(copy(p.Space(), unhex(t, s)))
		var err error
		for ok := true; ok && err == nil; {
			_, ok, err = p.Next()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, unknown := errors.AsType[*TypeError](err); unknown != (name == "an unknown type") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParser(f *testing.F) {
	var stream []byte
	for _, m := range messages() {
		stream, _ = m.Append(stream)
	}
	f.Add(stream, uint8(11))
	f.Add(stream[:40], uint8(1))
	f.Add(append(stream[:6:6], 0xff), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		p := NewParser(1 << 10)
		var got []byte
		for len(data) > 0 {
			k := min(len(data), int(step)+1)
			k = copy(p.Space(), data[:k])
			if k == 0 {
				t.Fatal("the parser neither takes more nor gives a message")
			}
			p.Filled(k)
			data = data[k:]
			for {
				m, ok, err := p.Next()
				if err != nil {
					return
				}
				if !ok {
					break
				}
				var e error
				if got, e = m.Append(got[:0]); e != nil || m.Type == XferSegment && m.Data.N > 1<<10 {
					t.Fatalf("%+v: %v", m, e)
				}
			}
		}
	})
}
