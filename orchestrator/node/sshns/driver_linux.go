package sshns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshd"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
	"github.com/hopbed/hopbed/orchestrator/node/ssh"
)

// Options configure a Driver.
type Options struct {
	// Dir is a private folder that exists (mode 0700): keys, the servers'
	// configuration, and the agent, which thus is uploaded once for all drivers that
	// share the folder. The caller removes it after Close.
	Dir string
	// Agents has the agent's program.
	Agents agents.Source
	// Args are the agent's; nil = guarded, with its record in Dir.
	Args []string
	// Env is added to the environment of every agent.
	Env []string
	// Tag is the ownership tag, unique to the campaign; servers and agents have it in
	// their environment.
	Tag string
	// Journal, if set, is called as netns.Options has it, for the servers.
	Journal func(kind, id string) error
	// Grace is the time for an agent's polite end; 0 = that of node/ssh.
	Grace time.Duration
	// Parallel bounds the nodes that are connected to at once; 0 = that of node/ssh.
	Parallel int
}

// Driver is a node.Driver. Its methods are safe for concurrent use.
type Driver struct {
	opt Options

	mu     sync.Mutex
	groups []*group
	closed bool
}

var _ node.Driver = (*Driver)(nil)

// Available says whether this process can start servers in namespaces; otherwise a
// *tap.Unavailable says why not.
func Available() error {
	const what = "namespaces that are reached over SSH"
	if os.Geteuid() != 0 || netns.Rootless() {
		return &tap.Unavailable{What: what, Because: "an SSH server lets root in only where it was started by the host's root", Do: "run as root, or without `--via ssh`"}
	}
	if err := sshd.Available(); err != nil {
		var u *sshd.Unavailable
		if errors.As(err, &u) {
			return &tap.Unavailable{What: what, Because: u.Because, Do: u.Do, Err: err}
		}
		return err
	}
	return nil
}

// New returns a driver. Nothing is created before Start.
func New(o Options) (*Driver, error) {
	switch {
	case !filepath.IsAbs(o.Dir):
		return nil, fmt.Errorf("driver of namespaces over SSH: its folder %q is not absolute", o.Dir)
	case o.Agents == nil:
		return nil, errors.New("driver of namespaces over SSH: no source of agents")
	case o.Tag == "":
		return nil, errors.New("driver of namespaces over SSH: no ownership tag: what a killed run leaves could not be recognised")
	}
	if err := Available(); err != nil {
		return nil, err
	}
	return &Driver{opt: o}, nil
}

// group is what one Start made.
type group struct {
	servers *netns.Driver
	pool    *ssh.Pool
	agents  *ssh.Driver
	names   map[string]node.Handle // the servers
}

