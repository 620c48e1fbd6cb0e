package program

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hopbed/hopbed/netem/vtime"
)

// noon is when everything is read in these tests.
const noon = vtime.Time(100 * vtime.Second)

func readIperf3(receiver bool, in io.Reader) *report {
	r := &iperf3Reader{receiver: receiver, now: func() vtime.Time { return noon }}
	r.read(in)
	return r.got()
}

func readIperf2(receiver bool, in io.Reader) *report {
	r := &iperf2Reader{receiver: receiver, now: func() vtime.Time { return noon }}
	r.read(in)
	return r.got()
}

// TestRecordedReports reads what real programs of many versions said in tests of
// less than two seconds at 20 or 1 Mb/s that were broken off by a signal.
func TestRecordedReports(t *testing.T) {
	for _, c := range []struct {
		file      string
		receiver  bool
		intervals int
		sum       vtime.Bytes
		end       vtime.Duration // in ms
		more      vtime.Bytes    // of the program's sum, beyond the intervals
		said      string
		check     func(*testing.T, *report)
	}{
		{file: "iperf3-3.1.7-server.json", receiver: true, intervals: 4, said: "interrupt - the server has terminated"},
		{file: "iperf3-3.7-udp-server.json", receiver: true, intervals: 3, end: 1500, said: "the client has terminated", check: func(t *testing.T, r *report) {
			// The fourth interval is the third once more.
			if r.hasTotal || r.sum() != 565600+625800+624400 {
				t.Errorf("total %v %d, sum %d", r.hasTotal, r.total, r.sum())
			}
			if i := r.intervals[2]; i.packets != 446 || i.lost != 0 || i.jitter <= 0 || i.jitter > vtime.Millisecond {
				t.Errorf("the third interval: %+v", i)
			}
		}},
		{file: "iperf3-3.12-server.json", receiver: true, intervals: 4, said: "interrupt - the server has terminated"},
		{file: "iperf3-3.12-client.json", intervals: 3, end: 1500, more: 524288, said: "the server has terminated", check: func(t *testing.T, r *report) {
			if i := r.intervals[1]; i.cwnd <= 0 || i.rtt <= 0 || i.rttvar <= 0 || r.mss != 32768 || r.cc != "bbr" {
				t.Errorf("the second interval: %+v, mss %d, cc %q", i, r.mss, r.cc)
			}
		}},
		{file: "iperf3-3.12-udp-server.json", receiver: true, intervals: 4, said: "interrupt - the server has terminated"},
		{file: "iperf3-3.16-server.json", receiver: true, intervals: 4, said: "interrupt - the server has terminated"},
		{file: "iperf3-3.17.1-stream-server.json", receiver: true, intervals: 4, said: "interrupt - the server has terminated"},
		{file: "iperf3-3.21-stream-client.json", intervals: 4, said: "interrupt - the client has terminated by signal Terminated(15)", check: func(t *testing.T, r *report) {
			if i := r.intervals[3]; i.cwnd <= 0 || i.rtt <= 0 || r.mss <= 0 {
				t.Errorf("the last interval: %+v, mss %d", i, r.mss)
			}
		}},
		{file: "iperf3-3.21-server.json", receiver: true, intervals: 4, said: "interrupt - the server has terminated by signal Terminated(15)"},
		{file: "iperf2-2.1.8-server.txt", receiver: true, intervals: 4, end: 1694, sum: 4325436},
		{file: "iperf2-2.1.8-client.txt", intervals: 4, end: 1704, sum: 4325436, check: func(t *testing.T, r *report) {
			if i := r.intervals[1]; i.cwnd != 639*vtime.KiB || i.rtt != 613*vtime.Microsecond || i.rttvar != 1042*vtime.Microsecond || r.mss != 32741 || r.cc != "cubic" {
				t.Errorf("the second interval: %+v, mss %d, cc %q", i, r.mss, r.cc)
			}
		}},
		{file: "iperf2-2.1.8-udp-server.txt", receiver: true, intervals: 3, end: 1500, sum: 144200, more: 7000, check: func(t *testing.T, r *report) {
			if i := r.intervals[0]; i.packets != 14 || i.jitter != 516*vtime.Microsecond || r.untilEnd != 1545*vtime.Millisecond {
				t.Errorf("the first interval: %+v, sum to %v", i, r.untilEnd)
			}
		}},
		{file: "iperf2-2.1.8-udp-client.txt", intervals: 3, sum: 144200, more: 7000, check: func(t *testing.T, r *report) {
			if i := r.intervals[0]; i.packets != 12 {
				t.Errorf("the first interval: %+v", i)
			}
		}},
		{file: "iperf2-csv-udp-server.txt", receiver: true, intervals: 4, end: 1700, sum: 217000, check: func(t *testing.T, r *report) {
			if i := r.intervals[0]; i.packets != 46 || i.jitter != 8*vtime.Microsecond {
				t.Errorf("the first interval: %+v", i)
			}
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", c.file))
			if err != nil {
				t.Fatal(err)
			}
			read := readIperf3
			if strings.HasPrefix(c.file, "iperf2") {
				read = readIperf2
			}
			r := read(c.receiver, bytes.NewReader(b))
			if r.broken != "" || !r.connected || len(r.intervals) != c.intervals || r.said != c.said || !r.begun {
				t.Fatalf("%d intervals, connected %v, said %q, broken %q", len(r.intervals), r.connected, r.said, r.broken)
			}
			if err := r.verify(500 * vtime.Millisecond); err != nil {
				t.Error(err)
			}
			if got := r.begin.Add(max(r.end(), r.untilEnd)); got != noon {
				t.Errorf("its end is at %v, want %v", got, noon)
			}
			if c.end > 0 && r.end()/vtime.Millisecond != c.end {
				t.Errorf("the intervals end at %v", r.end())
			}
			if c.sum > 0 && r.sum() != c.sum || r.sum() == 0 {
				t.Errorf("they add up to %d", r.sum())
			}
			if r.hasTotal && r.total-r.sum() != c.more {
				t.Errorf("the program says %d, its intervals %d", r.total, r.sum())
			}
			if c.check != nil {
				c.check(t, r)
			}
			// The same a byte at a time, as a slow pipe gives it.
			if slow := read(c.receiver, iotest.OneByteReader(bytes.NewReader(b))); len(slow.intervals) != len(r.intervals) || slow.sum() != r.sum() || slow.total != r.total {
				t.Errorf("a byte at a time: %+v", slow)
			}
			// Cut anywhere, what was whole before is kept, and nothing is made up.
			for cut := 0; cut < len(b); cut += 1 + len(b)/97 {
				part := read(c.receiver, bytes.NewReader(b[:cut]))
				if len(part.intervals) > len(r.intervals) || part.sum() > r.sum()+r.total {
					t.Errorf("cut at %d: %d intervals, %d bytes", cut, len(part.intervals), part.sum())
				}
			}
		})
	}
}

