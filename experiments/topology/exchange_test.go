package topology

import (
	"reflect"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

// The requests of web flows come after all flows of the file, which are the same
// with and without them.
func TestRequestsComeLast(t *testing.T) {
	flows := func(first, last string) []Flow {
		c := config(t, "{generate: {kind: chain, nodes: 5, spacing: 20m}}",
			"{count: 2, pairs: random, transport: tcp/reno, workload: "+first+"}, {count: 3, pairs: random, transport: tcp/reno}, {pairs: [{src: n05, dst: n02}], transport: hop, workload: "+last+"}", "")
		f, err := build(t, c, 0).Flows(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	plain, web := flows("continual", "voip"), flows("web", "web")
	if len(plain) != 6 || len(web) != 9 {
		t.Fatalf("%d and %d flows, want 6 and 9", len(plain), len(web))
	}
	for i, want := range plain {
		got := web[i]
		if want.Role != "" || (got.Role == spec.Responses) != (i < 2 || i == 5) {
			t.Errorf("flow %d has the role %q, without requests %q", i, got.Role, want.Role)
		}
		got.Role, got.Peer = "", 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("flow %d is %+v beside requests, %+v without", i, got, want)
		}
	}
	for i, to := range []int{0, 1, 5} {
		q, r := web[6+i], web[to]
		if q.ID != 6+i || q.Role != spec.Requests || q.Peer != r.ID || r.Peer != q.ID || q.Group != r.Group || q.Src != r.Dst || q.Dst != r.Src || q.Path[0] != r.Dst || q.Hops() != r.Hops() {
			t.Errorf("the requests %+v of %+v", q, r)
		}
	}
}
