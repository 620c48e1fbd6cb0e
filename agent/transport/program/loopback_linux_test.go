package program_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

type wall struct{ epoch int64 }

func (w wall) Now() vtime.Time { return vtime.Time(probe.MonotonicNS() - w.epoch) }

// flows are the ids of this process's flows: their ports are on the loopback of
// everybody.
var flows atomic.Int64

func init() { flows.Store(int64(os.Getpid()*31%7000 + 5000)) }

// pair is both ends of a flow in this process, over the loopback.
type pair struct {
	t        *testing.T
	flow     proto.Flow
	src, dst transport.Endpoint
	relay    transport.Endpoint // nil where the flow has none
	mu       sync.Mutex
	events   []proto.Event
	logs     []string
}

func newPair(t *testing.T, d transport.Driver, f proto.Flow) *pair {
	t.Helper()
	p := &pair{t: t, flow: f}
	p.flow.ID, p.flow.Src, p.flow.Dst, p.flow.Path = int(flows.Add(1)), 0, 1, []int{0, 1}
	if o := f.Options.Program; o != nil && len(o.Relay) > 0 {
		p.flow.Path = []int{0, 2, 1}
	}
	addrs := map[int]netip.Addr{0: netip.MustParseAddr("127.0.0.1"), 1: netip.MustParseAddr("127.0.0.2"), 2: netip.MustParseAddr("127.0.0.3")}
	p.flow.SrcAddr, p.flow.DstAddr = addrs[0], addrs[1]
	if err := d.Check(&p.flow); err != nil {
		t.Fatal(err)
	}
	open := func(id int, name string) transport.Endpoint {
		n := &transport.Node{ID: id, Name: name, Addr: addrs[id], Addrs: addrs, SampleInterval: 100 * vtime.Millisecond,
			Event: func(e proto.Event) { p.mu.Lock(); p.events = append(p.events, e); p.mu.Unlock() },
			Log:   func(_, text string) { p.mu.Lock(); p.logs = append(p.logs, text); p.mu.Unlock() }}
		e, err := d.Open(n, []proto.Flow{p.flow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}
	p.dst, p.src = open(1, "n02"), open(0, "n01")
	if len(p.flow.Path) > 2 {
		p.relay = open(2, "n03")
	}
	return p
}

// start starts the flow, whose moment 0 is 100 ms from now.
func (p *pair) start(warmup, end vtime.Time) transport.Schedule {
	p.t.Helper()
	s := transport.Schedule{Clock: wall{probe.MonotonicNS() + 100e6}, Warmup: warmup, End: end}
	for _, e := range []transport.Endpoint{p.dst, p.src, p.relay} {
		if e == nil {
			continue
		}
		if err := e.Start(s); err != nil {
			p.t.Fatal(err)
		}
	}
	return s
}

// finish waits for the end of the run and returns both results.
func (p *pair) finish(s transport.Schedule) (src, dst proto.FlowResult) {
	time.Sleep(s.End.Sub(s.Clock.Now()).Std() + 20*time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(p.src.Stop)
	wg.Go(p.dst.Stop)
	if p.relay != nil {
		wg.Go(p.relay.Stop)
	}
	wg.Wait()
	return p.src.Results()[0], p.dst.Results()[0]
}

func recorded(e transport.Endpoint) []proto.Sample {
	if r, ok := e.(transport.Recorder); ok {
		return r.Recorded(nil)
	}
	return nil
}

const second = vtime.Time(vtime.Second)

func iperf(transport string) proto.Flow {
	return proto.Flow{Transport: transport, Workload: workload.Spec{Kind: workload.Continual}}
}

// TestFakeIperf3 runs servers and clients that behave badly; each case says what
// the flow's result must be.
func TestFakeIperf3(t *testing.T) {
	installFakes(t)
	cases := map[string]struct {
		src, dst proto.Code // "" = no error
		words    string     // of either error
		bytes    bool       // a goodput must be there, as far as it was reported
	}{
		"well":               {bytes: true},
		"server:hangs":       {dst: "", words: ""},
		"server:dies":        {dst: proto.CodeFlow, words: "ends in the middle"},
		"server:ends early":  {dst: proto.CodeFlow, words: "before the flow's stop at 5s"},
		"server:lies":        {dst: proto.CodeFlow, words: "but the node's interfaces received only", bytes: true},
		"server:silent":      {dst: ""},
		"server:leaves last": {dst: proto.CodeFlow, words: "does not say when its test ended", bytes: true},
		"server:misled":      {dst: proto.CodeFlow, words: "parameter error"},
		"client:dies":        {src: proto.CodeFlow, words: "ends in the middle", bytes: true},
		"client:ends early":  {src: proto.CodeFlow, words: "control socket has closed", bytes: true},
		"client:refused":     {src: proto.CodeTimeout, words: "could not begin its test", bytes: true},
		"client:misled":      {src: proto.CodeFlow, words: "parameter error", bytes: true},
		"client:hangs":       {src: proto.CodeFlow, words: "did not end when it was told to", bytes: true},
	}
	// All at once: each takes some seconds of waiting.
	pairs := map[string]*pair{}
	schedules := map[string]transport.Schedule{}
	for mode := range cases {
		p := newPair(t, program.Iperf3{}, iperf("iperf3/cubic"))
		misbehave(t, p.flow.ID, mode)
		pairs[mode], schedules[mode] = p, p.start(second, 5*second)
	}
	// Something has to arrive: what a program claims is compared with the counters
	// of the interfaces.
	go traffic(2_000_000)
	for mode, c := range cases {
		p := pairs[mode]
		if s := p.src.Setups(); len(s) != 1 || s[0].Program != "iperf 3.12 (of a test)" {
			t.Errorf("%s: setups %+v", mode, s)
		}
		src, dst := p.finish(schedules[mode])
		for _, x := range []struct {
			got  *proto.Error
			want proto.Code
		}{{src.Error, c.src}, {dst.Error, c.dst}} {
			if (x.got == nil) != (x.want == "") || x.got != nil && (x.got.Code != x.want || !strings.Contains(x.got.Error(), c.words)) {
				t.Errorf("%s: error %v, want code %q and %q", mode, x.got, x.want, c.words)
			}
		}
		if c.bytes && dst.Bytes == 0 {
			t.Errorf("%s: %d bytes in the measured interval", mode, dst.Bytes)
		}
		if mode != "well" {
			continue
		}
		// 100,000 bytes a second over 4 s, less what the start of a process took.
		if dst.Bytes < 100_000 || dst.Bytes > 405_000 || dst.MeasuredFrom != second || dst.MeasuredTo != 5*second {
			t.Errorf("result %+v", dst)
		}
		for _, e := range []transport.Endpoint{p.src, p.dst} {
			samples := recorded(e)
			if n := len(samples); n < 10 || n > 60 || !samples[n-1].Sparse || samples[n-1].T < 4*second {
				t.Errorf("%d samples, the last at %v", n, samples[max(0, n-1)].T)
			}
		}
	}
}

// traffic sends bytes over the loopback.
func traffic(n int) {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return
	}
	defer unix.Close(c)
	for ; n > 0; n -= 10_000 {
		_ = unix.Sendto(c, make([]byte, 10_000), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
	}
}

// TestMissingPrograms: what is not there is said with its remedy, before
// anything runs.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		d    transport.Driver
		f    proto.Flow
		want []string
	}{
		{program.Iperf3{}, iperf("iperf3/reno"), []string{"flow 3: iperf3: unavailable: iperf3 is not installed; apt install iperf3"}},
		{program.Iperf2{}, iperf("iperf2/reno"), []string{"iperf is not installed", "apt install iperf"}},
		{program.Exec{}, execFlow("no-such-program", "no-such-program"), []string{"no-such-program is not installed", "PATH"}},
		{program.Exec{}, execFlow("./nothing.py", "./nothing.py"), []string{"./nothing.py", "cannot be run"}},
	} {
		c.f.ID, c.f.Src, c.f.Dst = 3, 0, 1
		_, err := c.d.Open(&transport.Node{ID: 0}, []proto.Flow{c.f})
		e, ok := errors.AsType[*proto.Error](err)
		if !ok || e.Code != proto.CodeUnavailable {
			t.Errorf("%s: %v", c.d.Family(), err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	if _, err := program.Available("iperf3"); err == nil {
		t.Error("iperf3 is available without being there")
	}
	if _, err := program.Available("tcp"); err != nil {
		t.Errorf("tcp is no program: %v", err)
	}
	installFakes(t)
	if v, err := program.Available("iperf3"); err != nil || v != "iperf 3.12 (of a test)" {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := program.Available("iperf2"); err == nil || !strings.Contains(err.Error(), "does not say its version") {
		t.Errorf("a program that is not iperf: %v", err)
	}
}

func TestRefusedOrders(t *testing.T) {
	with := func(f proto.Flow, change func(*proto.Flow)) proto.Flow { change(&f); return f }
	for _, c := range []struct {
		d    transport.Driver
		f    proto.Flow
		want string
	}{
		{program.Iperf3{}, iperf("iperf3"), "iperf3/CC"},
		{program.Iperf3{}, iperf("iperf3/udp"), "rate and packet_size"},
		{program.Iperf3{}, with(iperf("iperf3/reno"), func(f *proto.Flow) { f.Workload = workload.Spec{Kind: workload.Sized, Size: 5} }), "sized"},
		{program.Iperf2{}, with(iperf("iperf2/reno"), func(f *proto.Flow) { f.Options.CwndCap = 5 }), "cwnd_cap"},
		{program.Iperf2{}, with(iperf("iperf2/reno"), func(f *proto.Flow) { f.Options.SendBuffer = 5000 }), "one size for both"},
		{program.Exec{}, iperf("exec"), "programs that send and receive"},
		{program.Exec{}, with(execFlow("a", "b"), func(f *proto.Flow) { f.Transport = "exec/x" }), "exec/x"},
		{program.Exec{}, with(execFlow("a", "b"), func(f *proto.Flow) { f.Options.DSCP = 5 }), "dscp"},
	} {
		if err := c.d.Check(&c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.f.Transport, err, c.want)
		}
	}
	for _, c := range []struct {
		d transport.Driver
		f proto.Flow
	}{
		{program.Iperf2{}, with(iperf("iperf2/reno"), func(f *proto.Flow) { f.Workload = workload.Spec{Kind: workload.Sized, Size: 5} })},
		{program.Iperf3{}, with(iperf("iperf3/udp"), func(f *proto.Flow) { f.Options.Rate, f.Options.PacketSize, f.Options.DSCP = 1000, 1400, 46 })},
		{program.Exec{}, execFlow("a", "b")},
	} {
		if err := c.d.Check(&c.f); err != nil {
			t.Errorf("%s: %v", c.f.Transport, err)
		}
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		if !procfs.Running(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d (%s) is still there", pid, procfs.Name(pid))
}

// TestNothingOutlivesAnEndpoint: programs that ignore every request are gone
// after Close, whatever state the run is in.
func TestNothingOutlivesAnEndpoint(t *testing.T) {
	installFakes(t)
	for _, when := range []string{"before its start", "while it runs", "after its end"} {
		p := newPair(t, program.Iperf3{}, iperf("iperf3/cubic"))
		misbehave(t, p.flow.ID, "hangs")
		if when != "before its start" {
			end := vtime.Time(vtime.Minute)
			if when == "after its end" {
				end = second / 2
			}
			s := p.start(0, end)
			if when == "after its end" {
				p.finish(s)
			} else {
				time.Sleep(300 * time.Millisecond)
			}
		}
		for _, e := range []transport.Endpoint{p.src, p.dst, p.src} {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		if left := childrenOf(os.Getpid()); len(left) > 0 {
			t.Errorf("closed %s: the processes %v are left", when, left)
		}
	}
}

// childrenOf are the processes that one has started and not waited for.
func childrenOf(of int) (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of)) // the pattern is right
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		for _, s := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(s); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func needNamespaces(t *testing.T) { testenv.Need(t, testenv.Root) }
