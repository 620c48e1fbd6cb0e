package lanetest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/internal/testenv"
)

// Case is a test that runs in the lane.
type Case struct {
	Name string // a word: it is part of the subtest's name
	Run  func(t *testing.T)
}

// Inside says whether this process runs in the lane.
func Inside() bool { return os.Getenv(lane.Marker) == "1" }

// Run runs the cases in one boot of the lane, one after the other, as subtests.
// It must be called from a test function itself, not from a subtest, and its
// arguments must be the same inside and outside. c.Stdout is not used; c.Timeout
// bounds the machine.
func Run(t *testing.T, c lane.Config, cases ...Case) {
	t.Helper()
	if Inside() {
		for _, k := range cases {
			t.Run(k.Name, k.Run)
		}
		return
	}
	testenv.Long(t)
	testenv.Need(t, testenv.Program("qemu-system-x86_64"), testenv.Program("go"))
	report, err := boot(t, c)
	var lack *lane.Unavailable
	if errors.As(err, &lack) {
		testenv.Need(t, testenv.Because(lack.What, err))
	}
	seen := report.fold(t, cases)
	switch {
	case err != nil:
		t.Fatalf("%v\nthe tests' output so far:\n%s", err, report.rest.String())
	case report.status != 0 && !t.Failed():
		t.Fatalf("the test binary ended with status %d in the lane:\n%s", report.status, report.rest.String())
	case seen == 0:
		t.Fatalf("no test ran in the lane:\n%s", report.rest.String())
	}
}

// boot runs this test of this package's test binary in the lane.
func boot(t *testing.T, c lane.Config) (*report, error) {
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Minute
	}
	if end, ok := t.Deadline(); ok {
		c.Timeout = min(c.Timeout, time.Until(end)-5*time.Second)
	}
	var out bytes.Buffer
	c.Stdout = &out
	if c.HostRoot && c.Dir == "" { // a test runs in its package's folder
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		c.Dir = dir
	}
	binary := filepath.Join(t.TempDir(), "lane.test")
	if err := lane.Build(t.Context(), "test", "-c", "-o", binary, "."); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	status, err := lane.Run(t.Context(), c, binary, "-test.run="+pattern(t.Name()), "-test.v=test2json",
		"-test.timeout="+(c.Timeout-2*time.Second).String(), "-test.count=1")
	t.Logf("the lane ran for %v", time.Since(start).Round(100*time.Millisecond))
	r, perr := parse(t.Context(), out.Bytes(), t.Name())
	if perr != nil {
		return nil, errors.Join(err, perr)
	}
	r.status = status
	return r, err
}

// pattern selects this test, and of its subtests those that the caller of go test
// selected.
func pattern(name string) string {
	p := "^" + regexp.QuoteMeta(name) + "$"
	if f := flag.Lookup("test.run"); f != nil {
		if _, sub, ok := strings.Cut(f.Value.String(), "/"); ok {
			p += "/" + sub
		}
	}
	return p
}

// toJSON turns a test's output into events.
func toJSON(ctx context.Context, out []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json")
	cmd.Stdin = bytes.NewReader(out)
	return cmd.Output()
}
