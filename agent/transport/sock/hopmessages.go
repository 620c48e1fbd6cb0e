//go:build linux

package sock

import (
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// settle ends the flow's account of messages when the loop has ended at halted.
func (f *hopFlow) settle(halted vtime.Time) {
	if f.account == nil {
		return // the run did not begin
	}
	end := vtime.Min(f.stop, halted)
	f.account.Close(end)
	if f.app != nil {
		f.app.Close(end)
	}
}

// messages appends what became of the flow's messages, until to has the length
// most.
func (f *hopFlow) messages(to []proto.Message, most int) []proto.Message {
	switch {
	case f.account == nil:
	case f.side == proto.Destination:
		to = report(to, most, f.Flow.ID, f.account.Take())
	case f.app != nil && f.Flow.Peer != nil:
		to = report(to, most, *f.Flow.Peer, f.app.Receipts())
	}
	return to
}
