package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// timerKind is what the retransmission timer is used for; Linux has one timer
// for all of them (icsk_pending), and so a shorter one replaces a longer one.
type timerKind uint8

const (
	timerNone  timerKind = iota
	timerRTO             // RFC 6298
	timerTLP             // RFC 8985 §7
	timerReo             // RFC 8985 §6.3: the reordering window runs out
	timerProbe           // zero window (RFC 9293 §3.8.6.1)
)

type timers struct {
	kind   timerKind
	xmit   vtime.Time // deadline of kind
	delack vtime.Time // delayed ACK
	comp   vtime.Time // compressed ACKs (a high-resolution timer)
	pace   vtime.Time // BBR's pacing (a high-resolution timer)
	wait   vtime.Time // TIME-WAIT, FIN-WAIT-2
}

func (t *timers) init() { t.stopAll() }

func (t *timers) stopAll() {
	*t = timers{xmit: vtime.Never, delack: vtime.Never, comp: vtime.Never, pace: vtime.Never, wait: vtime.Never}
}

// Deadline returns when Expire is next needed; vtime.Never if no timer runs.
func (c *Conn) Deadline() vtime.Time {
	t := &c.tmr
	return min(t.xmit, t.delack, t.comp, t.pace, t.wait)
}

// Expire lets the timers run whose time has come (≤ now).
func (c *Conn) Expire(now vtime.Time) {
	c.clock(now)
	t := &c.tmr
	if t.pace <= now {
		t.pace = vtime.Never
		if c.snd.lost > c.snd.retrans && c.w.Cwnd > c.snd.inFlight() {
			c.retransmitQueue()
		}
		c.pushAll()
	}
	if t.comp <= now {
		c.compressExpired()
	}
	if t.delack <= now {
		c.delackExpired()
	}
	if t.xmit <= now {
		c.xmitExpired()
	}
	if t.wait <= now {
		t.wait = vtime.Never
		c.setState(Closed)
	}
}

func (c *Conn) xmitExpired() {
	kind := c.tmr.kind
	switch kind {
	case timerReo:
		c.tmr.xmit = vtime.Never
		c.rackTimeout()
	case timerTLP:
		c.tmr.xmit = vtime.Never
		c.sendProbe()
	case timerRTO:
		c.stopXmit()
		c.retransmitTimeout()
	case timerProbe:
		c.stopXmit()
		c.windowProbe()
	}
}

func (c *Conn) stopXmit() { c.tmr.kind, c.tmr.xmit = timerNone, vtime.Never }

// setXmit starts the timer for kind, us microseconds from now, at most the
// largest RTO.
func (c *Conn) setXmit(kind timerKind, us int64) {
	us = min(us, int64(c.cfg.RTOMax)/1000)
	c.tmr.kind = kind
	c.tmr.xmit = c.after(us)
}

// after returns when a timer of us microseconds fires. With a tick it is the
// tick at which Linux's timer wheel runs it: a duration is rounded up to
// ticks, one tick is added because the current one has begun, and from 63
// ticks on the wheel's levels have 8, 64, … ticks of granularity and round up
// too (kernel/time/timer.c). An RTO of 260 ms at HZ=250 thus fires after 264
// to 296 ms.
func (c *Conn) after(us int64) vtime.Time {
	if c.cfg.Tick == 0 {
		return c.now.Add(vtime.Duration(us) * vtime.Microsecond)
	}
	return c.wheel(c.jiffies(), c.ticks(us))
}

// microsUp is a duration in microseconds, rounded up: a timer must not fire
// before its time.
func microsUp(d vtime.Duration) int64 { return (int64(d) + 999) / 1000 }

// ticks converts microseconds to ticks, rounded up.
func (c *Conn) ticks(us int64) int64 {
	j := int64(c.jiffy) / 1000
	return (us + j - 1) / j
}

func (c *Conn) wheel(now, delta int64) vtime.Time {
	level := 0
	for level < 8 && delta >= 63<<(3*level) {
		level++
	}
	at := ((now+delta)>>(3*level) + 1) << (3 * level)
	return vtime.Time(at * int64(c.jiffy))
}

// rtoDelta returns how far in the future the RTO of the head of the queue
// lies, in µs; negative if it has passed.
func (c *Conn) rtoDelta() int64 {
	return c.snd.at(c.snd.head).at + c.est.rto - c.us
}

// rearmRTO restarts the timer after progress (RFC 6298 §5.3). After a TLP or
// reordering timer the time already waited is taken off (RFC 8985 §8).
func (c *Conn) rearmRTO() {
	if c.snd.packets == 0 {
		c.stopXmit()
		return
	}
	rto := c.est.rto
	if c.tmr.kind == timerReo || c.tmr.kind == timerTLP {
		rto = max(c.rtoDelta(), 1)
	}
	c.setXmit(timerRTO, rto)
}

// setXmitTimer starts a probe timer if one is allowed, else the RTO.
func (c *Conn) setXmitTimer() {
	if !c.scheduleProbe(true) {
		c.rearmRTO()
	}
}
