package workload

import (
	"iter"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Receipt is what became of one message.
type Receipt struct {
	// Message is its number in the flow, from 0.
	Message int         `json:"message"`
	Size    vtime.Bytes `json:"size"`
	// Ready is when it became ready to be sent; Delay the time from then until
	// all of it was delivered. Lost messages were not delivered by the end of
	// the run and have no delay. Between hosts whose clocks differ a delay is as
	// wrong as the offset that was measured, and may be negative.
	Ready vtime.Time     `json:"ready_ns"`
	Delay vtime.Duration `json:"delay_ns,omitempty"`
	Lost  bool           `json:"lost,omitempty"`
}

// receiptQueue holds receipts until they are taken.
type receiptQueue struct{ waiting []Receipt }

func (q *receiptQueue) add(r Receipt) { q.waiting = append(q.waiting, r) }

// take yields and removes the waiting receipts, oldest first; false when the
// consumer has had enough.
func (q *receiptQueue) take(yield func(Receipt) bool) bool {
	for i, r := range q.waiting {
		if !yield(r) {
			q.waiting = append(q.waiting[:0], q.waiting[i+1:]...)
			return false
		}
	}
	q.waiting = q.waiting[:0]
	return true
}

// The bounds of what Receipts keeps and believes.
const (
	// maxMissing is the most messages that may be missing or in part while later
	// ones arrive: when there are more, the oldest is given up as lost.
	maxMissing = 1 << 16
	// maxEarly is how much before its moment a message may be delivered: the
	// offset between the clocks of two hosts at worst. What comes earlier was
	// not sent by the source.
	maxEarly = vtime.Second
	// maxLead is how far beyond the last message seen another may be where no
	// moment bounds it (web).
	maxLead = 1 << 16
)

// Receipts is the receiving end's account of the messages of a flow. A kind
// without messages has none, and a web flow's are made by the client's source
// (Source.Receipts); Prefix holds for all.
//
// A stream reports its bytes with Add, a transport that delivers out of order
// what it has of each message with AddPart or AddMessage; one flow uses one way.
type Receipts struct {
	spec  Spec
	done  receiptQueue
	total vtime.Bytes // by Add

	// next is the first message of which nothing is known yet.
	next cursor
	// missing are the messages before it that are not complete, in order.
	missing []missing
	closed  vtime.Time // the end that Close was given
	block   vtime.Bytes
}

// missing is a message of which parts are not there.
type missing struct {
	k     int
	m     message
	begin vtime.Bytes // in the stream
	piece int         // number of its first block
	got   vtime.Bytes
}

// NewReceipts returns the account of a flow that runs in [start, stop).
func NewReceipts(spec Spec, start, stop vtime.Time) (*Receipts, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	r := &Receipts{spec: spec, closed: vtime.Never}
	if spec.HasMessages() {
		r.next = newCursor(spec, start, stop)
	}
	return r, nil
}

// Add counts n bytes of the stream, delivered in order at now.
func (r *Receipts) Add(now vtime.Time, n vtime.Bytes) {
	r.total += max(n, 0)
	for r.next.ok && r.total >= r.next.begin+r.next.cur.size {
		r.deliver(now, r.next.k, r.next.cur)
		r.next.step(r.block)
	}
}

// AddMessage counts message k, delivered whole at now. It returns false for a
// message that was there before, or that the source cannot have sent.
func (r *Receipts) AddMessage(now vtime.Time, k int) bool {
	i, ok := r.find(now, k)
	return ok && r.AddPart(now, k, r.missing[i].m.size-r.missing[i].got)
}

// AddPart counts n bytes of message k, delivered at now; the caller sees to it
// that no byte is counted twice. It returns false, and counts nothing, when the
// message is complete already, cannot have been sent, or has no n bytes left.
func (r *Receipts) AddPart(now vtime.Time, k int, n vtime.Bytes) bool {
	i, ok := r.find(now, k)
	if !ok || n < 0 || n > r.missing[i].m.size-r.missing[i].got {
		return false
	}
	m := &r.missing[i]
	m.got += n
	if m.got == m.m.size {
		r.deliver(now, k, m.m)
		r.remove(i)
	}
	return true
}

// Size returns the size of message k, if it is not complete and can have been
// sent by now.
func (r *Receipts) Size(now vtime.Time, k int) (vtime.Bytes, bool) {
	i, ok := r.find(now, k)
	if !ok {
		return 0, false
	}
	return r.missing[i].m.size, true
}

// deliver makes the receipt of a complete message.
func (r *Receipts) deliver(now vtime.Time, k int, m message) {
	if r.spec.Kind != Web {
		r.done.add(Receipt{Message: k, Size: m.size, Ready: m.ready, Delay: now.Sub(m.ready)})
	}
}

// find returns the place of message k among the missing ones, where it is put
// together with all before it when it is new.
func (r *Receipts) find(now vtime.Time, k int) (int, bool) {
	if k < 0 {
		return 0, false
	}
	if k >= r.next.k && !r.reach(now, func() bool { return r.next.k > k }, k) {
		return 0, false
	}
	return r.search(func(m *missing) bool { return m.k >= k }, func(m *missing) bool { return m.k == k })
}

// reach goes on in the schedule until there says so. It fails, going nowhere,
// when it would have to pass messages that cannot have been sent.
func (r *Receipts) reach(now vtime.Time, there func() bool, to int) bool {
	if r.spec.Kind == Web && to-r.next.k >= maxLead {
		return false
	}
	for !there() {
		if !r.next.ok || r.spec.Kind != Web && r.next.cur.ready > now.Add(maxEarly) {
			return false
		}
		if len(r.missing) == maxMissing {
			r.giveUp(r.missing[0])
			r.remove(0)
		}
		r.missing = append(r.missing, missing{k: r.next.k, m: r.next.cur, begin: r.next.begin, piece: r.next.piece})
		r.next.step(r.block)
	}
	return true
}

func (r *Receipts) giveUp(m missing) {
	if r.spec.Kind != Web {
		r.done.add(Receipt{Message: m.k, Size: m.m.size, Ready: m.m.ready, Lost: true})
	}
}

// search returns the first missing message that is not before the sought one,
// and whether it is that.
func (r *Receipts) search(notBefore, is func(*missing) bool) (int, bool) {
	lo, hi := 0, len(r.missing)
	for lo < hi {
		if mid := (lo + hi) / 2; notBefore(&r.missing[mid]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, lo < len(r.missing) && is(&r.missing[lo])
}

func (r *Receipts) remove(i int) {
	if i == 0 && len(r.missing) > 1 {
		r.missing = r.missing[1:] // the array is left behind at the next growth
		return
	}
	r.missing = append(r.missing[:i], r.missing[i+1:]...)
}

// Blocks says that the messages come in blocks of at most size bytes, each of
// which holds bytes of one message only, numbered through from 0. It is called
// before anything is added.
func (r *Receipts) Blocks(size vtime.Bytes) { r.block = size }

// Block returns which bytes the block with the number b holds: message k, its n
// bytes that begin at the offset at of the flow's stream. ok is false when the
// message is complete, or the source cannot have sent the block by now.
func (r *Receipts) Block(now vtime.Time, b int) (k int, at, n vtime.Bytes, ok bool) {
	if r.block <= 0 || b < 0 || r.spec.Kind == Web && b-r.next.piece >= maxLead {
		return 0, 0, 0, false
	}
	if b >= r.next.piece && !r.reach(now, func() bool { return r.next.piece > b }, r.next.k) {
		return 0, 0, 0, false
	}
	i, ok := r.search(func(m *missing) bool { return m.piece+m.pieces(r.block) > b }, func(m *missing) bool { return m.piece <= b })
	if !ok {
		return 0, 0, 0, false
	}
	m := &r.missing[i]
	offset := vtime.Bytes(b-m.piece) * r.block
	return m.k, m.begin + offset, min(r.block, m.m.size-offset), true
}

func (m *missing) pieces(block vtime.Bytes) int { return int((m.m.size + block - 1) / block) }

// Prefix returns how many bytes from the stream's begin have all been delivered.
// Of a message that came in parts it counts all or nothing.
func (r *Receipts) Prefix() vtime.Bytes {
	switch {
	case r.total > 0 || !r.spec.HasMessages():
		return r.total
	case len(r.missing) > 0:
		return r.missing[0].begin
	}
	return r.next.begin
}

// Complete reports whether every message of the flow's schedule was delivered
// or given up; never of a web flow, whose schedule has no end.
func (r *Receipts) Complete() bool {
	return r.spec.HasMessages() && !r.next.ok && len(r.missing) == 0
}

// Close ends the account at end, the end of the run or of the flow: Take yields
// every message that was ready before it and not delivered as lost.
func (r *Receipts) Close(end vtime.Time) {
	if r.closed == vtime.Never {
		r.closed = end
	}
}

// Take yields the receipts since the last call, in the order of delivery, and
// after Close those of the lost messages. What was yielded is not kept; a
// consumer that stops finds the rest at its next call.
func (r *Receipts) Take() iter.Seq[Receipt] {
	return func(yield func(Receipt) bool) {
		if !r.done.take(yield) || r.closed == vtime.Never || r.spec.Kind == Web {
			return
		}
		for len(r.missing) > 0 {
			m := r.missing[0]
			r.remove(0)
			if m.m.ready < r.closed && !yield(Receipt{Message: m.k, Size: m.m.size, Ready: m.m.ready, Lost: true}) {
				return
			}
		}
		for r.next.ok && r.next.cur.ready < r.closed {
			k, m := r.next.k, r.next.cur
			r.next.step(r.block)
			if !yield(Receipt{Message: k, Size: m.size, Ready: m.ready, Lost: true}) {
				return
			}
		}
	}
}
