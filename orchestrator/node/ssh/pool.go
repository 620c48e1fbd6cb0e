package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// Bounds of what is done at once, and for how long.
const (
	// DefaultParallel is how many nodes are connected to at the same time.
	DefaultParallel = 50
	// DefaultPatience is the time for a connection and the agent's upload through a slow link.
	DefaultPatience = 3 * time.Minute
)

// PoolOptions configure a Pool.
type PoolOptions struct {
	Dialer sshclient.Dialer
	Agents agents.Source
	// Parallel bounds the nodes that are connected to, and get their agent, at the
	// same time; 0 = DefaultParallel.
	Parallel int
	// OneDisk: the nodes share a file system, so that an agent that one of them has
	// need not be looked at on the others.
	OneDisk bool
}

// Pool keeps the connections to nodes over the runs of a campaign; one that broke is
// made again when the node is needed next. Its methods are safe for concurrent use.
type Pool struct {
	opt   PoolOptions
	slots chan struct{}

	mu     sync.Mutex
	links  map[string]*link
	placed map[string]agents.Placed // by processor, where the nodes have one disk
	closed bool
}

// link is the connection to one node. turn holds one token: whoever has it may dial
// and upload.
type link struct {
	turn  chan struct{}
	ready *Ready
}

// Ready is a node with its agent's program in place.
type Ready struct {
	Node   *inventory.Node
	Client sshclient.Client
	Facts  agents.Facts
	Placed agents.Placed
}

// NewPool returns a pool without connections.
func NewPool(o PoolOptions) (*Pool, error) {
	if o.Dialer == nil || o.Agents == nil {
		return nil, errors.New("connections to nodes: no dialer, or no source of agents")
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	return &Pool{opt: o, slots: make(chan struct{}, o.Parallel), links: map[string]*link{}, placed: map[string]agents.Placed{}}, nil
}

// Get returns a node that is connected and has the agent. Errors are those of
// sshclient and agents.
func (p *Pool) Get(ctx context.Context, n *inventory.Node) (*Ready, error) {
	return p.get(ctx, n, false)
}

// Again is Get, with another look at the agent's file: somebody may have removed it.
func (p *Pool) Again(ctx context.Context, n *inventory.Node) (*Ready, error) {
	return p.get(ctx, n, true)
}

func (p *Pool) get(ctx context.Context, n *inventory.Node, again bool) (*Ready, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("connections to nodes: already closed")
	}
	l := p.links[n.Name]
	if l == nil {
		l = &link{turn: make(chan struct{}, 1)}
		p.links[n.Name] = l
	}
	p.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if l.ready != nil && alive(l.ready.Client) && !again {
		return l.ready, nil
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return p.prepare(ctx, n, l, again)
}

func alive(c sshclient.Client) bool {
	select {
	case <-c.Done():
		return false
	default:
		return true
	}
}

// prepare dials where there is no connection and puts the agent in place.
func (p *Pool) prepare(ctx context.Context, n *inventory.Node, l *link, again bool) (*Ready, error) {
	r := &Ready{Node: n}
	if l.ready != nil && alive(l.ready.Client) {
		r.Client, r.Facts = l.ready.Client, l.ready.Facts
	}
	l.ready = nil
	fail := func(err error) (*Ready, error) {
		if r.Client != nil {
			_ = r.Client.Close() // the error that is returned says more
		}
		return nil, err
	}
	var err error
	if r.Client == nil {
		if r.Client, err = p.opt.Dialer.Dial(ctx, n); err != nil {
			return nil, err
		}
		if r.Facts, err = agents.Examine(ctx, r.Client, n); err != nil {
			return fail(err)
		}
	}
	if r.Placed, err = p.place(ctx, r, again); err != nil {
		return fail(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fail(errors.New("connections to nodes: already closed"))
	}
	l.ready = r
	return r, nil
}

// place sees to it that the agent is on the node.
func (p *Pool) place(ctx context.Context, r *Ready, again bool) (agents.Placed, error) {
	if p.opt.OneDisk && !again {
		p.mu.Lock()
		placed, ok := p.placed[r.Facts.Arch]
		p.mu.Unlock()
		if ok {
			placed.Uploaded = false
			return placed, nil
		}
	}
	b, err := p.opt.Agents.Agent(ctx, r.Facts.Arch)
	if err != nil {
		return agents.Placed{}, err
	}
	placed, err := agents.Push(ctx, r.Client, r.Node, r.Facts, b)
	if err == nil {
		p.mu.Lock()
		p.placed[b.Arch] = placed
		p.mu.Unlock()
	}
	return placed, err
}

// Close ends all connections. Agents that run over them end.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for name, l := range p.links {
		select {
		case l.turn <- struct{}{}:
		default: // it is being prepared, and will see that the pool is closed
			continue
		}
		if l.ready != nil && alive(l.ready.Client) {
			if err := l.ready.Client.Close(); err != nil {
				errs = append(errs, fmt.Errorf("node %s: %w", name, err))
			}
		}
		l.ready = nil
		<-l.turn
	}
	return errors.Join(errs...)
}

// lost makes the error of a connection that ended.
func lost(name string, c sshclient.Client, err error) *node.Lost {
	l := &node.Lost{Name: name, Err: err}
	if !alive(c) && c.Err() != nil {
		l.Err = c.Err()
	}
	l.Reason = "the connection is closed"
	if l.Err != nil {
		l.Reason = l.Err.Error()
	}
	return l
}
