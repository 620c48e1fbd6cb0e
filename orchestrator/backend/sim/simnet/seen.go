package simnet

// seen tells new datagrams from repeated ones, as the agent's sink does: what is
// more than its length behind the newest counts as repeated.
type seen struct {
	next uint64 // one above the highest sequence number seen
	bits [seenLength / 64]uint64
}

const seenLength = 4096

// add notes a sequence number; fresh is false for one that was there before,
// late is true for one below another that was there before.
func (s *seen) add(seq uint64) (fresh, late bool) {
	if seq >= s.next {
		for n := s.next; n < seq && n < s.next+seenLength; n++ {
			s.bits[n%seenLength/64] &^= 1 << (n % 64)
		}
		s.next = seq + 1
		s.bits[seq%seenLength/64] |= 1 << (seq % 64)
		return true, false
	}
	if s.next-seq > seenLength {
		return false, true
	}
	word, bit := &s.bits[seq%seenLength/64], uint64(1)<<(seq%64)
	fresh = *word&bit == 0
	*word |= bit
	return fresh, true
}
