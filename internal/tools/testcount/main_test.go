package main

import (
	"io"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	in := `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"    x.go:1: SKIP[no root]: run as root\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"because\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"output","Package":"p","Test":"D","Output":"broken\n"}
{"Action":"fail","Package":"p","Test":"D"}
{"Action":"fail","Package":"p"}
{"Action":"fail","Package":"does-not-build"}
panic: raw text
`
	var out strings.Builder
	s, err := read(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	// A package without a failed test counts itself: it did not build, or its
	// process died.
	if s.passed != 1 || s.failed != 2 || s.skipped != 2 || s.untyped != 1 || s.reasons["no root"] != 1 {
		t.Errorf("got %+v", s)
	}
	for _, want := range []string{"broken", "FAIL does-not-build", "panic: raw text"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if s, err := read(strings.NewReader(""), io.Discard); err != nil || s.passed != 0 {
		t.Errorf("empty input: %+v %v", s, err)
	}
}
