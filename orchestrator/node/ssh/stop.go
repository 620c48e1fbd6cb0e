package ssh

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// Bounds of an end that is not polite.
const (
	killWithin = 10 * time.Second // signals, and the wait for their effect
	// hurried is in place of it when the user does not want to wait: an agent that
	// got the signal ends without us.
	hurried = 3 * time.Second
	// againWithin bounds another connection to a node that was lost.
	againWithin = 5 * time.Second
)

// end ends a process with the mark $2 whose number is $1, by SIGTERM at first, and
// after $3 seconds all that have the mark by SIGKILL. It says what is left.
const end = `LC_ALL=C
say() { printf 'hopbed:%s %s\n' "$1" "$2"; }
ours() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | grep -qx "HOPBED_START=$2" 2>/dev/null; }
if ours "$1" "$2"; then
  say found "$1"
  kill -TERM "$1"
  sleep 0.1 2>/dev/null || sleep 1
fi
i=0
while [ $i -lt "$3" ] && ours "$1" "$2"; do sleep 1; i=$((i+1)); done
for d in /proc/[0-9]*; do
  q=${d#/proc/}
  if ours "$q" "$2"; then say killed "$q"; kill -KILL "$q"; fi
done
i=0
while [ $i -lt 2 ] && ours "$1" "$2"; do sleep 1; i=$((i+1)); done
if ours "$1" "$2"; then say left "$1"; fi
say end ok
`

func (h *handle) stop(ctx context.Context, grace time.Duration) error {
	defer func() { _ = h.proc.Close() }() // nothing more will come
	select {
	case <-h.done: // it ended before this: Err says how, Stop has nothing to do
		_ = h.conn.Close()
		return nil
	default:
	}
	_ = h.conn.Close() // fails only when it was closed before, or the connection is lost
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-h.done:
		return h.err
	case <-timer.C:
	case <-ctx.Done():
	}
	limit := killWithin
	if ctx.Err() != nil {
		limit = hurried
	}
	kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	h.killed.Store(true)
	killErr := h.kill(kctx, h.ready)
	select {
	case <-h.done:
		return h.err
	case <-kctx.Done():
	}
	// Closing the channel is what is left to do here.
	_ = h.proc.Close()
	select {
	case <-h.done:
	case <-time.After(time.Second):
		return fmt.Errorf("node %s: the agent (pid %d there) does not end: %w", h.Name(), h.pid, errors.Join(killErr, kctx.Err()))
	}
	return h.err
}

// kill runs the script that ends the agent over a connection.
func (h *handle) kill(ctx context.Context, r *Ready) error {
	wait := 3
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 5*time.Second {
		wait = 1
	}
	answers, err := agents.ScriptAs(ctx, r.Client, h.Name(), r.Facts.Privileged(), end, strconv.Itoa(h.pid), h.mark, strconv.Itoa(wait))
	if err != nil {
		return err
	}
	if answers["left"] != "" {
		return fmt.Errorf("node %s: process %s does not end by SIGKILL: it waits for a device", h.Name(), answers["left"])
	}
	return nil
}

// remains says in a line what may be left on the node; "" when the agent was seen to
// end.
func (h *handle) remains(ctx context.Context) string {
	var l *node.Lost
	select {
	case <-h.done:
		if !errors.As(h.err, &l) {
			return ""
		}
	default:
		return fmt.Sprintf("the agent of node %s (pid %d there) does not end", h.Name(), h.pid)
	}
	what := fmt.Sprintf("the agent of node %s (pid %d there) may still run: %s", h.Name(), h.pid, l.Reason)
	if ctx.Err() != nil {
		return what
	}
	kctx, cancel := context.WithTimeout(ctx, againWithin+killWithin)
	defer cancel()
	for {
		r, err := h.again(kctx)
		if err != nil {
			return what
		}
		if err = h.kill(kctx, r); err == nil {
			return ""
		}
		// The end of a session may be known before that of its connection.
		select {
		case <-r.Client.Done():
			if kctx.Err() == nil {
				continue
			}
		case <-time.After(time.Second):
		}
		return fmt.Sprintf("%s; connected again: %v", what, err)
	}
}

// again is the node's connection, made anew if need be.
func (h *handle) again(ctx context.Context) (*Ready, error) {
	ctx, cancel := context.WithTimeout(ctx, againWithin)
	defer cancel()
	return h.d.opt.Pool.Get(ctx, h.ready.Node)
}
