package hopnet

import (
	"bytes"
	"testing"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// A neighbour that is reached through a radio: marked packets, the radio's port,
// and its rule that control waits for data.
func TestRadioPeer(t *testing.T) {
	b := open(t, Config{ID: 2, Open: true})
	a := open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: b.LocalAddr().String(), Radio: true}}})
	echo(t, b, 1)
	if err := roundTrip(t, a, 2, 1, random(1, 2<<20)); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := (*network)(a).Port(2); p != hop.RadioPort {
		t.Errorf("port %d", p)
	}
	for c, n := range a.given {
		if n != 0 && a.sock.Pending() == 0 {
			t.Errorf("%d packets of class %v are said to be in an empty batch", n, hop.Class(c))
		}
	}
}

// Ids as text.
func TestNodeID(t *testing.T) {
	for text, want := range map[string]NodeID{"1": 1, "65535": 65535, "10.0.0.2": 10<<24 + 2, "4294967294": 1<<32 - 2} {
		id, err := ParseNodeID(text)
		if err != nil || id != want {
			t.Errorf("%q is %d, %v", text, id, err)
		}
		if back, err := ParseNodeID(id.String()); err != nil || back != id {
			t.Errorf("%q comes back as %q", text, id)
		}
	}
	for _, text := range []string{"", "0", "-1", "4294967295", "255.255.255.255", "0.0.0.0", "::1", "a", "1.2.3"} {
		if id, err := ParseNodeID(text); err == nil {
			t.Errorf("%q is %v", text, id)
		}
	}
}

// FuzzMessages: whatever the bytes, the parsers end, and what they take they
// write again as it was.
func FuzzMessages(f *testing.F) {
	var b [preambleLen]byte
	(&preamble{kind: kindNotice, service: 7, epoch: 1 << 60, flow: 5, code: codeStop, mine: true}).put(b[:])
	f.Add(bytes.Clone(b[:]))
	var i [introLen]byte
	(&intro{id: 3, epoch: 4, cookie: 5, echo: 6}).put(i[:], true)
	f.Add(bytes.Clone(i[:]))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p preamble
		if p.parse(data) == nil {
			var out [preambleLen]byte
			if p.put(out[:]); !bytes.Equal(out[:], data[:preambleLen]) {
				t.Errorf("%x came back as %x", data[:preambleLen], out)
			}
		}
		var m intro
		if asks, ok := m.parse(data); ok {
			var out [introLen]byte
			if m.put(out[:], asks); !bytes.Equal(out[:], data) {
				t.Errorf("%x came back as %x", data, out)
			}
		}
		announces(data)
	})
}

// A stream that nobody accepts is refused when there are too many of them.
func TestBacklog(t *testing.T) {
	a, b := join(t, Config{Streams: 1000}, Config{Streams: 1000})
	l := listen(t, b, 1)
	for i := range mostWaiting {
		if _, err := a.Dial(within(t, soon), 2, 1); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	if _, err := a.Dial(within(t, soon), 2, 1); err == nil {
		t.Error("one too many was taken")
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := a.Dial(within(t, soon), 2, 1); err != nil {
		t.Error(err)
	}
	l.Close() // ends those that wait
	if _, err := a.Dial(within(t, soon), 2, 1); err == nil {
		t.Error("a closed listener has taken a stream")
	}
}
