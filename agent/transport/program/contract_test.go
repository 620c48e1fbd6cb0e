package program

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func TestSayings(t *testing.T) {
	s, err := parseSaying([]byte(`{"bytes": 1234, "t": 17.25, "retries": 3, "rtt_ms": 12.6, "note": "a text", "list": [1]}`))
	if err != nil || !s.hasBytes || s.bytes != 1234 || s.t != 17.25 || len(s.counters) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, c := range s.counters {
		if want := map[string]int64{"retries": 3, "rtt_ms": 13}[c.Name]; c.Delta != want {
			t.Errorf("%+v, want %d", c, want)
		}
	}
	for line, want := range map[string]string{
		`hello`: "no JSON object", `[1]`: "no JSON object", `{"bytes": "many"}`: "must be a number", `{"bytes": -1}`: "whole number", `{"bytes": 1.5}`: "whole number",
		`{"bytes": 1e300}`: "whole number", `{"t": 0}`: "CLOCK_MONOTONIC", `{"t": null, "bytes": 1}`: "CLOCK_MONOTONIC", `{"a-b": 1}`: "its name", `{"total_bytes": 1}`: "choose another name", `{"x": 1e300}`: "beyond",
	} {
		if s, err := parseSaying([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", line, s, err, want)
		}
	}
}

func TestListen(t *testing.T) {
	var got []vtime.Bytes
	take := func(s saying) error {
		if s.bytes == 666 {
			return errors.New("refused")
		}
		got = append(got, s.bytes)
		return nil
	}
	if n, err := listen(strings.NewReader("{\"bytes\":1}\n\n{\"bytes\":2}\n{\"bytes\":3}"), take); n != 3 || err != nil || fmt.Sprint(got) != "[1B 2B 3B]" {
		t.Errorf("%d lines, %v: %v", n, err, got)
	}
	for in, want := range map[string]string{
		"{\"bytes\":1}\nTraceback\n":    "line 2 of its output: \"Traceback\" is no JSON object",
		"{\"bytes\":666}":               "line 1 of its output: refused",
		strings.Repeat("a", maxLine+10): "line 1 of its output is longer than 64 KiB",
	} {
		if _, err := listen(strings.NewReader(in), take); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", in, err, want)
		}
	}
	var c counters
	for i := range maxCounters {
		s, err := parseSaying(fmt.Appendf(nil, `{"c%d": %d}`, i, i))
		if err = errors.Join(err, c.set(s.counters)); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := parseSaying([]byte(`{"c3": 77}`))
	more, _ := parseSaying([]byte(`{"new": 1}`))
	if err := c.set(again.counters); err != nil || c[3].Delta != 77 {
		t.Errorf("a counter that is known: %v, %+v", err, c[3])
	}
	if err := c.set(more.counters); err == nil {
		t.Error("counters without bound")
	}
}

// FuzzOutput feeds arbitrary output to every reader: none may panic, keep an
// impossible interval, or wait for ever.
func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"intervals":[` + oneInterval + `],"end":{"sum_received":{"bytes":1000,"end":1}},"error":"x"}`))
	f.Add([]byte(`{"event":"interval","data":` + oneInterval + `}` + "\n" + `{"event":"error","data":"x"}`))
	f.Add([]byte("[  1] 0.0000-0.5000 sec  1310780 Bytes  20972480 bits/sec  10/0          0      639K/2071(3960) us  1266\n"))
	f.Add([]byte("20261201050051,127.0.0.1,46881,127.0.0.1,5778,1,0.0-0.5,64400,1030400,0.008,0,46,0.000,0\n"))
	f.Add([]byte(`{"bytes":1,"t":5,"n":1e9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, receiver := range []bool{false, true} {
			for _, r := range []*report{readIperf3(receiver, strings.NewReader(string(b))), readIperf2(receiver, strings.NewReader(string(b)))} {
				at := vtime.Duration(0)
				for _, i := range r.intervals {
					if i.from < at-seam || i.to <= i.from || i.bytes < 0 {
						t.Fatalf("intervals %+v", r.intervals)
					}
					at = i.to
				}
				_ = r.verify(vtime.Second) // it must not panic
				if len(r.said) > 500 || len(r.broken) > 1000 {
					t.Fatalf("long words: %q %q", r.said, r.broken)
				}
			}
		}
		_, _ = listen(strings.NewReader(string(b)), func(saying) error { return nil }) // likewise
	})
}
