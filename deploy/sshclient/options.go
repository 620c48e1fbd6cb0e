package sshclient

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshconfig"
)

// Options say how nodes are reached. The zero value is ssh without configuration
// files and without anybody to ask.
type Options struct {
	// Config is the ssh_config; nil is none, and ssh's defaults.
	Config *sshconfig.Config
	// Nodes are those of the inventory: a jump host that has the name of one is
	// reached as the inventory says.
	Nodes []inventory.Node
	// DialNet makes the connection to the first host on the way to a node; nil is
	// the system's network. It is how nodes are reached that lie in another
	// network namespace.
	DialNet func(ctx context.Context, n *inventory.Node, network, addr string) (net.Conn, error)
	// Passphrase asks for the passphrase of a key file; nil is nobody to ask. It is
	// called once for a key, however many nodes want it, by one goroutine at a
	// time, and again (at most twice) after a wrong answer. An empty answer leaves
	// the key out. The answer is overwritten after use.
	Passphrase func(ctx context.Context, file string, again bool) ([]byte, error)
	// AcceptNew writes the key of a host that known_hosts does not know into the
	// first of its files and goes on, as StrictHostKeyChecking accept-new of
	// ssh_config does. A key that differs is refused in any case.
	AcceptNew bool
	// Warn is told once about each setting that is not followed; nil tells nobody.
	Warn func(node, what string)

	// Timeout bounds connecting and authenticating at each host; 0 is 15 s, or
	// ssh_config's ConnectTimeout. The time in which somebody is asked for a
	// passphrase does not count.
	Timeout time.Duration
	// KeepAlive is how long a connection may be silent before the server is asked
	// whether it is there; 0 is 2 s. After three times without any answer it is
	// lost, so that a cut network is seen within 8 s. A shorter ServerAliveInterval
	// of ssh_config takes precedence.
	KeepAlive time.Duration
	// MaxSessions bounds the programs that run at once over one connection; 0 is 10,
	// as sshd has it. More wait.
	MaxSessions int
	// MaxOutput bounds each of the two outputs of Run, in bytes; 0 is 8 MiB.
	MaxOutput int
}

const (
	defaultTimeout   = 15 * time.Second
	defaultKeepAlive = 2 * time.Second
	aliveCount       = 3
	defaultSessions  = 10
	defaultOutput    = 8 << 20
)

type dialer struct {
	o     Options
	cfg   *sshconfig.Config
	err   error // of making the configuration: said at each Dial
	keys  keyring
	jumps pool

	mu     sync.Mutex
	warned map[string]bool
	file   sync.Mutex // writes to known_hosts
}

// New returns a Dialer. It may be used from several goroutines.
func New(o Options) Dialer {
	if o.KeepAlive <= 0 {
		o.KeepAlive = defaultKeepAlive
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = defaultSessions
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultOutput
	}
	d := &dialer{o: o, cfg: o.Config, warned: map[string]bool{}}
	d.keys.ask = o.Passphrase
	if d.cfg == nil {
		env, err := sshconfig.OfProcess()
		if err != nil {
			d.err = err
			return d
		}
		d.cfg, d.err = sshconfig.Load(sshconfig.Files{}, env)
	}
	return d
}

func (d *dialer) warn(node, what string) {
	d.mu.Lock()
	told := d.warned[what]
	d.warned[what] = true
	d.mu.Unlock()
	if !told && d.o.Warn != nil {
		d.o.Warn(node, what)
	}
}

// Each calls f for the numbers below n, at most bound at once, and returns what
// they returned. After ctx has ended the rest gets its error without a call. It is
// how 50 nodes are connected to, or asked something.
func Each(ctx context.Context, n, bound int, f func(i int) error) []error {
	errs := make([]error, n)
	slots := make(chan struct{}, max(1, bound))
	var wg sync.WaitGroup
	for i := range n {
		select {
		case <-ctx.Done():
			errs[i] = ctx.Err()
			continue
		case slots <- struct{}{}:
		}
		if errs[i] = ctx.Err(); errs[i] != nil {
			<-slots
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	return errs
}
