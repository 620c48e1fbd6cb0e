package emulator

import "github.com/hopbed/hopbed/netem/vtime"

// horizon is a heap of the times at which some pipe may do something that the
// outside sees. Nothing is ever taken back: a time at which nothing happens
// after all costs one wake-up. Arrivals on a line are expected in ascending
// order, so a push is one comparison as a rule, and looking costs the same
// however many pipes there are.
type horizon struct{ heap []vtime.Time }

// Expect adds a time. It implements pipe.Expecter for those who embed it.
func (h *horizon) Expect(at vtime.Time) {
	h.heap = append(h.heap, at)
	i := len(h.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h.heap[up] <= at {
			break
		}
		h.heap[i] = h.heap[up]
		i = up
	}
	h.heap[i] = at
}

// next forgets what lies before now and returns the earliest time that is left,
// vtime.Never if there is none. What is expected at this nanosecond is kept: a
// packet that came now may have to be delivered now.
func (h *horizon) next(now vtime.Time) vtime.Time {
	for len(h.heap) > 0 && h.heap[0] < now {
		h.pop()
	}
	if len(h.heap) == 0 {
		return vtime.Never
	}
	return h.heap[0]
}

func (h *horizon) pop() {
	n := len(h.heap) - 1
	at := h.heap[n]
	h.heap = h.heap[:n]
	if n == 0 {
		return
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && h.heap[down+1] < h.heap[down] {
			down++
		}
		if at <= h.heap[down] {
			break
		}
		h.heap[i] = h.heap[down]
		i = down
	}
	h.heap[i] = at
}
