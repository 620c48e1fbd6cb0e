//go:build linux

package session

import (
	"testing"
	"time"
)

func TestWatchdogCountsSilence(t *testing.T) {
	w := watchdog{limit: 800 * time.Millisecond}
	for i := range 7 {
		if w.look(0, 100*time.Millisecond) {
			t.Fatalf("it barked after %d × 100 ms", i+1)
		}
	}
	if w.look(1, 100*time.Millisecond) || w.silent != 0 {
		t.Error("a byte is a sign of life")
	}
	// A look that comes a minute late is the agent's own standstill.
	if w.look(1, time.Minute) || w.silent != 200*time.Millisecond {
		t.Errorf("a standstill of the agent counts as %v of the controller's silence", w.silent)
	}
	n := 0
	for ; !w.look(1, 100*time.Millisecond); n++ {
	}
	if n != 5 {
		t.Errorf("it barked after %d more looks, want 6", n+1)
	}
}
