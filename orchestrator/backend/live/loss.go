//go:build linux

package live

import (
	"context"
	"errors"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// beat keeps an agent that was told of a watchdog from ending, and fails the run
// when nothing comes from it any more.
func (r *session) beat(ctx context.Context, i int) {
	err := r.clients[i].Heartbeat(ctx, r.handles[i].Name(), r.b.opt.Watchdog)
	var gone *proto.Gone
	if err == nil || errors.As(err, &gone) {
		return // watch says how it ended
	}
	r.gather.fail(err)
}

// lostNodes are the names of the nodes of which an error says that they are lost.
// An error that has only one name has one.
func lostNodes(err error) []string {
	var names []string
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) {
		case *node.Lost:
			names = append(names, e.Name)
			return
		case *node.Exited:
			names = append(names, e.Name)
			return
		case *proto.Silent:
			names = append(names, e.Node)
			return
		case interface{ NodeName() string }: // it could not be started
			names = append(names, e.NodeName())
			return
		}
		switch u := err.(type) {
		case interface{ Unwrap() []error }:
			for _, x := range u.Unwrap() {
				walk(x)
			}
		case interface{ Unwrap() error }:
			walk(u.Unwrap())
		}
	}
	walk(err)
	return names
}

// account decides what a run's error means for other attempts and other runs of a
// lab: nodes that were lost are tried again as often as limits say; one that stays
// away makes what follows fail at once, each run with the reason; and where the
// user wants it the campaign ends.
func (b *Backend) account(err error) error {
	if b.opt.Lab == nil {
		return err
	}
	names := lostNodes(err)
	b.mu.Lock()
	again := false
	for _, n := range names {
		again = again || b.away[n]
	}
	b.away = map[string]bool{}
	for _, n := range names {
		b.away[n] = true
	}
	b.mu.Unlock()
	switch {
	case len(names) == 0:
		return err
	case b.opt.Lab.StopOnLoss:
		return &backend.Fatal{Err: err}
	case again:
		return &backend.Permanent{Err: err}
	}
	return err
}

// Away tells that a node was lost in the run before and has not been seen since:
// a driver gives it less time.
func (b *Backend) Away(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.away[name]
}
