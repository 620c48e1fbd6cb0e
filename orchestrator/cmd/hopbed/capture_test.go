package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// artifacts are the files on record in a folder's database.
func artifacts(t *testing.T, dir string) []store.Artifact {
	t.Helper()
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	all, err := st.Artifacts(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each run of a plan leaves its files, which are on record and can be read; a
// second command does not replace them unless it is told to.
func TestCaptureOfEachRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	args := []string{"run", "f.yaml", "--backend", "sim", "--trace", "out.pcapng", "--events", "out.log", "--snaplen", "60"}
	if status, _, stderr := hopbed(t, dir, args...); status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	want := []string{"f.yaml", "out-sim-1-transport=hop-r1.log", "out-sim-1-transport=hop-r1.pcapng", "out-sim-2-transport=tcp-cubic-r1.log", "out-sim-2-transport=tcp-cubic-r1.pcapng", "results.db"}
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v", got)
	}
	var paths []string
	for _, a := range artifacts(t, dir) {
		paths = append(paths, a.Path)
		if st, err := os.Stat(filepath.Join(dir, a.Path)); err != nil || st.Size() != a.Bytes || a.Bytes < 10000 {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if !slices.Equal(paths, want[1:5]) {
		t.Errorf("on record: %v", paths)
	}
	log, err := os.ReadFile(filepath.Join(dir, want[3]))
	if err != nil || !bytes.Contains(log, []byte("  flow 0 begins: tcp/cubic to n03\n")) || !bytes.Contains(log, []byte("  flow 0 connected (src)\n")) || !bytes.Contains(log, []byte("  flow 0 ends\n")) {
		t.Errorf("%v, the log lacks the flow's life", err)
	}
	status, _, stderr := hopbed(t, dir, args...)
	if status != exitError || !strings.Contains(stderr, "out-sim-1-transport=hop-r1.pcapng exists") || !strings.Contains(stderr, "--overwrite") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, _, stderr := hopbed(t, dir, append(args, "--overwrite")...); status != exitOK {
		t.Errorf("status %d: %s", status, stderr)
	}
	if n := len(artifacts(t, dir)); n != 8 {
		t.Errorf("%d files are on record after two campaigns, want 8", n)
	}
}

// The one run of a plan writes exactly the file that was named, and Wireshark
// reads it; in a database of its own each back end's has a name.
func TestCaptureOfOneRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), strings.Replace(tiny, "[hop, tcp/cubic]", "[tcp/cubic]", 1))
	if status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--trace", "out.pcapng", "--trace-at", "air"); status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"f.yaml", "out.pcapng", "results.db"}) {
		t.Errorf("files %v", got)
	}
	tshark.Need(t)
	tshark.Sound(t, filepath.Join(dir, "out.pcapng"), tshark.TCPRemarks)
}

// lossy is a sender, a wire that loses packets, and a receiver.
const lossy = `hopbed: 1
name: lossy
topology:
  nodes: [{name: src, radio: false}, {name: dst, radio: false}]
  pipes:
    - {ends: [src, dst], rate: 5mbit, delay: 10ms, queue: {packets: 50}, loss: 1%}
flows:
  - {pairs: [{src: src, dst: dst}], transport: tcp/cubic}
repeat: 1
warmup: 500ms
duration: 3s
`

// analysis is how well Wireshark's analysis of the one flow of a capture has to
// agree with the counters in the database.
type analysis struct {
	window int64   // bytes that were sent after the counters were read
	rtt    float64 // relative difference of the mean round-trip times
}

func (a analysis) check(t *testing.T, dir, path string) {
	t.Helper()
	tshark.Sound(t, path, tshark.TCPRemarks)
	var bytes, again, againBytes int64
	var rtt float64
	var acks int
	for _, f := range tshark.Fields(t, path, "tcp", "ip.src", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.ack_rtt") {
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if f[0] != "10.77.0.1" {
			if v, err := strconv.ParseFloat(f[4], 64); err == nil {
				rtt, acks = rtt+v, acks+1
			}
			continue
		}
		bytes += n
		if f[2] != "" || f[3] != "" { // nothing is reordered at its sender
			again++
			againBytes += n
		}
	}
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	runs, err := st.Runs(t.Context(), store.Filter{})
	if err != nil || len(runs) == 0 {
		t.Fatal(runs, err)
	}
	flows, err := st.Flows(t.Context(), store.Filter{})
	if err != nil || len(flows) == 0 || acks == 0 {
		t.Fatal(flows, acks, err)
	}
	f, r := flows[len(flows)-1], runs[len(runs)-1]
	means, err := st.SourceRTTs(t.Context(), &r)
	if err != nil {
		t.Fatal(err)
	}
	mean := means[f.Flow] / 1e6
	rtt /= float64(acks)
	t.Logf("%d bytes, %d segments with %d bytes again, mean RTT %.1f ms; the counters say %d, %d and %.1f ms",
		bytes, again, againBytes, rtt*1e3, f.SentBytes.V, f.RetransBytes.V, mean*1e3)
	more, moreAgain := bytes-f.SentBytes.V, againBytes-f.RetransBytes.V
	if more < 0 || more > a.window || moreAgain < 0 || moreAgain > a.window || again == 0 {
		t.Errorf("Wireshark finds %d bytes, %d of them again; the counters say %d and %d", bytes, againBytes, f.SentBytes.V, f.RetransBytes.V)
	}
	if math.Abs(rtt/mean-1) > a.rtt {
		t.Errorf("Wireshark finds a mean RTT of %.4f s, the counters say %.4f s", rtt, mean)
	}
}

