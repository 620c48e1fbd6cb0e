package bundle

import "github.com/hopbed/hopbed/netem/vtime"

// held is a bundle in a node's store.
type held struct {
	bundle  *Bundle
	size    int // octets, as it came
	arrived vtime.Time
	age     uint64 // milliseconds, when it arrived
	expires vtime.Time
	disk    bool // it has a file
	state   heldState
	resend  bool // it was on its way when a session ended
}

type heldState uint8

const (
	waiting  heldState = iota
	inFlight           // being sent, or waiting for its acknowledgement
	gone               // forwarded or deleted
)

// perBundle is what is charged for a bundle beside its octets, so that a limit
// bounds the memory of very small ones, too.
const perBundle vtime.Bytes = 256

// store is a node's bundles in the order of their arrival.
type store struct {
	items   []*held
	next    int // none before it waits
	count   int
	bytes   vtime.Bytes // of the bundles
	most    vtime.Bytes // … ever
	charged vtime.Bytes // bytes with perBundle, and what is reserved
}

func (s *store) add(h *held) {
	s.items = append(s.items, h)
	s.count++
	s.bytes += vtime.Bytes(h.size)
	s.most = max(s.most, s.bytes)
	s.charged += vtime.Bytes(h.size) + perBundle
}

func (s *store) remove(h *held) {
	if h.state == gone {
		return
	}
	h.state, h.bundle = gone, nil
	s.count--
	s.bytes -= vtime.Bytes(h.size)
	s.charged -= vtime.Bytes(h.size) + perBundle
	done := 0
	for done < len(s.items) && s.items[done].state == gone {
		s.items[done] = nil
		done++
	}
	s.items = s.items[done:]
	s.next = max(0, s.next-done)
}

// waiter returns the oldest bundle that waits, nil when none does.
func (s *store) waiter() *held {
	for ; s.next < len(s.items); s.next++ {
		if h := s.items[s.next]; h.state == waiting {
			return h
		}
	}
	return nil
}

// back makes a bundle that was on its way wait again.
func (s *store) back(h *held) {
	if h.state == inFlight {
		h.state, s.next = waiting, 0
	}
}
