package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/netem/vtime"
)

// number is a JSON number of a program that may write none: what is no number
// is NaN.
type number float64

// UnmarshalJSON implements json.Unmarshaler; it accepts everything.
func (n *number) UnmarshalJSON(b []byte) error {
	s := string(b)
	if u, err := strconv.Unquote(s); err == nil {
		s = u
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		f = math.NaN()
	}
	*n = number(f)
	return nil
}

// whole returns the number if it is one that an int64 can hold, else 0.
func (n number) whole() int64 {
	if f := float64(n); f > -1<<53 && f < 1<<53 {
		return int64(math.Round(f))
	}
	return 0
}

func (n number) times(unit vtime.Duration) vtime.Duration {
	f := float64(n) * float64(unit)
	if f > -math.MaxInt64 && f < math.MaxInt64 {
		return vtime.Duration(math.Round(f))
	}
	return 0
}

// iperf3Sum is one stream of an interval, their sum, or a sum of the end.
type iperf3Sum struct {
	Start, End  number
	Bytes       *number
	Retransmits number
	Cwnd        number `json:"snd_cwnd"`
	RTT, RTTVar number // µs
	Packets     number
	Lost        number `json:"lost_packets"`
	Jitter      number `json:"jitter_ms"`
	OutOfOrder  number `json:"out_of_order"`
	Omitted     bool
}

type iperf3Interval struct {
	Streams []iperf3Sum
	Sum     *iperf3Sum
}

type iperf3Start struct {
	Connected []json.RawMessage
	TestStart *json.RawMessage `json:"test_start"`
	MSS       number           `json:"tcp_mss"`
	MSSUnset  number           `json:"tcp_mss_default"`
}

// iperf3End has the sums of both sides; a side knows those of the other only
// after an ordered end. Before 3.11 a UDP test has one sum for both.
type iperf3End struct {
	Sum      *iperf3Sum
	Sent     *iperf3Sum `json:"sum_sent"`
	Received *iperf3Sum `json:"sum_received"`
	Streams  []struct{ UDP *iperf3Sum }
	SendCC   string `json:"sender_tcp_congestion"`
	RecvCC   string `json:"receiver_tcp_congestion"`
}

// iperf3Reader reads the output of iperf3 --json, a document at the end, and of
// --json-stream, a document for each interval.
type iperf3Reader struct {
	receiver bool
	now      func() vtime.Time
	report   report
	// bad is the first interval that cannot be.
	bad error
	// whole is set when the intervals were in one document, whose sum alone says
	// where the test ended.
	whole bool
}

// read reads to the end of the output. What was understood before an error is
// kept; report.broken has the error.
func (p *iperf3Reader) read(in io.Reader) {
	l := newLoose(in)
	dec := json.NewDecoder(l)
	var err error
	for err == nil {
		err = p.document(dec)
	}
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.report.broken = "its output ends in the middle of the JSON"
	default:
		p.report.broken = "its output cannot be read: " + oneLine([]byte(err.Error()))
		_, _ = io.Copy(io.Discard, in) // a full pipe would hold the program up
	}
	if p.bad != nil {
		p.report.broken = p.bad.Error()
	}
	if p.whole && p.receiver && p.report.untilEnd == 0 && p.report.broken == "" {
		p.report.broken = "its report has intervals, but does not say when its test ended"
	}
	if s := l.strayText(); s != "" && p.report.said == "" {
		p.report.said = s
	}
}

// document reads one object. It goes key by key, so that a document that breaks
// off leaves the intervals before.
func (p *iperf3Reader) document(dec *json.Decoder) error {
	if err := open(dec, '{'); err != nil {
		return err
	}
	first := len(p.report.intervals) == 0
	event := ""
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return unexpected(err)
		}
		switch key, _ := t.(string); key {
		case "event":
			err = dec.Decode(&event)
		case "data":
			err = p.event(dec, event)
		case "intervals":
			if first {
				err = p.intervals(dec)
				break
			}
			var again json.RawMessage // 3.16 may write its document twice
			err = dec.Decode(&again)
		default:
			err = p.part(dec, key)
		}
		if err != nil {
			return unexpected(err)
		}
	}
	_, err := dec.Token()
	return unexpected(err)
}

