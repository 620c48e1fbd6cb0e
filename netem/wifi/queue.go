package wifi

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// NewFrame returns an empty frame from the pool; Data keeps the capacity of its
// last use with length 0.
func (m *Medium) NewFrame() *Frame {
	f := m.pool
	if f == nil {
		return new(Frame)
	}
	m.pool = f.next
	*f = Frame{Data: f.Data[:0]}
	return f
}

// FreeFrame returns to the pool a frame that was not enqueued.
func (m *Medium) FreeFrame(f *Frame) {
	if f.pooled {
		panic("wifi: frame freed twice: Enqueue takes a frame over whatever it returns")
	}
	f.pooled = true
	f.Payload = nil
	f.next = m.pool
	m.pool = f
}

// Enqueue hands f to the queue f.AC of node f.Src at the engine's Now and takes
// it over. False: the queue was full or the node is down; the frame is counted
// (Overflow, NodeDown) and back in the pool, and Sink.Done is not called. A frame
// with an unknown node or queue or an impossible length is a programming error
// and panics.
func (m *Medium) Enqueue(f *Frame) bool {
	if f.Src < 0 || f.Src >= m.ch.n || f.Dst < Broadcast || f.Dst >= m.ch.n || f.Dst == f.Src || f.AC >= NumAC || f.Len < 0 || f.Len > MaxLen || f.pooled {
		panic(fmt.Sprintf("wifi: Enqueue of a frame %d→%d, queue %v, %d bytes (pooled: %v): want nodes 0…%d, another destination or Broadcast, 0…%d bytes", f.Src, f.Dst, f.AC, f.Len, f.pooled, m.ch.n-1, MaxLen))
	}
	now := m.eng.Now()
	s := &m.stations[f.Src]
	q := &s.queues[f.AC]
	st := &s.stats.AC[f.AC]
	refused := NumOutcome
	switch {
	case !s.up:
		refused = NodeDown
	case q.packets >= q.cfg.Limit || q.cfg.LimitBytes > 0 && q.bytes+f.Len > q.cfg.LimitBytes:
		refused = Overflow
	}
	if refused != NumOutcome {
		st.Outcomes[refused]++
		m.dropped(now, f, refused)
		m.eng.Mix(uint64(refused)<<8|uint64(callDone), uint64(f.Src)<<32)
		m.FreeFrame(f)
		return false
	}
	f.air = s.dataTime(f)
	s.seq++
	f.seq, f.Enqueued, f.Attempts, f.failures, f.sent, f.next = s.seq, now, 0, 0, false, nil
	m.countQueue(s, f.AC, now)
	if q.tail == nil {
		q.head = f
	} else {
		q.tail.next = f
	}
	q.tail = f
	q.packets++
	q.bytes += f.Len
	st.Enqueued++
	st.BytesQueued += f.Len
	st.MaxQueue = max(st.MaxQueue, q.packets)
	if q.packets == 1 {
		m.arrival(s, f.AC, now)
	}
	return true
}

// arrival decides about the access of a frame that came into an empty queue: at
// once when the medium has been idle for AIFS (DIFS) and no backoff is left, else
// after a backoff (802.11-2012 9.3.4.2; 9.19.2.5, reason a). EDCA's wording would
// let a frame that comes within AIFS go without a backoff; then all stations that
// answer one broadcast at once would collide for sure.
func (m *Medium) arrival(s *station, ac AC, now vtime.Time) {
	q := &s.queues[ac]
	s.pending |= 1 << ac
	if s.exch != exchangeNone && s.cur == ac {
		return // within its own txop: it may follow in it, or the end draws
	}
	free := s.counting && now >= s.base().Add(q.aifs)
	if !free && q.backoff == 0 {
		m.draw(s, ac)
	}
	if s.counting {
		m.arm(s, now)
	}
}

// pop takes the head frame out of the queue and reports its outcome after the
// event.
func (m *Medium) pop(s *station, ac AC, now vtime.Time, o Outcome) {
	q := &s.queues[ac]
	f := q.head
	m.countQueue(s, ac, now)
	q.head = f.next
	f.next = nil
	if q.head == nil {
		q.tail = nil
	}
	q.packets--
	q.bytes -= f.Len
	s.updatePending(ac)
	st := &s.stats.AC[ac]
	st.Outcomes[o]++
	m.dropped(now, f, o)
	if o == Acked || o == Sent {
		st.BytesDone += f.Len
		st.Delay += now.Sub(f.Enqueued)
	}
	m.calls = append(m.calls, call{kind: callDone, out: o, node: s.id, frame: f})
}

// Queue returns the state of one transmit queue.
func (m *Medium) Queue(node int, ac AC) QueueState {
	q := &m.stations[node].queues[ac]
	return QueueState{Packets: q.packets, Bytes: q.bytes, FreePackets: q.cfg.Limit - q.packets}
}

// countQueue brings the integral of the queue length up to now.
func (m *Medium) countQueue(s *station, ac AC, now vtime.Time) {
	q := &s.queues[ac]
	s.stats.AC[ac].QueueTime += vtime.Duration(q.packets) * now.Sub(q.lengthAt)
	q.lengthAt = now
}

// Stats returns the counters of a node, brought up to Now. They stay the
// medium's: copy them to keep them.
func (m *Medium) Stats(node int) *NodeStats {
	s := &m.stations[node]
	now := m.eng.Now()
	for ac := range s.queues {
		m.countQueue(s, AC(ac), now)
	}
	if s.busy {
		s.busyTime += now.Sub(s.busySince)
		s.busySince = now
	}
	if s.transmitting {
		s.txTime += now.Sub(s.txSince)
		s.txSince = now
	}
	if s.locked() {
		s.rxTime += now.Sub(s.rxSince)
		s.rxSince = now
	}
	s.stats.BusyTime += s.busyTime
	s.stats.RxTime += s.rxTime
	s.stats.TxTime += s.txTime
	s.busyTime, s.rxTime, s.txTime = 0, 0, 0
	s.stats.Until = now
	return &s.stats
}

// ResetStats sets the counters of all nodes to zero (the end of a warm-up).
func (m *Medium) ResetStats() {
	for i := range m.stations {
		m.Stats(i)
		now := m.eng.Now()
		m.stations[i].stats = NodeStats{Since: now, Until: now}
	}
}
