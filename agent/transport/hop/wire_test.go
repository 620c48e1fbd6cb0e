package hop

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// samplePackets are one well-formed packet of every type and form.
func samplePackets() [][]byte {
	k := FlowKey{Src: 1, Dst: 2, Flow: 3}
	build := func(h header, body []byte) []byte {
		pkt := append(make([]byte, HeaderLen), body...)
		h.key, h.ttl = k, max(h.ttl, 1)
		seal(pkt, &h)
		return pkt
	}
	announce := func(a announcement, data ...byte) []byte {
		b := make([]byte, announceLen)
		putAnnouncement(b, &a)
		return append(b, data...)
	}
	e2e := make([]byte, e2eLen)
	putE2E(e2e, 7, 0b110)
	return [][]byte{
		build(header{typ: typeData, block: 4, attempt: 5, seq: 6, count: 7, sent: 8}, []byte("payload")),
		build(header{typ: typeBSYN, flags: flagLast, block: 4, attempt: 5, count: 3, sent: 8}, announce(announcement{size: 3000, payload: 1400, token: 1, base: 4, hash: 9})),
		build(header{typ: typeBSYN, flags: flagMicro | flagInline, count: 1}, announce(announcement{size: 3, payload: 1400}, 1, 2, 3)),
		build(header{typ: typeBSYN, flags: flagMicro | flagPoll, count: 2}, announce(announcement{size: 2000, payload: 1400})),
		build(header{typ: typeBACK, count: 9}, []byte{0xff, 1}),
		build(header{typ: typeBACK, flags: flagVirtual, count: 8}, []byte{3}),
		build(header{typ: typeVBSYN, ttl: 50, attempt: 2, count: 3}, announce(announcement{size: 3000, payload: 1400, token: 2})),
		build(header{typ: typeVBACK, attempt: 2}, nil),
		build(header{typ: typeE2EBACK, ttl: 50, block: 6}, e2e),
	}
}

// TestWireLayout pins the bytes of DESIGN.md §2.
func TestWireLayout(t *testing.T) {
	pkt := samplePackets()[1]
	want := []byte{
		1, 2, 1, 1, // version, type, flags, ttl
		0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, // source, destination, flow, block
		0, 5, 0, 0, 0, 3, 0, 20, // attempt, seq, count, length
		0, 0, 0, 0, 0, 0, 0, 8, // sent
	}
	if !bytes.Equal(pkt[:36], want) {
		t.Errorf("header %v, want %v", pkt[:36], want)
	}
	body := []byte{0, 0, 0x0b, 0xb8, 0x05, 0x78, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9}
	if !bytes.Equal(pkt[HeaderLen:], body) {
		t.Errorf("announcement %v, want %v", pkt[HeaderLen:], body)
	}
}

