package des

// The heap is 4-ary: half the levels of a binary one, and the four children of
// a node share one or two cache lines. Each slot knows its place, so that Cancel
// removes at once instead of leaving tombstones: a backoff that is frozen and
// resumed thousands of times a second would fill the heap with them.

const arity = 4

func before(a, b *node) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (e *Engine) up(i int) {
	h := e.heap
	n := h[i]
	for i > 0 {
		p := (i - 1) / arity
		if !before(&n, &h[p]) {
			break
		}
		h[i] = h[p]
		e.slots[h[i].slot].heap = int32(i)
		i = p
	}
	h[i] = n
	e.slots[n.slot].heap = int32(i)
}

func (e *Engine) down(i int) {
	h := e.heap
	n := h[i]
	for {
		c := arity*i + 1
		if c >= len(h) {
			break
		}
		least := c
		for k := c + 1; k < min(c+arity, len(h)); k++ {
			if before(&h[k], &h[least]) {
				least = k
			}
		}
		if !before(&h[least], &n) {
			break
		}
		h[i] = h[least]
		e.slots[h[i].slot].heap = int32(i)
		i = least
	}
	h[i] = n
	e.slots[n.slot].heap = int32(i)
}

func (e *Engine) removeAt(i int) {
	last := len(e.heap) - 1
	moved := e.heap[last]
	e.heap = e.heap[:last]
	if i == last {
		return
	}
	e.heap[i] = moved
	e.slots[moved.slot].heap = int32(i)
	if i > 0 && before(&moved, &e.heap[(i-1)/arity]) {
		e.up(i)
	} else {
		e.down(i)
	}
}
