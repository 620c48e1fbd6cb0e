package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/internal/procfs"
)

func unknownNode(name, lab string, all []string) error {
	meant, most := "", 12
	if s := spec.Suggest(name, all); s != "" {
		meant = "; did you mean " + s + "?"
	}
	list := all
	if len(list) > most {
		list = append(append([]string(nil), all[:most]...), "…")
	}
	return fmt.Errorf("the lab %s has no node %q: it has %s%s", lab, name, strings.Join(list, " "), meant)
}

// files writes what programs in nodes see in place of the host's files: names of
// nodes beside the host's own, and no name server, which nothing would reach.
func (k *Keeper) files() error {
	host, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("names of nodes: %w", err)
	}
	b := bytes.NewBuffer(nil)
	fmt.Fprintf(b, "# nodes of the lab %s\n", k.opt.Name)
	for _, n := range k.nodes {
		if net.ParseIP(n.Addr) != nil {
			fmt.Fprintf(b, "%s\t%s\n", n.Addr, n.Name)
		}
	}
	b.WriteString("# the host's own\n")
	b.Write(host)
	resolv := "# No name server can be reached from a node; names of nodes are in /etc/hosts.\n"
	return errors.Join(os.WriteFile(filepath.Join(k.folder, "hosts"), b.Bytes(), 0o644), os.WriteFile(filepath.Join(k.folder, "resolv.conf"), []byte(resolv), 0o644))
}

// tryMounts finds out what of the files and /sys the host lets a node's programs
// have, by trying it in the first node.
func (k *Keeper) tryMounts() {
	for _, name := range standIns {
		if _, err := os.Stat("/etc/" + name); err == nil {
			k.over = append(k.over, name)
		}
	}
	k.sysfs = true
	if err := k.probe(); err != nil {
		k.sysfs = false
		k.logf("/sys in nodes is the host's: %v", err)
		if err := k.probe(); err != nil {
			k.over, k.plain = nil, err.Error()
		}
	}
	for _, name := range k.over {
		if name == "hosts" {
			return
		}
	}
	if k.plain == "" {
		k.plain = "the host has no /etc/hosts"
	}
	k.logf("names of nodes are not known in nodes: %s", k.plain)
}

func (k *Keeper) probe() error {
	files, err := null()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	e := entry{Probe: true, Folder: k.folder, Over: k.over, Sysfs: k.sysfs}
	p, f := k.startAs(e, &execSpec{Node: k.nodes[0].Name, Argv: []string{"probe"}}, files)
	if f != nil {
		return errors.New(f.Text)
	}
	<-p.ended
	if p.exit.Code != 0 {
		return fmt.Errorf("the process that enters a node ended with %d", p.exit.Code)
	}
	return nil
}

// tenants are the processes in the nodes' namespaces that are not the lab's own,
// by node: "ping (4711)".
func (k *Keeper) tenants() map[string][]string {
	spaces, own := map[string]string{}, map[int]bool{}
	for _, n := range k.nodes {
		if ns, err := procfs.NetNS(n.PID); err == nil {
			spaces[ns], own[n.PID] = n.Name, true
		}
	}
	out := map[string][]string{}
	pids, err := procfs.PIDs()
	if err != nil {
		k.logf("processes in nodes: %v", err)
		return out
	}
	for _, pid := range pids {
		ns, err := procfs.NetNS(pid)
		if err != nil || own[pid] {
			continue // ended meanwhile, or somebody else's
		}
		if name, ok := spaces[ns]; ok && procfs.Running(pid) {
			out[name] = append(out[name], fmt.Sprintf("%s (%d)", procfs.Name(pid), pid))
		}
	}
	return out
}

// Status is the state of the lab now.
func (k *Keeper) Status() *Status {
	k.mu.Lock()
	s := k.settings
	k.mu.Unlock()
	t := s.topo
	st := &Status{Entry: k.opt.Entry, Log: k.opt.Log, RadioLinks: len(t.Links), Routes: k.opt.Routes, IPv6: k.opt.IPv6, Rootless: k.opt.Rootless,
		Priority: k.opt.Network.Priority(), Unnamed: k.plain}
	st.Alive = true
	if h := k.opt.Network.Health(); h != nil && h.Lateness.Events > 0 {
		st.Late = &h.Lateness.P99
	}
	st.Example = exampleLink(t)
	running := k.tenants()
	for i, n := range k.nodes {
		out := NodeStatus{Name: n.Name, Addr: n.Addr, Interfaces: n.Interfaces, Up: s.nodes[i].up, Processes: running[n.Name]}
		before := nodeSettings{up: s.nodes[i].up, radio: s.cfg.Radio, iface: t.Own(i, t.MAC)}
		out.Radio = list(differences(n.Name, before.text(), s.nodes[i].text(), nil))
		st.Nodes = append(st.Nodes, out)
	}
	for i, w := range s.wires {
		for e := range w {
			text := topology.DescribeDirection(&w[e].config)
			if !w[e].up {
				text = "down; " + text
			}
			ends := t.Pipes[i].Ends
			st.Wires = append(st.Wires, LinkStatus{t.Nodes[ends[e]].Name, t.Nodes[ends[1-e]].Name, text})
		}
	}
	before := *s
	before.links = nil
	for i := range t.Nodes {
		for j := range t.Nodes {
			at := [2]int{i, j}
			if now, ok := s.links[at]; ok {
				if text := list(differences("", before.air(at).text(), now.text(), nil)); text != "" {
					st.Radio = append(st.Radio, LinkStatus{t.Nodes[i].Name, t.Nodes[j].Name, text})
				}
			}
		}
	}
	return st
}

// exampleLink is a link that orders can name without more words.
func exampleLink(t *topology.Topology) string {
	for i := range t.Links {
		if l := &t.Links[i]; l.Usable && !wired(t, l.From, l.To) {
			return t.Nodes[l.From].Name + "-" + t.Nodes[l.To].Name
		}
	}
	if len(t.Pipes) > 0 {
		e := t.Pipes[0].Ends
		return t.Nodes[e[0]].Name + "-" + t.Nodes[e[1]].Name
	}
	return ""
}

func list(changed []Changed) string {
	var out []string
	for _, c := range changed {
		if c.Was != c.Is {
			out = append(out, c.Key+"="+c.Is)
		}
	}
	return strings.Join(out, " ")
}
