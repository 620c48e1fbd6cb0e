package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopbed/hopbed/agent/transport/bundle"
)

func sample(seq uint64, n int) *bundle.Bundle {
	b := &bundle.Bundle{CRC: bundle.CRC32C, Source: bundle.IPN(1, 1), Destination: bundle.IPN(2, 1), Created: bundle.Timestamp{Time: 1, Seq: seq},
		Lifetime: 1000, Payload: bundle.Bytes(bytes.Repeat([]byte{byte(seq) + 1}, n)), PayloadCRC: bundle.CRC32C}
	b.SetHops(9, 1)
	return b
}

func octets(t *testing.T, b *bundle.Bundle) []byte {
	t.Helper()
	e := b.Encode()
	out, err := e.Append(nil, 0, e.Len())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRestart: what was written is found again, in order, and nothing else.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flow")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{12, 3, 100000000000, 7} {
		b := sample(seq, 300_000)
		want := octets(t, b)
		c, err := d.Write(seq, b.Encode())
		if err != nil {
			t.Fatal(err)
		}
		read, err := bundle.Decode(want)
		if err != nil {
			t.Fatal(err)
		}
		read.Payload = c
		if got := octets(t, read); !bytes.Equal(got, want) {
			t.Fatalf("bundle %d from its file differs", seq)
		}
	}
	if err := d.Remove(7); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(7); err != nil {
		t.Errorf("removed again: %v", err)
	}
	// A crash while one was written, a file that was damaged, and one that has
	// another's name.
	whole := octets(t, sample(8, 10))
	for name, data := range map[string][]byte{d.file(1) + partial: whole[:20], d.file(2): whole[:20], d.file(9): whole} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d, err = Open(path); err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	damaged, err := d.Load(func(b *bundle.Bundle, size int) {
		seqs = append(seqs, b.Created.Seq)
		want := octets(t, sample(b.Created.Seq, 300_000))
		if got := octets(t, b); !bytes.Equal(got, want) || size != len(want) {
			t.Errorf("bundle %d was not found as it was written", b.Created.Seq)
		}
	})
	if err != nil || damaged != 3 || len(seqs) != 3 || seqs[0] != 3 || seqs[1] != 12 || seqs[2] != 100000000000 {
		t.Errorf("found %v, %d damaged, %v", seqs, damaged, err)
	}
	if left, _ := os.ReadDir(path); len(left) != 3 {
		t.Errorf("%d files are left", len(left))
	}
}

// TestNoSpace: what cannot be written is an error and leaves nothing behind.
func TestNoSpace(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "flow"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(1, sample(1, 10).Encode()); err == nil {
		t.Error("it was written into a directory that is not there")
	}
	if _, err := d.Load(nil); err == nil {
		t.Error("a directory that is not there was read")
	}
}
