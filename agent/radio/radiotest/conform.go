package radiotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/undo"
)

// Host is a host that a driver is tested on.
type Host interface {
	radio.Host
	// Snapshot tells everything that an undo must put back.
	Snapshot() string
}

// Subject is a driver under the conformance test.
type Subject struct {
	Driver string
	// Configs are configurations that the driver honours on every host of New. All
	// name the host's interface.
	Configs map[string]radio.Config
	// Unsupported are configurations that it must refuse to plan.
	Unsupported map[string]radio.Config
	// Uninterrupted leaves out what happens when each command in turn fails.
	Uninterrupted bool
	// New makes a host, the same at each call.
	New func(testing.TB) Host
	// Bare is a host without the driver's tools; nil where it needs none.
	Bare func(testing.TB) Host
}

// Conform tests what every driver promises.
func Conform(t *testing.T, s Subject) {
	d, err := radio.Lookup(s.Driver)
	if err != nil {
		t.Fatal(err)
	}
	if d.Name() != s.Driver {
		t.Errorf("Lookup(%q) returned %q", s.Driver, d.Name())
	}
	for name, c := range s.Unsupported {
		t.Run("refused/"+name, func(t *testing.T) {
			if steps, err := d.Plan(c); err == nil {
				t.Errorf("planned %v; want Unsupported or Invalid", steps)
			} else {
				checkError(t, err, radio.Unsupported, radio.Invalid)
			}
		})
	}
	for name, c := range s.Configs {
		t.Run(name, func(t *testing.T) { conform(t, s, d, c) })
		broken := c
		broken.Interface = "a/b c"
		t.Run(name+"/invalid", func(t *testing.T) {
			_, err := d.Plan(broken)
			checkError(t, err, radio.Invalid)
		})
	}
	if s.Bare != nil {
		for name, c := range s.Configs {
			t.Run("bare/"+name, func(t *testing.T) {
				err := d.Probe(t.Context(), s.Bare(t), c)
				e := checkError(t, err, radio.Unavailable)
				if e != nil && e.Remedy == "" {
					t.Errorf("no remedy: %v", e)
				}
			})
			break
		}
	}
}

func conform(t *testing.T, s Subject, d radio.Driver, c radio.Config) {
	ctx := t.Context()
	steps, err := d.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := d.Plan(c); !reflect.DeepEqual(steps, again) {
		t.Error("Plan is not the same twice")
	}
	for _, st := range steps {
		if st.Why == "" && len(st.Settings) == 0 || len(st.Argv) == 0 {
			t.Errorf("step %+v does not say what or why", st)
		}
	}

	h := &recorder{Host: s.New(t)}
	before := h.Snapshot()
	if err := d.Probe(ctx, h, c); err != nil {
		t.Fatal(err)
	}
	h.begin(steps)
	if err := d.Apply(ctx, h, c, h.push); err != nil {
		t.Fatal(err)
	}
	h.compare(t, steps)
	settings, err := d.Readback(ctx, h, c)
	if err != nil {
		t.Fatal(err)
	}
	checkSettings(t, c, settings)
	if failed := h.undo(t); failed != nil {
		t.Errorf("undo: %v", failed)
	}
	if after := h.Snapshot(); after != before {
		t.Errorf("undone, the host is not as it was:\nbefore %s\nafter  %s", before, after)
	}

	// Wherever it is interrupted, what was pushed puts everything back. What would
	// take back a change that was never made may fail.
	for n := range len(h.ran) {
		if s.Uninterrupted {
			break
		}
		h := &recorder{Host: s.New(t), failAt: n + 1}
		before := h.Snapshot()
		h.begin(steps)
		err := d.Apply(ctx, h, c, h.push)
		checkError(t, err, radio.Rejected)
		h.failAt = 0
		failed := h.undo(t)
		if after := h.Snapshot(); after != before {
			t.Errorf("interrupted at command %d and undone, the host is not as it was:\nbefore %s\nafter  %s\nundo: %v", n+1, before, after, failed)
		}
	}
	// A change that cannot be undone is not made.
	refusing := &recorder{Host: s.New(t)}
	before = refusing.Snapshot()
	refusing.begin(steps)
	err = d.Apply(ctx, refusing, c, func(undo.Record) error { return errors.New("the disk is full") })
	if len(h.records) > 0 {
		if e := checkError(t, err, radio.Unavailable); e != nil && !strings.Contains(e.Error(), "the disk is full") {
			t.Errorf("the error does not say why: %v", e)
		}
		if after := refusing.Snapshot(); after != before {
			t.Errorf("changed although it could not be undone:\nbefore %s\nafter  %s", before, after)
		}
	}
}

