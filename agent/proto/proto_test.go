package proto

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/workload"
)

func TestMalformedLinesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code Code
		want string // part of the message
	}{
		"empty":              {``, CodeMalformed, "unexpected end"},
		"not JSON":           {`hello`, CodeMalformed, `got "hello"`},
		"no version":         {`{"seq":1,"type":"stop"}`, CodeMalformed, "no version"},
		"older version":      {`{"v":0,"seq":1,"type":"stop"}`, CodeVersion, `wanted "4", got "0"`},
		"newer, other shape": {`{"v":5,"id":"x","kind":"stop"}`, CodeVersion, "built with this controller"},
		"unknown field":      {`{"v":4,"seq":1,"type":"stop","urgent":true}`, CodeMalformed, "urgent"},
		"unknown type":       {`{"v":4,"seq":1,"type":"dance"}`, CodeMalformed, "dance"},
		"two values":         {`{"v":4,"seq":1,"type":"stop"} {}`, CodeMalformed, "after"},
		"text behind":        {`{"v":4,"seq":1,"type":"stop"} x`, CodeMalformed, ""},
		"array":              {`[1]`, CodeMalformed, ""},
		"order without seq":  {`{"v":4,"type":"stop"}`, CodeMalformed, "sequence number"},
		"async with seq":     {`{"v":4,"seq":3,"type":"log","body":{}}`, CodeMalformed, "sequence number 0"},
		"negative seq":       {`{"v":4,"seq":-3,"type":"stop"}`, CodeMalformed, ""},
		"too long":           {`{"v":4,"seq":1,"type":"stop","body":"` + strings.Repeat("x", MaxLine) + `"}`, CodeMalformed, "at most"},
	} {
		_, err := DecodeEnvelope([]byte(c.line))
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want code %s and %q", name, err, c.code, c.want)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: the message has %d bytes", name, len(err.Error()))
		}
	}
}

func TestBodiesAreStrict(t *testing.T) {
	env := func(body string) Envelope {
		return Envelope{V: Version, Seq: 1, Type: TypeStart, Body: json.RawMessage(body)}
	}
	var s Start
	if err := DecodeBody(env(`{"epoch_ns":5,"warmup_ns":6,"end_ns":7}`), &s); err != nil || s != (Start{5, 6, 7}) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{`{"epoch":5}`, `{"epoch_ns":"5"}`, `{"epoch_ns":5.5}`, `{"epoch_ns":99999999999999999999}`, ``, `{} {}`} {
		if err := DecodeBody(env(bad), &s); err == nil {
			t.Errorf("body %q was taken", bad)
		}
	}
	if err := DecodeBody(env(`{"epoch_ns":5}`), nil); err == nil {
		t.Error("a body where none belongs was taken")
	}
	if err := DecodeBody(env(``), nil); err != nil {
		t.Errorf("no body where none belongs: %v", err)
	}
}

