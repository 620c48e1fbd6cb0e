package tcp

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestScripts plays the files testdata/*.tcp. A file is a transcript of one
// end of a connection: comments (#), options, what is done to it, and what it
// answers. The answers, lines with ">" (a segment sent) and "=" (a state
// shown), are the golden part: the test plays the other lines and compares
// the whole file; -update rewrites it.
//
//	config cc=reno sack=on ts=off mss=1000 …   before anything else
//	0.000 connect | listen | write N | read N | close | abort | wait
//	0.020 < S. 0:0(0) ack 1 win 65535 mss 1000 sackok wscale 7 ts 5 1
//	0.020 > . 1:1(0) ack 1 win 251
//	0.020 show cwnd ssthresh state …
//	0.020 = cwnd 10 …
//
// Times are seconds; timers are exact unless tick is set.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.tcp")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".tcp"), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(want))
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s: the answers differ (-want +got):\n%s", f, lineDiff(string(want), got))
			}
		})
	}
}

// lineDiff shows the first lines that differ.
func lineDiff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		at := func(s []string) string {
			if i < len(s) {
				return s[i]
			}
			return "(end)"
		}
		if at(w) != at(g) {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, at(w), at(g))
		}
	}
	return "(none)"
}

type player struct {
	c    *Conn
	pool Pool
	cfg  Config
	now  vtime.Time
	out  strings.Builder
	last uint32 // timestamp to echo by "ts V echo"
}

func play(src string) (string, error) {
	p := &player{cfg: DefaultConfig()}
	p.cfg.Tick = 0
	for n, line := range strings.Split(strings.TrimSuffix(src, "\n"), "\n") {
		if err := p.line(line); err != nil {
			return "", fmt.Errorf("line %d %q: %w", n+1, line, err)
		}
	}
	return p.out.String(), nil
}

func (p *player) line(line string) error {
	f := strings.Fields(line)
	if len(f) > 1 && (f[1] == ">" || f[1] == "=") {
		return nil // golden: written anew
	}
	if len(f) == 0 || f[0][0] == '#' {
		p.out.WriteString(line + "\n")
		return nil
	}
	if f[0] == "config" {
		p.out.WriteString(line + "\n")
		for _, o := range f[1:] {
			if err := p.option(o); err != nil {
				return err
			}
		}
		return nil
	}
	if p.c == nil {
		c, err := New(p.cfg, &p.pool)
		if err != nil {
			return err
		}
		p.c = c
	}
	s, err := strconv.ParseFloat(f[0], 64)
	if err != nil || len(f) < 2 {
		return fmt.Errorf("want a time and an action")
	}
	t := vtime.Time(vtime.FromSeconds(s))
	if t < p.now {
		return fmt.Errorf("time goes backwards from %v", p.now)
	}
	for p.c.Deadline() <= t { // what the timers do before
		p.now = p.c.Deadline()
		p.c.Expire(p.now)
		p.drain()
	}
	p.now = t
	p.out.WriteString(line + "\n")
	if err := p.do(f[1], f[2:]); err != nil {
		return err
	}
	p.drain()
	return nil
}

func (p *player) option(o string) error {
	k, v, _ := strings.Cut(o, "=")
	n, _ := strconv.Atoi(v)
	on := v == "on"
	switch k {
	case "cc":
		p.cfg.CC = v
	case "sack":
		p.cfg.SACK = on
	case "ts":
		p.cfg.Timestamps = on
	case "frto":
		p.cfg.FRTO = on
	case "tlp":
		p.cfg.TLP = on
	case "tso":
		p.cfg.TSO = on
	case "wscale":
		p.cfg.WindowScale = on
	case "nodelay":
		p.cfg.NoDelay = on
	case "quickack":
		if on {
			p.cfg.Ack = AckEvery
		}
	case "mss":
		p.cfg.MSS = n
	case "iw":
		p.cfg.InitialWindow = n
	case "window":
		p.cfg.RecvWindow = n
	case "cap":
		p.cfg.CwndCap = n
	case "tick":
		p.cfg.Tick = vtime.Duration(n) * vtime.Millisecond
	case "retries":
		p.cfg.Retries = n
	case "synretries":
		p.cfg.SYNRetries = n
	default:
		return fmt.Errorf("unknown option %q", o)
	}
	return nil
}

func (p *player) do(verb string, arg []string) error {
	n := 0
	if len(arg) > 0 {
		n, _ = strconv.Atoi(arg[0])
	}
	switch verb {
	case "<":
		s, err := p.parse(arg)
		if err != nil {
			return err
		}
		p.c.Receive(p.now, s)
	case "connect":
		p.c.Connect(p.now)
	case "listen":
		p.c.Listen()
	case "write":
		if got := p.c.Write(p.now, vtime.Bytes(n)); got != vtime.Bytes(n) {
			return fmt.Errorf("the buffer took %d bytes", got)
		}
	case "read":
		got := p.c.Read(p.now, vtime.Bytes(n))
		p.answer("= read %d eof %v", got, p.c.EOF())
	case "close":
		p.c.Close(p.now)
	case "abort":
		p.c.Abort(p.now)
	case "wait":
	case "show":
		p.show(arg)
	default:
		return fmt.Errorf("unknown action %q", verb)
	}
	return nil
}

func (p *player) answer(format string, a ...any) {
	fmt.Fprintf(&p.out, "%.6f "+format+"\n", append([]any{p.now.Seconds()}, a...)...)
}

func (p *player) drain() {
	for {
		s, ok := p.c.Poll(p.now)
		if !ok {
			return
		}
		p.answer("> %v", describe(s))
		if s.HasTS {
			p.last = s.TSVal
		}
		p.pool.Put(s)
	}
}

// describe is String with the options of a SYN and the timestamps.
func describe(s *Segment) string {
	d := s.String()
	if s.Flags&SYN != 0 {
		if s.MSS > 0 {
			d += fmt.Sprintf(" mss %d", s.MSS)
		}
		if s.SACKPermitted {
			d += " sackok"
		}
		if s.WScale >= 0 {
			d += fmt.Sprintf(" wscale %d", s.WScale)
		}
	}
	if s.HasTS {
		d += fmt.Sprintf(" ts %d %d", s.TSVal, s.TSEcr)
	}
	if s.Retransmission {
		d += " again"
	}
	return d
}

// parse reads "P. 1:1001(1000) ack 1 win 500 sack 5:6 mss 1460 sackok wscale 7 ts 3 2".
func (p *player) parse(f []string) (*Segment, error) {
	if len(f) < 2 {
		return nil, fmt.Errorf("want flags and seq:end(len)")
	}
	s := p.pool.Get()
	for _, c := range f[0] {
		i := strings.IndexRune("FSRP.", c)
		if i < 0 {
			return nil, fmt.Errorf("unknown flag %q", c)
		}
		s.Flags |= 1 << i
	}
	var end uint64
	if _, err := fmt.Sscanf(f[1], "%d:%d(%d)", &s.Seq, &end, &s.Len); err != nil || end != s.Seq+uint64(s.Len) {
		return nil, fmt.Errorf("bad range %q", f[1])
	}
	next := func(i *int) uint64 {
		*i++
		if *i >= len(f) {
			return 0
		}
		n, _ := strconv.ParseUint(f[*i], 10, 64)
		return n
	}
	for i := 2; i < len(f); i++ {
		switch f[i] {
		case "ack":
			s.Ack = next(&i)
		case "win":
			s.Window = uint16(next(&i))
		case "mss":
			s.MSS = int(next(&i))
		case "wscale":
			s.WScale = int(next(&i))
		case "sackok":
			s.SACKPermitted = true
		case "ts":
			s.HasTS = true
			s.TSVal = uint32(next(&i))
			if i+1 < len(f) && f[i+1] == "echo" {
				i++
				s.TSEcr = p.last
			} else {
				s.TSEcr = uint32(next(&i))
			}
		case "sack":
			for i+1 < len(f) && strings.Contains(f[i+1], ":") {
				i++
				b := &s.SACK[s.NSACK]
				if _, err := fmt.Sscanf(f[i], "%d:%d", &b.Start, &b.End); err != nil {
					return nil, fmt.Errorf("bad block %q", f[i])
				}
				s.NSACK++
			}
		default:
			return nil, fmt.Errorf("unknown word %q", f[i])
		}
	}
	return s, nil
}

func (p *player) show(keys []string) {
	i := p.c.Info()
	var b strings.Builder
	for _, k := range keys {
		v := map[string]any{
			"cwnd": i.Cwnd, "ssthresh": i.Ssthresh, "ca": i.CAState, "state": i.State, "mss": i.MSS,
			"srtt": i.SRTT, "rto": i.RTO, "minrtt": i.MinRTT, "inflight": i.InFlight, "sacked": i.Sacked,
			"lost": i.Lost, "retrans": i.Retrans, "unacked": i.Unacked, "reordering": i.Reordering,
			"timeouts": i.Timeouts, "tlp": i.TLPProbes, "undos": i.Undos, "spurious": i.SpuriousRTOs,
			"sndwnd": i.SndWnd, "rcvwnd": i.RcvWnd, "dsacks": i.DSACKDups, "delacks": i.DelayedACKs,
			"readable": p.c.Readable(), "err": p.c.Err(), "probes": i.ZeroProbes, "delivered": i.Delivered,
			"bytesretrans": i.BytesRetrans, "bytesacked": i.BytesAcked, "notsent": i.NotSent,
		}[k]
		fmt.Fprintf(&b, " %s %v", k, v)
	}
	p.answer("=%s", b.String())
}
