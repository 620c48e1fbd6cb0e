package simnet

import (
	"errors"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

func (l *lab) loss(from, to int, p float64) {
	l.t.Helper()
	if err := l.med.SetLoss(from, to, vtime.Fraction(p)); err != nil {
		l.t.Fatal(err)
	}
}

// TestConnectIsTriedAgain: after the last SYN of an attempt (about two minutes)
// comes another attempt, and its connection counts.
func TestConnectIsTriedAgain(t *testing.T) {
	l := newLab(t, positions(0, 100), testMAC(), func(c *Config) { c.End = 140 * sec }, tcpFlow(0, 1))
	l.loss(0, 1, 1)
	l.runTo(120 * sec)
	l.loss(0, 1, 0)
	l.finish()
	s := l.src(0)
	if s.Attempts != 2 || s.Error != nil || s.Established < 120*sec || l.dst(0).Bytes == 0 {
		t.Errorf("%+v", s)
	}
	if d := s.Established.Sub(0) - s.SetupTime; d < 0 || d > startSpread {
		t.Errorf("set-up took %v until %v", s.SetupTime, s.Established)
	}
}

// TestHalfOpenConnectionIsForgotten: the SYN-ACKs (63 s) are in vain, the port
// listens again.
func TestHalfOpenConnectionIsForgotten(t *testing.T) {
	l := newLab(t, positions(0, 100), testMAC(), func(c *Config) { c.End = 140 * sec }, tcpFlow(0, 1))
	l.loss(1, 0, 1)
	l.runTo(100 * sec)
	l.loss(1, 0, 0)
	l.finish()
	if s := l.src(0); s.Error != nil || l.dst(0).Bytes == 0 {
		t.Errorf("%+v", s)
	}
	if n := l.counter(1, "TcpExt.TCPTimeouts"); n < 5 {
		t.Errorf("%d SYN-ACKs were repeated", n)
	}
}

// TestResetBeforeAnythingArrived: the source took the connection for standing,
// the destination had forgotten it. That is another failed attempt.
func TestResetBeforeAnythingArrived(t *testing.T) {
	l := newLab(t, positions(0, 100), testMAC(), func(c *Config) { c.End = 140 * sec }, tcpFlow(0, 1))
	for l.net.flows[0].(*stream).links[0].established == vtime.Never {
		if !l.eng.Step() {
			t.Fatal("nothing happens")
		}
		if l.net.flows[0].(*stream).links[0].server != nil && l.net.flows[0].(*stream).links[0].server.conn.State() == tcp.SynReceived {
			l.loss(0, 1, 1) // from now on nothing reaches the destination
		}
	}
	l.runTo(70 * sec)
	l.loss(0, 1, 0)
	l.finish()
	s := l.src(0)
	if s.Attempts != 2 || s.Error != nil || l.dst(0).Bytes == 0 {
		t.Errorf("%+v", s)
	}
	if d := l.dst(0); d.Total > s.Total {
		t.Errorf("%d B arrived of %d", d.Total, s.Total)
	}
}

// TestRelayMeetsAResetToo: the same between a relay and the next hop; what the
// relay had written is not lost.
func TestRelayMeetsAResetToo(t *testing.T) {
	f := proto.Flow{Transport: "hop-by-hop-tcp/cubic", Src: 0, Dst: 2, Path: []int{0, 1, 2}, Workload: workload.Spec{Kind: workload.Sized, Size: 100_000}}
	l := newLab(t, positions(0, 200, 400), testMAC(), func(c *Config) { c.Warmup, c.End = 0, 140*sec }, f)
	out := l.net.flows[0].(*stream).links[1]
	for out.server == nil || out.server.conn.State() != tcp.SynReceived {
		if !l.eng.Step() {
			t.Fatal("nothing happens")
		}
	}
	l.loss(1, 2, 1)
	l.runTo(70 * sec)
	if r := l.net.flows[0].(*stream).relays[0]; out.attempts == 1 && r.moved == 0 {
		t.Error("the relay has written nothing before the reset: the case is too easy")
	}
	l.loss(1, 2, 0)
	l.finish()
	d := l.dst(0)
	if r := l.side(0, proto.Relay, 1); r.Attempts != 2 || r.Error != nil || !d.Finished || d.Total != 100_000 {
		t.Errorf("%+v\n%+v", r, d)
	}
}

// TestSetUpThatNeverSucceeds is an outcome with the whole story.
func TestSetUpThatNeverSucceeds(t *testing.T) {
	f := tcpFlow(0, 1)
	f.Options.ConnectWithin = 5e9
	l := newLab(t, positions(0, 100), testMAC(), nil, f)
	l.loss(0, 1, 1)
	l.finish()
	s := l.src(0)
	if s.Error == nil || s.Error.Code != proto.CodeTimeout || s.CC != "" || s.Last != nil {
		t.Fatalf("%+v", s)
	}
	var e *proto.Error
	if !errors.As(s.Error, &e) || e.What != "flow 0 set-up" {
		t.Errorf("%v", s.Error)
	}
}
