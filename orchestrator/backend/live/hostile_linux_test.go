package live

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	agent "github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// hostilePart is an agent that misbehaves as modeVariable says.
const (
	hostilePart  = "hopbed-test-hostile"
	modeVariable = "HOPBED_TEST_MODE"
)

func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{
		emulator.Part: func() int { return emulator.Main(os.Stdin, os.Stdout) },
		hostilePart:   hostile,
	})
	os.Exit(m.Run())
}

const shortFile = `hopbed: 1
name: short
topology: {generate: {kind: chain, nodes: 2, spacing: 100m}}
radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}}
mac: {queues: {bk: {txop: 8160us, ack: none}}}
transports: {hop: {block: 64KiB}}
flows:
  - {pairs: [{src: n01, dst: n02}], transport: hop}
warmup: 50ms
duration: 250ms
sample: 10ms
`

// hostile is a proper agent whose output is disturbed.
func hostile() int {
	mode := os.Getenv(modeVariable)
	switch mode {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "noise":
		fmt.Println("panic: runtime error: this is not JSON")
	case "deaf": // it says hello and reads no more
		in := bufio.NewReader(os.Stdin)
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 1
		}
		_ = agent.Run(context.Background(), bytes.NewReader(line), os.Stdout, options())
		time.Sleep(time.Hour)
	}
	out := &disturber{mode: mode}
	if err := agent.Run(context.Background(), os.Stdin, out, options()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func options() agent.Options {
	table, err := agent.Transports()
	if err != nil {
		panic(err)
	}
	return agent.Options{Version: "test", Transports: table}
}

// disturber adds its own to what the agent says once the flows have begun.
type disturber struct {
	mode string
	once sync.Once
}

func (d *disturber) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if bytes.Contains(b, []byte(`"type":"start"`)) {
		d.once.Do(d.disturb)
	}
	return n, err
}

func (d *disturber) disturb() {
	say := func(typ proto.Type, body any) {
		line, err := proto.EncodeEnvelope(0, typ, body, nil)
		if err == nil {
			_, _ = os.Stdout.Write(line)
		}
	}
	switch d.mode {
	case "late noise":
		fmt.Printf("{\"v\":%d,\"type\":\"samples\",\"body\":\n", proto.Version)
	case "another version":
		fmt.Println(`{"v":99,"seq":0,"type":"log","body":{}}`)
	case "endless line":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), proto.MaxLine+1))
	case "exit":
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(7)
	case "foreign sample":
		say(proto.TypeSamples, proto.Samples{Samples: []proto.Sample{{Flow: 99, Side: proto.Source}}})
	case "strange side":
		say(proto.TypeSamples, proto.Samples{Samples: []proto.Sample{{Flow: 0, Side: "above"}}})
	case "too many samples":
		var all []proto.Sample
		for i := range 1000 {
			all = append(all, proto.Sample{Flow: 0, Side: proto.Source, T: vtime.Time(i)})
		}
		say(proto.TypeSamples, proto.Samples{Samples: all})
	case "foreign message":
		say(proto.TypeSamples, proto.Samples{Messages: []proto.Message{{Flow: 0, Receipt: workload.Receipt{Size: 1}}}})
	case "many logs":
		for range 1000 {
			say(proto.TypeLog, proto.Log{Level: "info", Message: strings.Repeat("é", 2000)})
			say(proto.TypeEvent, proto.Event{Flow: 7})
		}
		fmt.Fprint(os.Stderr, strings.Repeat("much ado about nothing\n", 20_000))
	}
}

func hostileRun(t *testing.T, mode string) (rec *store.RunRecord, took time.Duration, err error) {
	t.Helper()
	return runOf(t, shortFile, mode)
}

// runOf carries out the first run of an experiment with agents that behave as mode
// says.
func runOf(t *testing.T, text, mode string) (rec *store.RunRecord, took time.Duration, err error) {
	t.Helper()
	s := scenarioOf(t, text)
	tag := journal.NewTag()
	b := New(Options{Name: "netns", Tag: tag, Env: []string{netns.TagVariable + "=" + tag}, NewDriver: func() (node.Driver, error) {
		return netns.New(netns.Options{Part: hostilePart, Tag: tag, Env: []string{modeVariable + "=" + mode}, Grace: 200 * time.Millisecond})
	}})
	b.limits = limits{start: 4 * time.Second, collect: 10 * time.Second}
	began := time.Now()
	rec, err = b.Run(t.Context(), s, func(string, vtime.Duration, vtime.Duration) {}, nil)
	return rec, time.Since(began), err
}

