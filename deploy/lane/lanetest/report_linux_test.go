package lanetest

import (
	"cmp"
	"strings"
	"testing"
)

// What a test binary says with -test.v=test2json: ^V begins its own lines.
const said = "\x16=== RUN   TestX\n" +
	"\x16=== RUN   TestX/good_one\n    x_test.go:1: a word\n" +
	"\x16--- PASS: TestX/good_one (0.00s)\n" +
	"\x16=== RUN   TestX/bad\n" +
	"\x16=== RUN   TestX/bad/part\n    x_test.go:2: broken\n" +
	"\x16--- FAIL: TestX/bad/part (0.00s)\n" +
	"\x16--- FAIL: TestX/bad (0.00s)\n" +
	"\x16=== RUN   TestX/left_out\n    x_test.go:3: SKIP[unavailable: a thing] not there\n" +
	"\x16--- SKIP: TestX/left_out (0.00s)\n" +
	"\x16=== RUN   TestX/endless\n    x_test.go:4: before the end of the world\n" +
	"panic: test timed out\n"

func TestReport(t *testing.T) {
	r, err := parse(t.Context(), []byte(said), "TestX")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"good_one": "pass", "bad": "fail", "bad/part": "fail", "left_out": "skip", "endless": "fail"} {
		o := r.tests[name]
		if o == nil {
			t.Errorf("%s is not in the report", name)
			continue
		}
		if got := cmp.Or(o.verdict, "fail"); got != want { // one that did not end fails, too
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(r.tests["left_out"].output.String(), "SKIP[unavailable: a thing]") {
		t.Errorf("the reason of a skip is lost: %q", r.tests["left_out"].output.String())
	}
	if b := r.below("bad"); !strings.Contains(b, "broken") {
		t.Errorf("what failed below a case is lost: %q", b)
	}
}

func TestPattern(t *testing.T) {
	if p := pattern("TestA.b"); !strings.HasPrefix(p, `^TestA\.b$`) {
		t.Errorf("pattern %q", p)
	}
}
