package hop

import "math/bits"

// bitmap is the set of a block's packets, bit i for packet i.
type bitmap []uint64

// reset makes m the empty set of n packets, keeping its memory.
func (m *bitmap) reset(n int) {
	words := (n + 63) / 64
	if cap(*m) < words {
		*m = make(bitmap, words)
		return
	}
	*m = (*m)[:words]
	clear(*m)
}

func (m bitmap) has(i int) bool { return m[i>>6]>>(i&63)&1 != 0 }
func (m bitmap) add(i int)      { m[i>>6] |= 1 << (i & 63) }
func (m bitmap) del(i int)      { m[i>>6] &^= 1 << (i & 63) }

// next returns the smallest member ≥ i, or -1.
func (m bitmap) next(i int) int {
	for w := i >> 6; w < len(m); w++ {
		v := m[w]
		if w == i>>6 {
			v = v >> (i & 63) << (i & 63)
		}
		if v != 0 {
			return w<<6 + bits.TrailingZeros64(v)
		}
	}
	return -1
}

// put writes the n members' bits into b, least significant bit first.
func (m bitmap) put(b []byte, n int) {
	for i := range (n + 7) / 8 {
		b[i] = byte(m[i>>3] >> (8 * (i & 7)))
	}
}

// putFull writes the full set of n packets into b.
func putFull(b []byte, n int) {
	for i := range (n + 7) / 8 {
		b[i] = 0xff
	}
	if n&7 != 0 {
		b[n/8] = 1<<(n&7) - 1
	}
}

// missing sets m to the packets of n that the wire bitmap b does not have,
// and returns their number.
func (m *bitmap) missing(b []byte, n int) int {
	m.reset(n)
	left := 0
	for i := range n {
		if b[i>>3]>>(i&7)&1 == 0 {
			m.add(i)
			left++
		}
	}
	return left
}

// allOnes reports whether the wire bitmap b has all n packets.
func allOnes(b []byte, n int) bool {
	for i := range n / 8 {
		if b[i] != 0xff {
			return false
		}
	}
	return n&7 == 0 || b[n/8] == 1<<(n&7)-1
}
