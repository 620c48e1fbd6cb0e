package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
)

// Every flow of the benchmark carries something, and nothing is left. How much
// it is depends on the machine.
func TestHop(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS)
	var out strings.Builder
	rs, err := Hop(context.Background(), &out, HopOptions{Common: Common{Tag: "bench-test-hop"}, Span: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	nothingLeft(t, "bench-test-hop")
	if len(rs) != 3 && len(rs) != 5 {
		t.Errorf("%d results", len(rs))
	}
	for _, r := range rs {
		if r.Goodput <= 0 || r.CPU <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(rs) == 3 && !strings.Contains(out.String(), "install iperf3") {
		t.Error("iperf3 is not there, and the table does not say so")
	}
}

func TestIperfResult(t *testing.T) {
	for text, want := range map[string][3]float64{
		`warning: text before
{"end":{"sum_received":{"bytes":1000,"seconds":2}}}`: {4000, 0, 2},
		`{"end":{"sum":{"bytes":1000,"seconds":1,"lost_percent":25}}}`:                                                   {6000, 25, 1},
		`{"end":{"sum_received":{"bytes":500,"seconds":1,"lost_percent":50},"sum":{"bytes":1000,"seconds":1}}} trailing`: {4000, 50, 1},
	} {
		bps, lost, seconds, err := iperfResult(text)
		if err != nil || [3]float64{bps, lost, seconds} != want {
			t.Errorf("%s: %v %v %v, %v", text, bps, lost, seconds, err)
		}
	}
	for _, text := range []string{"", "no", "{", `{"error":"unable to connect"}`, `{"end":{}}`, `{"end":{"sum":{"bytes":0,"seconds":1}}}`, `{"end":{"sum":{"bytes":-nan`} {
		if bps, _, _, err := iperfResult(text); err == nil {
			t.Errorf("%q: %v", text, bps)
		}
	}
}
