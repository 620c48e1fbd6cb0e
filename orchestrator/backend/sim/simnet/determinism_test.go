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
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// everything is a run with every transport over a row of hidden senders (0 to 4)
// whose last one routes to a server (7) and a second one (9) behind it, by wired
// links with every mechanism that they have; and with a bridge (5) between a
// station (6) and a host (8).
func everything(t testing.TB, seed uint64, end vtime.Time) *lab {
	f := func(name string, path ...int) proto.Flow {
		return proto.Flow{Transport: name, Src: path[0], Dst: path[len(path)-1], Path: path}
	}
	hop := f("hop", 0, 1, 2, 3, 4, 7)
	hop.Options.BlockSize = 64 * vtime.KiB
	wired2 := f("hop", 9, 7)
	wired2.Options.BlockSize, wired2.Start = 32*vtime.KiB, sec/4
	cbr := f("udp", 2, 1, 0)
	cbr.Options.Rate = 200 * vtime.KbitPerSecond
	sized := f("tcp/reno", 1, 2, 3)
	sized.Workload = workload.Spec{Kind: workload.Sized, Size: 50_000}
	down := f("tcp/bbr", 8, 6)
	down.Options.ReceiveWindow, down.Stop = 30, end-end/8
	flows := []proto.Flow{hop, cbr, sized, f("tcp/cubic", 7, 4, 3), f("hop-by-hop-tcp/cubic", 3, 2, 1, 0),
		down, f("tcp/westwood", 6, 8), f("udp", 9, 7), wired2}
	l := newLab(t, positions(0, 200, 400, 600, 800, 3000, 3100), testMAC(), both(func(c *Config) {
		c.Seed, c.End = seed, end
		c.Routes.(*lab).row(0, 1, 2, 3, 4, 7, 9)
	}, wired(7, 10, everyPipe(t), [3]int{6, 8, 5}, [3]int{8, 6, 5})), flows...)
	l.loss(1, 2, 0.02)
	return l
}

// talking is a run with every workload of messages over every transport, over a row
// of hidden senders (0 to 4) and a server (5) behind a wire.
func talking(t testing.TB, seed uint64, end vtime.Time) *lab {
	var flows []proto.Flow
	add := func(load workload.Spec, name string, path ...int) {
		load.Seed = uint64(len(flows))
		f := proto.Flow{Transport: name, Src: path[0], Dst: path[len(path)-1], Path: path, Workload: load}
		f.Options.NoDelay, f.Options.BlockSize = true, 32*vtime.KiB
		flows = append(flows, f)
	}
	thin := poissonLoad
	thin.Interval, thin.Sizes = 400*msec, workload.SizesPareto
	for _, name := range []string{"tcp/cubic", "hop-by-hop-tcp/bbr", "hop", "udp"} {
		add(thin, name, 0, 1, 2)
		add(voipLoad, name, 3, 2, 1)
	}
	for _, name := range []string{"tcp/cubic", "hop-by-hop-tcp/cubic", "hop"} {
		first := len(flows)
		for i, f := range exchange(name, 5, 4, 3) {
			add(f.Workload, name, f.Path...)
			flows[first+i].Workload.Seed, flows[first+i].Peer = uint64(first), new(first+1-i)
		}
	}
	l := newLab(t, positions(0, 200, 400, 600, 800), testMAC(), both(func(c *Config) {
		c.Seed, c.End = seed, end
	}, wired(5, 6, []Pipe{wire(4, 5, pipe.Config{Rate: 10 * mbit, Delay: 5 * msec, Queue: pipe.Queue{Packets: 50}, Loss: pipe.Loss{Good: 0.001}})})), flows...)
	l.loss(1, 2, 0.02)
	return l
}

