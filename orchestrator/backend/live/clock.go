//go:build linux

package live

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// exchange is one question for a node's clock: Sent and Received are this host's
// CLOCK_MONOTONIC around it, Remote the node's own at a moment between them, all
// in nanoseconds; RemoteUnix and Unix are CLOCK_REALTIME at the node, and here
// when the reply came (0 = not known).
type exchange struct {
	Sent, Received, Remote int64
	RemoteUnix, Unix       int64
}

// estimate is what is known of a node's clock at a moment.
type estimate struct {
	// Offset is the node's clock less this host's; the true one is within Bound of
	// it.
	Offset, Bound vtime.Duration
	At            int64          // of this host's clock
	RTT           vtime.Duration // of the exchange that it is from
	// Wall is the node's CLOCK_REALTIME less its CLOCK_MONOTONIC: it changes when
	// somebody sets the time of day, and while the node sleeps. 0 = not known.
	Wall int64
	// WallOffset is the node's CLOCK_REALTIME less this host's, to Bound.
	WallOffset vtime.Duration
}

// nearest estimates an offset from several exchanges by the quickest of them
// (Cristian, Distributed Computing 3, 1989): a reply that took RTT cannot place
// the remote reading more than RTT/2 from the middle, however unequal the two
// ways are. It panics without any.
func nearest(all []exchange) estimate {
	best := all[0]
	for _, x := range all[1:] {
		if x.Received-x.Sent < best.Received-best.Sent {
			best = x
		}
	}
	middle := best.Sent + (best.Received-best.Sent)/2
	e := estimate{
		Offset: vtime.Duration(best.Remote - middle), Bound: vtime.Duration(best.Received-best.Sent+1) / 2,
		At: middle, RTT: vtime.Duration(best.Received - best.Sent),
	}
	if best.RemoteUnix != 0 {
		e.Wall = best.RemoteUnix - best.Remote
		e.WallOffset = vtime.Duration(best.RemoteUnix - (best.Unix - (best.Received - middle)))
	}
	return e
}

// clock is what is known of a node's clock over a run.
type clock struct {
	// Shared: the node reads this very host's clock, and the offset is 0.
	Shared bool
	Before estimate
	After  *estimate // nil: not asked, or it did not answer
}

// epoch is the moment of the node's clock that is epoch of this host's, as known
// before the run.
func (c *clock) epoch(epoch int64) int64 {
	if c.Shared {
		return epoch
	}
	return epoch + int64(c.Before.Offset)
}

// Drift is how fast the node's clock runs against this host's, and the bound of
// the error of that, as ratios; known is false without a second estimate.
func (c *clock) drift() (ratio, bound float64, known bool) {
	switch {
	case c.Shared:
		return 0, 0, true
	case c.After == nil || c.After.At <= c.Before.At:
		return 0, 0, false
	}
	dt := float64(c.After.At - c.Before.At)
	return float64(c.After.Offset-c.Before.Offset) / dt, float64(c.After.Bound+c.Before.Bound) / dt, true
}

// astray is by how much the node's clock is ahead, at a moment of this host's, of
// where the run takes it to be: what it has drifted since the first estimate.
func (c *clock) astray(at int64) vtime.Duration {
	ratio, _, known := c.drift()
	if !known {
		return 0
	}
	return vtime.Duration(ratio * float64(at-c.Before.At))
}

// uncertainty is the bound of the error of a moment that the node reports, after
// astray was taken off: between two moments at which the offset is known within
// its bounds, a clock of steady rate is within the larger.
func (c *clock) uncertainty() vtime.Duration {
	switch {
	case c.Shared:
		return 0
	case c.After == nil:
		return c.Before.Bound
	}
	return max(c.Before.Bound, c.After.Bound)
}

// maxWallJitter is what two readings of the two clocks of a node, one after the
// other, may differ by on a busy host without the time having been set.
const maxWallJitter = 10 * vtime.Millisecond

// step is by how much the node's time of day was set in the course of the run, 0
// for not at all. Slewing (NTP's usual way) moves both of its clocks alike.
func (c *clock) step() vtime.Duration {
	if c.After == nil || c.Before.Wall == 0 || c.After.Wall == 0 {
		return 0
	}
	d := vtime.Duration(c.After.Wall - c.Before.Wall)
	if max(d, -d) <= maxWallJitter {
		return 0
	}
	return d
}

// The exchanges of one look at a clock: enough that one of them meets no queue,
// and short enough that the clocks' drift within them is nothing.
const (
	clockExchanges = 12
	clockPatience  = 3 * time.Second // of all of them
)

// ask looks at a node's clock. One answer is enough; without any the error says
// why.
func ask(ctx context.Context, c *proto.Client) ([]exchange, error) {
	ctx, cancel := within(ctx, clockPatience)
	defer cancel()
	var all []exchange
	for range clockExchanges {
		sent := monotonic()
		r, err := c.Clock(ctx)
		received, unix := monotonic(), time.Now().UnixNano()
		if err != nil {
			if len(all) > 0 && ctx.Err() != nil {
				break // a slow node: what came is enough
			}
			return nil, err
		}
		all = append(all, exchange{Sent: sent, Received: received, Remote: r.MonotonicNS, RemoteUnix: r.UnixNS, Unix: unix})
	}
	return all, nil
}

// bootID identifies this boot of this host's kernel: who has the same one reads
// the same clock.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // then nobody shares it, and every clock is measured
	}
	return strings.TrimSpace(string(b))
})

// readClocks looks at every node's clock before a run. Nodes of this very host
// are known by their boot id; one whose clock disagrees all the same (a time
// namespace) is measured like others.
func (r *session) readClocks(ctx context.Context) error {
	r.clocks = make([]clock, len(r.clients))
	return r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		k := &r.clocks[i]
		if boot := r.hellos[i].BootID; boot != "" && boot == bootID() {
			sent := monotonic()
			reply, err := c.Clock(ctx)
			if err != nil {
				return err
			}
			if k.Shared = reply.MonotonicNS >= sent && reply.MonotonicNS <= monotonic(); k.Shared {
				return nil
			}
		}
		all, err := ask(ctx, c)
		if err == nil {
			k.Before = nearest(all)
		}
		return err
	})
}

// readClocksAgain looks at every node's clock after the flows have ended.
func (r *session) readClocksAgain(ctx context.Context) error {
	return r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		k := &r.clocks[i]
		if k.Shared {
			return nil
		}
		all, err := ask(ctx, c)
		if err == nil {
			e := nearest(all)
			k.After = &e
		}
		return err
	})
}

// epochOf is the moment of agent i's CLOCK_MONOTONIC that is epoch of this host's.
func (r *session) epochOf(i int, epoch int64) int64 { return r.clocks[i].epoch(epoch) }

// lead is the time between the start order and the flows' common start: long
// enough for the slowest node to have the order, with its round trip several times
// over, since the link is shared by all orders.
func (r *session) lead() time.Duration {
	var slowest vtime.Duration
	for i := range r.clocks {
		slowest = max(slowest, r.clocks[i].Before.RTT)
	}
	return startLead + 8*slowest.Std()
}
