package wifi

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The frame exchanges that a station begins: [RTS, CTS | CTS-to-self], data,
// [ACK], once or as a burst within a txop.

// begin opens the txop of a queue that has won access.
func (s *station) begin(ac AC, now vtime.Time) {
	s.exch, s.cur, s.cleared, s.firstOfTxop = exchangeSending, ac, false, true
	s.txopEnd = now.Add(s.queues[ac].cfg.TXOP)
}

func (s *station) wantsAck(q *access, f *Frame) bool {
	return f.Dst != Broadcast && q.cfg.Ack == AckNormal
}

// dataMode is the rate of a data frame: broadcast goes at the basic rate.
func (s *station) dataMode(f *Frame) (*mode, *shape) {
	if f.Dst == Broadcast {
		return s.phy.control, &s.shapes[shapeControl]
	}
	return s.phy.data, &s.shapes[shapeData]
}

func (s *station) dataTime(f *Frame) vtime.Duration {
	md, _ := s.dataMode(f)
	return s.phy.txTime(md, s.phy.mpdu(f.Len))
}

// usesRts reports whether the frame is long enough for RTS/CTS.
func (s *station) usesRts(f *Frame) bool {
	return s.mac.RTSThreshold > 0 && f.Dst != Broadcast && s.phy.mpdu(f.Len) > s.mac.RTSThreshold
}

// guarded reports whether a CTS-to-self precedes the frame.
func (s *station) guarded(f *Frame) bool {
	md, _ := s.dataMode(f)
	return s.phy.protect != nil && !md.dsss
}

// exchangeTime is the duration of one frame within a burst, its CTS-to-self and
// its ACK included.
func (s *station) exchangeTime(q *access, f *Frame) vtime.Duration {
	d := f.air
	if s.guarded(f) {
		d += s.phy.ctsMy + s.phy.sifs
	}
	if s.wantsAck(q, f) {
		d += s.phy.sifs + s.phy.ack
	}
	return d
}

// fits reports whether f, begun at t, ends within the txop.
func (s *station) fits(q *access, f *Frame, t vtime.Time) bool {
	return f != nil && q.cfg.TXOP > 0 && t.Add(s.exchangeTime(q, f)) <= s.txopEnd
}

// dataNav is the Duration field of the head frame when its transmission begins
// at t: its ACK and, when the burst goes on, the next frame's exchange (single
// protection, 802.11-2012 8.2.5.2).
func (s *station) dataNav(q *access, f *Frame, t vtime.Time) vtime.Duration {
	end := t.Add(f.air)
	nav := vtime.Duration(0)
	if s.wantsAck(q, f) {
		nav = s.phy.sifs + s.phy.ack
	}
	if next := end.Add(nav + s.phy.sifs); s.fits(q, f.next, next) {
		nav += s.phy.sifs + s.exchangeTime(q, f.next)
	}
	return nav
}

// sendNext transmits the next frame of the own exchange.
func (m *Medium) sendNext(s *station, now vtime.Time) {
	q := &s.queues[s.cur]
	f := q.head
	st := &s.stats.AC[s.cur]
	sifs := s.phy.sifs
	s.exch = exchangeSending
	if !s.cleared {
		f.Attempts++
		switch {
		case s.firstOfTxop && s.usesRts(f):
			data := now.Add(s.phy.rts + sifs + s.phy.cts + sifs)
			nav := 2*sifs + s.phy.cts + f.air + s.dataNav(q, f, data)
			md, sh := s.rtsMode()
			st.RTS++
			st.AirTime += s.phy.rts
			s.sig = signal{kind: KindRts, dst: int32(f.Dst), mode: md, shape: sh, nav: nav}
			m.transmit(s, now, s.phy.rts)
			return
		case s.guarded(f):
			data := now.Add(s.phy.ctsMy + sifs)
			nav := sifs + f.air + s.dataNav(q, f, data)
			st.AirTime += s.phy.ctsMy
			s.sig = signal{kind: KindCtsSelf, dst: s.id, mode: s.phy.protect, shape: &s.shapes[shapeProtect], nav: nav}
			m.transmit(s, now, s.phy.ctsMy)
			return
		}
	}
	st.Attempts++
	if f.sent {
		st.Retries++
	}
	md, sh := s.dataMode(f)
	d := f.air
	st.AirTime += d
	s.sig = signal{kind: KindData, dst: int32(f.Dst), ac: s.cur, wantAck: s.wantsAck(q, f), retry: f.sent, frame: f, mode: md, shape: sh, nav: s.dataNav(q, f, now)}
	f.sent = true
	m.transmit(s, now, d)
}

func (s *station) rtsMode() (*mode, *shape) {
	if s.phy.protect != nil {
		return s.phy.protect, &s.shapes[shapeProtect]
	}
	return s.phy.control, &s.shapes[shapeControl]
}

