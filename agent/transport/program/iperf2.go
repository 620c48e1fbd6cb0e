package program

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// iperf2Reader reads the lines of iperf2 -e -f b, and the comma-separated ones of
// -y C, which versions before 2.1 have in their place.
type iperf2Reader struct {
	receiver bool
	now      func() vtime.Time
	report   report
	bad      error
	other    bool // the lines are the other side's, repeated by this one
}

const maxLine = 64 << 10 // bytes

var (
	// "[  1] 0.5000-1.0000 sec  1179648 Bytes  18874368 bits/sec  …"; nothing is
	// "0.000 Bytes".
	iperf2Line = regexp.MustCompile(`^\[ *\d+\] +([\d.]+) *- *([\d.]+) sec +(\d+)(?:\.0+)? Bytes +\S+ bits/sec(.*)$`)
	// "10/0          0      639K/1937(3715) us": writes/errors, retries, window/rtt(variation)
	iperf2TCP = regexp.MustCompile(`^ *\d+/\d+ +(\d+) +(\d+)K/(\d+)(?:\((\d+)\))? us`)
	// "0.001 ms 0/449 (0%)": jitter, lost/total
	iperf2UDP = regexp.MustCompile(`^ *([\d.]+) ms +(-?\d+)/ *(\d+) `)
	// "447/0      897 pps": datagrams written
	iperf2Sent = regexp.MustCompile(`^ *(\d+)/\d+ +\d+ pps`)
	iperf2MSS  = regexp.MustCompile(`icwnd/mss/irtt=\d+/(\d+)/`)
	iperf2CC   = regexp.MustCompile(`^TCP congestion control set to (\S+)`)
	iperf2Late = regexp.MustCompile(`(\d+) datagrams received out-of-order`)
)

// read reads to the end of the output.
func (p *iperf2Reader) read(in io.Reader) {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		if err := p.line(s.Text()); err != nil && p.bad == nil {
			p.bad = err
		}
	}
	if err := s.Err(); err != nil {
		p.report.broken = "its output cannot be read: " + oneLine([]byte(err.Error()))
		_, _ = io.Copy(io.Discard, in)
	}
	if p.bad != nil {
		p.report.broken = p.bad.Error()
	}
}

func (p *iperf2Reader) line(s string) error {
	switch {
	case p.other:
		return nil
	case strings.Contains(s, "Server Report:"):
		p.other = true
		return nil
	case strings.Contains(s, " port 0 connected with "):
		return nil // how it says that it is not
	case strings.Contains(s, " connected with "):
		p.report.connected = true
		p.report.arrived(p.now(), 0)
		if m := iperf2MSS.FindStringSubmatch(s); m != nil {
			p.report.mss, _ = strconv.Atoi(m[1]) // digits
		}
		return nil
	case strings.Contains(s, "failed") || strings.Contains(s, "rror") && !strings.HasPrefix(s, "[ ID]"):
		p.report.said = oneLine([]byte(s))
		return nil
	}
	if m := iperf2CC.FindStringSubmatch(s); m != nil {
		p.report.cc = m[1]
		return nil
	}
	if m := iperf2Late.FindStringSubmatch(s); m != nil {
		p.report.outOfOrder, _ = strconv.ParseInt(m[1], 10, 64)
		return nil
	}
	if m := iperf2Line.FindStringSubmatch(s); m != nil {
		return p.text(m)
	}
	if f := strings.Split(s, ","); len(f) >= 9 && strings.Contains(f[6], "-") {
		return p.csv(f)
	}
	return nil // a headline
}

func (p *iperf2Reader) text(m []string) error {
	i, err := bounds(m[1], m[2], m[3])
	if err != nil {
		return err
	}
	rest := m[4]
	if f := iperf2TCP.FindStringSubmatch(rest); f != nil {
		i.retransmits = digits(f[1])
		i.cwnd = vtime.Bytes(digits(f[2])) * vtime.KiB
		i.rtt, i.rttvar = vtime.Duration(digits(f[3]))*vtime.Microsecond, vtime.Duration(digits(f[4]))*vtime.Microsecond
	} else if f := iperf2UDP.FindStringSubmatch(rest); f != nil {
		i.jitter, i.lost, i.packets = millis(f[1]), max(0, digits(f[2])), digits(f[3])
	} else if f := iperf2Sent.FindStringSubmatch(rest); f != nil {
		i.packets = digits(f[1])
	}
	return p.take(i)
}

// csv reads "time,address,port,address,port,id,from-to,bytes,rate", which a UDP
// receiver goes on with ",jitter,lost,total,percent", and perhaps more.
func (p *iperf2Reader) csv(f []string) error {
	from, to, _ := strings.Cut(f[6], "-")
	i, err := bounds(strings.TrimSpace(from), strings.TrimSpace(to), f[7])
	if err != nil {
		return err
	}
	if len(f) >= 13 {
		i.jitter, i.lost, i.packets = millis(f[9]), max(0, digits(f[10])), digits(f[11])
	}
	return p.take(i)
}

// take keeps an interval, or the sum of all, which begins at 0 once more.
func (p *iperf2Reader) take(i interval) error {
	p.report.connected = true
	p.report.arrived(p.now(), i.to)
	if n := len(p.report.intervals); i.from == 0 && n > 0 && i.to >= p.report.intervals[n-1].to-seam {
		p.report.total, p.report.hasTotal, p.report.untilEnd = i.bytes, true, i.to
		return nil
	}
	if i.to == i.from && i.bytes == 0 {
		return nil
	}
	return p.report.add(i)
}

func bounds(from, to, bytes string) (i interval, err error) {
	a, err := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	n, err3 := strconv.ParseInt(strings.TrimSpace(bytes), 10, 63)
	if err := errors.Join(err, err2, err3); err != nil {
		return i, fmt.Errorf("an interval cannot be read: %s", oneLine([]byte(err.Error())))
	}
	return interval{from: number(a).times(vtime.Second), to: number(b).times(vtime.Second), bytes: vtime.Bytes(n)}, nil
}

// digits and millis read what a pattern has found to be a number.
func digits(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 53)
	if err != nil {
		return 0
	}
	return n
}

func millis(s string) vtime.Duration {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return 0
	}
	return number(f).times(vtime.Millisecond)
}

// oneLine makes what a program said fit for a message: one line, printable,
// bounded.
func oneLine(b []byte) string {
	s := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(b), "?"), func(r rune) bool { return r < ' ' || r == 0x7f }), " | ")
	s = strings.TrimSpace(s)
	const limit = 400
	if len(s) > limit {
		s = "…" + strings.ToValidUTF8(s[len(s)-limit:], "")
	}
	return s
}
