package pipe

import "github.com/hopbed/hopbed/netem/vtime"

// The two ends of a pipe.
const (
	sender = iota
	receiver
)

// SetSender tells that the node that sends into the pipe is switched off, or on
// again. Off, what waits for the link is lost, and so is what is sent
// nevertheless; what has left the queue arrives.
func (p *Pipe) SetSender(on bool) { p.setEnd(sender, on) }

// SetReceiver tells that the node that the pipe leads to is switched off, or on
// again. Off, the link is down, as a schedule may have it: it keeps its queue. What
// arrives meanwhile is lost.
func (p *Pipe) SetReceiver(on bool) { p.setEnd(receiver, on) }

func (p *Pipe) setEnd(end int, on bool) {
	if p.off[end] == !on {
		return
	}
	now := p.eng.Now()
	p.pause(now)
	p.off[end] = !on
	if p.off[sender] {
		p.empty(now)
	}
	p.serve(now)
}

// empty drops what waits for the link.
func (p *Pipe) empty(now vtime.Time) {
	p.server.serving, p.server.left, p.server.remaining = false, 0, 0
	p.account(now)
	for p.queue.n > 0 {
		k := p.queue.pop()
		p.queueBytes -= k.Len
		if p.left != nil {
			p.left.Left(now, k)
		}
		p.drop(now, k, NodeOff)
	}
}