// TestMendedJSON shows what is made of text that is no JSON.
func TestMendedJSON(t *testing.T) {
	for in, want := range map[string]string{
		`warning: UDP block size 2048 exceeds TCP MSS 1448` + "\n" + `{"a": 1}`:   `{"a": 1}`,
		"{\"a\": 1}\niperf3: error - unable to send control message: Broken pipe": `{"a": 1}`,
		`{"a": -nan, "b":nan(0x8), "c": inf, "d": -inf}`:                          `{"a": null, "b":null, "c": null, "d": null}`,
		`{"a":5.924e 06,"b":3E 2}`:                                                `{"a":5.924e+06,"b":3E+2}`,
		`{"seconds":	1,002,"end":	0,5}`:                                           `{"seconds":	1.002,"end":	0.5}`,
		`{"a": "1,2 nan e 5 } \" {"}`:                                             `{"a": "1,2 nan e 5 } \" {"}`,
		`{"a": [1,2,3], "b": true, "c": null, "d": -5}`:                           `{"a": [1,2,3], "b": true, "c": null, "d": -5}`,
		``:                  ``,
		`no JSON`:           ``,
		"{\"a\": \"x\ny\"}": `{"a": "x y"}`,
	} {
		b, err := io.ReadAll(newLoose(strings.NewReader(in)))
		if got := strings.TrimSpace(string(b)); err != nil || got != want {
			t.Errorf("%q became %q, %v; want %q", in, got, err, want)
		}
		if want != "" && !json.Valid(b) {
			t.Errorf("%q is no JSON", b)
		}
	}
	if _, err := io.ReadAll(newLoose(strings.NewReader(strings.Repeat(`{"a":`, 1000)))); err == nil {
		t.Error("endless nesting is not noticed")
	}
}

const oneInterval = `{"streams":[{}],"sum":{"start":0,"end":1,"bytes":1000}}`

