package proto

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// answering serves the agent's side: it answers every order until its stream ends
// or hold is closed; from then on it reads and says nothing.
func answering(t *testing.T, hold <-chan struct{}, beats chan<- struct{}) (*Client, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	srv := NewServer(theirs, theirs)
	go func() {
		for {
			e, err := srv.Next()
			if err != nil {
				return
			}
			select {
			case <-hold:
				continue
			default:
			}
			if e.Type == TypeClock {
				select {
				case beats <- struct{}{}:
				default:
				}
				_ = srv.Reply(e, Clock{MonotonicNS: 1})
			}
		}
	}()
	c := NewClient(ours)
	go func() {
		for range c.Async() {
		}
	}()
	t.Cleanup(func() { c.Close(); theirs.Close() })
	return c, theirs
}

func TestHeartbeatReportsSilence(t *testing.T) {
	hold, beats := make(chan struct{}), make(chan struct{}, 100)
	c, _ := answering(t, hold, beats)
	const limit = 400 * vtime.Millisecond
	failed := make(chan error, 1)
	go func() { failed <- c.Heartbeat(context.Background(), "n07", limit) }()
	// An order that takes for ever is in nobody's way.
	go func() { _ = c.Stop(context.Background()) }()
	for range 2 * Beats {
		select {
		case <-beats:
		case err := <-failed:
			t.Fatalf("while the agent answers: %v", err)
		case <-time.After(30 * time.Second):
			t.Fatal("no beat")
		}
	}
	begin := time.Now()
	close(hold)
	select {
	case err := <-failed:
		var s *Silent
		if !errors.As(err, &s) || s.Node != "n07" || s.Limit != limit.Std() || begin.Sub(s.Since) > 10*time.Second || !strings.Contains(err.Error(), "n07") {
			t.Errorf("got %v, want the silence of n07", err)
		}
		if d := time.Since(begin); d < limit.Std()/2 {
			t.Errorf("a silence of %v was reported after %v", limit, d)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the silence was not noticed")
	}
}

func TestHeartbeatEnds(t *testing.T) {
	beats := make(chan struct{}, 1)
	c, theirs := answering(t, nil, beats)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() { failed <- c.Heartbeat(ctx, "n01", vtime.Second) }()
	<-beats
	cancel()
	if err := <-failed; err != nil {
		t.Errorf("when its context ended: %v", err)
	}
	go func() { failed <- c.Heartbeat(context.Background(), "n01", vtime.Second) }()
	<-beats
	theirs.Close()
	var gone *Gone
	if err := <-failed; !errors.As(err, &gone) || !errors.Is(err, io.EOF) {
		t.Errorf("when the agent ended: %v, want *Gone", err)
	}
	if err := c.Heartbeat(ctx, "n01", 0); err == nil {
		t.Error("a heartbeat without a watchdog was taken")
	}
}