func checkError(t *testing.T, err error, kinds ...radio.Kind) *radio.Error {
	t.Helper()
	e, ok := errors.AsType[*radio.Error](err)
	if !ok || !slices.Contains(kinds, e.Kind) {
		t.Errorf("got error %v, want a *radio.Error of %v", err, kinds)
		return nil
	}
	if e.Driver == "" || e.Interface == "" {
		t.Errorf("error without driver or interface: %+v", e)
	}
	return e
}

// checkSettings compares evidence with the configuration: each wanted setting
// once, with a state, and the reason of what is not verified.
func checkSettings(t *testing.T, c radio.Config, settings []radio.Setting) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range settings {
		if seen[s.Name] {
			t.Errorf("setting %s twice", s.Name)
		}
		seen[s.Name] = true
		switch s.State {
		case radio.Verified:
			if s.Got == "" {
				t.Errorf("%s is verified without what was read", s.Name)
			}
		case radio.Unverified, radio.NotApplied:
			if s.Why == "" {
				t.Errorf("%s is %s and does not say why", s.Name, s.State)
			}
		default:
			t.Errorf("%s has the state %q", s.Name, s.State)
		}
	}
	if n := wanted(t, c); n != len(settings) {
		t.Errorf("%d settings for %d wanted ones: %+v", len(settings), n, settings)
	}
}

// wanted counts the settings of a configuration by its JSON form.
func wanted(t *testing.T, c radio.Config) int {
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	n := 0
	for k, v := range m {
		switch k {
		case "driver", "interface", "device":
		case "queues":
			for _, q := range v.([]any) {
				n += len(q.(map[string]any))
			}
		default:
			n++
		}
	}
	return n
}

// recorder records in which order commands are run and undo records pushed.
type recorder struct {
	Host
	planned map[string]radio.Step
	ran     [][]string // commands of the plan
	records []undo.Record
	failAt  int // the number of the command that fails, from 1
}

func (r *recorder) begin(steps []radio.Step) {
	r.planned = map[string]radio.Step{}
	for _, s := range steps {
		r.planned[r.key(s.Argv)] = s
	}
}

// key is a command with the phys left out.
func (r *recorder) key(argv []string) string {
	argv = slices.Clone(argv)
	if len(argv) > 1 && argv[0] == "iw" && strings.HasPrefix(argv[1], "phy") {
		argv[1] = "phy"
	}
	return strings.Join(argv, "\x00")
}

func (r *recorder) push(u undo.Record) error {
	r.records = append(r.records, u)
	return nil
}

func (r *recorder) Run(ctx context.Context, argv []string, input string) (string, error) {
	if _, ok := r.planned[r.key(argv)]; ok {
		r.ran = append(r.ran, argv)
		if r.failAt == len(r.ran) {
			return "", &radio.Failed{Argv: argv, Status: "exit status 1", Output: "a fault of the test"}
		}
	}
	return r.Host.Run(ctx, argv, input)
}

// compare checks that what was run is the plan, but for steps with an Unless.
func (r *recorder) compare(t *testing.T, steps []radio.Step) {
	t.Helper()
	i := 0
	for _, argv := range r.ran {
		for i < len(steps) && r.key(steps[i].Argv) != r.key(argv) {
			if steps[i].Unless == "" {
				t.Errorf("left out: %v", steps[i])
			}
			i++
		}
		if i == len(steps) {
			t.Errorf("out of the plan's order: %q", argv)
			return
		}
		i++
	}
	for ; i < len(steps); i++ {
		if steps[i].Unless == "" {
			t.Errorf("left out: %v", steps[i])
		}
	}
}

// undo carries the records out, the newest first, as a guardian would.
func (r *recorder) undo(t *testing.T) error {
	t.Helper()
	var failed []error
	for _, u := range slices.Backward(r.records) {
		if u.Kind != undo.KindCommand {
			t.Fatalf("record of kind %q: want a command", u.Kind)
		}
		var argv []string
		if err := json.Unmarshal(u.Data, &argv); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Host.Run(t.Context(), argv, ""); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", u.What, err))
		}
	}
	return errors.Join(failed...)
}