// everyPipe are the wired links of everything.
func everyPipe(t testing.TB) []Pipe {
	up, down := true, false
	loss, delay, rate := pipe.Loss{Good: 0.01}, 3*msec, 20*mbit
	trace, err := pipe.NewTrace([]int64{1, 1, 2, 5, 5, 6, 9, 10})
	if err != nil {
		t.Fatal(err)
	}
	rough := pipe.Config{Rate: 8 * mbit, Delay: 4 * msec, Queue: pipe.Queue{Bytes: 30_000}, Overhead: 38,
		Jitter: pipe.Jitter{Distribution: pipe.Normal, Spread: msec}, Loss: pipe.Loss{Good: 0.001, Bad: 0.3, ToBad: 0.01, ToGood: 0.2}, LossAfterQueue: true,
		Reorder: pipe.Reorder{Share: 0.02, Extra: 2 * msec}, Duplicate: 0.02,
		Schedule: []pipe.Change{{At: sec / 2, Up: &down}, {At: sec/2 + 50*ms, Up: &up, Rate: &rate, Loss: &loss, Delay: &delay, Queue: &pipe.Queue{Packets: 30}}}}
	back := pipe.Config{Delay: 4 * msec, Jitter: pipe.Jitter{Distribution: pipe.Pareto, Spread: msec, Overtake: true}, Loss: pipe.Loss{Good: 0.01}}
	return []Pipe{
		{Ends: [2]int{4, 7}, Config: [2]pipe.Config{rough, back}},
		wire(5, 8, pipe.Config{Rate: 20 * mbit, Delay: msec, Queue: pipe.Queue{Packets: 20}, Jitter: pipe.Jitter{Distribution: pipe.Exponential, Spread: msec}}),
		wire(7, 9, pipe.Config{Trace: trace, TraceOffset: 3 * msec, Delay: msec, Queue: pipe.Queue{Packets: 50}}),
	}
}

// fingerprint is the hash of the trace and every account.
func fingerprint(t testing.TB, seed uint64, end vtime.Time) string {
	return account(t, everything(t, seed, end))
}

func account(t testing.TB, l *lab) string {
	l.finish()
	s := fmt.Sprintf("%016x %d", l.eng.TraceHash(), l.eng.Fired())
	for i := range l.cfg.Flows {
		if l.dst(i).Total == 0 {
			t.Errorf("flow %d (%s) delivered nothing: the case is too easy", i, l.cfg.Flows[i].Transport)
		}
		s += fmt.Sprintf(" %d/%d", l.dst(i).Bytes, l.src(i).Total)
	}
	return s
}

// TestEqualSeedsGiveEqualMessages: what became of each message, too.
func TestEqualSeedsGiveEqualMessages(t *testing.T) {
	run := func(seed uint64) (string, []proto.Message) {
		l := talking(t, seed, 6*sec)
		s := account(t, l)
		var all []proto.Message
		l.net.Messages(func(_ int, m *proto.Message) { all = append(all, *m) })
		return s, all
	}
	want, messages := run(1)
	if other, _ := run(2); other == want {
		t.Fatalf("two seeds have one trace: %s", want)
	}
	byFlow := map[int]int{}
	for _, m := range messages {
		byFlow[m.Flow]++
	}
	for _, f := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12} {
		if byFlow[f] < 3 {
			t.Errorf("flow %d has %d messages: the case is too easy", f, byFlow[f])
		}
	}
	for range 20 {
		if got, m := run(1); got != want || !reflect.DeepEqual(m, messages) {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	}
}

// TestEqualSeedsGiveEqualTraces over 1,000 repeats, on one processor and on two,
// two at a time.
func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	const end = sec + sec/4
	repeats := 1000
	if testing.Short() {
		repeats = 100
	}
	want := fingerprint(t, 1, end)
	if other := fingerprint(t, 2, end); other == want {
		t.Fatalf("two seeds have one trace: %s", want)
	}
	for _, procs := range []int{1, 2} {
		old := runtime.GOMAXPROCS(procs)
		got := make([]string, repeats/2)
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := w; i < len(got); i += 2 {
					got[i] = fingerprint(t, 1, end)
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
	f := fingerprint(t, 7, 3*sec)
	if os.Getenv(hashVariable) != "" {
		fmt.Println("fingerprint " + f)
	}
	if len(f) < 40 {
		t.Errorf("fingerprint %q", f)
	}
}

// TestEveryArchitectureAgrees builds this test for others and compares: one with
// 32 bits, and two that fuse multiply and add where a program lets them.
func TestEveryArchitectureAgrees(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("go"))
	want := "fingerprint " + fingerprint(t, 7, 3*sec)
	for _, arch := range []string{"386", "arm64", "riscv64"} {
		t.Run(arch, func(t *testing.T) {
			testenv.Need(t, testenv.Architecture(arch))
			bin := filepath.Join(t.TempDir(), "simnet.test")
			build := exec.Command("go", "test", "-c", "-o", bin, ".")
			build.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := testenv.Foreign(arch, bin, "-test.run=^TestFingerprint$", "-test.v")
			cmd.Env = append(os.Environ(), hashVariable+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), want+"\n") {
				t.Errorf("it differs:\n%s\nwant %s", out, want)
			}
		})
	}
}

