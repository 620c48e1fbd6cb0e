package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// DSCP is a differentiated services code point (RFC 2474), 0 to 63; written as a
// number or as its name.
type DSCP int

// ExpeditedForwarding is the code point of speech (RFC 3246, RFC 4594 table 3).
const ExpeditedForwarding DSCP = 46

// dscpNames are the names of code points: class selectors (RFC 2474), assured
// forwarding (RFC 2597), expedited forwarding (RFC 3246), voice admit (RFC 5865)
// and lower effort (RFC 8622).
var dscpNames = []struct {
	name  string
	value DSCP
}{
	{"CS0", 0}, {"LE", 1}, {"CS1", 8}, {"AF11", 10}, {"AF12", 12}, {"AF13", 14}, {"CS2", 16}, {"AF21", 18}, {"AF22", 20}, {"AF23", 22},
	{"CS3", 24}, {"AF31", 26}, {"AF32", 28}, {"AF33", 30}, {"CS4", 32}, {"AF41", 34}, {"AF42", 36}, {"AF43", 38}, {"CS5", 40}, {"VA", 44},
	{"EF", ExpeditedForwarding}, {"CS6", 48}, {"CS7", 56},
}

const dscpHelp = "a code point such as EF, CS1 or AF41, or its number from 0 to 63"

func (c *DSCP) decodeNode(d *decoder, n *node, at string) {
	if n.kind != scalar || n.null {
		d.bad(n, at, "is "+describe(n), dscpHelp)
		return
	}
	for _, x := range dscpNames {
		if x.name == strings.ToUpper(n.text) {
			*c = x.value
			return
		}
	}
	v, err := strconv.Atoi(n.text)
	switch {
	case err != nil || !decimal.MatchString(n.text):
		var names []string
		for _, x := range dscpNames {
			names = append(names, x.name)
		}
		d.problem(n, at, Problem{Value: quote(n.text), What: "not a code point", Allowed: dscpHelp, Hint: suggest(n.text, names)})
	case v < 0 || v > 63:
		d.bad(n, at, "out of range", dscpHelp)
	default:
		*c = DSCP(v)
	}
}

// String writes the name where the code point has one.
func (c DSCP) String() string {
	for _, x := range dscpNames {
		if x.value == c {
			return x.name
		}
	}
	return strconv.Itoa(int(c))
}

// DSCPValue is the code point of the group's packets: what the file says, and
// without that EF for voip and 0 otherwise. Hop and exec choose their own; for
// them it is 0.
func (f *Flow) DSCPValue() int {
	t := f.Transport.family()
	switch {
	case t == nil || !t.dscp:
		return 0
	case f.DSCP != nil:
		return int(*f.DSCP)
	case f.Workload.Kind == VoIP:
		return int(ExpeditedForwarding)
	}
	return 0
}

// queueOf is the queue of the MAC in which packets with a code point travel: the
// key of mac.queues (802.11-2020 table 10-1 by the precedence bits; EF is voice,
// RFC 8325 section 4.1).
func queueOf(dscp int) string {
	if dscp == int(ExpeditedForwarding) {
		return "vo"
	}
	return [8]string{"be", "bk", "bk", "be", "vi", "vi", "vo", "vo"}[dscp>>3&7]
}

// DataQueue is the queue of the MAC that carries a group's data: a key of mac.queues.
func (f *Flow) DataQueue() string {
	if f.Transport.Family() == FamilyHop {
		return "bk"
	}
	return queueOf(f.DSCPValue())
}

// queueVariants are the variants that are settings of the queue that a flow's
// data travels in.
var queueVariants = map[string][]string{
	FamilyHop: {"arq", "no-txop"},
	FamilyUDP: {"no-arq", "txop"},
}

// Alters reports which variants of the transport are settings of a queue of the
// MAC, which hold for whatever else travels in that queue.
func (t Transport) Alters() []string {
	var out []string
	for _, v := range queueVariants[t.Family()] {
		if t.Has(v) {
			out = append(out, v)
		}
	}
	return out
}

// queues refuses two groups of flows that want one queue to be different things:
// UDP with different variants, and UDP beside a Hop whose variants say the
// opposite. A node has one queue of each category, and all nodes have the same
// settings. Other transports take a queue as they find it.
func (k *check) queues() {
	type wish struct {
		at   string
		flow *Flow
	}
	seen := map[string][]wish{}
	for i := range k.c.Flows {
		f := &k.c.Flows[i]
		if queueVariants[f.Transport.Family()] == nil {
			continue
		}
		q := f.DataQueue()
		at := fmt.Sprintf("flows[%d].transport", i)
		for _, w := range seen[q] {
			if f.agrees(w.flow, &k.c.MAC) {
				continue
			}
			remedy := "the same transport, or one of the two in a point of the matrix"
			if f.Transport.Family() == FamilyUDP || w.flow.Transport.Family() == FamilyUDP {
				remedy = "a dscp that leads to another queue, the same variant, or one of the two in a point of the matrix"
			}
			k.at(at, Problem{What: fmt.Sprintf("shares the queue mac.queues.%s with %s of %s, and the two want different settings of it", q, w.flow.Transport, strings.TrimSuffix(w.at, ".transport")), Allowed: remedy})
			break
		}
		seen[q] = append(seen[q], wish{at, f})
	}
}

// agrees reports whether two groups whose data share a queue want the same of it.
// Hop beside Hop is checked elsewhere: a node has one Hop.
func (f *Flow) agrees(g *Flow, m *MAC) bool {
	if f.Transport.Family() == FamilyHop && g.Transport.Family() == FamilyHop {
		return true
	}
	ackF, txopF := f.wants(m)
	ackG, txopG := g.wants(m)
	return ackF == ackG && txopF == txopG
}

// wants returns the settings that a group's data gets in its queue: what the file
// says of it, changed by the transport's variants. The medium's own settings are
// acknowledgements, and no bursts but in the queues vi and vo.
func (f *Flow) wants(m *MAC) (ack AckPolicy, txop string) {
	var q Queue
	v := reflect.ValueOf(m.Queues)
	for _, x := range fieldsOf(v.Type()) {
		if x.key == f.DataQueue() {
			q = v.FieldByIndex(x.index).Interface().(Queue)
		}
	}
	ack, txop = AckNormal, "none"
	if q.Ack != "" {
		ack = q.Ack
	}
	switch {
	case q.TXOP != nil && *q.TXOP > 0:
		txop = q.TXOP.String()
	case q.TXOP == nil && slices.Contains([]string{"vi", "vo"}, f.DataQueue()):
		txop = "the standard's"
	}
	for _, a := range f.Transport.Alters() {
		switch a {
		case "arq":
			ack = AckNormal
		case "no-arq":
			ack = AckNone
		case "txop":
			if q.TXOP == nil || *q.TXOP == 0 {
				txop = VariantTXOP.String()
			}
		case "no-txop":
			txop = "none"
		}
	}
	return ack, txop
}
