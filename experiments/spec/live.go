package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// What a hand may change of a network that stands: the file's keys with the
// file's checks, less those that are decided when a network is made.

// Fixed says that a key of a standing network cannot be changed.
type Fixed struct {
	Where   string // the target, as it was named
	Key     string
	Because string
	Do      string
}

// Error says which key it is, why it cannot, and what to do.
func (f *Fixed) Error() string {
	return fmt.Sprintf("%s: %s cannot be changed while the network stands, because %s: %s", f.Where, f.Key, f.Because, f.Do)
}

// fixed are the keys of a file that a standing network keeps, by the block that
// has them.
var (
	fixedWire = map[string]string{
		"ends": "it is what the link is", "interfaces": "the interfaces exist by their names", "emulator": "it is what the link is made of", "reverse": "a direction is named by its nodes, from:to",
		"overhead": "packets that wait are counted with it", "trace": "a trace begins with the network", "schedule": "its moments count from the begin of a run",
	}
	fixedRadio = map[string]string{
		"standard": "all radios share one channel", "tx-power": "who hears whom is computed once", "noise": "who hears whom is computed once",
		"path-loss": "who hears whom is computed once", "sense": "who senses whom is computed once", "capture": "it is the channel's",
	}
)

const again = "take the network down and bring it up again with --set"

// WireSettings is one direction of a wire, and whether a hand has said that the
// wire is up or down.
type WireSettings struct {
	Direction
	Up *bool
}

// Live returns the direction as assignments of its keys, and of up, leave it;
// where names it in errors, which are *Errors or *Fixed.
func (d *Direction) Live(where string, as []Assignment) (*WireSettings, error) {
	k, err := liveTree(where, as, fixedWire)
	if err != nil {
		return nil, err
	}
	w := &WireSettings{Direction: *d}
	k.up(&w.Up)
	k.block(k.root, "", reflect.ValueOf(&w.Direction).Elem(), "up")
	if w.Loss != nil && d.Loss != nil && k.given("loss") {
		w.Loss.AfterQueue = d.Loss.AfterQueue
	}
	k.only("where a loss happens does not change while the link stands", "loss.after-queue")
	if len(k.report.problems) == 0 {
		if w.Queue != nil && !k.given("queue") {
			k.set["queue"] = k.root // the network's own: it need not be said again
		}
		k.direction(&w.Direction, "", func(key string) string { return key })
	}
	return w, k.err(where)
}

// AirSettings is what a hand may say of a radio link; nil stays as it is.
type AirSettings struct {
	// Up takes the link down (false) or up (true), in both directions.
	Up *bool `key:"up"`
	// Loss is the share of the frames that the receiver discards after its MAC, so that no retransmission by the MAC repairs them.
	Loss *vtime.Fraction `key:"loss" min:"0%" max:"100%"`
	// Delivery is the share of data frames that survive without retransmission, of a link that the file lists.
	Delivery *vtime.Fraction `key:"delivery" min:"0.01%" max:"100%"`
}

// LiveAir reads assignments of a radio link's settings.
func LiveAir(where string, as []Assignment) (*AirSettings, error) {
	k, err := liveTree(where, as, nil)
	if err != nil {
		return nil, err
	}
	a := &AirSettings{}
	k.block(k.root, "", reflect.ValueOf(a).Elem())
	return a, k.err(where)
}

// NodeSettings is what a hand has said of a node.
type NodeSettings struct {
	Up *bool // switches the node off (false) or on (true)
	// Radio and MAC are the node's own; Interface tells that one of their keys other
	// than radio.drop was given, Drop that this one was.
	Radio     Radio
	MAC       MAC
	Interface bool
	Drop      bool
}

// LiveNode returns a node's settings, which were those of radio and mac, as
// assignments of up, radio.KEY and mac.KEY leave them.
func LiveNode(where string, radio Radio, mac MAC, as []Assignment) (*NodeSettings, error) {
	k, err := liveTree(where, as, nil)
	if err != nil {
		return nil, err
	}
	for key, why := range fixedRadio {
		if n, _ := k.root.get("radio"); n != nil {
			if v, _ := n.get(key); v != nil {
				return nil, &Fixed{where, "radio." + key, why, again + " radio." + key + "=…"}
			}
		}
	}
	var keys struct {
		Up    *bool `key:"up"`
		Radio Radio `key:"radio"`
		MAC   MAC   `key:"mac"`
	}
	keys.Radio, keys.MAC = radio, mac
	k.block(k.root, "", reflect.ValueOf(&keys).Elem())
	k.c.Radio, k.c.MAC = keys.Radio, keys.MAC
	if k.given("radio.rate") && !k.given("radio.basic-rate") {
		k.c.Radio.BasicRate = min(radio.BasicRate, k.c.Radio.Rate) // a response is never faster
	}
	if len(k.report.problems) == 0 {
		k.radio()
		k.mac()
	}
	s := &NodeSettings{Up: keys.Up, Radio: k.c.Radio, MAC: k.c.MAC, Drop: k.given("radio.drop")}
	for at := range k.set {
		s.Interface = s.Interface || strings.HasPrefix(at, "mac.") || strings.HasPrefix(at, "radio.") && at != "radio.drop"
	}
	return s, k.err(where)
}

// liveTree makes a document of assignments, for checks.
func liveTree(where string, as []Assignment, fixed map[string]string) (*check, error) {
	r := &report{}
	root := &node{kind: mapping, pos: Pos{Origin: where}}
	for _, a := range as {
		first, _, _ := strings.Cut(a.Key, ".")
		if why, is := fixed[first]; is {
			return nil, &Fixed{where, first, why, again + " topology.pipes.N." + first + "=…"}
		}
		assign(root, a, r)
	}
	k := &check{decoder: &decoder{report: r, set: map[string]*node{}}, c: new(Config), root: root}
	return k, k.err(where)
}

func (k *check) up(to **bool) {
	if n, _ := k.root.get("up"); n != nil {
		k.value(n, "up", reflect.ValueOf(to).Elem(), field{key: "up"})
	}
}

// err is what was found, at the place where, not at an option that does not exist.
func (k *check) err(where string) error {
	for _, p := range k.report.problems {
		if key, ok := strings.CutPrefix(p.Pos.Origin, "--set "); ok {
			p.Pos.Origin = where
			if p.Path == "" {
				p.Path = key
			}
		}
	}
	return k.report.err()
}

// LiveKeys are the keys that can be set of a wire, a radio link and a node.
func LiveKeys() (wire, air, node []string) {
	for _, f := range fieldsOf(reflect.TypeFor[Direction]()) {
		if fixedWire[f.key] == "" {
			wire = append(wire, f.key)
		}
	}
	wire = append(wire, "up")
	air = keysOf(fieldsOf(reflect.TypeFor[AirSettings]()))
	node = []string{"up"}
	for _, f := range fieldsOf(reflect.TypeFor[Radio]()) {
		if fixedRadio[f.key] == "" {
			node = append(node, "radio."+f.key)
		}
	}
	for _, f := range fieldsOf(reflect.TypeFor[MAC]()) {
		if f.key != "queues" {
			node = append(node, "mac."+f.key)
		}
	}
	queue := keysOf(fieldsOf(reflect.TypeFor[Queue]()))
	node = append(node, "mac.queues.{bk,be,vi,vo}.{"+strings.Join(queue, ",")+"}")
	return wire, air, slices.Clip(node)
}
