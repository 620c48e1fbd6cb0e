package simnet

import (
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The shares of a relay's bound, as the agent's relay divides it: half for its
// own buffer, less a piece that is being written, and an eighth asked for at
// each of its two sockets, which the kernel doubles.
const (
	defaultRelayBuffer = 1 * vtime.MiB
	ringShare          = 2
	socketShare        = 8
)

// relayBound is the most that a relay may hold of a flow.
func relayBound(f *proto.Flow) vtime.Bytes {
	if f.Options.RelayBuffer > 0 {
		return f.Options.RelayBuffer
	}
	return defaultRelayBuffer
}

// connConfigs returns the options of the two ends of one of a flow's
// connections: end to end, or of the first, a middle or the last hop.
func (n *Net) connConfigs(f *proto.Flow, cc string, perHop, first, last bool) (maker, listener tcp.Config, err error) {
	o := f.Options
	c := n.cfg.TCP
	c.CC, c.NoDelay = cc, o.NoDelay
	if o.MSS > 0 {
		c.Truesize += vtime.Bytes(o.MSS - c.MSS) // the overhead is the same for every length
		c.MSS = o.MSS
	}
	c.NotSentLow, c.RecvWindow, c.CwndCap = o.NotSentLow, o.ReceiveWindow, o.CwndCap
	fixBuffer(&c.SendBuffer, &c.SendBufferMax, o.SendBuffer)
	fixBuffer(&c.RecvBuffer, &c.RecvBufferMax, o.ReceiveBuffer)
	maker, listener = c, c
	if perHop {
		socket := relayBound(f) / socketShare
		if !first {
			fixBuffer(&maker.SendBuffer, &maker.SendBufferMax, socket)
		}
		if !last { // the destination is an ordinary receiver
			fixBuffer(&listener.RecvBuffer, &listener.RecvBufferMax, socket)
		}
	}
	if err := maker.Validate(); err != nil {
		return maker, listener, err
	}
	return maker, listener, listener.Validate()
}

// fixBuffer sets a socket buffer as SO_SNDBUF and SO_RCVBUF do: the kernel
// doubles what was asked for and stops tuning it (socket(7)).
func fixBuffer(first, most *vtime.Bytes, asked vtime.Bytes) {
	if asked > 0 {
		*first, *most = 2*asked, 2*asked
	}
}
