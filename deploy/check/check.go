package check

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
)

// Bounds of a check.
const (
	DefaultParallel = 50
	DefaultWithin   = 45 * time.Second // a node
)

// Options configure a check.
type Options struct {
	Dialer sshclient.Dialer
	Agents agents.Source
	// Parallel bounds the nodes that are looked at at once; 0 = DefaultParallel.
	Parallel int
	// Within is the time for a node; 0 = DefaultWithin.
	Within time.Duration
}

// Node is what was found of a node.
type Node struct {
	Name      string `json:"name"`
	Host      string `json:"host"` // as the inventory has it
	Reachable bool   `json:"reachable"`
	// Usable says that experiments can use the node: there is no fatal problem.
	Usable  bool   `json:"usable"`
	Machine string `json:"machine,omitempty"` // uname -m
	Arch    string `json:"arch,omitempty"`    // GOARCH
	Kernel  string `json:"kernel,omitempty"`
	// Access is how the agent becomes root: "root", "sudo", "" when it cannot.
	Access string `json:"access,omitempty"`
	User   string `json:"user,omitempty"`
	// Clock is the offset of the node's wall clock; nil when it was not read.
	Clock *Clock   `json:"clock,omitempty"`
	Tools []string `json:"tools"` // those of Tools that are there
	// Interface is the inventory's; nil where it names none.
	Interface *Interface `json:"interface,omitempty"`
	// Wireless are all wireless interfaces of the node, with their drivers.
	Wireless []Wireless `json:"wireless"`
	Netem    string     `json:"netem,omitempty"` // yes, no, unknown
	Agent    *Agent     `json:"agent,omitempty"` // nil: not known
	Problems []Problem  `json:"problems"`
	// TookMS is how long the check took, in milliseconds.
	TookMS int64 `json:"took_ms"`
}

// Clock is an offset: node minus controller, in nanoseconds, with its bound.
type Clock struct {
	OffsetNS int64 `json:"offset_ns"`
	BoundNS  int64 `json:"bound_ns"`
	// By is who read the node's clock: the agent, or the program date.
	By string `json:"by"`
}

// Interface is what was found of the interface that experiments use.
type Interface struct {
	Name    string `json:"name"`
	Found   bool   `json:"found"`
	State   string `json:"state,omitempty"`  // operstate: up, down, dormant, unknown
	Driver  string `json:"driver,omitempty"` // of agent/radio; "" = not a radio
	Module  string `json:"module,omitempty"` // kernel module of the device
	Carries bool   `json:"carries_ssh,omitempty"`
}

// Wireless is a wireless interface.
type Wireless struct {
	Name   string `json:"name"`
	Driver string `json:"driver"` // of agent/radio: nl80211, madwifi
}

// Agent is what was found of the agent.
type Agent struct {
	Path    string `json:"path"`
	SHA256  string `json:"sha256"` // of the one that this controller uses
	Present bool   `json:"present"`
	Version string `json:"version,omitempty"`
	// Running are agents that run now: another controller's, or left by one.
	Running []string `json:"running,omitempty"`
}

// Problem is something that does not fit, and what to do.
type Problem struct {
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
	Fatal bool   `json:"fatal"` // experiments cannot use the node
}

func (n *Node) problem(fatal bool, what, do string) {
	n.Problems = append(n.Problems, Problem{What: what, Do: do, Fatal: fatal})
}

// fail notes an error whose text says what to do.
func (n *Node) fail(err error) {
	var a *agents.Error
	var s *sshclient.Error
	switch {
	case errors.As(err, &a):
		what := a.What
		if a.Because != "" {
			what += ": " + a.Because
		}
		n.problem(true, what, a.Do)
	case errors.As(err, &s):
		what := string(s.Reason)
		if s.What != "" {
			what += ": " + s.What
		}
		n.problem(true, what, s.Do)
	default:
		n.problem(true, err.Error(), "")
	}
}

// Run looks at all nodes, many at once, and returns what was found in their order.
func Run(ctx context.Context, o Options, nodes []inventory.Node) []Node {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.Within <= 0 {
		o.Within = DefaultWithin
	}
	out := make([]Node, len(nodes))
	errs := sshclient.Each(ctx, len(nodes), o.Parallel, func(i int) error {
		out[i] = o.node(ctx, &nodes[i])
		return nil
	})
	for i, err := range errs {
		if err != nil { // nobody waits any more
			out[i] = Node{Name: nodes[i].Name, Host: host(&nodes[i])}
			out[i].problem(true, "not looked at: "+err.Error(), "")
		}
	}
	for i := range out {
		n := &out[i]
		n.Usable = !slices.ContainsFunc(n.Problems, func(p Problem) bool { return p.Fatal })
		if n.Problems == nil {
			n.Problems = []Problem{}
		}
		if n.Tools == nil {
			n.Tools = []string{}
		}
		if n.Wireless == nil {
			n.Wireless = []Wireless{}
		}
	}
	return out
}

