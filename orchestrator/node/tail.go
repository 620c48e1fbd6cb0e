package node

import (
	"strings"
	"sync"
)

// tailSize bounds what is kept of an agent's standard error: an agent in
// trouble may write for hours.
const tailSize = 8 << 10

// Tail keeps the last bytes written to it; the zero value is ready. Its methods are
// safe for concurrent use.
type Tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

// Write keeps the end of p and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
	return len(p), nil
}

// String returns the last lines; an ellipsis says that more came before.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.buf)
	if t.cut {
		if _, rest, ok := strings.Cut(s, "\n"); ok {
			s = rest
		}
		s = "… " + s
	}
	return strings.TrimSpace(s)
}
