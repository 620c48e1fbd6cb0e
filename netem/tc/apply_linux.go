package tc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Undo is how a link's emulation is taken back: data, for another process if need
// be. Prepare makes it before anything changes.
type Undo struct {
	Interface string `json:"interface"`
	Index     int    `json:"index"` // of the interface: its name may be another's by then
	// Former is the interface's root discipline; nil = the kernel's default.
	Former *Former `json:"former,omitempty"`
	// KeepClsact: the interface had one, which stays.
	KeepClsact bool `json:"keep_clsact,omitempty"`
	// GSOSegments is how many packets the interface takes in one; 0 = it was not
	// changed.
	GSOSegments uint32 `json:"gso_segments,omitempty"`
	IFB         string `json:"ifb,omitempty"` // the device that is removed
}

// Former is a discipline as the kernel described it.
type Former struct {
	Kind    string `json:"kind"`
	Handle  uint32 `json:"handle"`
	Options []byte `json:"options,omitempty"`
}

// restorable are the disciplines without classes whose description the kernel
// takes back. netem's leaves its tables out.
var restorable = []string{"pfifo", "bfifo", "pfifo_fast", "fq", "fq_codel", "codel", "sfq", "cake", "noqueue"}

// Prepare looks whether the kernel can do what is asked and returns how to take it
// back. It changes nothing. Its error is a *tap.Unavailable where the kernel lacks
// something, or a *Foreign where the interface is somebody else's.
func Prepare(l *Link) (*Undo, error) {
	d, _, err := l.check()
	if err != nil {
		return nil, err
	}
	k, err := dial()
	if err != nil {
		return nil, err
	}
	defer k.close()
	u := &Undo{Interface: l.Interface, Index: d.index}
	if len(l.Egress) > 0 {
		u.GSOSegments = d.segments
	}
	kind, err := k.arriving(d)
	if err != nil {
		return nil, err
	}
	u.KeepClsact = kind != ""
	if len(l.Ingress) > 0 {
		u.IFB = ifbName(d.index)
	}
	u.Former, err = k.former(d)
	return u, err
}

// former describes the root that is there; nil for the kernel's own, or for one
// that this package has left behind.
func (k *kernel) former(d *device) (*Former, error) {
	list, err := k.list(unix.RTM_GETQDISC, d.index, 0)
	if err != nil {
		return nil, err
	}
	var root *object
	for i := range list {
		if o := &list[i]; o.parent == rootOf {
			root = o
		}
	}
	if root == nil || root.handle == 0 || isOurs(root.handle) {
		return nil, nil
	}
	foreign := &Foreign{Interface: d.name, Kind: root.kind, Handle: handleName(root.handle)}
	if !slices.Contains(restorable, root.kind) {
		return nil, foreign
	}
	filters, err := k.list(unix.RTM_GETTFILTER, d.index, root.handle)
	if err == nil && len(filters) > 0 {
		return nil, foreign
	}
	return &Former{Kind: root.kind, Handle: root.handle, Options: root.options}, nil
}

// check validates a link against the kernel and finds its interface.
func (l *Link) check() (*device, *Features, error) {
	if err := l.Validate(); err != nil {
		return nil, nil, err
	}
	f, err := Probe()
	if err != nil {
		return nil, nil, err
	}
	for _, cs := range [][]Class{l.Egress, l.Ingress} {
		if err := f.Suit(cs); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.Interface, err)
		}
	}
	if len(l.Ingress) > 0 && f.Ingress != nil {
		return nil, nil, fmt.Errorf("%s: %w", l.Interface, f.Ingress)
	}
	link, err := netlink.LinkByName(l.Interface)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", l.Interface, err)
	}
	d := &device{name: l.Interface, index: link.Attrs().Index, segments: link.Attrs().GSOMaxSegs}
	switch link.Attrs().EncapType {
	case "ether", "loopback":
		d.header = 14
	}
	return d, f, nil
}

// Suit says what of the kernel the classes need and it lacks.
func (f *Features) Suit(classes []Class) error {
	for i := range classes {
		c := &classes[i]
		if c.needsNetem() && f.Netem != nil {
			return f.Netem
		}
		switch c.shaper(f.Netem == nil) {
		case NetemShaper:
			if f.Netem != nil {
				return f.Netem
			}
		case TBFShaper:
			if f.TBF != nil {
				return f.TBF
			}
		case HTBShaper:
			if f.HTB != nil {
				return f.HTB
			}
		}
		if (len(classes) > 1 || len(c.Peers) > 0) && f.HTB != nil {
			return f.HTB
		}
	}
	return nil
}