// TestReportsThatLie are documents of which no figure may be used, and what is
// said of them.
func TestReportsThatLie(t *testing.T) {
	for name, c := range map[string]struct{ in, broken, verify string }{
		"negative":      {in: `{"intervals":[{"sum":{"start":0,"end":1,"bytes":-5}}]}`, broken: "cannot be"},
		"backwards":     {in: `{"intervals":[{"sum":{"start":1,"end":0.5,"bytes":5}}]}`, broken: "cannot be"},
		"overlap":       {in: `{"intervals":[` + oneInterval + `,{"sum":{"start":0.5,"end":1.5,"bytes":5}}]}`, broken: "overlaps"},
		"no numbers":    {in: `{"intervals":[{"sum":{"start":0,"end":1,"bytes":"many"}}]}`, broken: "no bytes"},
		"no bytes":      {in: `{"intervals":[{"sum":{"start":0,"end":1}}]}`, broken: "no bytes"},
		"no end":        {in: `{"intervals":[` + oneInterval + `],"end":{}}`, broken: "does not say when"},
		"other types":   {in: `{"intervals":[7]}`, broken: "interval 0 is none"},
		"no list":       {in: `{"intervals":{"a":1}}`, broken: "cannot be read"},
		"breaks off":    {in: `{"start":{},"intervals":[` + oneInterval + `,{"streams":[`, broken: "ends in the middle"},
		"a gap":         {in: `{"intervals":[` + oneInterval + `,{"sum":{"start":4,"end":5,"bytes":5}}],"end":{"sum_received":{"end":5}}}`, verify: "3 of 5 intervals are missing, the first after 1s"},
		"no begin":      {in: `{"intervals":[{"sum":{"start":2,"end":3,"bytes":5}}],"end":{"sum":{"end":3,"bytes":0}}}`, verify: "2 of 3 intervals are missing, the first after 0ns"},
		"a smaller sum": {in: `{"intervals":[` + oneInterval + `],"end":{"sum_received":{"end":1,"bytes":500}}}`, verify: "add up to 1000 bytes, and it says 500"},
	} {
		r := readIperf3(true, strings.NewReader(c.in))
		if (r.broken == "") != (c.broken == "") || !strings.Contains(r.broken, c.broken) {
			t.Errorf("%s: broken %q, want %q", name, r.broken, c.broken)
		}
		err := r.verify(vtime.Second)
		if (err == nil) != (c.verify == "") || err != nil && !strings.Contains(err.Error(), c.verify) {
			t.Errorf("%s: %v, want %q", name, err, c.verify)
		}
	}
	for in, want := range map[string]string{
		"[  1] 0.0000-0.5000 sec  99999999999999999999 Bytes  1 bits/sec":                            "cannot be read",
		"[  1] 0.0000-0.5000 sec  5 Bytes  1 bits/sec\n[  1] 0.2000-0.7000 sec  5 Bytes  1 bits/sec": "overlaps",
		"20261201050051,127.0.0.1,46881,127.0.0.1,5778,1,0.5-0.2,64400,1030400":                      "cannot be",
		strings.Repeat("x", maxLine+2): "cannot be read",
	} {
		if r := readIperf2(true, strings.NewReader(in)); !strings.Contains(r.broken, want) {
			t.Errorf("%.80q: broken %q, want %q", in, r.broken, want)
		}
	}
}