// TestStrangersDoNotChangeDraws: nodes, flows and wired links out of reach of a
// network leave every frame of it as it was, because each component draws from a
// stream of its own.
func TestStrangersDoNotChangeDraws(t *testing.T) {
	near := []float64{0, 200, 400}
	rough := pipe.Config{Rate: 3 * mbit, Delay: 5 * msec, Queue: pipe.Queue{Packets: 30}, Jitter: pipe.Jitter{Distribution: pipe.Normal, Spread: msec},
		Loss: pipe.Loss{Good: 0.01}, Reorder: pipe.Reorder{Share: 0.01, Extra: msec}, Duplicate: 0.01}
	// The server of the near network is the node after its own three; those far
	// away come after it.
	observe := func(far []float64, servers int, pipes []Pipe, strangers ...proto.Flow) ([]proto.FlowResult, []any) {
		flows := append([]proto.Flow{
			{Transport: "tcp/bbr", Src: 0, Dst: 2, Path: []int{0, 1, 2}},
			{Transport: "hop", Src: 2, Dst: 0, Path: []int{2, 1, 0}, Options: proto.FlowOptions{BlockSize: 64 * vtime.KiB}},
			{Transport: "tcp/cubic", Src: 3, Dst: 0, Path: []int{3, 2, 1, 0}},
		}, strangers...)
		radios := append(append(append([]float64(nil), near...), -9000), far...)
		l := newLab(t, positions(radios...), testMAC(), wired(len(radios), len(radios)+servers, append([]Pipe{wire(2, 3, rough)}, pipes...)), flows...)
		l.loss(0, 1, 0.05)
		l.finish()
		return []proto.FlowResult{l.src(0), l.dst(0), l.src(1), l.dst(1), l.src(2), l.dst(2)},
			[]any{*l.med.Stats(0), *l.med.Stats(1), *l.med.Stats(2), l.net.PipeStats()[0]}
	}
	alone, counters := observe(nil, 0, nil)
	far := []float64{5000, 5200}
	for name, c := range map[string]struct {
		far     []float64
		servers int
		pipes   []Pipe
		flows   []proto.Flow
	}{
		"nodes":                  {far: far},
		"a UDP flow":             {far: far, flows: []proto.Flow{udp(4, 5, 1000)}},
		"a TCP flow":             {far: far, flows: []proto.Flow{{Transport: "tcp/bbr", Src: 5, Dst: 4}}},
		"a Hop flow":             {far: far, flows: []proto.Flow{{Transport: "hop", Src: 5, Dst: 4}}},
		"a relayed flow":         {far: append(far, 5400), flows: []proto.Flow{{Transport: "hop-by-hop-tcp/bic", Src: 4, Dst: 6, Path: []int{4, 5, 6}}}},
		"a call":                 {far: far, flows: []proto.Flow{{Transport: "udp", Src: 4, Dst: 5, Workload: voipLoad}}},
		"messages over TCP":      {far: far, flows: []proto.Flow{{Transport: "tcp/bbr", Src: 4, Dst: 5, Workload: poissonLoad}}},
		"a wired link":           {servers: 2, pipes: []Pipe{wire(4, 5, rough)}},
		"flows over wired links": {servers: 2, pipes: []Pipe{wire(4, 5, rough)}, flows: []proto.Flow{tcpFlow(4, 5), udp(5, 4, 1000)}},
		"a flow in reach":        {flows: []proto.Flow{udp(1, 0, 100)}},
		"a flow over the link":   {flows: []proto.Flow{udp(2, 3, 100)}},
	} {
		flows, stats := observe(c.far, c.servers, c.pipes, c.flows...)
		same := reflect.DeepEqual(flows, alone) && reflect.DeepEqual(stats, counters)
		if same != (name != "a flow in reach" && name != "a flow over the link") {
			t.Errorf("%s far away: equal %v", name, same)
		}
	}
}
