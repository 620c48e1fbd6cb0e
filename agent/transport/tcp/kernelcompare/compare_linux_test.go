package kernelcompare

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

var (
	only    = flag.String("scenario", "", "run the scenarios whose name contains this")
	repeat  = flag.Int("kernel-runs", 4, "runs of each scenario over the kernel")
	seeds   = flag.Int("model-runs", 8, "runs of each scenario over the model")
	length  = flag.Float64("seconds", 20, "measured seconds of each run")
	abreast = flag.Int("abreast", 8, "kernel runs at a time")
)

// grid is the set of paths of the comparison.
func grid() []scenario {
	var g []scenario
	for _, cc := range []string{"reno", "cubic", "bbr"} {
		for _, p := range []struct {
			rate  vtime.BitRate
			rtt   vtime.Duration
			queue int
			loss  float64
		}{
			{20 * vtime.MbitPerSecond, 20 * vtime.Millisecond, 100, 0},
			{20 * vtime.MbitPerSecond, 20 * vtime.Millisecond, 100, 0.001},
			{20 * vtime.MbitPerSecond, 20 * vtime.Millisecond, 100, 0.01},
			{20 * vtime.MbitPerSecond, 20 * vtime.Millisecond, 20, 0},
			{10 * vtime.MbitPerSecond, 100 * vtime.Millisecond, 50, 0},
			{10 * vtime.MbitPerSecond, 40 * vtime.Millisecond, 50, 0.05},
			{5 * vtime.MbitPerSecond, 200 * vtime.Millisecond, 500, 0},
			{50 * vtime.MbitPerSecond, 50 * vtime.Millisecond, 200, 0.0005},
			{5 * vtime.MbitPerSecond, 10 * vtime.Millisecond, 100, 0.2},
		} {
			g = append(g, scenario{cc: cc, rate: p.rate, rtt: p.rtt, queue: p.queue, loss: p.loss, sack: true})
		}
	}
	return g
}

// TestAgainstKernel prints the table; it asserts only that both sides moved
// data, because a busy machine falsifies the kernel's side.
func TestAgainstKernel(t *testing.T) {
	if os.Getenv("HOPBED_KERNEL_COMPARE") == "" {
		t.Skip("set HOPBED_KERNEL_COMPARE=1")
	}
	// A real-time thread must never wait for another one of this process: no
	// garbage collection, and more processors than threads.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	sem := make(chan struct{}, *abreast)
	var wg sync.WaitGroup
	g := grid()
	kernel := make([][]result, len(g))
	for i := range g {
		s := g[i]
		s.secs = *length
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
	for i, s := range g {
		if kernel[i] == nil {
			continue
		}
		var model []result
		for k := range *seeds {
			model = append(model, runModel(t, s, uint64(k+1), nil))
		}
		t.Log("\n" + compare(s, model, kernel[i]))
	}
}
