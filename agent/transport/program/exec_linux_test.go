package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/netem/vtime"
)

// execFlow is a flow of two programs; names that begin with exec- are programs of
// this test binary.
func execFlow(send, receive string) proto.Flow {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	argv := func(name string) []string {
		if strings.HasPrefix(name, "exec-") {
			return []string{self, name}
		}
		return []string{name}
	}
	return proto.Flow{Transport: "exec", Workload: workload.Spec{Kind: workload.Continual}, Options: proto.FlowOptions{Program: &proto.Program{Send: argv(send), Receive: argv(receive)}}}
}

func TestExecCarriesAFlow(t *testing.T) {
	p := newPair(t, program.Exec{}, execFlow("exec-udp-send", "exec-udp-receive"))
	sched := p.start(second/2, 3*second/2)
	time.Sleep(800 * time.Millisecond)
	live := p.dst.Sample(sched.Clock.Now(), nil)
	src, dst := p.finish(sched)
	if src.Error != nil || dst.Error != nil {
		t.Fatalf("errors %v, %v", src.Error, dst.Error)
	}
	if len(live) != 1 || live[0].Delivered == 0 || !live[0].Sparse {
		t.Errorf("a sample while it runs: %+v", live)
	}
	// 1,000 bytes every 2 ms at most, for a second of two.
	if dst.Bytes < 50_000 || dst.Bytes > 510_000 || dst.Total < dst.Bytes || dst.Total > src.Total || dst.MeasuredFrom != second/2 || dst.MeasuredTo != 3*second/2 {
		t.Errorf("source %+v, destination %+v", src, dst)
	}
	if len(dst.Counters) != 1 || dst.Counters[0].Name != "datagrams" || vtime.Bytes(1000*dst.Counters[0].Delta) != dst.Total {
		t.Errorf("counters %+v of %d bytes", dst.Counters, dst.Total)
	}
}

func TestExecOfASize(t *testing.T) {
	f := execFlow("exec-udp-send", "exec-udp-receive")
	f.Workload = workload.Spec{Kind: workload.Sized, Size: 50 * vtime.KB}
	p := newPair(t, program.Exec{}, f)
	src, dst := p.finish(p.start(0, 2*second))
	if src.Error != nil || dst.Error != nil || !dst.Finished || dst.FinishedAt <= 0 || dst.FinishedAt >= 2*second || dst.Total != 50*vtime.KB || dst.Bytes != dst.Total {
		t.Errorf("source %+v (%v), destination %+v (%v)", src, src.Error, dst, dst.Error)
	}
}

// TestBadPrograms: what becomes of a flow whose programs do not keep the
// contract.
func TestBadPrograms(t *testing.T) {
	cases := map[string]struct {
		send, receive string
		code          proto.Code // of the first error; "" = none
		words         string
	}{
		"silent":        {"exec-quiet", "exec-quiet", proto.CodeFlow, "wrote nothing"},
		"garbage":       {"exec-quiet", "exec-garbage", proto.CodeFlow, "line 1 of its output: \"Traceback"},
		"fails":         {"exec-fails", "exec-udp-receive", proto.CodeFlow, "ended with status 4, and said: no such peer"},
		"starved":       {"exec-starved", "exec-udp-receive", proto.CodeTimeout, "set-up"},
		"ends":          {"exec-quiet", "exec-ends", proto.CodeFlow, "before the flow's stop"},
		"goes back":     {"exec-quiet", "exec-back", proto.CodeFlow, "goes back from 10 to 9"},
		"boasts":        {"exec-quiet", "exec-boasts", proto.CodeFlow, "received only"},
		"of the future": {"exec-quiet", "exec-future", proto.CodeFlow, "in the future"},
		"sulks":         {"exec-quiet", "exec-sulks", proto.CodeFlow, "ended with status 9"},
		"stubborn":      {"exec-stubborn", "exec-stubborn", "", ""},
		"sender done":   {"exec-ends", "exec-udp-receive", "", ""},
	}
	// All at once: each takes some seconds of waiting.
	begun := map[string]func() (src, dst proto.FlowResult){}
	for name, c := range cases {
		p := newPair(t, program.Exec{}, execFlow(c.send, c.receive))
		sched := p.start(0, 5*second)
		begun[name] = func() (src, dst proto.FlowResult) { return p.finish(sched) }
	}
	go traffic(200_000)
	for name, c := range cases {
		src, dst := begun[name]()
		err := src.Error
		if err == nil {
			err = dst.Error
		}
		if (err == nil) != (c.code == "") || err != nil && (err.Code != c.code || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%s: %v, want code %q and %q", name, err, c.code, c.words)
		}
	}
}