// Start starts a namespace with a server for each spec, and an agent through each.
func (d *Driver) Start(ctx context.Context, specs []node.Spec) ([]node.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("driver of namespaces over SSH: already closed")
	}
	seen := map[string]bool{}
	for _, g := range d.groups {
		for name := range g.names {
			seen[name] = true
		}
	}
	for _, s := range specs {
		if s.Name == "" || seen[s.Name] {
			return nil, fmt.Errorf("driver of namespaces over SSH: node %d: the name %q is empty or taken", s.ID, s.Name)
		}
		seen[s.Name] = true
		if len(s.Files) > 0 {
			return nil, fmt.Errorf("driver of namespaces over SSH: node %s: descriptors cannot be handed over through SSH", s.Name)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	g, handles, err := d.start(ctx, specs)
	if err != nil {
		if g != nil {
			err = errors.Join(err, g.close(ctx))
		}
		return nil, err
	}
	d.groups = append(d.groups, g)
	return handles, nil
}

func (d *Driver) start(ctx context.Context, specs []node.Spec) (*group, []node.Handle, error) {
	argv, known, err := d.prepare(ctx)
	if err != nil {
		return nil, nil, err
	}
	g := &group{names: map[string]node.Handle{}}
	// A server needs no time for an end: what it serves has ended before it.
	if g.servers, err = netns.New(netns.Options{Part: Part, Args: argv, Tag: d.opt.Tag, Journal: d.opt.Journal, Grace: time.Millisecond}); err != nil {
		return nil, nil, err
	}
	plain := make([]node.Spec, len(specs))
	for i, s := range specs {
		plain[i] = node.Spec{ID: s.ID, Name: s.Name}
	}
	servers, err := g.servers.Start(ctx, plain)
	if err != nil {
		return g, nil, err
	}
	for _, s := range servers {
		g.names[s.Name()] = s
	}
	// Servers on this host are not lost without their connections' ends being seen; one
	// that is slow shares the processors with hundreds of others.
	dialer := sshclient.New(sshclient.Options{DialNet: g.dial, Timeout: time.Minute, KeepAlive: 10 * time.Second})
	if g.pool, err = ssh.NewPool(ssh.PoolOptions{Dialer: dialer, Agents: d.opt.Agents, Parallel: d.opt.Parallel, OneDisk: true}); err != nil {
		return g, nil, err
	}
	nodes := func(s node.Spec) (*inventory.Node, error) {
		no := false
		return &inventory.Node{
			Name: s.Name, Address: address.Addr().String(), Port: int(address.Port()), User: "root", Sudo: &no,
			Identity: []string{d.identity()}, Jump: []string{}, KnownHosts: []string{known}, Dir: filepath.Join(d.opt.Dir, "agents"),
		}, nil
	}
	g.agents, err = ssh.New(ssh.Options{Pool: g.pool, Nodes: nodes, Args: d.args(), Env: d.environment(), Tag: d.opt.Tag, Grace: d.opt.Grace})
	if err != nil {
		return g, nil, err
	}
	if len(specs) > 1 {
		// All have one file system: the first gets the agent for the others.
		first, err := nodes(specs[0])
		if err != nil {
			return g, nil, err
		}
		if _, err := g.pool.Get(ctx, first); err != nil {
			return g, nil, g.explain(&ssh.NotStarted{Name: specs[0].Name, Err: err})
		}
	}
	started, err := g.agents.Start(ctx, specs)
	if err != nil {
		return g, nil, g.explain(err)
	}
	handles := make([]node.Handle, len(started))
	for i, h := range started {
		handles[i] = handle{h, servers[i]}
	}
	return g, handles, nil
}

// args keep the record of an agent's changes in the driver's folder: it is of no use
// when the namespaces are gone.
func (d *Driver) args() []string {
	if d.opt.Args != nil {
		return d.opt.Args
	}
	return []string{"--guarded", "--journal", filepath.Join(d.opt.Dir, "journal")}
}

// environment gives the agents what they would have without a server between.
func (d *Driver) environment() []string {
	var env []string
	for _, k := range []string{"HOME", "PATH"} {
		if v := os.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return append(env, d.opt.Env...)
}

// address is where the server of each namespace listens: nobody else is there.
var address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 22)

func (d *Driver) identity() string { return filepath.Join(d.opt.Dir, "id") }

// prepare makes keys and configuration, which all servers share, and returns a
// server's command and the known_hosts file.
func (d *Driver) prepare(ctx context.Context) (argv []string, known string, err error) {
	fail := func(err error) ([]string, string, error) {
		return nil, "", fmt.Errorf("servers for the namespaces: %w", err)
	}
	st, err := os.Stat(d.opt.Dir)
	if err != nil {
		return fail(err)
	}
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 {
		return fail(fmt.Errorf("%s has the mode %v: keys would be in a folder that others can enter", d.opt.Dir, st.Mode()))
	}
	hostKey := filepath.Join(d.opt.Dir, "host")
	for _, f := range []string{hostKey, d.identity()} {
		if err := sshd.KeyGen(ctx, f, "ed25519", ""); err != nil {
			return fail(err)
		}
	}
	public, err := os.ReadFile(hostKey + ".pub")
	if err != nil {
		return fail(err)
	}
	login, err := os.ReadFile(d.identity() + ".pub")
	if err != nil {
		return fail(err)
	}
	f := strings.Fields(string(public)) // type, key, comment
	if len(f) < 2 {
		return fail(fmt.Errorf("%s.pub is no public key", hostKey))
	}
	known = filepath.Join(d.opt.Dir, "known_hosts")
	if err := os.WriteFile(known, []byte(address.Addr().String()+" "+f[0]+" "+f[1]+"\n"), 0o600); err != nil {
		return fail(err)
	}
	argv, err = sshd.Prepare(ctx, sshd.Options{
		Dir: d.opt.Dir, Listen: address, HostKeys: []string{hostKey}, Authorized: []string{strings.TrimSpace(string(login))},
		Config: []string{"AllowUsers root", "DisableForwarding yes", "PermitTTY no", "PermitUserEnvironment no", "MaxSessions 20", "LogLevel ERROR"},
	})
	if err != nil {
		return fail(err)
	}
	return argv, known, nil
}

// explain adds what a server said before it ended.
func (g *group) explain(err error) error {
	for _, s := range g.names {
		if s.Err() != nil {
			err = errors.Join(err, s.Err())
		}
	}
	return err
}

// Close ends agents, then servers, and waits until the namespaces are empty.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	errs := make([]error, len(d.groups))
	var wg sync.WaitGroup
	for i, g := range d.groups {
		wg.Go(func() { errs[i] = g.close(ctx) })
	}
	wg.Wait()
	d.groups = nil
	return errors.Join(errs...)
}

// close: what the agents' driver could not see to end, ends with the namespaces.
func (g *group) close(ctx context.Context) error {
	var errs []error
	if g.agents != nil {
		err := g.agents.Close(ctx)
		var left *node.Leftover
		if !errors.As(err, &left) {
			errs = append(errs, err)
		}
	}
	if g.pool != nil {
		errs = append(errs, g.pool.Close())
	}
	return errors.Join(append(errs, g.servers.Close(ctx))...)
}

// handle is an agent in a namespace.
type handle struct {
	node.Handle
	server node.Handle
}

// PID is the namespace's server: a process in it, as seen from this host.
func (h handle) PID() int { return h.server.PID() }

// Err has the server's end, where the connection was lost by it.
func (h handle) Err() error {
	err := h.Handle.Err()
	var l *node.Lost
	if errors.As(err, &l) {
		if e := h.server.Err(); e != nil {
			var x *node.Exited
			if errors.As(e, &x) {
				lost := *l
				lost.Reason = fmt.Sprintf("its SSH server (pid %d) ended: %s; %s", x.PID, x.State, l.Reason)
				return &lost
			}
		}
	}
	return err
}

// Facts is for ssh.FactsOf.
func (h handle) Facts() ssh.Facts {
	f, _ := ssh.FactsOf(h.Handle)
	return f
}
