package main

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// lacking is a back end whose host lacks some transports.
type lacking struct {
	backend.Backend
	what []string
}

func (b *lacking) Name() string { return "netns" }

func (b *lacking) Preflight(_ context.Context, p *plan.Plan) error {
	for _, pt := range p.Experiment.Points() {
		for _, g := range pt.Config.Flows {
			if slices.Contains(b.what, string(g.Transport)) {
				return &backend.ErrUnsupported{Backend: "netns", What: string(g.Transport), Because: "this kernel has only reno", Do: "modprobe"}
			}
		}
	}
	return nil
}

// What a host lacks is left out and told; what remains is as it was.
func TestTransportsThatAHostLacks(t *testing.T) {
	e, err := read("hsdpa")
	if err != nil {
		t.Fatal(err)
	}
	p, left, err := withAvailable(context.Background(), &lacking{what: []string{"tcp/bic", "tcp/westwood"}}, e)
	if err != nil || len(left) != 2 {
		t.Fatalf("left out %v, %v", left, err)
	}
	var got []string
	for _, pt := range p.Experiment.Points() {
		got = append(got, pt.Label())
	}
	want := []string{"direction=down transport=tcp/reno", "direction=down transport=tcp/cubic", "direction=up transport=tcp/reno", "direction=up transport=tcp/cubic"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("points %q", got)
	}
	if s := e.Sets(); len(s) != 2 || s[1].Key != "matrix.transport" || s[1].Value != "[tcp/reno, tcp/cubic]" {
		t.Errorf("the experiment does not tell its changes: %v", s)
	}

	if e, err = read("hsdpa"); err != nil {
		t.Fatal(err)
	}
	var lacks *backend.ErrUnsupported
	if _, _, err := withAvailable(context.Background(), &lacking{what: []string{"tcp/reno", "tcp/westwood", "tcp/bic", "tcp/cubic"}}, e); !errors.As(err, &lacks) {
		t.Errorf("nothing remains, and %v", err)
	}
}

// A shipped experiment over a trace of the user's, relative to where they are.
func TestShippedExperimentWithATraceOfTheUser(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lte.down"), "1\n2\n5\n")
	const key = "topology.pipes.0.trace={file: lte.down, random-offset: true}"
	status, out, errs := hopbed(t, dir, "check", "hsdpa", "--set", key)
	if status != 0 || !strings.Contains(out, "trace of 5ms") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	status, _, errs = hopbed(t, dir, "check", "hsdpa", "--set", strings.Replace(key, "lte.down", "lte.up", 1))
	if status == 0 || !strings.Contains(errs, "lte.up") {
		t.Errorf("a trace that is not there: status %d, %s", status, errs)
	}
}
