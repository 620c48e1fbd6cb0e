package hop

import (
	"reflect"
	"testing"
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