func host(n *inventory.Node) string {
	if n.Address == "" {
		return n.Name
	}
	return n.Address
}

// node looks at one node, step by step: what is known when a step fails is kept.
func (o Options) node(ctx context.Context, n *inventory.Node) (found Node) {
	found = Node{Name: n.Name, Host: host(n)}
	began := time.Now()
	defer func() { found.TookMS = time.Since(began).Milliseconds() }()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Within, fmt.Errorf("no answer within %v", o.Within))
	defer cancel()
	c, err := o.Dialer.Dial(ctx, n)
	if err != nil {
		found.fail(err)
		return found
	}
	defer c.Close()
	found.Reachable = true
	facts, err := agents.Examine(ctx, c, n)
	found.Machine, found.Arch, found.Kernel, found.User = facts.Machine, facts.Arch, facts.Kernel, facts.User
	access := true
	if err != nil {
		found.fail(err)
		var a *agents.Error
		if !errors.As(err, &a) || a.Kind != agents.KindPrivileges {
			return found
		}
		access = false // the rest can be looked at all the same
	}
	if access {
		found.Access = "root"
		if facts.Sudo {
			found.Access = "sudo"
		}
	}
	if err := found.look(ctx, c, n, facts); err != nil {
		found.fail(err)
		return found
	}
	placed, err := o.agent(ctx, c, n, facts, &found)
	if err != nil {
		found.fail(err)
	}
	if placed != "" && access {
		found.Clock, err = clockByAgent(ctx, c, facts, placed)
		if err != nil {
			found.fail(fmt.Errorf("the agent is there and does not work: %w", err))
		}
	}
	if found.Clock == nil {
		if found.Clock, err = clockByDate(ctx, c); err != nil {
			found.problem(false, "the node's clock could not be read: "+err.Error(), "")
		}
	}
	if k := found.Clock; k != nil && abs(k.OffsetNS)-k.BoundNS > int64(time.Second) {
		found.problem(false, fmt.Sprintf("the node's clock is off by %v", time.Duration(k.OffsetNS).Round(time.Millisecond)),
			"experiments measure with the monotonic clock and do not need it; run an NTP client for logs that can be compared")
	}
	return found
}

func abs(x int64) int64 { return max(x, -x) }

// agent says whether the agent is on the node; its path is empty when it is not, or
// cannot run there.
func (o Options) agent(ctx context.Context, c sshclient.Client, n *inventory.Node, f agents.Facts, found *Node) (string, error) {
	if f.Arch == "" {
		return "", nil // said before
	}
	b, err := o.Agents.Agent(ctx, f.Arch)
	if err != nil {
		return "", err
	}
	dir, err := f.Dir(n)
	if err != nil {
		return "", err
	}
	found.Agent.Path, found.Agent.SHA256 = dir+"/"+b.Name(), b.SHA256
	p, there, err := agents.Look(ctx, c, n, f, b)
	if err != nil || !there {
		return "", err
	}
	found.Agent.Present, found.Agent.Version = true, p.Identity.Version
	return p.Path, nil
}

// look runs the script and draws the conclusions.
func (n *Node) look(ctx context.Context, c sshclient.Client, inv *inventory.Node, f agents.Facts) error {
	a, err := agents.ScriptAs(ctx, c, inv.Name, f.Privileged(), script, append([]string{inv.Interface, inv.Radio.Device}, Tools...)...)
	if err != nil {
		return err
	}
	n.conclude(inv, f, a)
	return nil
}

