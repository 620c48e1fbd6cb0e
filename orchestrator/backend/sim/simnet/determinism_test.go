package simnet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

// everything is a run with every transport over a row of hidden senders.
func everything(t testing.TB, seed uint64, end vtime.Time) *lab {
	f := func(name string, src, dst int, path ...int) proto.Flow {
		return proto.Flow{Transport: name, Src: src, Dst: dst, Path: path, Options: proto.FlowOptions{}}
	}
	hop := f("hop", 0, 4, 0, 1, 2, 3, 4)
	hop.Options.BlockSize = 64 * vtime.KiB
	cbr := f("udp", 2, 0, 2, 1, 0)
	cbr.Options.Rate = 200 * vtime.KbitPerSecond
	sized := f("tcp/reno", 1, 3, 1, 2, 3)
	sized.Workload = workload.Spec{Kind: workload.Sized, Size: 50_000}
	l := newLab(t, positions(0, 200, 400, 600, 800), testMAC(), func(c *Config) { c.Seed, c.End = seed, end },
		hop, cbr, sized, f("tcp/cubic", 4, 0, 4, 3, 2, 1, 0), f("hop-by-hop-tcp/cubic", 3, 0, 3, 2, 1, 0))
	l.loss(1, 2, 0.02)
	return l
}

// fingerprint is the hash of the trace and every account.
func fingerprint(t testing.TB, seed uint64, end vtime.Time) string {
	l := everything(t, seed, end)
	l.finish()
	s := fmt.Sprintf("%016x %d", l.eng.TraceHash(), l.eng.Fired())
	for i := range l.cfg.Flows {
		s += fmt.Sprintf(" %d/%d", l.dst(i).Bytes, l.src(i).Total)
	}
	return s
}

// TestEqualSeedsGiveEqualTraces, however often and however many at once.
func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	want := fingerprint(t, 1, 3*sec)
	if other := fingerprint(t, 2, 3*sec); other == want {
		t.Fatalf("two seeds have one trace: %s", want)
	}
	const repeats = 300
	for _, procs := range []int{1, 2} {
		old := runtime.GOMAXPROCS(procs)
		got := make([]string, repeats/2)
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := w; i < len(got); i += 2 {
					got[i] = fingerprint(t, 1, 3*sec)
				}
			})
		}
		wg.Wait()
		runtime.GOMAXPROCS(old)
		for i, g := range got {
			if g != want {
				t.Fatalf("GOMAXPROCS %d, repeat %d:\n%s\nwant\n%s", procs, i, g, want)
			}
		}
	}
}

// hashVariable makes TestFingerprint print: the other architecture's half of
// TestEveryArchitectureAgrees.
const hashVariable = "HOPBED_PRINT_FINGERPRINT"

func TestFingerprint(t *testing.T) {
	f := fingerprint(t, 7, 20*sec)
	if os.Getenv(hashVariable) != "" {
		fmt.Println("fingerprint " + f)
	}
	if len(f) < 40 {
		t.Errorf("fingerprint %q", f)
	}
}

// TestEveryArchitectureAgrees builds this test for others and compares: 386 runs
// on amd64 as it is, arm64 and riscv64 need the emulator of qemu-user.
func TestEveryArchitectureAgrees(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("go"))
	want := "fingerprint " + fingerprint(t, 7, 20*sec)
	ran := 0
	for _, a := range []struct {
		arch string
		via  []string
	}{
		{"386", nil}, {"arm64", []string{"qemu-aarch64", "qemu-aarch64-static"}}, {"riscv64", []string{"qemu-riscv64", "qemu-riscv64-static"}},
	} {
		run, ok := emulator(a.arch, a.via)
		if !ok {
			t.Logf("not compared with %s: neither this host nor any of %v can run it", a.arch, a.via)
			continue
		}
		bin := filepath.Join(t.TempDir(), "simnet.test")
		build := exec.Command("go", "test", "-c", "-o", bin, ".")
		build.Env = append(os.Environ(), "GOARCH="+a.arch, "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", a.arch, err, out)
		}
		cmd := exec.Command(bin)
		if run != "" {
			cmd = exec.Command(run, bin)
		}
		cmd.Args = append(cmd.Args, "-test.run=^TestFingerprint$", "-test.v")
		cmd.Env = append(os.Environ(), hashVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", a.arch, err, out)
		}
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("%s differs:\n%s\nwant %s", a.arch, out, want)
		}
		ran++
	}
	t.Logf("%d other architectures agree", ran)
}

// emulator returns the program that runs an architecture's binaries here; ""
// when the processor itself does.
func emulator(arch string, names []string) (string, bool) {
	if runtime.GOOS != "linux" {
		return "", false
	}
	if runtime.GOARCH == "amd64" && arch == "386" {
		return "", true
	}
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p, true
		}
	}
	return "", false
}

// TestStrangersDoNotChangeDraws: nodes and flows out of reach of a network leave
// every frame of it as it was, because each component draws from a stream of
// its own.
func TestStrangersDoNotChangeDraws(t *testing.T) {
	near := []float64{0, 200, 400}
	observe := func(pos []float64, strangers ...proto.Flow) ([]proto.FlowResult, any) {
		flows := append([]proto.Flow{
			{Transport: "tcp/cubic", Src: 0, Dst: 2, Path: []int{0, 1, 2}},
			{Transport: "hop", Src: 2, Dst: 0, Path: []int{2, 1, 0}, Options: proto.FlowOptions{BlockSize: 64 * vtime.KiB}},
		}, strangers...)
		l := newLab(t, positions(pos...), testMAC(), nil, flows...)
		l.loss(0, 1, 0.05)
		l.finish()
		return []proto.FlowResult{l.src(0), l.dst(0), l.src(1), l.dst(1)}, []any{*l.med.Stats(0), *l.med.Stats(1), *l.med.Stats(2)}
	}
	alone, radio := observe(near)
	for name, c := range map[string]struct {
		far   []float64
		flows []proto.Flow
	}{
		"nodes":           {[]float64{5000, 5200}, nil},
		"a UDP flow":      {[]float64{5000, 5200}, []proto.Flow{udp(3, 4, 1000)}},
		"a TCP flow":      {[]float64{5000, 5200}, []proto.Flow{{Transport: "tcp/reno", Src: 4, Dst: 3}}},
		"a Hop flow":      {[]float64{5000, 5200}, []proto.Flow{{Transport: "hop", Src: 4, Dst: 3}}},
		"a relayed flow":  {[]float64{5000, 5200, 5400}, []proto.Flow{{Transport: "hop-by-hop-tcp/bic", Src: 3, Dst: 5, Path: []int{3, 4, 5}}}},
		"a flow in reach": {nil, []proto.Flow{udp(1, 0, 100)}},
	} {
		flows, stats := observe(append(append([]float64(nil), near...), c.far...), c.flows...)
		same := reflect.DeepEqual(flows, alone) && reflect.DeepEqual(stats, radio)
		if same != (name != "a flow in reach") {
			t.Errorf("%s far away: equal %v", name, same)
		}
	}
}
