package tc

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Verify reads a link's emulation back and compares it with what was applied, and
// changes nothing. It returns what Apply does; its error is a *NotApplied that
// names the first difference.
func Verify(l *Link) (*Link, error) {
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
	if len(l.Egress) > 0 && d.segments != 1 {
		return nil, &NotApplied{Interface: l.Interface, What: "gso_max_segs", Wanted: "1", Got: fmt.Sprint(d.segments)}
	}
	if err := k.verifyDirection(d, l.Egress, false, hasNetem); err != nil {
		return nil, named(l.Interface, err)
	}
	steered, err := k.ourRedirect(d)
	if err != nil {
		return nil, err
	}
	if want := len(l.Ingress) > 0; steered != want {
		return nil, &NotApplied{Interface: l.Interface, What: "redirection of what arrives", Wanted: fmt.Sprint(want), Got: fmt.Sprint(steered)}
	}
	if len(l.Ingress) > 0 {
		ifb, err := netlink.LinkByName(ifbName(d.index))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ifbName(d.index), err)
		}
		if err := k.verifyDirection(&device{name: d.name, index: ifb.Attrs().Index, header: d.header}, l.Ingress, true, hasNetem); err != nil {
			return nil, named(l.Interface, err)
		}
	}
	return l.resolved(hasNetem), nil
}

func (k *kernel) verifyDirection(d *device, classes []Class, source, hasNetem bool) error {
	var t tree
	if len(classes) > 0 {
		t = plan(classes, source, hasNetem)
	}
	if err := k.verify(d, &t); err != nil || len(t.classes) == 0 {
		return err
	}
	return k.verifyFilters(d.index, t.qdiscs[0].handle, t.filters)
}
