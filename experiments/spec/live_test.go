package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func assignments(t *testing.T, words ...string) []Assignment {
	t.Helper()
	var out []Assignment
	for _, w := range words {
		a, err := ParseAssignment(w)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func TestLiveWire(t *testing.T) {
	d := Direction{Delay: 20 * vtime.Millisecond, Queue: &PipeQueue{Packets: 100}, Rate: 10 * vtime.MbitPerSecond, Loss: &PipeLoss{Good: 0.1, AfterQueue: true}}
	w, err := d.Live("a-b", assignments(t, "loss=5%", "delay=3ms", "up=false", "jitter={distribution: normal, spread: 2ms}", "queue.packets=7"))
	if err != nil {
		t.Fatal(err)
	}
	if w.Loss.Good != 0.05 || !w.Loss.AfterQueue || w.Delay != 3*vtime.Millisecond || w.Up == nil || *w.Up || w.Jitter.Distribution != Normal || w.Queue.Packets != 7 || w.Rate != d.Rate {
		t.Errorf("%+v", w)
	}
	if d.Delay != 20*vtime.Millisecond || d.Loss.Good != 0.1 || d.Queue.Packets != 100 {
		t.Errorf("the direction itself was changed: %+v", d)
	}
	if w, err = d.Live("a-b", assignments(t, "delay=1s")); err != nil || w.Up != nil || w.Queue != d.Queue || !w.Loss.AfterQueue {
		t.Errorf("%+v, %v", w, err)
	}
	for word, want := range map[string]string{
		"delay=5":                           `a-b: delay: "5": `,
		"dealy=5ms":                         `did you mean "delay"?`,
		"loss=150%":                         "from 0% to 100%",
		"rate=fast":                         "a rate such as 11mbit",
		"up=perhaps":                        "not a truth value",
		"loss={to-bad: 1%}":                 "never left",
		"loss={good: 1%, after-queue: off}": "loss.after-queue",
		"jitter=2ms":                        "a mapping",
		"jitter={distribution: normal}":     "spread",
		"queue={}":                          "no limit",
		"delay.x=5ms":                       "delay",
		"loss=\x00":                         "control characters",
		"=5ms":                              "",
	} {
		a, err := ParseAssignment(word)
		if err == nil {
			_, err = d.Live("a-b", []Assignment{a})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", word, err, want)
		}
	}
	var fixed *Fixed
	if _, err := d.Live("a-b", assignments(t, "overhead=18B")); !errors.As(err, &fixed) || fixed.Key != "overhead" || !strings.Contains(err.Error(), "--set topology.pipes.N.overhead") {
		t.Errorf("overhead: %v", err)
	}
	if _, err := (&Direction{}).Live("a-b", assignments(t, "rate=1mbit")); err == nil || !strings.Contains(err.Error(), "queue: {packets: 100}") {
		t.Errorf("a rate without a queue: %v", err)
	}
	if _, err := (&Direction{}).Live("a-b", assignments(t, "rate=1mbit", "queue.packets=10")); err != nil {
		t.Errorf("a rate with a queue: %v", err)
	}
}

func TestLiveAir(t *testing.T) {
	a, err := LiveAir("a-b", assignments(t, "loss=5%", "up=true"))
	if err != nil || *a.Loss != 0.05 || !*a.Up || a.Delivery != nil {
		t.Errorf("%+v, %v", a, err)
	}
	for word, want := range map[string]string{"delay=5ms": "unknown key", "delivery=0%": "delivery", "los=5%": `did you mean "loss"?`, "loss=0.05": "%"} {
		if _, err := LiveAir("a-b", assignments(t, word)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", word, err, want)
		}
	}
}

func TestLiveNode(t *testing.T) {
	e, err := Parse("x.yaml", []byte("hopbed: 1\nname: x\ntopology: {generate: {kind: chain, nodes: 2, spacing: 10m}}\nmac: {queues: {bk: {cwmin: 31}}}\nflows: [{pairs: [{src: n01, dst: n02}], transport: hop}]\nduration: 1s\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := e.Base()
	s, err := LiveNode("n01", c.Radio, c.MAC, assignments(t, "radio.rate=1mbit", "mac.queues.be.txop=3200us", "mac.retries=3"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Radio.Rate != vtime.MbitPerSecond || s.Radio.BasicRate != vtime.MbitPerSecond || *s.MAC.Queues.BE.TXOP != 3200*vtime.Microsecond || *s.MAC.Retries != 3 || *s.MAC.Queues.BK.CWMin != 31 || !s.Interface || s.Drop || s.Up != nil {
		t.Errorf("%+v", s)
	}
	if c.MAC.Retries != nil || c.MAC.Queues.BE.TXOP != nil || c.Radio.Rate == vtime.MbitPerSecond {
		t.Errorf("the experiment itself was changed: %+v", c.MAC)
	}
	if s, err = LiveNode("n01", c.Radio, c.MAC, assignments(t, "up=false", "radio.drop=10%")); err != nil || s.Up == nil || *s.Up || !s.Drop || s.Interface || s.Radio.Drop != 0.1 {
		t.Errorf("%+v, %v", s, err)
	}
	for word, want := range map[string]string{
		"radio.rate=3mbit":            "not a rate of 802.11b",
		"radio.basic-rate=11mbit":     "",
		"mac.queues.be.txop=100us":    "units of 32us",
		"mac.queues.be.cwmin=6":       "power of two",
		"mac.queues.bk.cwmax=15":      "above cwmax",
		"mac.retires=3":               `did you mean "retries"?`,
		"rate=1mbit":                  "unknown key",
		"mac.queues.xx.txop=0us":      "unknown key",
		"mac.queues.be.ack=sometimes": "normal, none",
	} {
		_, err := LiveNode("n01", c.Radio, c.MAC, assignments(t, word))
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want an error with %q", word, err, want)
		}
	}
	var fixed *Fixed
	for _, key := range []string{"radio.tx-power=3dBm", "radio.standard=802.11g", "radio.path-loss.exponent=2"} {
		if _, err := LiveNode("n01", c.Radio, c.MAC, assignments(t, key)); !errors.As(err, &fixed) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
