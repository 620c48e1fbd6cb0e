//go:build linux

package live

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// What the kernel lacks is said before the first run, whatever the flow that asks
// for it. dctcp is a module; reno is in every kernel.
func TestPreflightAsksTheKernel(t *testing.T) {
	preflight := func(transports string) error {
		e, err := spec.Parse("f.yaml", []byte(`hopbed: 1
name: f
topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], delay: 1ms}]}
flows: [{pairs: [{src: a, dst: b}], transport: tcp/reno}, {pairs: [{src: b, dst: a}], transport: $transport}]
matrix: {transport: `+transports+`}
warmup: 1s
duration: 10s
`))
		if err != nil {
			t.Fatal(err)
		}
		return New(Options{Name: "here"}).Preflight(t.Context(), plan.Build(e))
	}
	var none *tap.Unavailable // the host has no TAP: asked last
	if err := preflight("[tcp/reno, hop, hop-by-hop-tcp/reno]"); err != nil && !errors.As(err, &none) {
		t.Errorf("reno: %v", err)
	}
	for _, family := range []string{"tcp", "hop-by-hop-tcp"} {
		var u *backend.ErrUnsupported
		switch err := preflight("[hop, " + family + "/lp]"); {
		case errors.As(err, &u):
			if u.What != family+"/lp" || !strings.Contains(u.Because, "reno") || !strings.Contains(u.Do, "modprobe tcp_lp") {
				t.Errorf("%v", err)
			}
		case err != nil && !errors.As(err, &none):
			t.Errorf("%s/lp: %v", family, err)
		default: // asking has loaded the module
			has, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
			if err != nil || !slices.Contains(strings.Fields(string(has)), "lp") {
				t.Errorf("%s/lp is taken, and the kernel has %s, %v", family, has, err)
			}
		}
	}
}

// What only real radios do is refused where they are emulated.
func TestPreflightRefusesFragments(t *testing.T) {
	e, err := spec.Parse("x.yaml", []byte(`
hopbed: 1
name: x
topology: {generate: {kind: chain, nodes: 2, spacing: 20m}}
mac: {fragment: 512B}
flows: [{count: 1, pairs: random, transport: tcp/reno}]
duration: 1s
`))
	if err != nil {
		t.Fatal(err)
	}
	err = New(Options{Name: "here"}).Preflight(t.Context(), plan.Build(e))
	if u, ok := errors.AsType[*backend.ErrUnsupported](err); !ok || u.What != "mac.fragment" || !strings.Contains(u.Do, "ssh") {
		t.Errorf("got %v, want mac.fragment unsupported", err)
	}
}

// A program that this host does not have is said with its remedy.
func TestPreflightLooksForPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for transport, want := range map[string][2]string{
		"iperf3/reno": {"iperf3 is not installed", "apt install iperf3"},
		"iperf2/udp":  {"iperf is not installed", "apt install iperf"},
		"exec":        {"no-such-program is not installed", "PATH"},
	} {
		e, err := spec.Parse("f.yaml", []byte(`hopbed: 1
name: f
topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], delay: 1ms}]}
flows: [{pairs: [{src: a, dst: b}], transport: `+transport+`}]
transports: {iperf: {rate: 1mbit}, exec: {send: [no-such-program], receive: [no-such-program]}}
warmup: 1s
duration: 10s
`))
		if err != nil {
			t.Fatal(err)
		}
		var u *backend.ErrUnsupported
		if err := New(Options{Name: "here"}).Preflight(t.Context(), plan.Build(e)); !errors.As(err, &u) || u.What != transport || u.Because != want[0] || !strings.Contains(u.Do, want[1]) {
			t.Errorf("%s: %v", transport, err)
		}
	}
}
