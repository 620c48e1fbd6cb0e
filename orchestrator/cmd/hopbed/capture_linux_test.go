package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// lossy is a wired network with losses in its middle.
const lossy = `hopbed: 1
name: lossy
topology:
  nodes: [{name: src, radio: false}, {name: r, radio: false}, {name: dst, radio: false}]
  pipes:
    - {ends: [src, r], rate: 100mbit, delay: 1ms, queue: {packets: 1000}}
    - {ends: [r, dst], rate: 5mbit, delay: 10ms, queue: {packets: 50}, loss: 1%}
flows:
  - {pairs: [{src: src, dst: dst}], transport: tcp/cubic}
repeat: 1
warmup: 500ms
duration: 3s
`

// captureOf is the capture of a run, or of its last attempt if the host spoiled
// all.
func captureOf(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return strings.TrimSuffix(path, ".pcapng") + "-invalid.pcapng"
}

// Wireshark's analysis of the kernel's TCP, from the capture of a live run, finds
// what the kernel counts.
func TestCaptureOfTheKernelsTCP(t *testing.T) {
	dir := liveLab(t)
	tshark.Need(t)
	testenv.Long(t)
	write(t, filepath.Join(dir, "f.yaml"), lossy)
	status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "netns", "--trace", "out.pcapng", "--events", "out.log")
	if status != exitOK && status != exitNotValid {
		t.Fatalf("status %d: %s", status, stderr)
	}
	path := captureOf(t, filepath.Join(dir, "out.pcapng"))
	tshark.Sound(t, path, tshark.TCPRemarks)
	src := filepath.Join(dir, "src.pcapng")
	tshark.Select(t, path, `frame.interface_name == "src:eth0"`, src)
	var bytes, again, againBytes int64
	for _, f := range tshark.Fields(t, src, "tcp && ip.src == 10.77.0.1", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order") {
		n, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		bytes += n
		if f[1] != "" || f[2] != "" { // nothing is reordered at its sender
			again++
			againBytes += n
		}
	}
	st, err := store.OpenRead(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	flows, err := st.Flows(t.Context(), store.Filter{})
	if err != nil || len(flows) == 0 {
		t.Fatal(flows, err)
	}
	f := flows[len(flows)-1]
	// The agent reads the kernel's counters at the flow's end; a window may leave
	// until the connection is closed.
	const window = 1 << 18
	more, moreAgain := bytes-f.SentBytes.V, againBytes-f.RetransBytes.V
	t.Logf("%d bytes, %d segments with %d bytes again; the kernel counts %d and %d", bytes, again, againBytes, f.SentBytes.V, f.RetransBytes.V)
	if more < 0 || more > window || moreAgain < 0 || moreAgain > window || again == 0 {
		t.Errorf("Wireshark finds %d bytes, %d of them again; the kernel counts %d and %d", bytes, againBytes, f.SentBytes.V, f.RetransBytes.V)
	}
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
			return strings.Contains(w, "report/out.pcapng") && strings.Contains(w, "no space left")
		})
		if !warned || valid(runs) > 0 && (code != exitError || !strings.Contains(p.said(), "no capture, or an incomplete one")) {
			t.Errorf("%s: status %d, warnings %v:\n%s", where, code, runs[len(runs)-1].Warnings, p.said())
		}
	}
}
