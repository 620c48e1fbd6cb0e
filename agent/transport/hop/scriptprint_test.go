package hop

import (
	"fmt"
	"strings"
)

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; ; i++ {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			at := func(s []string) string {
				return strings.Join(s[min(i, len(s)):min(i+3, len(s))], "\n  ")
			}
			return fmt.Sprintf("line %d\n got:\n  %s\n want:\n  %s", i+1, at(g), at(w))
		}
	}
}

var typeNames = map[msgType]string{typeData: "data", typeBSYN: "BSYN", typeBACK: "BACK", typeVBSYN: "VBSYN", typeVBACK: "VBACK", typeE2EBACK: "E2E"}

func typeName(pkt []byte) string {
	var m message
	if err := parse(&m, pkt); err != nil {
		return err.Error()
	}
	return typeNames[m.typ]
}

// describe writes a packet on one line.
func describe(from NodeID, p frame) string {
	var m message
	if err := parse(&m, p.buf); err != nil {
		return fmt.Sprintf("%d→%d %v", from, p.to, err)
	}
	s := fmt.Sprintf("%d→%d %s flow %d block %d", from, p.to, typeNames[m.typ], m.key.Flow, m.block)
	if m.typ != typeE2EBACK {
		s += fmt.Sprintf(" attempt %d", m.attempt)
	}
	switch m.typ {
	case typeData:
		s += fmt.Sprintf(" packet %d/%d, %d B", m.seq, m.count, len(m.data))
	case typeBSYN, typeVBSYN:
		s += fmt.Sprintf(", %d B in %d, base %d", m.ann.size, m.count, m.ann.base)
		if m.ann.token != 0 {
			s += fmt.Sprintf(", token %d", m.ann.token)
		}
		if m.typ == typeVBSYN {
			s += fmt.Sprintf(", ttl %d", m.ttl)
		}
	case typeBACK:
		s += " "
		for i := range int(m.count) {
			s += string('0' + m.data[i>>3]>>(i&7)&1)
		}
	case typeE2EBACK:
		s += fmt.Sprintf(", all below %d, sack %b", m.cum, m.sack)
	}
	for i, name := range []string{"last", "micro", "poll", "inline", "virtual", "wait"} {
		if m.flags>>i&1 != 0 {
			s += " " + name
		}
	}
	return s
}

func (s *script) state() {
	rx := []string{"requested", "granted", "suspended", "complete"}
	tx := []string{"", "held", "request", "sending", "draining", "polling", "passed"}
	for _, x := range s.nodes {
		for _, f := range x.n.flows {
			fmt.Fprintf(&s.out, "  node %d flow %d %s:", x.id, f.key.Flow, f.role)
			for _, b := range f.blocks {
				if b.complete() {
					fmt.Fprintf(&s.out, " [%d complete %s]", b.id, tx[b.tx])
				} else {
					fmt.Fprintf(&s.out, " [%d %s %d/%d]", b.id, rx[b.rx], b.nhave, b.count)
				}
			}
			fmt.Fprintln(&s.out)
		}
	}
}