func open(dec *json.Decoder, delim json.Delim) error {
	t, err := dec.Token()
	if err == nil && t != delim {
		err = fmt.Errorf("%v where %v was expected", t, delim)
	}
	return err
}

// unexpected is the error within a document.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (p *iperf3Reader) event(dec *json.Decoder, event string) error {
	if event == "interval" {
		return p.interval(dec)
	}
	return p.part(dec, event)
}

// part reads a part of the document, or the data of an event, that is no
// interval. A part of the wrong type is passed over.
func (p *iperf3Reader) part(dec *json.Decoder, key string) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	switch key {
	case "start":
		var s iperf3Start
		_ = json.Unmarshal(raw, &s) // what is of another type stays 0
		p.report.connected = p.report.connected || len(s.Connected) > 0 && s.TestStart != nil
		p.report.mss = int(max(s.MSS.whole(), s.MSSUnset.whole()))
	case "end":
		var e iperf3End
		_ = json.Unmarshal(raw, &e)
		p.end(&e)
	case "error":
		var text string
		_ = json.Unmarshal(raw, &text)
		p.report.said = oneLine([]byte(text))
	}
	return nil
}

func (p *iperf3Reader) intervals(dec *json.Decoder) error {
	if err := open(dec, '['); err != nil {
		return err
	}
	for dec.More() {
		p.whole = true
		if err := p.interval(dec); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func (p *iperf3Reader) interval(dec *json.Decoder) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	var i iperf3Interval
	if err := json.Unmarshal(raw, &i); err != nil {
		p.fail(fmt.Errorf("interval %d is none: %w", len(p.report.intervals), err))
		return nil
	}
	s := i.Sum
	switch {
	case s == nil && len(i.Streams) > 0:
		s = &i.Streams[0]
	case s == nil:
		return nil
	}
	if s.Omitted {
		return nil
	}
	if s.Bytes == nil || math.IsNaN(float64(*s.Bytes)) || math.IsNaN(float64(s.Start)) || math.IsNaN(float64(s.End)) {
		p.fail(fmt.Errorf("interval %d has no times or no bytes", len(p.report.intervals)))
		return nil
	}
	out := interval{
		from: s.Start.times(vtime.Second), to: s.End.times(vtime.Second), bytes: vtime.Bytes(s.Bytes.whole()),
		retransmits: s.Retransmits.whole(), packets: s.Packets.whole(), lost: max(0, s.Lost.whole()), jitter: max(0, s.Jitter.times(vtime.Millisecond)),
	}
	for k := range i.Streams {
		out.cwnd += vtime.Bytes(max(0, i.Streams[k].Cwnd.whole()))
		out.rtt = max(out.rtt, i.Streams[k].RTT.times(vtime.Microsecond))
		out.rttvar = max(out.rttvar, i.Streams[k].RTTVar.times(vtime.Microsecond))
	}
	p.report.connected = true
	p.report.arrived(p.now(), out.to)
	p.fail(p.report.add(out))
	return nil
}

func (p *iperf3Reader) fail(err error) {
	if p.bad == nil {
		p.bad = err
	}
}

func (p *iperf3Reader) end(e *iperf3End) {
	sum := e.Sent
	p.report.cc = e.SendCC
	if p.receiver {
		sum = e.Received
		p.report.cc = e.RecvCC
	}
	if sum == nil {
		sum = e.Sum
	}
	if sum != nil && sum.End > 0 {
		p.report.untilEnd = sum.End.times(vtime.Second)
		p.report.arrived(p.now(), p.report.untilEnd)
		// A receiver whose test was broken off says 0 in the sum of a UDP test.
		if sum.Bytes != nil && sum.Bytes.whole() > 0 {
			p.report.total, p.report.hasTotal = vtime.Bytes(sum.Bytes.whole()), true
		}
	}
	for _, s := range e.Streams {
		if s.UDP != nil {
			p.report.outOfOrder += max(0, s.UDP.OutOfOrder.whole())
		}
	}
}
