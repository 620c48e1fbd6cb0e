package tcp

import (
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The send buffer and its automatic tuning (tcp_sndbuf_expand).

// skbHead is the memory in bytes that the kernel charges for a buffer beside
// its payload: sk_buff and a small head that ends in skb_shared_info. Measured
// by SO_MEMINFO on 6.18 for x86-64 without tunnels and wireless drivers; with
// these it is a little more.
const skbHead = 832

// queued is sk_wmem_queued: the bytes not yet acknowledged and a head for each
// buffer that they lie in. In the retransmission queue a burst is a buffer
// (tso_fragment), so a slow flow with two segments a burst spends 29 % on
// heads and a fast one 1 %. Not counted are the splitting of buffers by SACKs
// and retransmissions and the merging of SACKed ones.
func (c *Conn) queued() int64 {
	n := int64(c.snd.written - min(max(c.snd.una, 1), c.snd.written))
	return n + skbHead*int64(c.snd.buffers+c.waiting())
}

// waiting is the number of buffers that hold unsent data.
func (c *Conn) waiting() int {
	snd := &c.snd
	all := int(snd.unsent())
	if all == 0 {
		return 0
	}
	head := min(max(snd.headLeft, 0), all)
	n, goal := 0, c.bufferGoal()
	if head > 0 {
		n++
	}
	if rest := all - head; rest > 0 {
		n += (rest + snd.stolen + goal - 1) / goal
	}
	return n
}

// tailRoom is how many bytes the last unsent buffer still takes: it is filled
// whatever the limit of the send buffer is (tcp_sendmsg_locked).
func (c *Conn) tailRoom() int64 {
	snd := &c.snd
	all, goal := int(snd.unsent()), c.bufferGoal()
	head := min(max(snd.headLeft, 0), all)
	if rest := all - head; rest > 0 {
		return int64((goal - (rest+snd.stolen)%goal) % goal)
	}
	if head == 0 {
		return 0
	}
	return int64(max(goal-head, 0))
}

// appended lets the head of the unsent buffers grow by its share of n new
// bytes; all bytes written before were unsent bytes, of which there were old.
func (c *Conn) appended(old, n int) {
	snd := &c.snd
	goal := c.bufferGoal()
	if old == 0 {
		snd.headLeft, snd.stolen = min(n, goal), 0
	} else if head := min(max(snd.headLeft, 0), old); head == old && head < goal {
		snd.headLeft = head + min(n, goal-head)
	}
}

// bufferGoal is the payload of a full buffer (tcp_xmit_size_goal): 64 kB, at
// most half the largest window seen, in whole segments.
func (c *Conn) bufferGoal() int {
	mss := c.currentMSS()
	goal := min(gsoMax, int(min(max(c.snd.maxWnd>>1, 536), gsoMax)))
	return max(goal/mss, 1) * mss
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
	before := c.snd.written
	took := min(n, c.Writable())
	if took > 0 {
		if c.state == Established || c.state == CloseWait {
			c.rateCheckAppLimited()
			if !c.snd.pending() {
				c.idleRestart()
			}
		}
		c.take(took)
		c.snd.wakeAfter = false
		if took < n {
			took += c.writeOn(n-took, before)
		}
	}
	if took < n || c.Writable() == 0 {
		c.snd.wakeAfter = true // the application will wait for space
	}
	if took > 0 {
		c.pushAll()
	}
	return took
}

// take appends n bytes.
func (c *Conn) take(n vtime.Bytes) {
	c.appended(int(c.snd.unsent()), int(n))
	c.snd.written += uint64(n)
}

// writeOn continues a write of which the send buffer did not take n bytes and
// that began at byte from; it returns how many more are taken. The kernel looks
// at its limit only for a new buffer. A single full one leaves burst by burst,
// its end is filled up again each time (tcp_push_one in tcp_sendmsg_locked),
// and so one write sends what the congestion window allows, however small the
// send buffer is. Half the largest window in one write is pushed as a whole
// (forced_push); when that leaves nothing unsent, the limit counts again.
func (c *Conn) writeOn(n vtime.Bytes, from uint64) vtime.Bytes {
	if c.state != Established && c.state != CloseWait {
		return 0
	}
	var took vtime.Bytes
	for took < n {
		switch snd := &c.snd; {
		case snd.written > from+snd.maxWnd>>1:
			from = snd.written
			c.push(true)
		case c.waiting() == 1:
			c.writeXmit(true, pushOne)
		}
		m := min(n-took, vtime.Bytes(c.tailRoom()))
		if m <= 0 {
			break
		}
		c.take(m)
		took += m
	}
	return took
}

// Writable returns how many bytes Write would take now: the kernel fills
// whole buffers until the memory in use has reached the limit, so the last
// one may exceed it. After a write that met the limit it is 0 until a third
// of the memory is free (sk_stream_is_writeable), as for a blocking or polling
// application.
func (c *Conn) Writable() vtime.Bytes {
	q := c.queued()
	free := c.snd.buf - q
	if c.snd.wakeAfter && (free <= 0 || free < q>>1) {
		return 0
	}
	low, wait := int64(c.cfg.NotSentLow), c.snd.unsent()
	if low > 0 && c.snd.wakeAfter && 2*wait >= low {
		return 0
	}
	room, goal := c.tailRoom(), int64(c.bufferGoal())
	if free > 0 {
		n := (free + skbHead + goal - 1 - room) / (skbHead + goal)
		if low > 0 {
			n = min(n, max((low-wait-room+goal-1)/goal, 0))
		}
		room += max(n, 0) * goal
	}
	return vtime.Bytes(room)
}

// expandSendBuffer makes room for two windows.
func (c *Conn) expandSendBuffer() {
	per := max(c.snd.mss, c.cfg.MSS) + 192 + 320 // MAX_TCP_HEADER, skb_shared_info
	per = 1<<bits.Len(uint(per-1)) + 256
	segs := max(10, c.w.Cwnd, c.rec.reordering+1)
	c.snd.buf = max(c.snd.buf, min(int64(2*segs*per), int64(c.cfg.SendBufferMax)))
}

// sendSpace runs after an ACK and what it let out (tcp_check_space): a writer
// that met a full buffer gets a larger one if the window could not be filled.
func (c *Conn) sendSpace() {
	if c.snd.wakeAfter && c.snd.inFlight() < c.w.Cwnd {
		c.expandSendBuffer()
		c.snd.cwndStamp = c.now
	}
}
