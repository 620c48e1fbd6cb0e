package tcp

import (
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The send buffer and its automatic tuning (tcp_sndbuf_expand).

// queued is the memory that the unacknowledged and unsent bytes take: half as
// much again for the buffers' heads, two segments a buffer.
func (c *Conn) queued() int64 {
	n := int64(c.snd.written - min(max(c.snd.una, 1), c.snd.written))
	return n + n>>1
}

// Write appends up to n bytes to the send queue and returns how many the send
// buffer took. Bytes may be written before the connection is established.
func (c *Conn) Write(now vtime.Time, n vtime.Bytes) vtime.Bytes {
	c.clock(now)
	if c.snd.fin || n <= 0 {
		return 0
	}
	switch c.state {
	case Listen, SynSent, SynReceived, Established, CloseWait:
	default:
		return 0
	}
	took := min(n, c.Writable())
	if took > 0 {
		if c.state == Established || c.state == CloseWait {
			c.rateCheckAppLimited()
			if !c.snd.pending() {
				c.idleRestart()
			}
		}
		c.snd.written += uint64(took)
		c.snd.wakeAfter = false
	}
	if took < n || c.Writable() == 0 {
		c.snd.wakeAfter = true // the application will wait for space
	}
	if took > 0 {
		c.pushAll()
	}
	return took
}

// Writable returns how many bytes Write would take now. Like a blocking or
// polling application under Linux, it is 0 until a third of the buffer is
// free.
func (c *Conn) Writable() vtime.Bytes {
	q := c.queued()
	free := c.snd.buf - q
	if free <= 0 || c.snd.wakeAfter && free < q>>1 {
		return 0
	}
	room := free - free/3
	if low := int64(c.cfg.NotSentLow); low > 0 {
		wait := c.snd.unsent()
		if c.snd.wakeAfter && 2*wait >= low || wait >= low {
			return 0
		}
		room = min(room, low-wait+gsoMax)
	}
	return vtime.Bytes(room)
}

// expandSendBuffer makes room for two windows.
func (c *Conn) expandSendBuffer() {
	per := max(c.snd.mss, c.cfg.MSS) + 320 + 320 // MAX_TCP_HEADER, skb_shared_info
	per = 1<<bits.Len(uint(per-1)) + 256
	segs := max(10, c.w.Cwnd, c.rec.reordering+1)
	c.snd.buf = max(c.snd.buf, min(int64(2*segs*per), int64(c.cfg.SendBufferMax)))
}

// sendSpace runs after ACKs: a writer that met a full buffer gets a larger
// one while the window is not full.
func (c *Conn) sendSpace() {
	if c.snd.wakeAfter && c.snd.inFlight() < c.w.Cwnd {
		c.expandSendBuffer()
		c.snd.cwndStamp = c.now
	}
}
