//go:build linux

package session_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
)

// Two agents that want the same interface: the later one changes nothing. It would
// take the settings of the first for the machine's own, and bring them back at its
// end, after the first has put back its own.
func TestInterfaceOfAnotherAgent(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	before := m.state()
	a := m.start(0, "--guarded", "--journal", dir)
	a.configure(t, m.order())
	first := m.state()
	b := m.start(0, "--guarded", "--journal", dir)
	_, err := b.client.Configure(t.Context(), m.order())
	var typed *proto.Error
	if !errors.As(err, &typed) || typed.Code != proto.CodeUnavailable || !strings.Contains(err.Error(), fmt.Sprintf("another hopbed uses it (process %d of uid 0)", a.worker)) {
		t.Errorf("error %v, want one that names process %d", err, a.worker)
	}
	m.compare(first)
	a.client.Close()
	a.ended(t)
	m.compare(before)
	b.configure(t, m.order()) // it is free now
	b.client.Close()
	b.ended(t)
	m.compare(before)
}

// An agent that was cut off from its controller ends within seconds: the next one
// waits for that.
func TestInterfaceOfAnAgentThatEnds(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	before := m.state()
	a := m.start(0, "--guarded", "--journal", dir)
	a.configure(t, m.order())
	b := m.start(0, "--guarded", "--journal", dir)
	end := time.AfterFunc(500*time.Millisecond, func() { a.client.Close() })
	defer end.Stop()
	b.configure(t, m.order())
	a.ended(t)
	m.changed(before)
	b.client.Close()
	b.ended(t)
	m.compare(before)
}
