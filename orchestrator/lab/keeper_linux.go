package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopbed/hopbed/netem/emulator"
)

// Node is a node of a network that stands.
type Node struct {
	Name       string
	PID        int // of a process that holds its namespace
	Addr       string
	Interfaces []string
}

// Network is what a keeper keeps.
type Network interface {
	Nodes() []Node
	Set(ctx context.Context, s emulator.Set) error
	// Failed is closed when part of it has ended by itself; Err then says what.
	Failed() <-chan struct{}
	Err() error
	Priority() string
	// Health is what the medium last said of how well it keeps time; nil: nothing yet.
	Health() *emulator.Health
	// Close removes it with every process in its namespaces.
	Close(ctx context.Context) error
}

// Options describe a lab to its keeper.
type Options struct {
	Entry           // Folder is private, and removed by the caller
	Log      string // file, for messages
	Routes   bool
	IPv6     bool
	Rootless bool
	Settings *Settings
	Network  Network
	Env      []string  // added to the environment of programs in nodes
	Output   io.Writer // takes the log
}

// Keeper holds a network and takes orders for it.
type Keeper struct {
	opt    Options
	folder string
	nodes  []Node
	over   []string // files of /etc that programs see as the lab's
	sysfs  bool
	plain  string // why names of nodes are not known inside

	asked   chan struct{} // closed when a client wants the lab down
	closing chan struct{} // closed when it goes down
	once    sync.Once
	down    []chan *Gone   // clients that wait for it
	work    sync.WaitGroup // clients
	running sync.WaitGroup // clients' programs

	mu       sync.Mutex // of settings and down
	settings *Settings
	logMu    sync.Mutex
}

// How long a request may take to arrive, and how many at a time are read.
const (
	requestWithin = 10 * time.Second
	maxClients    = 256
)

// NewKeeper prepares a keeper: the files that programs in nodes see, and what the
// host lets them have.
func NewKeeper(o Options) (*Keeper, error) {
	k := &Keeper{opt: o, folder: o.Folder, nodes: o.Network.Nodes(), asked: make(chan struct{}), closing: make(chan struct{}), settings: o.Settings}
	if err := k.files(); err != nil {
		return nil, err
	}
	k.tryMounts()
	return k, nil
}

// Serve listens, calls ready, whose error ends it, and takes orders until ctx ends, somebody takes the
// lab down, or the network fails, which is the error. Clients' programs have then
// ended; ended names the user's processes that were there. The network is the
// caller's to close, and then Closed is to be called.
func (k *Keeper) Serve(ctx context.Context, ready func() error) (ended []string, err error) {
	l, err := listen(k.folder)
	if err != nil {
		return nil, err
	}
	slots := make(chan struct{}, maxClients)
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return // closed
			}
			slots <- struct{}{}
			k.work.Go(func() {
				defer func() { <-slots }()
				k.client(ctx, c)
			})
		}
	}()
	k.logf("the lab is ready: %d nodes", len(k.nodes))
	failed := ready()
	if failed != nil {
		k.once.Do(func() { close(k.asked) })
	}
	select {
	case <-ctx.Done():
		k.logf("goes down: the keeper was asked to end")
	case <-k.asked:
		k.logf("goes down: a client asked for it")
	case <-k.opt.Network.Failed():
		failed = k.opt.Network.Err()
		k.logf("goes down: %v", failed)
	}
	l.Close()
	ended = k.processes()
	close(k.closing)
	k.running.Wait() // bounded by hangup
	return ended, failed
}

// processes are the user's programs in the nodes' namespaces now.
func (k *Keeper) processes() []string {
	var out []string
	for name, list := range k.tenants() {
		for _, p := range list {
			out = append(out, p+" on "+name)
		}
	}
	slices.Sort(out)
	return out
}

