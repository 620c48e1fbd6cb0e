package sshclient

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hopbed/hopbed/deploy/inventory"
)

// Dial implements Dialer.
func (d *dialer) Dial(ctx context.Context, n *inventory.Node) (Client, error) {
	hops, err := d.route(n)
	if err != nil {
		return nil, err
	}
	via, release, err := d.front(ctx, hops[:len(hops)-1])
	if err != nil {
		return nil, err
	}
	target := hops[len(hops)-1]
	l, err := d.connect(ctx, target, via)
	if err != nil {
		release()
		return nil, err
	}
	c := &client{link: l, hop: target, o: &d.o, slots: make(chan struct{}, d.o.MaxSessions)}
	go func() {
		<-l.done
		release()
	}()
	return c, nil
}

// pool holds the connections to jump hosts, which all nodes behind one share: 50
// logins at once would be more than an sshd takes.
type pool struct {
	mu      sync.Mutex
	entries map[string]*shared
}

// shared is a connection to a jump host, or the attempt to make one.
type shared struct {
	turn  chan struct{} // who connects; guards the link
	link  *link
	users int    // guarded by pool.mu, like what follows
	tries int    // that have ended
	err   *Error // of the last one
}

// front connects to the jump hosts of a way, the last of which is returned; nil
// when there are none. release must be called once.
func (d *dialer) front(ctx context.Context, hops []*hop) (via *link, release func(), err error) {
	if len(hops) == 0 {
		return nil, func() {}, nil
	}
	last := hops[len(hops)-1]
	key := fmt.Sprintf("%q %q %v %q", last.before, last, last.conf.Identities, last.conf.UserKnown)
	if d.o.DialNet != nil {
		key += " " + last.node.Name // each node may lie in a network of its own
	}
	p := &d.jumps
	p.mu.Lock()
	if p.entries == nil {
		p.entries = map[string]*shared{}
	}
	s := p.entries[key]
	if s == nil {
		s = &shared{turn: make(chan struct{}, 1)}
		p.entries[key] = s
	}
	s.users++
	tries := s.tries
	p.mu.Unlock()
	var once sync.Once
	release = func() {
		once.Do(func() { p.leave(key, s) })
	}
	if err := take(ctx, s.turn); err != nil {
		release()
		return nil, nil, last.fail(why(err), "while another node connected to it", "", err)
	}
	defer func() { <-s.turn }()
	if s.link != nil && s.link.error() == nil {
		return s.link, release, nil
	}
	if e := p.failed(s, tries); e != nil {
		// An attempt that others made meanwhile is theirs too: 50 nodes behind a
		// host that is down need not try it one after the other.
		mine := *e
		mine.Node = last.node.Name
		release()
		return nil, nil, &mine
	}
	further, freeFurther, err := d.front(ctx, hops[:len(hops)-1])
	if err != nil {
		release()
		return nil, nil, err
	}
	l, err := d.connect(ctx, last, further)
	p.ended(ctx, s, err)
	if err != nil {
		freeFurther()
		release()
		return nil, nil, err
	}
	// A connection that was lost has closed what lay behind it.
	s.link = l
	go func() {
		<-l.done
		freeFurther()
	}()
	return l, release, nil
}

// ended notes an attempt; one that its caller gave up says nothing to others.
func (p *pool) ended(ctx context.Context, s *shared, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.err = nil
	if err != nil && ctx.Err() == nil {
		errors.As(err, &s.err)
	}
	s.tries++
}

func (p *pool) failed(s *shared, tries int) *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.tries == tries {
		return nil
	}
	return s.err
}

// leave ends a jump host's connection with its last user.
func (p *pool) leave(key string, s *shared) {
	p.mu.Lock()
	s.users--
	last := s.users == 0
	if last && p.entries[key] == s {
		delete(p.entries, key)
	}
	p.mu.Unlock()
	if last && s.link != nil {
		s.link.close()
	}
}
