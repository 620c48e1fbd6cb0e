package kernelcompare

import (
	"flag"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

var (
	full    = flag.Bool("full", false, "run the whole table instead of two short flows")
	only    = flag.String("scenario", "", "run the scenarios whose name contains this")
	repeat  = flag.Int("kernel-runs", 1, "runs of each scenario over the kernel")
	length  = flag.Float64("seconds", 3, "measured seconds of each run")
	latest  = flag.Float64("latest", 8, "with -full, leave out kernel runs with a delivery later than this many milliseconds")
	abreast = flag.Int("abreast", 2, "kernel runs at a time; more, and real-time throttling holds them for 50 ms a second")
)

// grid is the set of paths of the comparison.
func grid() []scenario {
	var g []scenario
	type point struct {
		rate       vtime.BitRate
		rtt        vtime.Duration
		queue      int
		loss, back float64
		flows      int
		nosack     bool
	}
	const mbit, ms = vtime.MbitPerSecond, vtime.Millisecond
	points := []point{
		{20 * mbit, 20 * ms, 100, 0, 0, 1, false},
		{20 * mbit, 20 * ms, 100, 0.001, 0, 1, false},
		{20 * mbit, 20 * ms, 100, 0.01, 0, 1, false},
		{20 * mbit, 20 * ms, 20, 0, 0, 1, false},
		{10 * mbit, 100 * ms, 50, 0, 0, 1, false},
		{10 * mbit, 40 * ms, 50, 0.05, 0, 1, false},
		{10 * mbit, 40 * ms, 50, 0.01, 0.2, 1, false},
		{5 * mbit, 200 * ms, 500, 0, 0, 1, false},
		{50 * mbit, 50 * ms, 200, 0.0005, 0, 1, false},
		{10 * mbit, 2 * ms, 50, 0.001, 0, 1, false},
		{5 * mbit, 10 * ms, 100, 0.2, 0, 1, false},
		{10 * mbit, 40 * ms, 60, 0, 0, 5, false},
		{10 * mbit, 40 * ms, 50, 0, 0, 20, false},
	}
	for _, cc := range []string{"reno", "cubic", "bbr"} {
		for _, p := range points {
			g = append(g, scenario{cc: cc, rate: p.rate, rtt: p.rtt, queue: p.queue, loss: p.loss, back: p.back, sack: !p.nosack, flows: p.flows})
		}
	}
	for _, p := range []point{
		{20 * mbit, 20 * ms, 20, 0, 0, 1, true},
		{20 * mbit, 20 * ms, 100, 0.01, 0, 1, true},
		{10 * mbit, 40 * ms, 50, 0.05, 0, 1, true},
	} {
		g = append(g, scenario{cc: "reno", rate: p.rate, rtt: p.rtt, queue: p.queue, loss: p.loss, sack: false, flows: 1})
	}
	return g
}

// TestAgainstKernel prints the table; it asserts only that both sides moved
// data, because a busy machine falsifies the kernel's side. With -full it runs
// the table of DESIGN.md: -full -seconds 20 -kernel-runs 4.
func TestAgainstKernel(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP, testenv.PWait2, testenv.CC("reno"), testenv.CC("cubic"))
	// A real-time thread must never wait for another one of this process: no
	// garbage collection, and more processors than threads.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	sem := make(chan struct{}, *abreast)
	var wg sync.WaitGroup
	g := grid()
	if !*full {
		g = []scenario{}
		for _, cc := range []string{"reno", "cubic"} {
			g = append(g, scenario{cc: cc, rate: 20 * vtime.MbitPerSecond, rtt: 20 * vtime.Millisecond, queue: 100, loss: 0.01, sack: true})
		}
	}
	kernel := make([][]result, len(g))
	for i := range g {
		s := g[i]
		s.secs = *length
		if s.flows > 1 {
			s.warm = 3 // the simultaneous start depends on how fast threads wake
		}
		g[i] = s
		if *only != "" && !strings.Contains(s.String(), *only) {
			continue
		}
		kernel[i] = make([]result, *repeat)
		for k := range *repeat {
			wg.Add(1)
			go func() {
				defer wg.Done()
				sem <- struct{}{}
				defer func() { <-sem }()
				kernel[i][k] = runKernel(t, s, uint64(k+1))
			}()
		}
	}
	wg.Wait()
	var table []string
	defer func() { t.Log("\n" + strings.Join(table, "\n")) }()
	for i, s := range g {
		if kernel[i] == nil {
			continue
		}
		// A run in which the host stood still measures the host.
		var good, model []result
		for k, r := range kernel[i] {
			if r.goodput == 0 {
				t.Errorf("%v: the kernel moved nothing", s)
			}
			if !*full || r.late <= *latest {
				good = append(good, r)
				// The same seed: the same packets are lost.
				model = append(model, runModel(t, s, uint64(k+1), nil))
			}
		}
		if len(good) == 0 {
			t.Logf("%v: every kernel run was disturbed", s)
			continue
		}
		kernel[i] = good
		for _, r := range model {
			if r.goodput == 0 {
				t.Errorf("%v: the model moved nothing", s)
			}
		}
		t.Log("\n" + compare(s, model, kernel[i]))
		table = append(table, line(s, model, kernel[i]))
	}
}