// transmit puts s.sig on the air for d.
func (m *Medium) transmit(s *station, now vtime.Time, d vtime.Duration) {
	m.dropReception(s, now)
	sig := &s.sig
	sig.src, sig.start, sig.end = s.id, now, now.Add(d)
	sh := sig.shape
	sig.headerFrom, sig.headerTo, sig.payloadTo = now.Add(sh.headerStart), now.Add(sh.headerEnd), sig.end.Add(-sh.extension)
	s.transmitting, s.txSince = true, now
	s.low, s.least = never, math.MaxInt64
	if m.monitor != nil {
		m.observe(s)
	}
	m.sense(s, now)
	s.eifs = false
	m.spread(sig, now)
	m.setTimer(s, timerTxEnd, sig.end)
}

// txEnd runs at the end of any own transmission: first every receiver, then the
// transmitter itself.
func (m *Medium) txEnd(s *station, now vtime.Time) {
	sig := &s.sig
	m.fade(sig, now)
	if m.recorder != nil {
		m.landed(s, now)
	}
	s.transmitting = false
	s.low, s.least = m.ch.senseAt, 0
	s.txTime += now.Sub(s.txSince)
	switch sig.kind {
	case KindData:
		if sig.dst != Broadcast {
			s.countFate(sig)
		}
		if sig.wantAck {
			s.exch = exchangeWaitAck
			m.setTimer(s, timerAck, now.Add(s.phy.ackTimeout))
			break
		}
		m.finish(s, now, Sent)
	case KindRts:
		s.exch = exchangeWaitCts
		m.setTimer(s, timerCts, now.Add(s.phy.ctsTimeout))
	case KindCtsSelf:
		s.exch, s.cleared = exchangeGap, true
		m.setTimer(s, timerGap, now.Add(s.phy.sifs))
	case KindAck, KindCts:
		s.responding = false
	}
	m.sense(s, now)
}

func (s *station) countFate(sig *signal) {
	switch sig.fate {
	case fateCollision:
		s.stats.AC[sig.ac].Collisions++
	case fateNoise:
		s.stats.AC[sig.ac].NoiseLoss++
	}
}

// timeout is the end of ACKTimeout or CTSTimeout. If a frame has begun to arrive
// (PHY-RXSTART), its end decides (802.11-2012 9.3.2.8): so an ACK that ends on
// this very nanosecond counts, whichever event comes first.
func (m *Medium) timeout(s *station, now vtime.Time) {
	if s.locked() {
		if r := &m.stations[s.from].sig; r.start.Add(s.phy.rxStartDelay(r.mode)) <= now {
			s.late = true
			return
		}
	}
	m.unanswered(s, now)
}

func (s *station) waiting() bool {
	return s.exch == exchangeWaitAck || s.exch == exchangeWaitCts
}

// unanswered ends an exchange whose ACK or CTS did not come; the txop ends with
// it.
func (m *Medium) unanswered(s *station, now vtime.Time) {
	if s.timerFor == timerAck || s.timerFor == timerCts {
		m.clearTimer(s)
	}
	st := &s.stats.AC[s.cur]
	st.Failures++
	if s.exch == exchangeWaitAck && s.sig.fate == fateReceived {
		st.AckLost++
	}
	s.exch, s.late, s.hold = exchangeNone, false, now
	m.failed(s, s.cur, now)
	m.resume(s.receiver, now)
}

// finish ends the exchange of the head frame with success.
func (m *Medium) finish(s *station, now vtime.Time, o Outcome) {
	if s.timerFor == timerAck {
		m.clearTimer(s)
	}
	s.exch, s.late = exchangeDone, false
	s.queues[s.cur].cw = s.queues[s.cur].cfg.CWmin
	m.pop(s, s.cur, now, o)
	m.calls = append(m.calls, call{kind: callProceed, node: s.id})
}

// proceed continues the burst when the next exchange fits into the txop, else
// ends the txop with the post-transmission backoff (802.11-2012 9.19.2.5, reason
// b).
func (m *Medium) proceed(s *station, now vtime.Time) {
	if s.exch != exchangeDone {
		return // the node went down meanwhile
	}
	q := &s.queues[s.cur]
	if at := now.Add(s.phy.sifs); s.fits(q, q.head, at) {
		s.exch, s.cleared, s.firstOfTxop = exchangeGap, false, false
		m.setTimer(s, timerGap, at)
		return
	}
	s.exch = exchangeNone
	m.draw(s, s.cur)
	m.resume(s.receiver, now)
}

// respond sends the ACK or CTS that is due SIFS after the frame it answers,
// whatever carrier sense says (802.11-2012 9.3.2.8).
func (m *Medium) respond(s *station, now vtime.Time) {
	s.sig = signal{kind: s.respKind, dst: s.respTo, mode: s.phy.control, shape: &s.shapes[shapeControl], nav: s.respNav}
	d := s.phy.ack
	if s.respKind == KindCts {
		d = s.phy.cts
		s.sig.mode, s.sig.shape = s.rtsMode()
	}
	m.transmit(s, now, d)
}

// scheduleResponse arranges for an ACK or CTS after SIFS.
func (m *Medium) scheduleResponse(s *station, now vtime.Time, kind FrameKind, to int32, nav vtime.Duration) {
	s.responding, s.respKind, s.respTo, s.respNav = true, kind, to, max(nav, 0)
	m.setTimer(s, timerRespond, now.Add(s.phy.sifs))
}
