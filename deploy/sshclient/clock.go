package sshclient

import (
	"context"
	"sync"
	"time"
)

// clock bounds an attempt in time, without the time in which somebody is asked.
type clock struct {
	ctx    context.Context
	cancel context.CancelFunc
	total  time.Duration

	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration
	since  time.Time
	paused int
}

func newClock(ctx context.Context, total time.Duration) *clock {
	c := &clock{total: total, left: total, since: time.Now()}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.timer = time.AfterFunc(total, c.cancel)
	return c
}

// pause stops the clock until what it returns is called.
func (c *clock) pause() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.paused == 0 {
			c.since = time.Now()
			c.timer.Reset(max(c.left, time.Millisecond))
		}
	}
}

func (c *clock) stop() {
	c.timer.Stop()
	c.cancel()
}
