package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func flowsOf(t *testing.T, flows string) *Config {
	t.Helper()
	return parse(t, withLine("flows", "flows: ["+flows+"]")).Base()
}

// What a workload leaves out takes the default of its kind, and nothing of
// another kind.
func TestWorkloads(t *testing.T) {
	for text, want := range map[string]Workload{
		"continual":                 {Kind: Continual},
		"voip":                      {Kind: VoIP, Codec: G729},
		"{kind: voip, codec: g711}": {Kind: VoIP, Codec: G711},
		"{kind: sized, size: 10MB}": {Kind: Sized, Size: 10 * vtime.MB},
		"{kind: poisson, size: 1kB, interval: 2s}":                {Kind: Poisson, Size: 1000, Interval: 2 * vtime.Second, Sizes: SizesFixed},
		"{kind: poisson, size: 1kB, interval: 2s, sizes: pareto}": {Kind: Poisson, Size: 1000, Interval: 2 * vtime.Second, Sizes: SizesPareto},
		"web": {Kind: Web, Objects: 1000, Zipf: 1, ObjectSize: 20_000, MaxSize: vtime.MB, PageObjects: 2.7, Think: 3 * vtime.Second, Request: 350},
		"{kind: web, zipf: 0, page-objects: 1, think: 500ms}": {Kind: Web, Objects: 1000, ObjectSize: 20_000, MaxSize: vtime.MB, PageObjects: 1, Think: 500 * vtime.Millisecond, Request: 350},
	} {
		f := flowsOf(t, "{count: 1, pairs: random, transport: tcp/reno, workload: "+text+"}").Flows[0]
		if got := fmt.Sprintf("%+v", f.Workload); got != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %v, want %+v", text, got, want)
		}
		if got := f.Workload.String(); got != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
}