// TestParseRefuses: every deviation from what this version sends is refused.
func TestParseRefuses(t *testing.T) {
	be := binary.BigEndian
	for i, good := range samplePackets() {
		var m message
		if err := parse(&m, good); err != nil {
			t.Fatalf("sample %d: %v", i, err)
		}
		for n := range good {
			if parse(&m, good[:n]) == nil {
				t.Errorf("sample %d cut to %d B is accepted", i, n)
			}
		}
		if parse(&m, append(bytes.Clone(good), 0)) == nil {
			t.Errorf("sample %d with a byte more is accepted", i)
		}
		for bit := range len(good) * 8 {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			if parse(&m, bad) == nil {
				t.Errorf("sample %d with bit %d flipped is accepted", i, bit)
			}
		}
	}
	// With a right CRC, too.
	for _, c := range []struct {
		name   string
		sample int
		change func(p []byte)
	}{
		{"version 2", 0, func(p []byte) { p[0] = 2 }},
		{"type 0", 0, func(p []byte) { p[1] = 0 }},
		{"type 7", 0, func(p []byte) { p[1] = 7 }},
		{"unknown flag", 1, func(p []byte) { p[2] |= 0x80 }},
		{"poll without micro", 1, func(p []byte) { p[2] |= flagPoll }},
		{"virtual BSYN", 1, func(p []byte) { p[2] |= flagVirtual }},
		{"ttl 0", 8, func(p []byte) { p[3] = 0 }},
		{"source is destination", 0, func(p []byte) { p[7] = 2 }},
		{"seq beyond count", 0, func(p []byte) { be.PutUint16(p[22:], 7) }},
		{"seq in a BSYN", 1, func(p []byte) { be.PutUint16(p[22:], 1) }},
		{"block of 0 B", 1, func(p []byte) { be.PutUint32(p[40:], 0) }},
		{"block above 1 MiB", 1, func(p []byte) { be.PutUint32(p[40:], 1<<20+1) }},
		{"block of 4 GiB", 1, func(p []byte) { be.PutUint32(p[40:], 1<<32-1) }},
		{"payload 0", 1, func(p []byte) { be.PutUint16(p[44:], 0) }},
		{"count differs from size", 1, func(p []byte) { be.PutUint16(p[24:], 4) }},
		{"base above block", 1, func(p []byte) { be.PutUint32(p[48:], 5) }},
		{"base a window below", 1, func(p []byte) { be.PutUint32(p[16:], 4+MaxWindow) }},
		{"BACK of 0 packets", 4, func(p []byte) { be.PutUint16(p[24:], 0) }},
		{"bitmap too short", 4, func(p []byte) { be.PutUint16(p[24:], 17) }},
		{"bitmap padding", 4, func(p []byte) { p[41] = 2 }},
		{"VBACK with a count", 7, func(p []byte) { be.PutUint16(p[24:], 1) }},
		{"sack of the missing block", 8, func(p []byte) { p[51] |= 1 }},
		{"inline data shorter than the block", 2, func(p []byte) { be.PutUint32(p[40:], 4) }},
		{"micro-block of 1 MiB", 3, func(p []byte) { be.PutUint32(p[40:], 1<<20); be.PutUint16(p[24:], 749) }},
	} {
		p := bytes.Clone(samplePackets()[c.sample])
		c.change(p)
		be.PutUint32(p[36:], checksum(p))
		var m message
		if parse(&m, p) == nil {
			t.Errorf("%s is accepted", c.name)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range samplePackets() {
		f.Add(p, true)
	}
	f.Fuzz(func(t *testing.T, p []byte, fix bool) {
		if fix && len(p) >= HeaderLen { // else the CRC hides the rest of the parser
			p = bytes.Clone(p)
			binary.BigEndian.PutUint32(p[36:], checksum(p))
		}
		var m message
		if parse(&m, p) != nil {
			return
		}
		// What is accepted is exactly what would be sent for it.
		q := bytes.Clone(p)
		switch m.typ {
		case typeBSYN, typeVBSYN:
			putAnnouncement(q[HeaderLen:], &m.ann)
		case typeE2EBACK:
			putE2E(q[HeaderLen:], m.cum, m.sack)
		}
		seal(q, &m.header)
		if !bytes.Equal(p, q) {
			t.Errorf("accepted\n%x\nmeans\n%x", p, q)
		}
	})
}

// fuzzConfig has small packets and blocks: a whole transfer fits an input that is
// short enough for the fuzzer to work on.
func fuzzConfig() Config {
	cfg := testConfig()
	cfg.BlockSize, cfg.Payload, cfg.MicroThreshold = 2*vtime.KiB, MinPayload, 1*vtime.KiB
	cfg.E2EInitial = vtime.Second
	return cfg
}

// recordedTraffic is what a lossy transfer of FuzzNode's own flow sends, in
// the form of its input.
func recordedTraffic(f *testing.F) []byte {
	var all []byte
	cfg := fuzzConfig()
	w := newWorld(f, 5, 3, cfg, worldOptions{})
	w.chain(0.3)
	w.trace = func(_, _ NodeID, pkt []byte, _ bool) {
		if len(all) < 12_000 {
			all = append(append(all, byte(len(pkt)>>8), byte(len(pkt))), pkt...)
		}
	}
	k := w.open(0, 2, 3, 7_000, FlowOptions{}) // the last block is a micro-block
	w.finish(vtime.Minute, k)
	seen := make(map[msgType]bool)
	for rest := all; len(rest) > 2; rest = rest[2+int(rest[0])<<8+int(rest[1]):] {
		seen[msgType(rest[3])] = true
	}
	for typ := typeData; typ <= typeE2EBACK; typ++ {
		if !seen[typ] {
			f.Fatalf("the recorded traffic has no message of type %d", typ)
		}
	}
	return all
}

// FuzzNode feeds a relay, a destination and a source with a sequence of
// packets of any content, sealed so that the parser takes them, between
// honest traffic. Nothing panics, memory stays bounded, and what is delivered
// is what was sent or carries its own right hash.
func FuzzNode(f *testing.F) {
	var all []byte
	for _, p := range samplePackets() {
		all = append(all, byte(len(p)>>8), byte(len(p)))
		all = append(all, p...)
	}
	f.Add(all)
	f.Add(recordedTraffic(f))
	f.Fuzz(func(t *testing.T, stream []byte) {
		cfg := fuzzConfig()
		cfg.MemoryLimit = 2 * MaxBlockSize
		cfg.MaxFlows = 8
		w := newWorld(t, 1, 3, cfg, worldOptions{})
		w.chain(0)
		for _, x := range w.nodes {
			x.app.hostile = true
		}
		w.open(0, 2, 3, 20_000, FlowOptions{})
		for len(stream) >= 2 {
			k := min(int(stream[0])<<8|int(stream[1]), len(stream)-2)
			pkt := bytes.Clone(stream[2 : 2+k])
			stream = stream[2+k:]
			if len(pkt) >= HeaderLen {
				binary.BigEndian.PutUint32(pkt[36:], checksum(pkt))
			}
			for i, x := range w.nodes {
				if x.n == nil {
					continue
				}
				from := NodeID(1)
				if i == 1 {
					from = NodeID(2 * (len(stream) & 1))
				}
				x.n.Receive(w.now, from, pkt)
				w.flush(x)
			}
			w.run(w.now.Add(vtime.Millisecond), nil)
		}
		w.run(w.now.Add(5*vtime.Second), nil)
		for _, x := range w.nodes {
			if used, limit := x.n.Stats().MemoryPeak, 2*cfg.MemoryLimit+MaxBlockSize; used > limit {
				t.Errorf("node %d used %v, the limit is %v", x.id, used, limit)
			}
			if len(x.n.flows) > cfg.MaxFlows {
				t.Errorf("node %d has %d flows", x.id, len(x.n.flows))
			}
		}
	})
}
