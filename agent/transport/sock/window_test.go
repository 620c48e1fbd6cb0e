//go:build linux

package sock

import (
	"math/rand"
	"testing"
)

// The window agrees with a set that forgets nothing, for every number within
// its length of the newest.
func TestSequenceWindow(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var w window
	seen := map[int64]bool{}
	next := int64(0)
	for range 200_000 {
		var seq int64
		switch rnd.Intn(10) {
		case 0:
			seq = next + int64(rnd.Intn(6000)) // a jump, at times beyond the window
		case 1, 2, 3:
			seq = max(0, next-int64(rnd.Intn(4000)))
		default:
			seq = next
		}
		fresh, late := w.add(seq)
		old := seq < next-4096
		if want := !seen[seq] && !old; fresh != want {
			t.Fatalf("sequence number %d (next %d, seen %v): fresh %v", seq, next, seen[seq], fresh)
		}
		if late != (seq < next) {
			t.Fatalf("sequence number %d (next %d): late %v", seq, next, late)
		}
		seen[seq] = true
		next = max(next, seq+1)
	}
	if fresh, _ := w.add(-1); fresh {
		t.Error("a negative number is fresh")
	}
}