// Wireshark's analysis of the capture as it is by default finds what the model
// counts; of all interfaces it would not, and the command says what to do then.
func TestDefaultCaptureForWireshark(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), lossy)
	status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--trace", "out.pcapng")
	if status != exitOK || strings.Contains(stderr, "tshark") {
		t.Fatalf("status %d: %s", status, stderr)
	}
	all := []string{"run", "f.yaml", "--backend", "sim", "--db", "all.db", "--trace", "all.pcapng", "--trace-at", "all", "--overwrite"}
	status, _, stderr = hopbed(t, dir, all...)
	last := strings.Split(strings.TrimSpace(stderr), "\n")
	if hint := last[len(last)-1]; status != exitOK || !strings.HasPrefix(hint, "trace: all.pcapng has packets of flow 0 more than once (src:eth0, dst:eth0)") || !strings.Contains(hint, "--trace-at src:eth0") {
		t.Errorf("status %d, last line %q", status, hint)
	}
	if status, _, stderr := hopbed(t, dir, append(all, "--quiet")...); status != exitOK || strings.Contains(stderr, "tshark") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, _, stderr := hopbed(t, dir, append(all, "--json")...); status != exitOK || !strings.Contains(stderr, `"hint"`) {
		t.Errorf("status %d: %s", status, stderr)
	}
	tshark.Need(t)
	analysis{rtt: 0.1}.check(t, dir, filepath.Join(dir, "out.pcapng"))
	// The filter of the hint gives the same view.
	tshark.Select(t, filepath.Join(dir, "all.pcapng"), `frame.interface_name == "src:eth0"`, filepath.Join(dir, "src.pcapng"))
	analysis{rtt: 0.1}.check(t, dir, filepath.Join(dir, "src.pcapng"))
}

// traced has a file of its own beside the experiment's.
const traced = `hopbed: 1
name: traced
topology:
  nodes: [{name: n01, at: [0m, 0m]}, {name: n02, at: [10m, 0m]}, {name: far, radio: false}]
  pipes: [{ends: [n02, far], trace: {file: f.trace}, queue: {packets: 50}}]
flows: [{pairs: [{src: n01, dst: far}], transport: tcp/cubic}]
repeat: 1
duration: 1s
`

// Mistakes are told before anything is created.
func TestCaptureMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no such folder":     {[]string{"--trace", "no/out.pcapng"}, exitError, "the folder no does not exist"},
		"one name for both":  {[]string{"--trace", "x", "--events", "./x"}, exitError, "the same file"},
		"standard output":    {[]string{"--events", "-"}, exitError, "standard output"},
		"the experiment":     {[]string{"--trace", "f.yaml", "--overwrite"}, exitError, "f.yaml is a file of this command"},
		"what it reads":      {[]string{"--events", "./f.trace", "--overwrite"}, exitError, "f.trace is a file of this command"},
		"the database, too":  {[]string{"--trace", "./results.db"}, exitError, "results.db is a file of this command"},
		"all and more":       {[]string{"--trace", "x", "--trace-at", "all", "--trace-at", "air"}, exitUsage, "every interface already"},
		"a folder":           {[]string{"--events", "."}, exitError, "no ordinary file"},
		"the database":       {[]string{"--trace", "results.db"}, exitUsage, "--db"},
		"no name":            {[]string{"--trace", ""}, exitUsage, "name of a file"},
		"no such interface":  {[]string{"--trace", "x", "--trace-at", "n01:eth0"}, exitError, "only air, n02:eth0"},
		"negative length":    {[]string{"--trace", "x", "--snaplen", "-1"}, exitUsage, "--snaplen -1"},
		"length of nothing":  {[]string{"--snaplen", "100"}, exitUsage, "belongs to --trace"},
		"length of no bytes": {[]string{"--trace", "x", "--snaplen", "many"}, exitUsage, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f.yaml"), traced)
			write(t, filepath.Join(dir, "f.trace"), "1\n")
			status, _, stderr := hopbed(t, dir, append([]string{"run", "f.yaml", "--backend", "sim"}, c.args...)...)
			if status != c.status || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want %d and %q: %s", status, c.status, c.want, stderr)
			}
			if got := list(t, dir); !slices.Equal(got, []string{"f.trace", "f.yaml"}) {
				t.Errorf("files %v", got)
			}
		})
	}
}