// Closed tells clients that wait for it that the lab is gone, and returns when
// they and all others have been told.
func (k *Keeper) Closed(processes []string, err error) {
	g := &Gone{Nodes: len(k.nodes), Processes: processes}
	if err != nil {
		g.Left = err.Error()
	}
	k.mu.Lock()
	for _, c := range k.down {
		c <- g
	}
	k.down = nil
	k.mu.Unlock()
	done := make(chan struct{})
	go func() { k.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second): // a client that reads nothing
	}
}

// client serves one connection.
func (k *Keeper) client(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(requestWithin))
	if err := checkPeer(c); err != nil {
		k.logf("refused: %v", err)
		return
	}
	r, files, err := readRequest(c)
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		if !errors.Is(err, io.EOF) { // somebody looked whether we are there
			k.logf("a request that cannot be read: %v", err)
			_ = writeMessage(c, &answer{Version: protocol, Error: &fault{Text: err.Error()}})
		}
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if r.Exec != nil {
		k.running.Add(1)
		defer k.running.Done()
		k.exec(c, r.Exec, files)
		return
	}
	for _, f := range files {
		f.Close()
	}
	a := k.obey(ctx, r)
	a.Version = protocol
	_ = c.SetWriteDeadline(time.Now().Add(requestWithin))
	if err := writeMessage(c, a); err != nil {
		k.logf("an answer that nobody took: %v", err)
	}
}

func (k *Keeper) obey(ctx context.Context, r *request) *answer {
	switch {
	case r.Status:
		return &answer{Status: k.Status()}
	case r.Set != nil:
		changed, err := k.set(ctx, r.Set)
		if err != nil {
			return &answer{Error: &fault{Text: err.Error()}}
		}
		return &answer{Set: &setAnswer{changed}}
	case r.Down:
		c := make(chan *Gone, 1)
		k.mu.Lock()
		k.down = append(k.down, c)
		k.mu.Unlock()
		k.once.Do(func() { close(k.asked) })
		return &answer{Down: <-c}
	}
	return &answer{Error: &fault{Text: "a request without content"}}
}

// set carries an order out, one at a time: all of it, or nothing.
func (k *Keeper) set(ctx context.Context, o *Order) ([]Changed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.closing:
		return nil, errors.New("the lab is going down")
	default:
	}
	set, changed, next, err := k.settings.Plan(*o)
	if err != nil {
		return nil, err
	}
	if err := k.opt.Network.Set(ctx, set); err != nil {
		k.logf("set %s: refused by the network: %v", strings.Join(o.Targets, " "), err)
		return nil, err
	}
	k.settings = next
	for _, c := range changed {
		if c.Was != c.Is {
			k.logf("set %s %s: %s, was %s", c.Target, c.Key, c.Is, c.Was)
		}
	}
	return changed, nil
}

func (k *Keeper) node(name string) (*Node, error) {
	for i := range k.nodes {
		if k.nodes[i].Name == name {
			return &k.nodes[i], nil
		}
	}
	var all []string
	for _, n := range k.nodes {
		all = append(all, n.Name)
	}
	return nil, unknownNode(name, k.opt.Name, all)
}

func (k *Keeper) logf(format string, args ...any) {
	k.logMu.Lock()
	defer k.logMu.Unlock()
	Logf(k.opt.Output, format, args...)
}

// Logf writes a line with its time to a lab's log. The text may hold what a client
// said: it stays one line.
func Logf(to io.Writer, format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '�'
		}
		return r
	}, fmt.Sprintf(format, args...))
	const most = 4 << 10
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	// A log that cannot be written (a full disk) costs no network.
	_, _ = fmt.Fprintf(to, "%s %s\n", time.Now().Format("2006-01-02T15:04:05.000Z07:00"), text)
}

// null is an open /dev/null, thrice.
func null() ([]*os.File, error) {
	var out []*os.File
	for range maxFiles {
		f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return out, err
		}
		out = append(out, f)
	}
	return out, nil
}
