package hop

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func TestBlockHash(t *testing.T) {
	// XXH64, seed 0: published test values.
	for in, want := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
		"Nobody inspects the spammish repetition": 0xfbcea83c8a378bf1,
	} {
		if got := blockHash([]byte(in)); got != want {
			t.Errorf("blockHash(%q) = %016x, want %016x", in, got, want)
		}
	}
}

// TestPattern: any part of a generator's bytes can be checked by itself, and
// a changed byte is found.
func TestPattern(t *testing.T) {
	whole := make([]byte, 1000)
	if n, last := Continual(7).Next(0, whole); n != 1000 || last {
		t.Fatalf("Next = %d, %v", n, last)
	}
	r := rand.New(rand.NewPCG(9, 9))
	for range 500 {
		i := r.IntN(1000)
		j := i + r.IntN(1001-i)
		part := slices.Clone(whole[i:j])
		if !CheckPattern(7, uint64(i), part) {
			t.Fatalf("bytes %d…%d do not check", i, j)
		}
		if len(part) > 0 {
			part[r.IntN(len(part))] ^= 1
			if CheckPattern(7, uint64(i), part) {
				t.Fatalf("bytes %d…%d check with one changed", i, j)
			}
		}
	}
	g, total := Sized(7, 2500), 0
	for last := false; !last; {
		var n int
		if n, last = g.Next(0, whole); n == 0 {
			t.Fatal("an empty block")
		}
		total += n
	}
	if total != 2500 {
		t.Errorf("%d bytes of 2500", total)
	}
}

func TestBitmap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + r.IntN(300)
		var m, missing bitmap
		m.reset(n)
		set := map[int]bool{}
		for range r.IntN(n + 1) {
			i := r.IntN(n)
			m.add(i)
			set[i] = true
		}
		wire := make([]byte, (n+7)/8)
		m.put(wire, n)
		if got := missing.missing(wire, n); got != n-len(set) {
			t.Fatalf("n %d: %d missing, want %d", n, got, n-len(set))
		}
		for i := range n {
			if m.has(i) != set[i] || missing.has(i) == set[i] {
				t.Fatalf("n %d, bit %d", n, i)
			}
		}
		k := 0
		for i := m.next(0); i >= 0; i = m.next(i + 1) {
			if !set[i] {
				t.Fatalf("next found %d", i)
			}
			k++
		}
		if k != len(set) {
			t.Fatalf("next found %d of %d", k, len(set))
		}
		if full := allOnes(wire, n); full != (len(set) == n) {
			t.Fatalf("allOnes = %v with %d of %d", full, len(set), n)
		}
		putFull(wire, n)
		if !allOnes(wire, n) || missing.missing(wire, n) != 0 {
			t.Fatalf("putFull(%d) is not full", n)
		}
	}
}

func TestTimers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var q timers
	ts := make([]timer, 50)
	armed := map[*timer]vtime.Time{}
	for range 5000 {
		x := &ts[r.IntN(len(ts))]
		switch r.IntN(3) {
		case 0, 1:
			at := vtime.Time(r.IntN(1000))
			q.set(x, at)
			armed[x] = at
		case 2:
			q.stop(x)
			delete(armed, x)
		}
		first := vtime.Never
		for _, at := range armed {
			first = vtime.Min(first, at)
		}
		if q.next() != first {
			t.Fatalf("next = %v, want %v", q.next(), first)
		}
	}
	last := vtime.Time(-1)
	for x := q.pop(1000); x != nil; x = q.pop(1000) {
		if x.at < last || armed[x] != x.at {
			t.Fatalf("popped %v after %v, armed for %v", x.at, last, armed[x])
		}
		last = x.at
		delete(armed, x)
	}
	if len(armed) != 0 {
		t.Fatalf("%d timers were not popped", len(armed))
	}
}

func TestFifo(t *testing.T) {
	var q fifo[int]
	var want []int
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 3000 {
		switch {
		case r.IntN(3) > 0 || len(want) == 0:
			q.push(i)
			want = append(want, i)
		case r.IntN(20) == 0:
			k := 2 + r.IntN(3)
			q.remove(func(v *int) bool { return *v%k == 0 })
			want = slices.DeleteFunc(want, func(v int) bool { return v%k == 0 })
		default:
			if got := q.pop(); got != want[0] {
				t.Fatalf("pop = %d, want %d", got, want[0])
			}
			want = want[1:]
		}
		if q.len() != len(want) {
			t.Fatalf("len = %d, want %d", q.len(), len(want))
		}
	}
}

// TestMACQueue: departures are believed from TxDone or from the free space,
// whichever proves more, and never earlier than they happen in a FIFO.
func TestMACQueue(t *testing.T) {
	var q macQueue
	q.look(0, 10)
	for range 5 {
		q.give(0)
	}
	if q.look(1, 5); q.left != 0 {
		t.Errorf("left = %d of a queue that holds all 5", q.left)
	}
	if q.look(2, 7); q.left != 2 {
		t.Errorf("left = %d, the free space shows 2", q.left)
	}
	if q.done(3, 1); q.left != 3 {
		t.Errorf("left = %d after one more TxDone", q.left)
	}
	if q.look(4, 7); q.left != 3 {
		t.Errorf("left = %d, it must not fall", q.left)
	}
	if q.done(5, 99); q.left != 5 {
		t.Errorf("left = %d of 5 given", q.left)
	}
	// Others' packets in the queue make the free space late, not early.
	q.give(6)
	if q.look(7, 4); q.left != 5 {
		t.Errorf("left = %d, the packet is behind 5 of others", q.left)
	}
	if q.unstick(100, 1000) || !q.unstick(1100, 1000) || q.left != 6 {
		t.Errorf("a count that stands still must be given up after the timeout, not before: %+v", q)
	}
}

func TestVariants(t *testing.T) {
	base := DefaultConfig()
	if err := base.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, name := range Variants() {
		c, err := Variant("hop/" + name)
		if err != nil || c.Validate() != nil {
			t.Errorf("hop/%s: %v, %v", name, err, c.Validate())
		}
		if reflect.DeepEqual(c, base) {
			t.Errorf("hop/%s changes nothing", name)
		}
	}
	if c, err := Variant("hop/no-txop+arq"); err != nil || !c.NoTxop || !c.DataARQ || c.NoVirtual {
		t.Errorf("hop/no-txop+arq = %+v, %v", c, err)
	}
	for _, bad := range []string{"", "tcp", "hop/", "hop/none", "hop/arq+", "hopp"} {
		if _, err := Variant(bad); err == nil {
			t.Errorf("Variant(%q) is accepted", bad)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Config)
	}{
		{"BlockSize", func(c *Config) { c.BlockSize = MaxBlockSize + 1 }},
		{"BlockSize", func(c *Config) { c.BlockSize = 0 }},
		{"Payload", func(c *Config) { c.Payload = MaxPayload + 1 }},
		{"H", func(c *Config) { c.H = 0 }},
		{"Window", func(c *Config) { c.Window = MaxWindow + 1 }},
		{"BSYNFloor", func(c *Config) { c.BSYNFloor = c.BSYNCeil + 1 }},
		{"MicroThreshold", func(c *Config) { c.MicroThreshold = c.MicroWindow + 1 }},
		{"MemoryLimit", func(c *Config) { c.MemoryLimit = 1 }},
	} {
		cfg := DefaultConfig()
		c.set(&cfg)
		if _, err := NewNode(cfg, nil, nil, nil); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := NewNode(Config{}, nil, nil, nil); err == nil {
		t.Error("the zero Config is accepted")
	}
}
