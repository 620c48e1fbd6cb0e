//go:build linux

package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The board is mapped once: an agent that is configured anew may not be another
// node or have other wires, whose queues it would take for its own.
func TestBoardStaysTheNodes(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{Board: true, Wires: [][2]int{{0, 1}}, WiredOnly: []int{0, 1}})
	n := l.Nodes[0]
	configure := func(change func(*proto.Configure)) error {
		c := l.Chain(0, nil)
		change(c)
		_, err := n.Client.Configure(l.Context(5*time.Second), c)
		return err
	}
	for range 2 {
		if err := configure(func(*proto.Configure) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		err := configure(func(c *proto.Configure) { c.Board.Pipes = []int{c.Board.Pipes[0] ^ 1} })
		if e, ok := errors.AsType[*proto.Error](err); !ok || e.Code != proto.CodeOrder || e.Remedy == "" {
			t.Fatalf("with another wire's queue: %v, want a refusal with a remedy", err)
		}
	}
}

// An agent that its controller did not start takes the board from it.
func TestBoardOfAnotherProcess(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{Board: true})
	l.SetLink(0, 1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})
	const end = vtime.Time(vtime.Second)
	for range 2 { // the second time it may be another one's
		l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) { c.Board = l.Borrowed(c.Node, c.Board) })
		rs := l.Finish(l.Start(0, end), end)
		if received(t, rs, 0) == 0 {
			t.Error("nothing came")
		}
		for _, n := range l.Nodes {
			if _, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, change := range map[string]func(*proto.Board){
		"no such process":    func(b *proto.Board) { b.PID = 1 << 30 },
		"no such descriptor": func(b *proto.Board) { b.MemFD = 1 << 20 },
		"no board":           func(b *proto.Board) { b.MemFD = b.EventFD },
	} {
		c := l.Chain(0, []proto.Flow{f})
		c.Board = l.Borrowed(0, c.Board)
		change(c.Board)
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), c)
		if err == nil {
			t.Errorf("%s: it was taken", name)
			continue
		}
		wantError(t, err, proto.CodeSystem, "n01", "queue board")
	}
}
