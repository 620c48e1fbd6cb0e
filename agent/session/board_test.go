//go:build linux

package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
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
