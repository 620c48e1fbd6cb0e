package tc

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Statistics of a discipline (linux/gen_stats.h).
const (
	statsBasic = 1
	statsQueue = 3
	statsPkt64 = 8
)

type tally struct {
	packets, bytes, backlog, drops uint64
}

func (o *object) tally() (tally, error) {
	a, err := attributes(o.stats)
	if err != nil {
		return tally{}, err
	}
	var t tally
	if b := a[statsBasic]; len(b) >= 12 {
		t.bytes, t.packets = native.Uint64(b), uint64(native.Uint32(b[8:]))
	}
	if b := a[statsPkt64]; len(b) >= 8 {
		t.packets = native.Uint64(b)
	}
	if b := a[statsQueue]; len(b) >= 12 {
		t.backlog, t.drops = uint64(native.Uint32(b)), uint64(native.Uint32(b[8:]))
	}
	return t, nil
}

// Stats returns what each class of a link did so far, in the order of Egress and
// Ingress. The link is the one that was applied. A class that does nothing is left
// out where the kernel has no netem to count for it.
func Stats(l *Link) ([]Counters, error) {
	d, f, err := l.check()
	if err != nil {
		return nil, err
	}
	k, err := dial()
	if err != nil {
		return nil, err
	}
	defer k.close()
	out, err := k.stats(d, l.Egress, false, f.Netem == nil)
	if err != nil || len(l.Ingress) == 0 {
		return out, err
	}
	link, err := netlink.LinkByName(ifbName(d.index))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ifbName(d.index), err)
	}
	in, err := k.stats(&device{name: d.name, index: link.Attrs().Index}, l.Ingress, true, f.Netem == nil)
	return append(out, in...), err
}

func (k *kernel) stats(d *device, classes []Class, ingress, hasNetem bool) ([]Counters, error) {
	have, err := k.byParent(d)
	if err != nil {
		return nil, err
	}
	byHandle := map[uint32]*object{}
	for _, o := range have {
		byHandle[o.handle] = &o
	}
	var out []Counters
	t := plan(classes, ingress, hasNetem)
	for i := range classes {
		c := Counters{Interface: d.name, Ingress: ingress, Class: i, Peers: classes[i].Peers}
		var at [stages]tally
		chain := i + 1
		if len(t.classes) == 0 {
			chain = 0
		}
		first := -1
		for _, q := range t.qdiscs {
			stage := -1
			for s := range stages {
				if q.handle == handleOf(q.kind, chain, s) {
					stage = s
				}
			}
			if stage < 0 || q.handle == rootHTB {
				continue
			}
			o := byHandle[q.handle]
			if o == nil {
				return nil, &NotApplied{Interface: d.name, What: "counters of class " + fmt.Sprint(i), Wanted: q.kind + " " + handleName(q.handle), Got: "none: the link is emulated otherwise"}
			}
			if at[stage], err = o.tally(); err != nil {
				return nil, err
			}
			if first < 0 {
				first = stage
			}
		}
		if first < 0 {
			continue // nothing is emulated, and nothing counts
		}
		c.account(&classes[i].Shape, at, first, hasNetem)
		out = append(out, c)
	}
	return out, nil
}

// account splits the drops. A netem counts among its own what the discipline below
// it refuses.
func (c *Counters) account(s *Shape, at [stages]tally, first int, hasNetem bool) {
	c.Packets, c.Bytes, c.Backlog = at[first].packets, at[first].bytes, int(at[first].backlog)
	queue, last := at[rateStage], at[lastStage]
	shaper := s.shaper(hasNetem)
	if s.Rate == 0 || shaper == HTBShaper {
		last = at[aloneStage]
	}
	switch {
	case shaper == HTBShaper:
		c.Dropped = last.drops
		return
	case first == rateStage: // tbf alone, which counts what its queue refuses
		c.Dropped = queue.drops
		return
	case s.lastStage():
		if s.Rate > 0 {
			c.Dropped = queue.drops - last.drops
			c.Lost = at[delayStage].drops - queue.drops + last.drops
		} else {
			c.Lost = at[delayStage].drops
		}
	default:
		c.Dropped = queue.drops
		c.Lost = at[delayStage].drops - queue.drops
	}
}
