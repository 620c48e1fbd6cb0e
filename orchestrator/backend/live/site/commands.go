package site

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Command is one change of a node, as a command that does the same in a shell. The
// agent itself starts no program but the radio drivers' tools: the rest it asks of
// the kernel.
type Command struct {
	Text string // "" = no one command does it, and Why says what is made
	Why  string // may be empty, where there is a Text
}

// Commands are the changes that an order makes, in the order in which the agent makes
// them.
func Commands(cfg *proto.Configure) ([]Command, error) {
	var out []Command
	// Each word is quoted: Linux lets the name of an interface hold what a shell reads.
	add := func(why string, argv ...string) { out = append(out, Command{radio.Step{Argv: argv}.String(), why}) }
	if cfg.Radio != nil {
		steps, err := radio.Plan(*cfg.Radio)
		if err != nil {
			return nil, err
		}
		for _, st := range steps {
			why := st.Why
			if st.Unless != "" {
				why += "; left out where " + st.Unless
			}
			out = append(out, Command{st.String(), why})
		}
	}
	if cfg.Loopback {
		add("where it is down", "ip", "link", "set", "lo", "up")
	}
	for _, x := range cfg.Sysctls {
		add("", "sysctl", "-w", x.Key+"="+x.Value)
	}
	for _, i := range cfg.Interfaces {
		if cfg.MTU > 0 {
			add("", "ip", "link", "set", i.Name, "mtu", strconv.Itoa(cfg.MTU))
		}
		if cfg.OffloadsOff {
			add("a packet on the interface is a packet on the link", "ethtool", "-K", i.Name, "tso", "off", "gso", "off", "gro", "off")
		}
		add("where it is down", "ip", "link", "set", i.Name, "up")
		if cfg.Address.IsValid() {
			why := "where it is not there already"
			if cfg.KeepAddress {
				why = "it is there already"
			}
			add(why, "ip", "address", "add", cfg.Address.String(), "dev", i.Name)
		}
	}
	for _, r := range cfg.Routes {
		argv := []string{"ip", "route", "replace", r.Dst.String(), "dev", r.Interface}
		if r.Via.IsValid() {
			argv = []string{"ip", "route", "replace", r.Dst.String(), "via", r.Via.String(), "dev", r.Interface, "onlink"}
		}
		if r.AdvMSS > 0 {
			argv = append(argv, "advmss", fmt.Sprint(r.AdvMSS))
		}
		if r.QuickAck {
			argv = append(argv, "quickack", "1")
		}
		if r.CwndCap > 0 {
			argv = append(argv, "cwnd", "lock", fmt.Sprint(r.CwndCap))
		}
		add("", argv...)
	}
	for _, n := range cfg.Neighbours {
		add("", "ip", "neighbour", "replace", n.Addr.String(), "lladdr", n.HardwareAddress, "dev", n.Interface, "nud", "permanent")
	}
	for i := range cfg.Shapers {
		out = append(out, shaping(&cfg.Shapers[i])...)
	}
	return out, nil
}

// shaping says what the kernel has to emulate. It is no command: netem/tc makes a
// chain of disciplines by netlink, after it has looked at those that are there.
func shaping(l *tc.Link) []Command {
	var out []Command
	one := func(side string, c *tc.Class, from string) {
		whom := "everybody"
		if len(c.Peers) > 0 {
			var names []string
			for _, p := range c.Peers {
				names = append(names, p.String())
			}
			whom = strings.Join(names, " ")
		}
		out = append(out, Command{Why: fmt.Sprintf("by netlink, emulated by the kernel: %s %s, %s %s: %s", l.Interface, side, from, whom, shapeText(&c.Shape))})
	}
	for i := range l.Egress {
		one("egress", &l.Egress[i], "towards")
	}
	for i := range l.Ingress {
		one("ingress (through an ifb device)", &l.Ingress[i], "from")
	}
	return out
}

func shapeText(s *tc.Shape) string {
	var out []string
	if s.Delay > 0 {
		out = append(out, fmt.Sprintf("delay %v", s.Delay))
	}
	if s.Rate > 0 {
		out = append(out, fmt.Sprintf("rate %v", s.Rate))
	}
	if m := s.Loss.Mean(); m > 0 {
		out = append(out, fmt.Sprintf("loss %.4g%%", 100*m))
	}
	return strings.Join(out, " ")
}

// Print writes the orders of all nodes of a plan in commands. A node that is
// ordered what it was in the run before is left out: flows change the agents' work,
// not the nodes. Routes that are still to be measured are said so.
func Print(w io.Writer, p *plan.Plan, inv *inventory.Inventory) error {
	last := map[int]string{}
	for _, r := range p.Runs {
		if r.Repetition > 1 {
			continue // real nodes and their links are the same in every repetition
		}
		lay := r.Scenario
		if r.Unmeasured() {
			lay = r.Network
		}
		sc, err := lay()
		if err != nil {
			return err
		}
		s, err := Match(r.Config().Topology.NodeNames(), inv)
		if err != nil {
			return err
		}
		headed := false
		for i := range s.Nodes {
			text, err := s.text(sc, i)
			if err != nil {
				return err
			}
			if text == last[i] {
				continue
			}
			last[i] = text
			if !headed {
				headed = true
				if r.Index > 0 {
					fmt.Fprintln(w)
				}
				fmt.Fprintf(w, "# from run %d on: %s\n", r.Index+1, r.Label())
				if s.Note != "" {
					fmt.Fprintf(w, "# note: %s\n", s.Note)
				}
			}
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is node i's part of Print.
func (s *Site) text(sc *plan.Scenario, i int) (string, error) {
	cfg, err := s.Order(sc, i, backend.Orders(sc, s.Addr), nil)
	if err != nil {
		return "", err
	}
	commands, err := Commands(cfg)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", cfg.Name, err)
	}
	var out strings.Builder
	n := s.Nodes[i]
	fmt.Fprintf(&out, "\n# node %s = %s of the inventory, interface %s, radio driver %s\n", cfg.Name, n.Name, n.Interface, driver(n))
	for _, c := range commands {
		switch {
		case c.Text == "":
			out.WriteString("# " + c.Why + "\n")
		case c.Why == "":
			out.WriteString(c.Text + "\n")
		case strings.Contains(c.Text, "\n"): // with what the command reads
			out.WriteString("# " + c.Why + "\n" + c.Text + "\n")
		default:
			out.WriteString(c.Text + "  # " + c.Why + "\n")
		}
	}
	switch {
	case sc.Unmeasured():
		out.WriteString("# routes and neighbours follow from the links that probes measure before the first run\n")
	case len(cfg.Routes) > 0:
		out.WriteString("# permanent neighbour entries for the next hops, with the hardware addresses that the nodes report\n")
	}
	return out.String(), nil
}
