package hop

import (
	"reflect"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestEveryCounterIsAdded: what counts is kept over a node's death, and what is a
// state is not.
func TestEveryCounterIsAdded(t *testing.T) {
	states := map[string]bool{"Key": true, "Role": true, "Used": true, "Held": true, "Cached": true, "InFlight": true, "Unacked": true, "Granted": true,
		"Waiting": true, "HeldBytes": true, "SRTT": true, "E2EDelay": true, "Flows": true, "MemoryUsed": true}
	fill := func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case f.CanUint() && f.Kind() == reflect.Uint64:
				f.SetUint(uint64(i + 1))
			case f.CanInt():
				f.SetInt(int64(i + 1))
			}
		}
	}
	check := func(got reflect.Value, times int64) {
		for i := range got.NumField() {
			name, f := got.Type().Field(i).Name, got.Field(i)
			var have int64
			switch {
			case f.CanUint():
				have = int64(f.Uint())
			case f.CanInt():
				have = f.Int()
			}
			want := times * int64(i+1)
			if states[name] {
				want = 0
			}
			if name == "MemoryPeak" {
				want = int64(i + 1)
			}
			if have != want && !(f.Kind() == reflect.Uint8 && states[name]) {
				t.Errorf("%v.%s is %d, want %d", got.Type(), name, have, want)
			}
		}
	}
	var f FlowStats
	fill(reflect.ValueOf(&f).Elem())
	f.Role = Destination
	once := f.Counters()
	if once.Role != Destination {
		t.Errorf("role %v", once.Role)
	}
	check(reflect.ValueOf(once), 1)
	once.Add(&f)
	check(reflect.ValueOf(once), 2)
	var n, sum NodeStats
	fill(reflect.ValueOf(&n).Elem())
	sum.Add(&n)
	sum.Add(&n)
	check(reflect.ValueOf(sum), 2)
}

// Bytes are those that were sent, whatever the length of the packets: a block that
// is inside its BSYN counts as well, and a repetition by its own length.
func TestBytesSentOfSmallBlocks(t *testing.T) {
	sent := func(size vtime.Bytes, loss float64) (s FlowStats) {
		cfg := testConfig()
		w := newWorld(t, 1, 2, cfg, worldOptions{arqTries: 1})
		w.chain(loss)
		k := w.open(0, 1, 1, 50*size, FlowOptions{BlockSize: size})
		done := w.run(vtime.Time(vtime.Hour), func() bool {
			if now, ok := w.nodes[0].n.FlowStats(k); ok {
				s = now
			}
			return w.nodes[1].app.finished[k]
		})
		if !done {
			t.Fatalf("blocks of %v, loss %v: not delivered\n%s", size, loss, w.summary())
		}
		return s
	}
	for _, size := range []vtime.Bytes{20, 3000} {
		if s := sent(size, 0); s.BytesSent != 50*size || s.BytesAgain != 0 {
			t.Errorf("blocks of %v: %v sent, %v of it again; want %v and nothing", size, s.BytesSent, s.BytesAgain, 50*size)
		}
		if s := sent(size, 0.3); s.BytesAgain == 0 || s.BytesAgain >= s.BytesSent || s.BytesSent < 50*size {
			t.Errorf("blocks of %v over a lossy link: %v sent, %v of it again", size, s.BytesSent, s.BytesAgain)
		}
	}
}
