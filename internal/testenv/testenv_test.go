package testenv

import (
	"errors"
	"strings"
	"testing"
)

// recorder is a testing.TB that notes how it was skipped.
type recorder struct {
	testing.TB
	reason string
}

func (r *recorder) Helper() {}
func (r *recorder) Skipf(format string, args ...any) {
	r.reason = lack(format, args...).Error()
}

func TestNeedSkipsWithOneTypedReason(t *testing.T) {
	probes := 0
	missing := Requirement{"a thing of the test", func() error { probes++; return errors.New("not there") }}
	for range 2 {
		r := &recorder{TB: t}
		Need(r, missing)
		if !strings.HasPrefix(r.reason, "SKIP[unavailable: a thing of the test] not there") {
			t.Errorf("skipped with %q", r.reason)
		}
	}
	if probes != 1 {
		t.Errorf("the probe ran %d times, want once", probes)
	}
	present := Requirement{"another thing of the test", func() error { return nil }}
	r := &recorder{TB: t}
	Need(r, present)
	if r.reason != "" {
		t.Errorf("skipped with %q although nothing is missing", r.reason)
	}
}

func TestProbesAgree(t *testing.T) {
	if Check(TAP) == nil && Check(NetNS) != nil {
		t.Errorf("a TAP in a namespace works, but namespaces do not: %v", Check(NetNS))
	}
	if err := Check(CC("no-such-cc")); err == nil {
		t.Error("a congestion control that does not exist was found")
	}
	for _, r := range []Requirement{Root, NetNS, TAP, UserNS, FIFO, CC("cubic"), CC("reno")} {
		t.Logf("%s: %v", r.Name(), Check(r))
	}
}

func TestForeignPrograms(t *testing.T) {
	if err := Check(Architecture("pdp11")); err == nil {
		t.Error("this host runs programs of a pdp11")
	}
	for _, arch := range []string{"386", "arm64", "riscv64"} {
		cmd := Foreign(arch, "/x/prog", "-a", "b")
		if err := Check(Architecture(arch)); err != nil {
			t.Logf("%s: %v", arch, err)
			continue
		}
		if n := len(cmd.Args); cmd.Args[n-1] != "b" || cmd.Args[n-3] != "/x/prog" {
			t.Errorf("%s: %q", arch, cmd.Args)
		}
	}
}
