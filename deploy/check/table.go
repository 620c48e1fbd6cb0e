package check

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Table writes what was found for people: a line a node, and below it what does not
// fit, with the remedy. What nodes say is shown without characters that could drive
// a terminal.
func Table(w io.Writer, nodes []Node) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "node\tstate\tarch\tkernel\tclock\taccess\tinterface\tnetem\tagent\ttools")
	usable := 0
	for _, n := range nodes {
		state := "unusable"
		switch {
		case n.Usable && len(n.Problems) > 0:
			state = "ok, notes"
		case n.Usable:
			state = "ok"
		case !n.Reachable:
			state = "unreachable"
		}
		if n.Usable {
			usable++
		}
		cells := []string{n.Name, state, n.Arch, n.Kernel, n.Clock.String(), n.access(), n.Interface.String(), n.Netem, n.Agent.String(), strings.Join(n.Tools, " ")}
		for i, c := range cells {
			if c = printable(c); c == "" {
				c = "-"
			}
			cells[i] = c
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, n := range nodes {
		for _, p := range n.Problems {
			kind := "note"
			if p.Fatal {
				kind = "problem"
			}
			fmt.Fprintf(w, "\n%s: %s: %s\n", printable(n.Name), kind, printable(p.What))
			if p.Do != "" {
				fmt.Fprintf(w, "  remedy: %s\n", printable(p.Do))
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%d of %d nodes can be used\n", usable, len(nodes))
	return err
}

func (n *Node) access() string {
	switch n.Access {
	case "sudo":
		return n.User + ", sudo"
	case "":
		if n.User != "" {
			return n.User + ", not root"
		}
	}
	return n.Access
}

// String is the offset with its bound: "+1.23ms ±310µs".
func (c *Clock) String() string {
	if c == nil {
		return ""
	}
	// No more digits than the bound lets stand.
	unit := time.Microsecond
	for c.BoundNS >= 100*unit.Nanoseconds() {
		unit *= 10
	}
	offset := time.Duration(c.OffsetNS).Round(unit)
	sign := ""
	if offset >= 0 {
		sign = "+"
	}
	return fmt.Sprintf("%s%v ±%v", sign, offset, time.Duration(c.BoundNS).Round(unit))
}

// String is the name with the radio's driver: "wlan0 (nl80211, ath9k)".
func (i *Interface) String() string {
	switch {
	case i == nil:
		return ""
	case !i.Found:
		return i.Name + " (missing)"
	}
	kind := i.Driver
	if kind == "" {
		kind = "no radio"
	}
	if i.Module != "" {
		kind += ", " + i.Module
	}
	return i.Name + " (" + kind + ")"
}

// String is whether it is there.
func (a *Agent) String() string {
	switch {
	case a == nil || a.SHA256 == "":
		return ""
	case a.Present:
		return "present " + a.SHA256[:8]
	}
	return "absent"
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
