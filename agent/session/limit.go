//go:build linux

package session

import (
	"sync"
	"time"
)

// The stages of an agent's end, each with the longest time that it may take: a
// transport that does not stop must not keep the settings from being put back,
// and last words must not keep the agent.
const (
	stopping  = iota + 1 // the flows; it takes a second
	reverting            // a tool of a driver takes seconds, one that hangs is given up after 10
	leaving
)

var stageWithin = [...]time.Duration{stopping: 3 * time.Second, reverting: time.Minute, leaving: 2 * time.Second}

// limit gives up when a stage takes too long.
type limit struct {
	giveUp func(stage string)

	mu    sync.Mutex
	stage int
	timer *time.Timer
}

// enter begins a stage; stages that have passed do not come back.
func (l *limit) enter(stage int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.giveUp == nil || stage <= l.stage {
		return
	}
	l.stage = stage
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(stageWithin[stage], func() {
		l.giveUp([...]string{stopping: "stopping the flows", reverting: "putting the settings back", leaving: "the last words"}[stage] + " took longer than " + stageWithin[stage].String())
	})
}

// end stops it.
func (l *limit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.giveUp = nil
}