// FuzzDecodeEnvelope: whatever comes, the decoder returns a typed error or a
// message that is encoded and decoded to itself.
func FuzzDecodeEnvelope(f *testing.F) {
	for _, body := range []any{
		nil, Hello{Controller: "1.0"}, Start{1, 2, 3},
		Configure{Node: 3, Name: "n04", Interfaces: []Interface{{Name: "wlan0"}, {Name: "eth0"}}, Address: netip.MustParsePrefix("10.77.0.4/32"),
			Bridge: &Bridge{Name: "br0", Forward: []Forward{{"02:68:6f:70:00:01", "eth0"}}},
			Routes: []Route{{Interface: "br0", Dst: netip.MustParsePrefix("10.77.0.5/32")}}, Flows: []Flow{{ID: 1, Transport: "hop", Workload: workload.Spec{Kind: workload.Continual}}}},
	} {
		line, err := EncodeEnvelope(7, TypeConfigure, body, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	line, _ := EncodeEnvelope(0, TypeLog, Log{Message: "é\u2028\x00"}, nil)
	f.Add(line)
	f.Add([]byte(`{"v":4,"seq":1,"type":"stop","error":{"code":"system"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := DecodeEnvelope(line)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", e, err)
		}
		back, err := DecodeEnvelope(again)
		if err != nil {
			t.Fatalf("%s is refused: %v", again, err)
		}
		if back.Seq != e.Seq || back.Type != e.Type || !reflect.DeepEqual(back.Error, e.Error) {
			t.Fatalf("%+v came back as %+v", e, back)
		}
		for _, body := range []any{new(Configure), new(Start), new(Results), new(Samples), new(Readback)} {
			if err := DecodeBody(e, body); err != nil {
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Fatalf("untyped error %v", err)
				}
			}
		}
	})
}

// conn joins two pipes.
type conn struct {
	io.Reader
	io.WriteCloser
}

// pair returns a client and the server's ends.
func pair(t *testing.T) (*Client, *Server, *io.PipeWriter) {
	t.Helper()
	orderR, orderW := io.Pipe()
	replyR, replyW := io.Pipe()
	c := NewClient(conn{replyR, orderW})
	t.Cleanup(func() { c.Close(); replyW.Close() })
	return c, NewServer(orderR, replyW), replyW
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestRepliesFindTheirCallers(t *testing.T) {
	c, s, _ := pair(t)
	const n = 20
	go func() { // answers in reverse order, with asynchronous messages between
		var got []Envelope
		for range n {
			e, err := s.Next()
			if err != nil {
				t.Error(err)
				return
			}
			got = append(got, e)
		}
		for i := n - 1; i >= 0; i-- {
			if err := s.Send(TypeLog, Log{Message: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
			var h Hello
			if err := DecodeBody(got[i], &h); err != nil {
				t.Error(err)
			}
			if err := s.Reply(got[i], HelloReply{Agent: h.Controller}); err != nil {
				t.Error(err)
			}
		}
	}()
	logs := make(chan int)
	go func() {
		k := 0
		for a := range c.Async() {
			if a.Log == nil || a.Samples != nil {
				t.Errorf("%+v", a)
			}
			if k++; k == n {
				logs <- k
			}
		}
	}()
	errs := make(chan error, n)
	for i := range n {
		go func() {
			r, err := c.Hello(within(t), Hello{Controller: fmt.Sprint(i)})
			if err == nil && r.Agent != fmt.Sprint(i) {
				err = fmt.Errorf("caller %d got the reply %q", i, r.Agent)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	<-logs
}

func TestErrorsCrossTheWire(t *testing.T) {
	c, s, _ := pair(t)
	want := &Error{Code: CodeNotApplied, Node: "n03", What: "sysctl net.ipv4.ip_forward", Wanted: "1", Got: "0", Detail: "read-only", Remedy: "run as root"}
	go func() {
		e, _ := s.Next()
		s.Fail(e, fmt.Errorf("configure: %w", want))
		e, _ = s.Next()
		s.Fail(e, errors.New("plain"))
		e, _ = s.Next()
		s.Reply(Envelope{Seq: e.Seq, Type: TypeStop}, nil)
	}()
	_, err := c.Readback(within(t))
	var e *Error
	if !errors.As(err, &e) || *e != *want {
		t.Errorf("got %+v, want %+v", e, want)
	}
	for _, part := range []string{"n03", "net.ipv4.ip_forward", `wanted "1"`, `got "0"`, "read-only", "run as root"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if err := c.Stop(within(t)); !errors.As(err, &e) || e.Code != CodeInternal || !strings.Contains(err.Error(), "plain") {
		t.Errorf("a plain error came as %v", err)
	}
	if err := c.Start(within(t), Start{}); err == nil || !strings.Contains(err.Error(), `"stop"`) {
		t.Errorf("a reply of another type: %v", err)
	}
}

func TestCallerGivesUpOnASilentAgent(t *testing.T) {
	c, _, _ := pair(t) // nobody reads: the write itself hangs
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for range 3 {
		if err := c.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stop") {
			t.Errorf("%v", err)
		}
	}
}

// The agent's last word arrives although an order was being written when it
// died, and every caller learns that it is gone.
func TestEndOfTheAgent(t *testing.T) {
	c, s, out := pair(t)
	go func() {
		s.Next()
		s.Send(TypeFailure, Failure{Node: 4, Error: Error{Code: CodeInternal, Detail: "out of memory"}})
		out.Close()
	}()
	err := c.Stop(within(t))
	if err == nil || !errors.Is(err, io.EOF) {
		t.Errorf("the caller got %v", err)
	}
	a, ok := <-c.Async()
	if !ok || a.Failure == nil || a.Failure.Error.Detail != "out of memory" {
		t.Errorf("the failure came as %+v, %v", a, ok)
	}
	if _, ok := <-c.Async(); ok {
		t.Error("the channel is still open")
	}
	<-c.Done()
	if err := c.Stop(within(t)); !errors.Is(err, io.EOF) || !errors.Is(c.Err(), io.EOF) {
		t.Errorf("a later call got %v", err)
	}
}

func TestVersionMismatchIsToldToBothSides(t *testing.T) {
	r, w := io.Pipe()
	go io.WriteString(w, `{"v":9,"seq":1,"type":"hello","body":{}}`+"\n")
	var out strings.Builder
	_, err := NewServer(r, &out).Next()
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeVersion {
		t.Errorf("the agent says %v", err)
	}
	env, derr := DecodeEnvelope([]byte(strings.TrimSpace(out.String())))
	var f Failure
	if derr == nil {
		derr = DecodeBody(env, &f)
	}
	if derr != nil || env.Type != TypeFailure || f.Error.Code != CodeVersion {
		t.Errorf("the controller is told %q (%v)", out.String(), derr)
	}
	c := NewClient(conn{strings.NewReader(`{"v":9,"seq":1,"type":"hello"}` + "\n"), w})
	<-c.Done()
	if !errors.As(c.Err(), &e) || e.Code != CodeVersion || !strings.Contains(e.Error(), "deploy push") {
		t.Errorf("the controller says %v", c.Err())
	}
}

func TestLineLimits(t *testing.T) {
	long := strings.Repeat("x", MaxLine+10)
	if _, err := newLineReader(strings.NewReader(long + "\nshort\n")).next(); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a line of %d bytes: %v", len(long), err)
	}
	l := newLineReader(strings.NewReader(strings.Repeat("y", 200_000) + "\nlast"))
	if b, err := l.next(); err != nil || len(b) != 200_000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := l.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a line without its end: %v", err)
	}
	if _, err := EncodeEnvelope(1, TypeHello, Hello{Controller: long}, nil); err == nil {
		t.Error("a message beyond the limit was encoded")
	}
}

// The largest mesh's configuration fits a line, even that of a bridge to which
// everybody is a neighbour.
func TestLargestConfigurationFits(t *testing.T) {
	c := Configure{Node: 999, Name: "n1000", Bridge: &Bridge{Name: "br0", HardwareAddress: "02:68:6f:70:03:e7"}, Board: &Board{Nodes: 1000}}
	for i := range 1000 {
		a := netip.AddrFrom4([4]byte{10, 77, byte((i + 1) >> 8), byte(i + 1)})
		c.Routes = append(c.Routes, Route{Interface: "br0", Dst: netip.PrefixFrom(a, 32), Via: a, CwndCap: 10})
		c.Peers = append(c.Peers, Peer{Node: i, Addr: a})
		c.NextHops = append(c.NextHops, NextHop{Dst: i, Via: i})
		c.Neighbours = append(c.Neighbours, Neighbour{Interface: "br0", Addr: a, HardwareAddress: "02:68:6f:70:03:e7"})
		c.Bridge.Forward = append(c.Bridge.Forward, Forward{HardwareAddress: "02:68:6f:70:03:e7", Interface: "eth249"})
		c.Ports = append(c.Ports, Port{Node: i, Port: 250})
		if i < 250 {
			c.Interfaces = append(c.Interfaces, Interface{Name: "eth249", HardwareAddress: "02:68:6f:70:03:e7"})
			c.Board.Pipes = append(c.Board.Pipes, 2*i)
		}
	}
	line, err := EncodeEnvelope(1, TypeConfigure, c, nil)
	if err != nil || len(line) > MaxLine/4 {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	e, err := DecodeEnvelope(line)
	var back Configure
	if err == nil {
		err = DecodeBody(e, &back)
	}
	if err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("it does not come back as it was: %v", err)
	}
	t.Logf("%d bytes", len(line))
}