// TestIdleIperf2: an interval without data is written in another way.
func TestIdleIperf2(t *testing.T) {
	r := readIperf2(true, strings.NewReader("[  1] 0.0000-0.1000 sec  131132 Bytes  10490455 bits/sec  3=1:0:0:2:0:0:0:0\n"+
		"[  1] 0.1000-0.2000 sec  0.000 Bytes  0.000 bits/sec  0=0:0:0:0:0:0:0:0\n[  1] 0.2000-0.3000 sec  0.000 Bytes  0.000 bits/sec  0/0          0       NA/0 us  NAN\n"+
		"[  1] 0.3000-0.4000 sec  0.000 Bytes  0.000 bits/sec   0.000 ms 0/0 (nan%)\n"))
	if err := r.verify(100 * vtime.Millisecond); err != nil || len(r.intervals) != 4 || r.sum() != 131132 || r.broken != "" {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestEmptyAndDoubledReports(t *testing.T) {
	for _, in := range []string{"", "{}", `{"start":{"connected":[]},"intervals":[],"end":{},"error":"error - unable to connect to server: Connection refused"}`, "iperf3: error - the server is busy running a test. try again later\n"} {
		r := readIperf3(false, strings.NewReader(in))
		if r.connected || r.broken != "" || len(r.intervals) != 0 || len(in) > 2 && r.said == "" {
			t.Errorf("%q: %+v", in, r)
		}
	}
	if r := readIperf2(false, strings.NewReader("[  1] local 0.0.0.0 port 0 connected with 127.0.0.1 port 5999 (sock=3)\ntcp connect failed: Connection refused\n")); r.connected || r.said == "" {
		t.Errorf("a refused iperf2: %+v", r)
	}
	doc := `{"start":{"connected":[{}],"test_start":{}},"intervals":[` + oneInterval + `],"end":{}}`
	if r := readIperf3(true, strings.NewReader(doc+"\n"+doc)); len(r.intervals) != 1 || r.sum() != 1000 {
		t.Errorf("a document that is written twice: %+v", r)
	}
}

// TestBeginOfTest: what is said late says less of the begin than what is said at
// once.
func TestBeginOfTest(t *testing.T) {
	var r report
	for _, x := range [][3]vtime.Duration{{1300, 1000, 300}, {2050, 2000, 50}, {3500, 3000, 50}} {
		r.arrived(vtime.Time(x[0]*vtime.Millisecond), x[1]*vtime.Millisecond)
		if want := vtime.Time(x[2] * vtime.Millisecond); r.begin != want {
			t.Errorf("after %v: %v, want %v", x[0], r.begin, want)
		}
	}
}

func TestMeter(t *testing.T) {
	at := func(s float64) vtime.Time { return vtime.Time(s * 1e9) }
	for name, c := range map[string]struct {
		steps [][2]float64 // moment in s, total
		want  vtime.Bytes
	}{
		"inside":             {[][2]float64{{11, 100}, {12, 300}}, 300 - 0},
		"cut at both ends":   {[][2]float64{{9, 1000}, {11, 3000}, {19, 11000}, {21, 13000}}, 1000 + 8000 + 1000},
		"across everything":  {[][2]float64{{40, 4000}}, 1000},
		"before":             {[][2]float64{{5, 700}, {10, 700}}, 0},
		"after":              {[][2]float64{{20, 0}, {25, 700}}, 0},
		"two at one moment":  {[][2]float64{{12, 0}, {12, 50}, {12, 80}}, 80},
		"nothing":            {nil, 0},
		"repeated, the same": {[][2]float64{{12, 10}, {13, 10}, {14, 10}}, 10},
	} {
		begin := at(0)
		if name == "inside" {
			begin = at(10)
		}
		m := newMeter(at(10), at(20), begin, 0)
		for _, s := range c.steps {
			m.advance(at(s[0]), vtime.Bytes(s[1]))
		}
		// The first step of some cases begins before the interval.
		if name == "repeated, the same" {
			if got := m.bytes(); got != 2 {
				t.Errorf("%s: %d, want 2", name, got)
			}
			continue
		}
		if got := m.bytes(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	m := newMeter(at(0), at(20), 0, 1000)
	m.advance(at(3), 999)
	if m.finished != vtime.Never {
		t.Error("finished a byte early")
	}
	m.advance(at(4), 1000)
	m.advance(at(5), 1001)
	if m.finished != at(4) {
		t.Errorf("finished at %v", m.finished)
	}
}

func TestVersions(t *testing.T) {
	for out, want := range map[string][2]int{
		"iperf 3.12 (cJSON 1.7.15)\nLinux host": {3, 12}, "iperf 3.1.7\n": {3, 1}, "iperf 3.17.1 (cJSON 1.7.15)": {3, 17}, "iperf 3.21+ (cJSON)": {3, 21},
		"iperf version 2.1.8 (12 August 2022) pthreads\n": {2, 1}, "iperf version 2.0.13 (21 Jan 2019) pthreads": {2, 0},
	} {
		v, err := parseVersion(out)
		if err != nil || v.major != want[0] || v.minor != want[1] || strings.Contains(v.text, "\n") {
			t.Errorf("%q: %+v, %v", out, v, err)
		}
	}
	for _, out := range []string{"", "nonsense", "iperf 99999999999999999999.1", "ipferf 3.1"} {
		if v, err := parseVersion(out); err == nil {
			t.Errorf("%q is taken for %+v", out, v)
		}
	}
	if (version{major: 3, minor: 9}).least(3, 10) || !(version{major: 3, minor: 10}).least(3, 10) || !(version{major: 4}).least(3, 17) {
		t.Error("versions are compared as texts")
	}
}

func TestLinesOfReport(t *testing.T) {
	for _, c := range []struct{ length, sample, want vtime.Duration }{
		{20 * vtime.Second, 100 * vtime.Millisecond, 100 * vtime.Millisecond},
		{20 * vtime.Second, 0, 100 * vtime.Millisecond},
		{20 * vtime.Second, vtime.Millisecond, 100 * vtime.Millisecond},
		{20 * vtime.Second, vtime.Second, vtime.Second},
		{20 * vtime.Second, vtime.Hour, vtime.Minute},
		{10000 * vtime.Second, 100 * vtime.Millisecond, vtime.Second},
	} {
		if got := everyOf(c.length, c.sample); got != c.want {
			t.Errorf("%v sampled at %v: %v, want %v", c.length, c.sample, got, c.want)
		}
	}
}
