package program

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
)

func started(t *testing.T, argv ...string) *process {
	t.Helper()
	testenv.Need(t, testenv.Program(argv[0]))
	s := newSpawner()
	t.Cleanup(s.close)
	p, err := s.start(command{argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOutputIsBounded: a program that does not stop writing is cut off, and ends.
func TestOutputIsBounded(t *testing.T) {
	p := started(t, "yes")
	n, err := io.Copy(io.Discard, p.out)
	if n != maxOutput || !errors.Is(err, errTooMuch) {
		t.Errorf("%d bytes, %v", n, err)
	}
	<-p.exited // SIGPIPE
	q := started(t, "yes")
	if _, err := listen(q.out, func(saying) error { return nil }); err == nil || !strings.Contains(err.Error(), "line 1 of its output") {
		t.Errorf("%v", err)
	}
	q.stop()
}

// TestLastLineOfABrokenOutput: when reading breaks off, the part of a line that is
// left is no line.
func TestLastLineOfABrokenOutput(t *testing.T) {
	in := io.MultiReader(strings.NewReader("{\"bytes\": 1}\n{\"byt"), broken{})
	if n, err := listen(in, func(saying) error { return nil }); n != 1 || !errors.Is(err, errTooMuch) {
		t.Errorf("%d lines, %v", n, err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errTooMuch }

// TestTail: of standard error the end is kept.
func TestTail(t *testing.T) {
	p := started(t, "sh", "-c", "for i in 1 2 3; do head -c 1500 /dev/zero | tr '\\0' $i; done >&2; echo the end >&2; exit 3")
	if _, err := io.Copy(io.Discard, p.out); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if s := p.tail.String(); strings.Contains(s, "1") || !strings.HasSuffix(s, "3 | the end") && !strings.HasSuffix(s, "3the end") {
		t.Errorf("%q", s)
	}
	if got := p.ended(); p.status() != 3 || !strings.HasPrefix(got, "sh ended with status 3, and said: ") {
		t.Errorf("%s", got)
	}
}

// TestStopOfAStoppedProgram: a program that was held still is ended all the same,
// and what it had started with it.
func TestStopOfAStoppedProgram(t *testing.T) {
	p := started(t, "sh", "-c", "trap '' TERM; sleep 1000 & echo begun; wait; sleep 1000")
	b := make([]byte, 6)
	if _, err := io.ReadFull(p.out, b); err != nil {
		t.Fatal(err)
	}
	p.signal(19) // SIGSTOP
	done := make(chan struct{})
	go func() { p.stop(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it is still there")
	}
	if s := p.status(); s != 128+9 {
		t.Errorf("status %d", s)
	}
	if n, err := io.Copy(io.Discard, p.out); n != 0 || err != nil {
		t.Errorf("%d bytes more, %v", n, err)
	}
}
