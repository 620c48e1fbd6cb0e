package probenode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/broadcast"
	"github.com/hopbed/hopbed/agent/linkprobe"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Node measures over one interface of this host.
type Node struct {
	prober *linkprobe.Prober
	conn   *net.UDPConn
	epoch  int64
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex // of prober
	failed error      // the first failure of a send
}

// Start schedules a node's probes on an interface and begins to listen. The
// errors are *proto.Error: of CodeOrder for what cannot be, of CodeSystem where
// the kernel refuses.
func Start(node int, iface string, o proto.Probe) (*Node, error) {
	p, err := linkprobe.New(node, o)
	if err != nil {
		return nil, err
	}
	// A node that begins late would send its first probes at once, which are then
	// no sample of the time.
	if late := probe.MonotonicNS() - o.EpochNS; late > 0 {
		return nil, &proto.Error{Code: proto.CodeOrder, What: "probe: epoch", Wanted: "a moment to come",
			Got: time.Duration(-late).String(), Detail: "the order came after the measurement's begin", Remedy: "let the measurement begin later"}
	}
	conn, err := broadcast.Listen(iface, linkprobe.Port, o.DSCP)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: fmt.Sprintf("probe: UDP port %d on %s", linkprobe.Port, iface), Detail: err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &Node{prober: p, conn: conn, epoch: o.EpochNS, stop: cancel}
	n.done.Add(2)
	go n.receive()
	go n.send(ctx)
	return n, nil
}

func (n *Node) now() vtime.Time { return vtime.Time(probe.MonotonicNS() - n.epoch) }

func (n *Node) receive() {
	defer n.done.Done()
	buf := make([]byte, linkprobe.MaxSize+1)
	for {
		k, _, err := n.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			n.fail(fmt.Errorf("receiving: %w", err))
			return
		}
		n.mu.Lock()
		n.prober.Receive(n.now(), buf[:k])
		n.mu.Unlock()
	}
}

func (n *Node) send(ctx context.Context) {
	defer n.done.Done()
	for {
		n.mu.Lock()
		next := n.prober.Deadline()
		n.mu.Unlock()
		if next == vtime.Never {
			return
		}
		timer := time.NewTimer(next.Sub(n.now()).Std())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if err := n.flush(); err != nil && ctx.Err() == nil {
			n.fail(err)
			return
		}
	}
}

// flush sends what is due.
func (n *Node) flush() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.prober.Expire(now)
	for {
		b, ok := n.prober.Poll(now)
		if !ok {
			return nil
		}
		if _, err := n.conn.WriteToUDPAddrPort(b, broadcast.To(linkprobe.Port)); err != nil {
			return fmt.Errorf("sending: %w", err)
		}
	}
}

func (n *Node) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil {
		n.failed = err
	}
}

// Heard ends the measurement and returns what was heard until now. The error
// is a *proto.Error of CodeSystem when the node could not send or listen to the
// end: its counts are then no measure of a link.
func (n *Node) Heard() (*proto.Heard, error) {
	n.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "link probes", Detail: n.failed.Error(), Remedy: "look at the node's interface, and measure again"}
	}
	return n.prober.Heard(), nil
}

// Close ends the measurement without a result. It may be called again.
func (n *Node) Close() {
	n.stop()
	_ = n.conn.Close() // nothing is buffered in a UDP socket
	n.done.Wait()
}
