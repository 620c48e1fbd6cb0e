package pipe

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// A description goes to another process and back without loss, its trace and
// its schedule included.
func TestConfigAsJSON(t *testing.T) {
	tr, err := NewTrace([]int64{0, 3, 3, 20})
	if err != nil {
		t.Fatal(err)
	}
	down, rate, delay := false, 5*vtime.MbitPerSecond, 7*vtime.Millisecond
	for name, c := range map[string]Config{
		"zero":  {},
		"trace": {Trace: tr, TraceOffset: 10 * vtime.Second, Queue: Queue{Packets: 100, Bytes: 64 * vtime.KiB}},
		"everything else": {
			Rate: 10 * vtime.MbitPerSecond, Overhead: 38, Delay: 20*vtime.Millisecond + 1,
			Jitter: Jitter{Distribution: Pareto, Spread: vtime.Millisecond, Overtake: true},
			Loss:   Loss{Good: 0.001, Bad: 0.3, ToBad: 0.01, ToGood: 0.2}, LossAfterQueue: true,
			Reorder: Reorder{Share: 0.01, Extra: 5 * vtime.Millisecond}, Duplicate: 0.001,
			Schedule: []Change{
				{At: vtime.Time(10 * vtime.Second), Up: &down},
				{At: vtime.Time(12 * vtime.Second), Rate: &rate, Delay: &delay, Loss: &Loss{Good: 1}, Queue: &Queue{Packets: 3}},
			},
		},
	} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got Config
		if err := json.Unmarshal(b, &got); err != nil {
			t.Errorf("%s: %v: %s", name, err, b)
		} else if !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %+v became %+v", name, c, got)
		}
	}
	if err := json.Unmarshal([]byte(`{"Trace": [0]}`), new(Config)); err == nil {
		t.Error("a trace without a period was accepted")
	}
}
