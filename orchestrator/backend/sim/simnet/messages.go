package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// ends are the applications at the two ends of a flow, and what joins them to those
// of the other flow of an exchange.
type ends struct {
	net   *Net
	order *proto.Flow
	app   *workload.Source
	// receipts is the destination's account; nil: the data are no messages.
	receipts *workload.Receipts
	to       supplier
	peer     *ends // of the other flow of an exchange

	event des.EventID
	at    vtime.Time // when event fires; vtime.Never: none
}

// supplier is a flow whose source may have something to send again.
type supplier interface {
	// supply sends what is ready, if the flow runs; it calls wait when there is
	// nothing more.
	supply(now vtime.Time)
}

// newEnds makes the applications of a flow.
func (n *Net) newEnds(f *proto.Flow, to supplier) (*ends, error) {
	stop := n.stopOf(f)
	app, err := workload.NewSource(f.Workload, f.Start, stop)
	if err != nil {
		return nil, err
	}
	e := &ends{net: n, order: f, app: app, to: to, at: vtime.Never}
	if f.Workload.HasMessages() {
		if e.receipts, err = workload.NewReceipts(f.Workload, f.Start, stop); err != nil {
			return nil, err
		}
		n.talks = append(n.talks, e)
	}
	return e, nil
}

// pair joins the two flows of each exchange.
func (n *Net) pair() error {
	byID := map[int]*ends{}
	for _, e := range n.talks {
		byID[e.order.ID] = e
	}
	for _, e := range n.talks {
		if e.order.Workload.Kind != workload.Web {
			continue
		}
		if e.order.Peer == nil {
			return fmt.Errorf("flow %d (%s): it is one half of an exchange, and the other is not named", e.order.ID, e.order.Transport)
		}
		p := byID[*e.order.Peer]
		if p == nil || p.order.Peer == nil || *p.order.Peer != e.order.ID || p.order.Src != e.order.Dst || p.order.Dst != e.order.Src || p.order.Workload.Role == e.order.Workload.Role {
			return fmt.Errorf("flow %d (%s): flow %d is not the other half of its exchange", e.order.ID, e.order.Transport, *e.order.Peer)
		}
		e.peer = p
	}
	return nil
}

// wait plans the moment at which the source has something to send again; the
// transport has taken all that was ready.
func (e *ends) wait(now vtime.Time) {
	if e.receipts != nil {
		e.wake(vtime.Max(e.app.Next(now), now))
	}
}

// wake plans to supply the transport at a moment.
func (e *ends) wake(at vtime.Time) {
	if at == e.at {
		return
	}
	e.rest()
	if at < e.net.stopOf(e.order) {
		e.at = at
		e.event = e.net.eng.Schedule(at, e, uint64(e.order.ID))
	}
}

// finished reports whether the flow is over, since the source has sent everything
// and the workload has an end of its own.
func (e *ends) finished() bool { return e.app.Finished() && e.order.Workload.Ends() }

// rest takes a planned moment back.
func (e *ends) rest() {
	if e.at != vtime.Never {
		e.net.eng.Cancel(e.event)
		e.event, e.at = 0, vtime.Never
	}
}

// Fire implements des.Handler: more is ready.
func (e *ends) Fire(now vtime.Time, _ uint64) {
	e.event, e.at = 0, vtime.Never
	e.to.supply(now)
}

// received tells that the destination has got more of the flow, as its receipts
// know: the source of the other half of an exchange may have to answer. It does so
// in this instant, when what is under way here is done: the kernel has acknowledged
// before an application answers, and Hop may not be called back.
func (e *ends) received(now vtime.Time) {
	p := e.peer
	if p == nil {
		return
	}
	p.app.Heard(now, e.receipts.Prefix())
	if p.app.Ready(now) > 0 {
		p.wake(now)
	} else {
		p.wait(now)
	}
}

// Messages reports what became of messages since the last call. At the end of the
// run, after Account, it reports the rest: those that were ready and not delivered.
func (n *Net) Messages(to func(node int, m *proto.Message)) {
	m := &n.message
	for _, e := range n.talks {
		m.Flow = e.order.ID
		for m.Receipt = range e.receipts.Take() {
			to(e.order.Dst, m)
		}
		if e.peer != nil && e.order.Workload.Role == workload.Requests {
			m.Flow = e.peer.order.ID // the client tells of the pages that it got
			for m.Receipt = range e.app.Receipts() {
				to(e.order.Src, m)
			}
		}
	}
}

// closeMessages ends the accounts of messages at the end of the run.
func (n *Net) closeMessages() {
	for _, e := range n.talks {
		e.rest()
		e.receipts.Close(n.stopOf(e.order))
		e.app.Close(n.stopOf(e.order))
	}
}
