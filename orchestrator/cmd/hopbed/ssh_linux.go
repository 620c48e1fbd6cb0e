package main

import (
	"context"
	"errors"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/ssh"
)

// awayPatience is the time for a node that was lost in the run before: the campaign
// must not wait for one that stays away.
const awayPatience = 8 * time.Second

// openSSH makes the back end of real nodes. Nothing is reached before its
// Preflight.
func openSSH(_ context.Context, o *opening) (backend.Backend, error) {
	pool, err := ssh.NewPool(ssh.PoolOptions{Dialer: o.lab.Dialer, Agents: o.lab.Agents})
	if err != nil {
		return nil, err
	}
	tag := journal.NewTag()
	var b *live.Backend
	b = live.New(live.Options{
		Name: site.Name, Controller: version(), Tag: tag, Watchdog: proto.DefaultWatchdog, Close: pool.Close,
		Lab: &live.Lab{
			Inventory: o.lab.Inventory, StopOnLoss: o.stopOnLoss,
			NewDriver: func(of func(node.Spec) (*inventory.Node, error)) (node.Driver, error) {
				return ssh.New(ssh.Options{Pool: pool, Nodes: of, Tag: tag, Patience: func(name string) time.Duration {
					if b.Away(name) {
						return awayPatience
					}
					return 0
				}})
			},
			Reached: func(h node.Handle) live.Reached {
				f, _ := ssh.FactsOf(h)
				return live.Reached{Controller: f.Controller, Address: f.Address}
			},
			Ready: func(ctx context.Context, nodes []*inventory.Node) error {
				return errors.Join(sshclient.Each(ctx, len(nodes), ssh.DefaultParallel, func(i int) error {
					ctx, cancel := context.WithTimeout(ctx, ssh.DefaultPatience)
					defer cancel()
					if _, err := pool.Get(ctx, nodes[i]); err != nil {
						return &ssh.NotStarted{Name: nodes[i].Name, Err: err}
					}
					return nil
				})...)
			},
		},
	})
	return b, nil
}