// conclude compares what the script said with the inventory.
func (n *Node) conclude(inv *inventory.Node, f agents.Facts, a map[string]string) {
	n.Tools = strings.Fields(a["tools"])
	n.Netem = a["netem"]
	for _, w := range strings.Fields(a["nl80211"]) {
		n.Wireless = append(n.Wireless, Wireless{w, "nl80211"})
	}
	for _, w := range strings.Fields(a["madwifi"]) {
		n.Wireless = append(n.Wireless, Wireless{w, "madwifi"})
	}
	n.Agent = &Agent{Running: strings.Fields(a["running"])}
	if len(n.Agent.Running) > 0 {
		n.problem(false, "an agent runs there already (process "+strings.Join(n.Agent.Running, ", ")+")", "another controller uses the node, or one was just cut off: then the agent ends by itself within seconds")
	}
	if n.Netem == "no" {
		n.problem(false, "the kernel has no sch_netem: it cannot emulate links", "install linux-modules-extra-"+n.Kernel+" (Debian and Ubuntu), kmod-netem (OpenWrt), or leave out what needs it")
	}
	if inv.Interface == "" {
		if inv.Radio.Driver != "" && inv.Radio.Driver != "none" {
			n.problem(true, "the inventory names a radio driver and no interface", "give `interface:`")
		}
		return
	}
	i := &Interface{Name: inv.Interface, Found: a["interface"] == "yes", State: a["state"], Module: a["module"]}
	n.Interface = i
	for _, w := range n.Wireless {
		if w.Name == i.Name {
			i.Driver = w.Driver
		}
	}
	n.radio(inv, a)
	for _, w := range strings.Fields(a["addresses"]) {
		if p, err := netip.ParsePrefix(w); err == nil && f.Address.IsValid() && p.Addr() == f.Address.Unmap() {
			i.Carries = true
		}
	}
	if i.Carries {
		n.problem(true, fmt.Sprintf("this connection goes through %s (%s), and an experiment that configures it would cut that", i.Name, f.Address),
			"name another interface in the inventory, or reach the node over another one")
	}
}

// needs are the tools of a radio driver.
var needs = map[string][]string{"madwifi": {"iwconfig", "iwpriv"}, "nl80211": {"iw"}}

func (n *Node) radio(inv *inventory.Node, a map[string]string) {
	driver, i := inv.Radio.Driver, n.Interface
	var has []string
	for _, w := range n.Wireless {
		has = append(has, w.Name+" ("+w.Driver+")")
	}
	choose := "the node has no wireless interface"
	if len(has) > 0 {
		choose = "the node has " + strings.Join(has, ", ")
	}
	switch {
	case !i.Found && driver == "madwifi" && a["device"] == "yes": // it makes the interface
	case !i.Found:
		n.problem(true, "there is no interface "+i.Name, choose+": correct `interface:`, or load the driver's module")
	case driver == "madwifi" && i.Driver != driver, driver == "nl80211" && i.Driver != driver:
		what := "no radio"
		if i.Driver != "" {
			what = "a radio of " + i.Driver
		}
		n.problem(true, fmt.Sprintf("%s is %s, and the inventory says %s", i.Name, what, driver), choose+": correct `radio: {driver: …}`")
	}
	for _, t := range needs[driver] {
		if !slices.Contains(n.Tools, t) {
			n.problem(true, fmt.Sprintf("the radio driver %s needs %s, which is not there", driver, t), "install "+map[string]string{"iw": "iw", "iwconfig": "wireless-tools", "iwpriv": "wireless-tools"}[t])
		}
	}
}

// clockRounds is how often the agent is asked for its clock: the shortest round trip
// counts.
const clockRounds = 8

// clockByAgent starts the agent for nothing but its clock.
func clockByAgent(ctx context.Context, c sshclient.Client, f agents.Facts, path string) (*Clock, error) {
	var last words
	p, err := c.Start(ctx, &last, append(f.Privileged(), "env", agents.PartVariable+"="+agents.Part, path)...)
	if err != nil {
		return nil, err
	}
	a := proto.NewClient(channel{p})
	defer func() {
		_ = a.Close()
		_ = p.Close()
	}()
	go func() {
		for range a.Async() { // nothing of interest, but it must be read
		}
	}()
	if _, err := a.Hello(ctx, proto.Hello{Controller: "hopbed deploy check", Watchdog: proto.DefaultWatchdog}); err != nil {
		if s := last.String(); s != "" {
			err = fmt.Errorf("%w: %s", err, s)
		}
		return nil, err
	}
	best, err := rounds(clockRounds, func() (int64, error) {
		k, err := a.Clock(ctx)
		if err == nil && k.UnixNS == 0 {
			err = errors.New("the agent does not say what time it is")
		}
		return k.UnixNS, err
	})
	if err != nil {
		return nil, err
	}
	best.By = "agent"
	return best, a.Bye(ctx)
}

// rounds reads a clock several times; the offset is that of the shortest round trip,
// and half of it the bound.
func rounds(n int, read func() (int64, error)) (*Clock, error) {
	var best *Clock
	for range n {
		before := time.Now()
		at, err := read()
		took := time.Since(before)
		if err != nil {
			return nil, err
		}
		if bound := took.Nanoseconds()/2 + 1; best == nil || bound < best.BoundNS {
			best = &Clock{OffsetNS: at - before.UnixNano() - bound, BoundNS: bound}
		}
	}
	return best, nil
}