// TestWhatAProgramIsTold: variables, folder, and the part of a relay.
func TestWhatAProgramIsTold(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOPBED_TEST_MARK", filepath.Join(dir, "said-"))
	f := execFlow("exec-env", "exec-env")
	f.Options.Program.Dir = dir
	f.Workload = workload.Spec{Kind: workload.Sized, Size: 5}
	p := newPair(t, program.Exec{}, f)
	sched := p.start(second/4, second/2)
	p.finish(sched)
	for _, side := range []string{"send", "receive"} {
		b, err := os.ReadFile(filepath.Join(dir, "said-"+side))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"HOPBED_SIDE=" + side, "HOPBED_NODE=n0" + map[string]string{"send": "1", "receive": "2"}[side], "HOPBED_ADDR=127.0.0." + map[string]string{"send": "1", "receive": "2"}[side], "HOPBED_SRC=127.0.0.1", "HOPBED_DST=127.0.0.2",
			"HOPBED_PORT=", "HOPBED_FLOW=", "HOPBED_PATH=127.0.0.1,127.0.0.2", "HOPBED_WORKLOAD=sized", "HOPBED_SIZE=5", "HOPBED_START_NS=", "HOPBED_STOP_NS=", "HOPBED_MEASURE_NS=", "HOPBED_END_NS=",
			"DIR=" + dir,
		} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s was not told %q:\n%s", side, want, b)
			}
		}
		if strings.Contains(string(b), "HOPBED_PART") {
			t.Errorf("%s was told a part of this program's own", side)
		}
	}
}

// TestDescendantsEndWithTheirProgram: what a program has started and left, in a
// session of its own, is gone with it.
func TestDescendantsEndWithTheirProgram(t *testing.T) {
	needNamespaces(t)
	mark := filepath.Join(t.TempDir(), "mark")
	t.Setenv("HOPBED_TEST_MARK", mark)
	p := newPair(t, program.Exec{}, execFlow("exec-quiet", "exec-leaves"))
	sched := p.start(0, second)
	go traffic(20_000)
	for range 300 {
		if _, err := os.Stat(mark); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	pids := descendants(os.Getpid())
	sleeping := 0
	for _, pid := range pids {
		if procfs.Name(pid) == "sleep" {
			sleeping++
		}
	}
	if sleeping != 1 {
		t.Fatalf("%d of the processes %v sleep: the test shows nothing", sleeping, pids)
	}
	_, dst := p.finish(sched)
	if dst.Error != nil {
		t.Error(dst.Error)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

// TestRelayProgramsDieWithTheirNode: a node that is switched off has no program,
// and one that comes back has a new one.
func TestRelayProgramsDieWithTheirNode(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	t.Setenv("HOPBED_TEST_MARK", mark)
	f := execFlow("exec-next-send", "exec-udp-receive")
	f.Options.Program.Relay = []string{f.Options.Program.Send[0], "exec-next-relay"}
	p := newPair(t, program.Exec{}, f)
	sched := p.start(0, 4*second)
	delivered := func(more vtime.Bytes) vtime.Bytes {
		t.Helper()
		for range 300 {
			if s := p.dst.Sample(sched.Clock.Now(), nil); len(s) == 1 && s[0].Delivered >= more {
				return s[0].Delivered
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatalf("%d bytes never arrived", more)
		return 0
	}
	delivered(1000)
	node := p.relay.(transport.Restarter)
	node.NodeDown(sched.Clock.Now())
	time.Sleep(50 * time.Millisecond) // what was under way
	before := delivered(0)
	time.Sleep(100 * time.Millisecond)
	if now := delivered(0); now != before {
		t.Errorf("%d bytes passed a node that is switched off", now-before)
	}
	if err := node.NodeUp(sched.Clock.Now()); err != nil {
		t.Error(err)
	}
	delivered(before + 1000)
	src, dst := p.finish(sched)
	relay := p.relay.Results()[0]
	if b, err := os.ReadFile(mark); err != nil || string(b) != "rr" {
		t.Errorf("the relay began %q, %v", b, err)
	}
	if src.Error != nil || dst.Error != nil || relay.Error != nil || relay.Side != proto.Relay || len(relay.Counters) != 1 {
		t.Errorf("source %v, destination %v, relay %+v (%v)", src.Error, dst.Error, relay, relay.Error)
	}
}

// descendants are all processes below one.
func descendants(of int) (pids []int) {
	for _, pid := range childrenOf(of) {
		pids = append(append(pids, pid), descendants(pid)...)
	}
	return pids
}