// An agent that misbehaves costs its run, in bounded time and memory and with a
// reason that says what it did, and nothing else.
func TestHostileAgents(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	for mode, want := range map[string][]string{
		"silent":           {"node n0", "order hello", "nothing within 4s"},
		"deaf":             {"node n0", "order clock", "nothing within 4s"},
		"noise":            {"node n0", "cannot be understood", "panic: runtime error"},
		"late noise":       {"node n0", "cannot be understood", "unexpected end of JSON input"},
		"another version":  {"node n0", "cannot be understood", "version"},
		"endless line":     {"node n0", "cannot be understood", "longer than"},
		"exit":             {"node n0", "ended unexpectedly", "exit status 7", "out of cheese"},
		"foreign sample":   {"node n0", "sample of flow 99"},
		"strange side":     {"node n0", `unknown side "above"`},
		"too many samples": {"node n0", "samples beyond the"},
		"foreign message":  {"node n0", "a message of flow 0, which has none"},
	} {
		t.Run(mode, func(t *testing.T) {
			rec, took, err := hostileRun(t, mode)
			if err == nil {
				t.Fatalf("no error; the record: %+v", rec.Run)
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error lacks %q: %v", w, err)
				}
			}
			if took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			if rec == nil || len(rec.Samples) > 1000 {
				t.Errorf("the record of the failed run: %+v", rec)
			}
		})
	}
}

// What an agent says too much is counted and cut, and costs nothing else.
func TestTalkativeAgentIsBounded(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	rec, _, err := hostileRun(t, "many logs")
	if err != nil {
		t.Fatal(err)
	}
	bytes, dropped := 0, map[string]int64{}
	for _, e := range rec.Events {
		bytes += len(e.Text)
		if strings.HasSuffix(e.Kind, "-dropped") {
			dropped[e.Kind] += e.Count
		}
	}
	if len(rec.Events) > 2*maxLogs || bytes > 2*maxLogs*maxText {
		t.Errorf("%d events with %d bytes are kept", len(rec.Events), bytes)
	}
	if dropped["log-dropped"] < 1400 || dropped["event-dropped"] == 0 {
		t.Errorf("dropped: %v", dropped)
	}
}

// What became of messages comes from proper agents into the record, whole.
func TestMessagesAreGathered(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	rec, _, err := runOf(t, strings.Replace(strings.Replace(shortFile, "  - {pairs: [{src: n01, dst: n02}], transport: hop}",
		"  - {pairs: [{src: n01, dst: n02}], transport: udp, workload: voip}\n  - {pairs: [{src: n02, dst: n01}], transport: tcp/cubic, workload: {kind: web, think: 50ms}}", 1), "duration: 250ms", "duration: 1s", 1), "")
	if err != nil {
		t.Fatal(err)
	}
	voip, web, requests := rec.Flows[0], rec.Flows[1], rec.Flows[2]
	if voip.Status != store.FlowOK || voip.Messages.V != 50 || voip.MessagesDelivered.V == 0 || voip.DelayP50Us.V <= 0 || !voip.MOS.OK {
		t.Errorf("voip: %+v", voip)
	}
	if web.Role != "responses" || web.Messages.V == 0 || web.MessagesDelivered.V == 0 || web.MOS.OK || requests.Role != store.RoleRequests || requests.Messages.OK || requests.Bytes == 0 {
		t.Errorf("web: %+v\nrequests: %+v", web, requests)
	}
	for _, reason := range rec.Run.InvalidReasons { // the host may be too slow; the account must be sound
		if strings.Contains(reason, "message") || strings.Contains(reason, "page") {
			t.Errorf("invalid: %s", reason)
		}
	}
	if n := len(rec.Messages); n < 53 {
		t.Errorf("%d messages", n)
	}
}
