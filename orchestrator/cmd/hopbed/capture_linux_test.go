package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/internal/tshark"
)

// captureOf is the capture of a run, or of its last attempt if the host spoiled
// all.
func captureOf(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return strings.TrimSuffix(path, ".pcapng") + "-invalid.pcapng"
}

// Wireshark's analysis of the kernel's TCP, from the capture of a live run as it
// is by default, finds what the kernel counts.
func TestCaptureOfTheKernelsTCP(t *testing.T) {
	dir := liveLab(t)
	tshark.Need(t)
	testenv.Long(t)
	write(t, filepath.Join(dir, "f.yaml"), lossy)
	status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "netns", "--trace", "out.pcapng", "--events", "out.log")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	// The agent reads the kernel's counters at the flow's end; a window may leave
	// until the connection is closed. A busy host answers late, but what Wireshark
	// makes of the times must not be of another order.
	analysis{window: 1 << 18, rtt: 0.5}.check(t, dir, captureOf(t, filepath.Join(dir, "out.pcapng")))
	nothingLeft(t, dir)
}

// The user's stop leaves no half-written capture behind.
func TestStoppedRunLeavesNoCapture(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, long...)
	p := start(t, dir, "run", "f.yaml", "--trace", "out.pcapng", "--events", "out.log")
	p.await("measure", 1)
	p.signal(syscall.SIGINT)
	if status := p.end(); status != exitInterrupted {
		t.Errorf("status %d:\n%s", status, p.said())
	}
	p.leavesNothing("f.yaml", "results.db")
}

// Without root the emulator in the user namespace writes the user's files.
func TestCaptureWithoutRoot(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP, testenv.UserNS)
	dir := experiment(t, append(brief, "[hop, tcp/cubic]", "[hop]", "repeat: 1", "repeat: 1\nlimits: {reruns: 0}")...)
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	p := on(t, "nobody", dir, "run", "f.yaml", "--trace", "out.pcapng")
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("status %d:\n%s", code, p.said())
	}
	var st unix.Stat_t
	if err := unix.Lstat(captureOf(t, filepath.Join(dir, "out.pcapng")), &st); err != nil || st.Uid != nobody || st.Size < 1000 {
		t.Errorf("%v: %d bytes of user %d", err, st.Size, st.Uid)
	}
}

// A full disk costs the capture, not the run: it is stored with a warning, the
// command says so at its end, and what was written can be read.
func TestFullDiskForTheCapture(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	for _, where := range []string{"sim", "netns"} {
		dir := experiment(t, "[hop, tcp/cubic]", "[tcp/cubic]")
		p := on(t, "full disk for the report", dir, "run", "f.yaml", "--backend", where, "--trace", "report/out.pcapng", "--snaplen", "0")
		code := p.end()
		runs, _ := stored(t, dir)
		if len(runs) == 0 || valid(runs) == 0 && where == "sim" {
			t.Fatalf("%s: status %d, runs %+v:\n%s", where, code, runs, p.said())
		}
		warned := slices.ContainsFunc(runs[len(runs)-1].Warnings, func(w string) bool {
			return strings.Contains(w, "report/out.pcapng") && strings.Contains(w, "no space left") && !strings.ContainsAny(w, "\n\ufffd")
		})
		if !warned || valid(runs) > 0 && (code != exitError || !strings.Contains(p.said(), "no capture, or an incomplete one")) {
			t.Errorf("%s: status %d, warnings %v:\n%s", where, code, runs[len(runs)-1].Warnings, p.said())
		}
	}
}
