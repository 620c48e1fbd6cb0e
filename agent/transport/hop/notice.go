package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Notices (not in the paper). A BSYN that is withheld gets no answer (paper
// §3.4), so that its sender cannot tell withholding from loss: it waits for
// seconds where a frame was lost, or asks often where it should not. With Notice
// the receiver answers such a BSYN by a BACK with the flag wait: the request is
// noted, and the grant will come by itself. What nobody answers at all was lost,
// and is repeated soon.

// maxNotice bounds the wait between two repetitions of a BSYN that nobody
// answered; the noted one is repeated at BSYNCeil, since the grant may be lost.
const maxNotice = 400 * vtime.Millisecond

// noticeCeil is maxNotice, or that of adaptive polling: the answer to a BSYN is
// the same frame, granted or not.
func (n *Node) noticeCeil(b *block) vtime.Duration {
	if n.adapts(b) {
		return n.pollCeil(b)
	}
	return maxNotice
}

// notify answers a BSYN that is withheld.
func (n *Node) notify(b *block) {
	if !n.cfg.Notice || b.viaToken {
		return
	}
	n.reply(controlItem{kind: sendWait, to: b.from, hdr: header{typ: typeBACK, flags: flagWait, ttl: 1,
		key: b.f.key, block: b.id, attempt: b.rxAttempt, count: uint16(b.count), sent: b.sent}})
}

// onNotice takes the word that the block's request waits for its grant.
func (n *Node) onNotice(now vtime.Time, from NodeID, m *message, b *block) {
	if b.tx != txRequest || from != b.next || m.attempt != b.attempt {
		n.stats.Unexpected++
		return
	}
	n.dropControl(b, oweBSYN)
	b.noticed, b.interval = true, n.cfg.BSYNCeil
	n.timers.set(&b.txTimer, now.Add(b.interval))
}

// unanswered is the wait before the next repetition of a BSYN that has not been
// granted.
func (n *Node) unanswered(b *block) vtime.Duration {
	switch {
	case b.noticed:
		b.noticed = false
		return n.firstWait(b)
	case n.cfg.Notice:
		return min(2*b.interval, n.noticeCeil(b))
	}
	d := 2 * b.interval
	if !b.port.wire { // where nobody contends, repeating costs next to nothing
		d = max(d, n.cfg.BSYNFloor)
	}
	return min(d, n.cfg.BSYNCeil)
}
