package proto

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// DefaultWatchdog is the longest silence that agents of real nodes should be told
// (Hello.Watchdog): with what stopping and reverting take, a node is as it was
// within 10 s after the network was cut.
const DefaultWatchdog = 6 * vtime.Second

// Silent says that an agent did not answer in time, though nothing says that it
// ended: the network was cut, the node was rebooted or stands still. The agent's
// watchdog has it put back what it changed.
type Silent struct {
	Node  string    // name of the node
	Since time.Time // when the last of its messages came
	Limit time.Duration
}

// Error names the node, the moment and what to do.
func (s *Silent) Error() string {
	return fmt.Sprintf("node %s: nothing came since %s (%v and more): the network was cut, or the node stands still or was rebooted; it puts its settings back by itself",
		s.Node, s.Since.Format("15:04:05.0"), s.Limit)
}

// Beats is how many clock orders Heartbeat gives in the time of a watchdog.
const Beats = 4

// Heartbeat keeps an agent that was told of a watchdog from ending, by asking for
// its clock, and looks after the agent itself: it blocks until ctx ends (then it
// returns nil), the conversation is over (*Gone), or nothing at all has come from
// the agent for as long as the watchdog (*Silent). An order is a line of 40 bytes
// each way every quarter of the watchdog. Other orders do not disturb it, however
// long they take. node names the node in errors.
func (c *Client) Heartbeat(ctx context.Context, node string, watchdog vtime.Duration) error {
	if watchdog <= 0 {
		return &Error{Code: CodeInternal, Node: node, What: "heartbeat", Got: watchdog.String(), Detail: "want the watchdog of the hello"}
	}
	limit := watchdog.Std()
	c.heard.Store(time.Now().UnixNano())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- c.beat(ctx, limit/Beats) }()
	tick := time.NewTicker(limit / (2 * Beats))
	defer tick.Stop()
	silence, last, heard := time.Duration(0), time.Now(), c.heard.Load()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case now := <-tick.C:
			passed := now.Sub(last)
			last = now
			if h := c.heard.Load(); h != heard {
				heard, silence = h, 0
				continue
			}
			// Where we stood still ourselves, the agent may have spoken: what it said
			// has not been read.
			silence += min(passed, limit/Beats)
			if silence >= limit {
				return &Silent{Node: node, Since: time.Unix(0, heard), Limit: limit}
			}
		}
	}
}

// beat asks for the clock until an order fails. It does not wait for the answers,
// which may stand behind a backlog of samples.
func (c *Client) beat(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	waiting := make(chan struct{}, 2*Beats)
	failed := make(chan error, cap(waiting))
	for {
		select {
		case waiting <- struct{}{}:
			go func() {
				if _, err := c.Clock(ctx); err != nil {
					failed <- err
				}
				<-waiting
			}()
		default: // nothing of all that was answered: the silence is what counts
		}
		select {
		case <-tick.C:
		case err := <-failed:
			var gone *Gone
			if errors.As(err, &gone) {
				return err
			}
			return fmt.Errorf("heartbeat: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
