package lab

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

const mixed = `hopbed: 1
name: mixed
topology:
  nodes:
    - {name: a, at: [0m, 0m]}
    - {name: b-1, at: [10m, 0m]}
    - {name: c, at: [20m, 0m]}
    - {name: far, at: [9km, 0m]}
    - {name: s, radio: false}
  pipes:
    - {ends: [a, s], rate: 10mbit, delay: 20ms, queue: {packets: 100}, reverse: {rate: 1mbit}}
    - {ends: [a, c], delay: 5ms}
radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}, drop: 1%}
mac: {queues: {bk: {ack: none}}}
flows: [{pairs: [{src: a, dst: s}], transport: tcp/cubic}]
duration: 1s
`

func settingsOf(t *testing.T, text string) *Settings {
	t.Helper()
	e, err := spec.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Network()
	if err != nil {
		t.Fatal(err)
	}
	out, err := NewSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func order(t *testing.T, words ...string) Order {
	t.Helper()
	o := Order{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			o.Set = append(o.Set, spec.Assignment{Key: k, Value: v})
		} else {
			o.Targets = append(o.Targets, w)
		}
	}
	return o
}

func said(changed []Changed) string {
	var out []string
	for _, c := range changed {
		out = append(out, fmt.Sprintf("%s %s: %s → %s", c.Target, c.Key, c.Was, c.Is))
	}
	return strings.Join(out, "; ")
}

