package relay

import (
	"bytes"
	"errors"
	"math/rand"
	"strings"
	"testing"
)

// A reader and a writer of different speeds: every byte in order, and never
// more than the bound.
func TestRingKeepsOrderAndBound(t *testing.T) {
	const size, total = 1000, 200_000
	r := newRing(size)
	go func() {
		rnd, sent := rand.New(rand.NewSource(1)), 0
		for sent < total {
			b, err := r.space()
			if err != nil {
				t.Error(err)
				return
			}
			n := min(1+rnd.Intn(len(b)), total-sent)
			for i := range n {
				b[i] = byte((sent + i) % 251)
			}
			r.filled(n)
			sent += n
		}
		r.end()
	}()
	rnd, got := rand.New(rand.NewSource(2)), 0
	for {
		b, ok, err := r.data(1 + rnd.Intn(300))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n := 1 + rnd.Intn(len(b))
		for i := range n {
			if b[i] != byte((got+i)%251) {
				t.Fatalf("byte %d is %d", got+i, b[i])
			}
		}
		r.taken(n)
		got += n
		if held, most := r.level(); held > size || most > size {
			t.Fatalf("%d bytes held, %d at most, of %d", held, most, size)
		}
	}
	if got != total {
		t.Errorf("%d bytes came out, want %d", got, total)
	}
	if _, most := r.level(); most == 0 {
		t.Error("the highest level was not recorded")
	}
}

func TestRingFailureEndsBothSides(t *testing.T) {
	r, why := newRing(10), errors.New("broken")
	waits := make(chan error, 2)
	go func() { _, _, err := r.data(5); waits <- err }()
	r.fail(why)
	if err := <-waits; err != why {
		t.Errorf("data: %v", err)
	}
	if got := r.fail(errors.New("later")); got != why {
		t.Errorf("fail returned %v, want the first error", got)
	}
	full := newRing(3)
	full.filled(3)
	go func() { _, err := full.space(); waits <- err }()
	full.fail(why)
	if err := <-waits; err != why {
		t.Errorf("space: %v", err)
	}
}

func TestHeader(t *testing.T) {
	h := Header{Flow: 7, Src: 1, Dst: 0x01020304}
	b := h.Append(nil)
	if len(b) != HeaderLen {
		t.Fatalf("%d bytes", len(b))
	}
	if got, err := ReadHeader(bytes.NewReader(b)); err != nil || got != h {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"version": {func(b []byte) []byte { b[4] = 9; return b }, "version 9"},
		"flags":   {func(b []byte) []byte { b[6] = 1; return b }, "version"},
		"magic":   {func(b []byte) []byte { return append([]byte("GET / HTTP/1.1\r\n"), b...) }, "GET"},
		"short":   {func(b []byte) []byte { return b[:10] }, "unexpected EOF"},
	} {
		if _, err := ReadHeader(bytes.NewReader(c.change(bytes.Clone(b)))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(Header{Flow: 1, Src: 2, Dst: 3}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err == nil && !bytes.Equal(h.Append(nil), b) {
			t.Errorf("%x parsed to %+v", b, h)
		}
	})
}