// Each mistake stands where it is to be repaired, with what would be right.
func TestWorkloadMistakes(t *testing.T) {
	for _, c := range []struct{ flow, at, want string }{
		{"transport: hop, workload: poisson", "61", "needs its size; allowed: {kind: poisson, size: 1kB, interval: 100ms}"},
		{"transport: hop, workload: {kind: poisson, size: 1kB}", "61", "needs its interval"},
		{"transport: hop, workload: trace", "61", "a trace workload needs its file"},
		{"transport: hop, workload: {kind: voip, size: 1kB}", "80", "workload.size: \"1kB\": has no meaning here: a voip workload has no size"},
		{"transport: hop, workload: {kind: web, codec: g711}", "", "a web workload has no codec"},
		{"transport: hop, workload: {kind: web, object-size: 2MB}", "", "max-size: less than the mean size, 2MB"},
		{"transport: hop, workload: {kind: web, page-objects: 0.5}", "", "a number from 1 to 100"},
		{"transport: udp, workload: {kind: sized, size: 1MB}", "46", "udp cannot carry the workload sized: it does not promise that all of a transfer arrives"},
		{"transport: udp/no-arq+txop, workload: web", "46", "udp/no-arq+txop cannot carry the workload web: it does not promise that all of a page arrives"},
		{"transport: hop, dscp: EF", "57", "dscp: \"EF\": has no meaning here: hop chooses the code points"},
		{"transport: udp, dscp: 64", "57", "out of range; allowed: a code point such as EF"},
		{"transport: udp, dscp: AF51", "57", "not a code point; allowed: a code point such as EF, CS1 or AF41, or its number from 0 to 63; did you mean \"AF11\"?"},
		{"transport: udp, dscp: 0x2e", "57", "not a code point"},
		{"transport: udp/txop+txop", "46", "unknown transport"},
		{"transport: iperf3/reno, workload: voip", "46", "iperf3/reno cannot carry the workload voip: iperf sends a stream or a number of bytes"},
		{"transport: iperf2/udp, workload: {kind: sized, size: 1MB}", "46", "it does not promise that all of a transfer arrives"},
		{"transport: iperf2/udp", "46", "iperf2/udp needs the key transports.iperf.rate; allowed: transports: {iperf: {rate: 1mbit}}"},
		{"transport: exec", "46", "exec needs the program of the key transports.exec.send"},
		{"transport: exec, workload: voip", "46", "a program of its own reports bytes, not messages"},
		{"transport: iperf3/reno, workload: {kind: sized, size: 1MB}", "46", "iperf3 -n ends when everything is written, not when it has arrived"},
		{"transport: exec, dscp: EF", "", "exec chooses the code points"},
		{"transport: iperf3", "", "did you mean \"iperf3/cubic\"?"},
		{"transport: tcp/reno, workload: {kind: poisson, size: 1kB, interval: 100us}", "", "with these flows a run would have about 1.2e+06 messages; allowed: up to 1000000"},
	} {
		_, err := Parse("x", []byte(strings.Replace(withLine("flows", "flows: [{pairs: random, count: 1, "+c.flow+"}]"), "duration: 10s", "duration: 120s", 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || c.at != "" && !strings.Contains(err.Error(), ":"+c.at+": ") {
			t.Errorf("%s\ngives %v\nwant %s: %s", c.flow, err, c.at, c.want)
		}
	}
}

func TestExternalProgramsNeedAKernel(t *testing.T) {
	_, err := Parse("x", []byte(withLine("flows", "flows: [{count: 1, pairs: random, transport: iperf3/cubic}]")+"backends: [netns, sim]\n"))
	if err == nil || !strings.Contains(err.Error(), "flows[0].transport: \"iperf3/cubic\": iperf3/cubic needs a kernel, and the back end sim has none") {
		t.Errorf("%v", err)
	}
	for name, want := range map[Transport]bool{"iperf3/udp": true, "exec": true, "udp/txop": false, "hop": false, "nonsense": false} {
		if name.External() != want {
			t.Errorf("%s is external: %v", name, !want)
		}
	}
}

// Programs of the user's own run in the folder of their file.
func TestProgramsRunBesideTheirFile(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(withLine("flows", "flows: [{count: 1, pairs: random, transport: exec}]"), "name:", "transports: {exec: {send: [./a], receive: [b, c d]}}\nname:", 1)
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Load(filepath.Join(dir, "x.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Base().Transports.Exec; got.Dir != dir || got.Send[0] != "./a" || got.Receive[1] != "c d" {
		t.Errorf("%+v", got)
	}
	if got := parse(t, text).Base().Transports.Exec.Dir; got != "" {
		t.Errorf("an experiment without a file has the folder %q", got)
	}
}

// Hop's data is in bk; the code points lead to the queues.
func TestOneQueueHasOneSetting(t *testing.T) {
	flow := func(rest string) string { return "{count: 1, pairs: random, " + rest + "}" }
	for _, c := range []struct{ a, b, mac, want string }{
		{"transport: udp", "transport: udp/no-arq", "", "flows[1].transport: \"udp/no-arq\": shares the queue mac.queues.be with udp of flows[0]"},
		{"transport: udp/no-arq, dscp: CS3", "transport: udp/no-arq+txop", "", "shares the queue mac.queues.be"},
		{"transport: udp, dscp: CS1", "transport: udp/no-arq", "", ""},
		{"transport: udp, workload: voip", "transport: udp/no-arq+txop", "", ""},
		{"transport: udp/txop", "transport: tcp/reno", "", ""},
		{"transport: udp", "transport: udp/no-arq", "mac: {queues: {be: {ack: none}}}\n", ""},
		{"transport: udp/txop", "transport: udp", "mac: {queues: {be: {txop: 8160us}}}\n", ""},
		{"transport: hop/arq", "transport: udp/no-arq, dscp: 8", "", "flows[1].transport: \"udp/no-arq\": shares the queue mac.queues.bk with hop/arq of flows[0]"},
		{"transport: hop", "transport: udp/no-arq, dscp: 8", "", "shares the queue mac.queues.bk with hop"},
		{"transport: hop", "transport: udp/no-arq, dscp: 8", "mac: {queues: {bk: {ack: none}}}\n", ""},
		{"transport: hop/no-txop", "transport: udp, dscp: 8", "mac: {queues: {bk: {txop: 8160us}}}\n", "shares the queue"},
		{"transport: hop", "transport: udp, dscp: 8", "mac: {queues: {bk: {txop: 8160us, ack: none}}}\n", ""},
	} {
		_, err := Parse("x", []byte(withLine("flows", "flows: ["+flow(c.a)+", "+flow(c.b)+"]")+c.mac))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s beside %s %s: %v, want %q", c.a, c.b, c.mac, err, c.want)
		}
	}
	c := flowsOf(t, flow("transport: udp, workload: voip")+", "+flow("transport: tcp/reno, dscp: af41")+", "+flow("transport: hop, workload: voip")+", "+flow("transport: udp, dscp: 0, workload: voip"))
	for i, want := range []int{46, 34, 0, 0} {
		if got := c.Flows[i].DSCPValue(); got != want {
			t.Errorf("flows[%d]: the code point is %d, want %d", i, got, want)
		}
	}
}

func TestReadTransfers(t *testing.T) {
	got, err := ReadTransfers([]byte("# seconds bytes\n0 1\n\n0.25  1400 # the same moment\n 0.25\t1\r\n+2.000000001 1000000000\n"))
	if err != nil || fmt.Sprint(got) != "[{0ns 1B} {250ms 1400B} {250ms 1B} {2000000001ns 1GB}]" {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                      "it has no message",
		"# nothing\n\n":                         "it has no message",
		"1":                                     `line 1, "1": not two numbers`,
		"1 2 3":                                 "not two numbers",
		"0 1\n-1 2":                             `line 2, "-1 2": the time is no number of seconds`,
		"1e3 2":                                 "the time is no number of seconds",
		"NaN 2":                                 "the time is no number of seconds",
		"99999999999 2":                         "up to 192 h",
		"1 0":                                   "no whole number of bytes from 1 to 1000000000",
		"1 1.5":                                 "no whole number of bytes",
		"1 9999999999999999999":                 "no whole number of bytes",
		"2 1\n1.5 1":                            "line 2, \"1.5 1\": the time is before that of the message before it, 2s",
		strings.Repeat("0 1\n", MaxTransfers+1): "line 50001: more than 50000 messages",
		"0 1\n\x1b[2J 1":                        `line 2, "\x1b[2J 1"`,
		strings.Repeat("1", 70_000):             "line 1: bufio.Scanner: token too long",
	} {
		if _, err := ReadTransfers([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadTransfers(f *testing.F) {
	f.Add([]byte("0.25 1400\n1 2 # x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ReadTransfers(text)
		for i, x := range got {
			if x.Size < 1 || x.Size > maxTransfer || x.At < 0 || i > 0 && x.At < got[i-1].At {
				t.Errorf("message %d is %v", i, x)
			}
		}
		if (err == nil) != (len(got) > 0) {
			t.Errorf("%d messages, %v", len(got), err)
		}
	})
}

// The file of a trace is read beside the experiment, once, and is part of what a
// result came from.
func TestTraceOfMessages(t *testing.T) {
	reads := 0
	open := func(path string) ([]byte, error) {
		if path != "m.txt" {
			return nil, errors.New("no such file")
		}
		reads++
		return []byte("0 100\n1 300\n2 1\n11 7\n"), nil
	}
	load := func(file string) (*Experiment, error) {
		return ParseFiles("x", []byte(withLine("flows", "flows: [{count: 2, pairs: random, transport: $t, workload: {kind: trace, file: "+file+"}}]")+"matrix: {t: [hop, udp]}\n"), open)
	}
	e, err := load("m.txt")
	if err != nil {
		t.Fatal(err)
	}
	f := e.Base().Flows[0]
	if n := len(f.Workload.Transfers); n != 4 || reads != 1 || len(e.Files()) != 1 || e.Files()[0].Path != "m.txt" {
		t.Errorf("%d messages, %d reads, files %v", n, reads, e.Files())
	}
	if got := f.Messages(0, 10*vtime.Second); got != 3 {
		t.Errorf("%v messages in 10 s", got)
	}
	if got := f.Offered(); got != 8*401/11 {
		t.Errorf("offered %v", got)
	}
	if f.Begin(5*vtime.Second) != 5*vtime.Second {
		t.Error("a trace does not begin with the measured interval")
	}
	if _, err := load("n.txt"); err == nil || !strings.Contains(err.Error(), `workload.file: "n.txt": cannot be read: no such file; allowed: a trace of messages`) {
		t.Errorf("%v", err)
	}
	if _, err := Parse("x", []byte(withLine("flows", "flows: [{count: 1, pairs: random, transport: hop, workload: {kind: trace, file: m.txt}}]"))); err == nil || !strings.Contains(err.Error(), "this experiment is no file in a folder") {
		t.Errorf("%v", err)
	}
	long := func(string) ([]byte, error) { return []byte(strings.Repeat("1 1\n", 30_000)), nil }
	if _, err := ParseFiles("x", []byte(withLine("flows", "flows: [{count: 3, pairs: random, transport: hop, workload: {kind: trace, file: m.txt}}]")), long); err == nil || !strings.Contains(err.Error(), "would hold 90000 messages of traces; allowed: up to 80000") {
		t.Errorf("%v", err)
	}
	// Left unread, it is no mistake.
	if _, err := ParseFiles("x", []byte(withLine("flows", "flows: [{count: 1, pairs: random, transport: hop, workload: {kind: trace, file: m.txt}}]")), Unread); err != nil {
		t.Error(err)
	}
}

// What flows offer, and how many messages they are expected to have.
func TestOffered(t *testing.T) {
	c := flowsOf(t, "{count: 1, pairs: random, transport: udp, workload: voip}, {count: 1, pairs: random, transport: hop, workload: {kind: poisson, size: 1kB, interval: 10ms}, start: 5s},"+
		"{count: 1, pairs: random, transport: tcp/reno, workload: {kind: web, think: 2s, page-objects: 2, object-size: 10kB}}, {count: 1, pairs: random, transport: hop, workload: continual}, {count: 1, pairs: random, transport: udp, dscp: cs1, workload: {kind: voip, codec: g711}, stop: 1s}")
	for i, want := range []struct {
		rate     vtime.BitRate
		messages float64
	}{{12_800, 500}, {800_000, 500}, {80_000, 5}, {0, 0}, {68_800, 50}} {
		if f := &c.Flows[i]; f.Offered() != want.rate || f.Messages(0, 10*vtime.Second) != want.messages {
			t.Errorf("flows[%d]: %v, %v messages, want %+v", i, f.Offered(), f.Messages(0, 10*vtime.Second), want)
		}
	}
}