func TestOrdersOfWires(t *testing.T) {
	s := settingsOf(t, mixed)
	set, changed, next, err := s.Plan(order(t, "a-s", "loss=5%", "delay=30ms"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := said(changed), "a:s delay: 20ms → 30ms; a:s loss: 0% → 5%; s:a delay: 20ms → 30ms; s:a loss: 0% → 5%"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if len(set.Pipes) != 2 || set.Pipes[0].End != 0 || set.Pipes[1].End != 1 || *set.Pipes[0].Change.Rate != 10*vtime.MbitPerSecond || *set.Pipes[1].Change.Rate != vtime.MbitPerSecond || set.Pipes[1].Change.Loss.Good != 0.05 {
		t.Errorf("%+v", set)
	}
	// One direction, on top of that; and the first settings are what they were.
	_, changed, _, err = next.Plan(order(t, "s:a", "delay=1ms", "up=false"))
	if err != nil || said(changed) != "s:a up: true → false; s:a delay: 30ms → 1ms" {
		t.Errorf("%s, %v", said(changed), err)
	}
	_, changed, _, err = s.Plan(order(t, "s:a", "delay=20ms"))
	if err != nil || said(changed) != "s:a delay: 20ms → 20ms" {
		t.Errorf("%s, %v", said(changed), err)
	}
	// A part that is refused leaves all as it was.
	for want, o := range map[string]Order{
		`did you mean "delay"?`: order(t, "a-s", "loss=1%", "dealy=1ms"),
		"no node \"x\"":         order(t, "a-s", "a-x", "loss=1%"),
		"--wire or --radio":     order(t, "a-c", "loss=1%"),
		"has no unit":           order(t, "a-s", "delay=3"),
		"a-1":                   order(t, "a-1", "up=false"),
		"no link":               order(t, "far-s", "up=false"),
		"has links to":          order(t, "b-1-s", "up=false"),
		"two different":         order(t, "a-a", "up=false"),
		"nothing to set":        order(t, "a-s"),
	} {
		set, _, next, err := s.Plan(o)
		if err == nil || !strings.Contains(err.Error(), want) || next != nil || len(set.Pipes)+len(set.Radio) > 0 {
			t.Errorf("%v: %v, want an error with %q", o.Targets, err, want)
		}
	}
	o := order(t, "a-c", "loss=2%")
	o.Medium = Wire
	if set, _, _, err := s.Plan(o); err != nil || len(set.Pipes) != 2 || set.Pipes[0].Pipe != 1 {
		t.Errorf("%+v, %v", set, err)
	}
	o.Medium = Radio
	if set, _, _, err := s.Plan(o); err != nil || len(set.Radio) != 2 {
		t.Errorf("%+v, %v", set, err)
	}
}

func TestOrdersOfTheAir(t *testing.T) {
	s := settingsOf(t, mixed)
	set, changed, next, err := s.Plan(order(t, "a-b-1", "loss=20%", "up=false"))
	if err != nil || said(changed) != "a:b-1 up: true → false; a:b-1 loss: 1% → 20%; b-1:a up: true → false; b-1:a loss: 1% → 20%" {
		t.Fatalf("%s, %v", said(changed), err)
	}
	if len(set.Radio) != 2 || set.Radio[0].Up == nil || *set.Radio[0].Up || set.Radio[1].Up != nil || *set.Radio[1].Loss != 0.2 {
		t.Errorf("%+v", set.Radio)
	}
	if _, changed, _, err = next.Plan(order(t, "b-1:c", "loss=0%")); err != nil || said(changed) != "b-1:c loss: 1% → 0%" {
		t.Errorf("%s, %v", said(changed), err)
	}
	var fixed *spec.Fixed
	for _, o := range []Order{order(t, "b-1:c", "up=false"), order(t, "b-1-c", "delivery=50%")} {
		if _, _, _, err := s.Plan(o); !errors.As(err, &fixed) {
			t.Errorf("%v: %v", o.Set, err)
		}
	}
	listed := settingsOf(t, `{hopbed: 1, name: l, topology: {nodes: [{name: a}, {name: b}], links: [{from: a, to: b, delivery: 90%, reverse: 80%}]},
  flows: [{pairs: [{src: a, dst: b}], transport: hop}], duration: 1s}`)
	set, changed, _, err = listed.Plan(order(t, "a:b", "delivery=50%"))
	if err != nil || said(changed) != "a:b delivery: 90% → 50%" || len(set.Radio) != 1 || *set.Radio[0].Delivery != 0.5 {
		t.Errorf("%s, %+v, %v", said(changed), set, err)
	}
}

func TestOrdersOfNodes(t *testing.T) {
	s := settingsOf(t, mixed)
	set, changed, next, err := s.Plan(order(t, Everything, "radio.rate=5.5mbit"))
	if err != nil || len(set.MACs) != 4 || said(changed[:1]) != "a radio.rate: 11mbit → 5500kbit" {
		t.Fatalf("%s, %v", said(changed), err)
	}
	if _, changed, next, err = next.Plan(order(t, "c", "mac.queues.be.cwmin=63", "radio.drop=3%", "up=false")); err != nil ||
		said(changed) != "c up: true → false; c radio.drop: 1% → 3%; c mac.queues.be.cwmin: 31 → 63" {
		t.Errorf("%s, %v", said(changed), err)
	}
	// What a node discards is what its links lose.
	if _, changed, _, err = next.Plan(order(t, "b-1:c", "loss=4%")); err != nil || said(changed) != "b-1:c loss: 3% → 4%" {
		t.Errorf("%s, %v", said(changed), err)
	}
	if set, changed, _, err = s.Plan(order(t, "s", "up=false")); err != nil || said(changed) != "s up: true → false" || len(set.Nodes) != 1 {
		t.Errorf("%s, %v", said(changed), err)
	}
	for want, o := range map[string]Order{
		"has no radio": order(t, "s", "mac.retries=3"),
		"not a rate":   order(t, "a", "radio.rate=3mbit"),
		"cannot be":    order(t, "a", "radio.noise=-90dBm"),
		"did you mean": order(t, "b1", "up=false"),
		"power of two": order(t, "a", "mac.queues.be.cwmin=5"),
		"unknown key":  order(t, "a", "loss=5%"),
		"is neither":   order(t, "zzz", "up=false"),
		"not a truth":  order(t, "a", "up=1"),
	} {
		if _, _, _, err := s.Plan(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v: %v, want an error with %q", o.Targets, o.Set, err, want)
		}
	}
}

// What Plan returns is what the emulator takes: its own checks find nothing.
func TestPlansAreValid(t *testing.T) {
	s := settingsOf(t, mixed)
	for _, words := range [][]string{{"a-s", "rate=100mbit", "jitter={distribution: uniform, spread: 1ms}", "reorder={share: 1%, extra: 5ms}", "duplicate=2%"},
		{Everything, "mac.rts=500B", "mac.queues.vo.txop=0us"}, {Everything, "mac.rts=off"}} {
		set, _, next, err := s.Plan(order(t, words...))
		if err != nil {
			t.Errorf("%v: %v", words, err)
			continue
		}
		for _, m := range set.MACs {
			if err := m.MAC.Validate(); err != nil {
				t.Errorf("%v: %v", words, err)
			}
		}
		for _, p := range set.Pipes {
			c := s.wires[p.Pipe][p.End].config.Apply(&p.Change)
			if err := c.Validate(); err != nil || fmt.Sprint(c.Jitter, c.Reorder, c.Duplicate, c.Rate) != fmt.Sprint(next.wires[p.Pipe][p.End].config.Jitter, next.wires[p.Pipe][p.End].config.Reorder, next.wires[p.Pipe][p.End].config.Duplicate, next.wires[p.Pipe][p.End].config.Rate) {
				t.Errorf("%v: %+v, %v", words, c, err)
			}
		}
	}
}