// Apply makes the kernel emulate the link, or changes how it does: what is in the
// queues stays there. It reads back what the kernel took and returns the link with
// what it had left open (limits, shapers). Prepare comes first, once. Its error is
// a *NotApplied where the kernel has another value.
func Apply(l *Link) (*Link, error) {
	d, f, err := l.check()
	if err != nil {
		return nil, err
	}
	k, err := dial()
	if err != nil {
		return nil, err
	}
	defer k.close()
	hasNetem := f.Netem == nil
	if len(l.Egress) > 0 {
		if err := setSegments(d, 1); err != nil {
			return nil, err
		}
	}
	if err := k.direct(d, l.Egress, false, hasNetem); err != nil {
		return nil, named(l.Interface, err)
	}
	if len(l.Ingress) == 0 {
		// A change may have taken it away.
		err = errors.Join(k.unsteerOurs(d), removeIFB(ifbName(d.index)))
		return l.resolved(hasNetem), named(l.Interface, err)
	}
	ifb, err := makeIFB(d)
	if err != nil {
		return nil, err
	}
	if err := k.direct(ifb, l.Ingress, true, hasNetem); err != nil {
		return nil, named(l.Interface, err)
	}
	return l.resolved(hasNetem), named(l.Interface, k.steer(d, ifb.index))
}

// setSegments bounds how many packets a socket may hand to an interface in one. TCP
// does so since Linux 4.17, whatever the interface's offloads are: a discipline would
// lose, count and delay them as one.
func setSegments(d *device, n uint32) error {
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: d.index, Name: d.name}}
	if err := netlink.LinkSetGSOMaxSegs(link, int(n)); err != nil {
		return fmt.Errorf("%s: at most %d packets in one (gso_max_segs): %w", d.name, n, err)
	}
	l, err := netlink.LinkByIndex(d.index)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if got := l.Attrs().GSOMaxSegs; got != n {
		return &NotApplied{Interface: d.name, What: "gso_max_segs", Wanted: fmt.Sprint(n), Got: fmt.Sprint(got)}
	}
	return nil
}

// direct makes the tree of one direction; without classes there is none.
func (k *kernel) direct(d *device, classes []Class, source, hasNetem bool) error {
	t := plan(classes, source, hasNetem)
	if len(classes) > 0 && len(t.qdiscs) > 0 {
		return k.reconcile(d, &t)
	}
	have, err := k.byParent(d)
	if err != nil {
		return err
	}
	if root, ok := have[rootOf]; ok && isOurs(root.handle) {
		return k.removeRoot(d)
	}
	return nil
}

// unsteerOurs takes the redirection away and leaves clsact to Revert, which knows
// whose it is.
func (k *kernel) unsteerOurs(d *device) error { return k.unsteer(d, true) }

// named completes an error by the interface.
func named(name string, err error) error {
	var n *NotApplied
	if errors.As(err, &n) && n.Interface == "" {
		n.Interface = name
	}
	return err
}

// resolved fills in what was left open.
func (l *Link) resolved(hasNetem bool) *Link {
	out := *l
	fill := func(cs []Class) []Class {
		cs = slices.Clone(cs)
		for i := range cs {
			s := &cs[i].Shape
			s.Shaper = s.shaper(hasNetem)
			if q := s.queue(); q > 0 {
				s.Limit = q
			}
		}
		return cs
	}
	out.Egress, out.Ingress = fill(l.Egress), fill(l.Ingress)
	return &out
}

// Revert takes a link's emulation back. Doing it twice is no error, nor that the
// interface has gone.
func Revert(u *Undo) error {
	var err error
	link, lerr := netlink.LinkByIndex(u.Index)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(lerr, &missing):
	case lerr != nil:
		return fmt.Errorf("%s: %w", u.Interface, lerr)
	default:
		err = u.revert(&device{name: link.Attrs().Name, index: u.Index})
	}
	if u.IFB != "" {
		err = errors.Join(err, removeIFB(u.IFB))
	}
	return err
}

func (u *Undo) revert(d *device) error {
	k, err := dial()
	if err != nil {
		return err
	}
	defer k.close()
	err = k.unsteer(d, u.KeepClsact)
	if u.GSOSegments > 0 {
		err = errors.Join(err, setSegments(d, u.GSOSegments))
	}
	have, lerr := k.byParent(d)
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	root, ok := have[rootOf]
	if !ok || !isOurs(root.handle) {
		return err // done before, or somebody else's by now
	}
	if u.Former == nil {
		return errors.Join(err, k.removeRoot(d))
	}
	return errors.Join(err, k.restore(d, u.Former))
}
