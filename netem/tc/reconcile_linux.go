package tc

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// device is an interface whose tree is kept.
type device struct {
	name     string
	index    int
	header   int    // bytes of the link's own header, which the kernel counts
	segments uint32 // packets that it takes in one
}

const attrStab = 8 // TCA_STAB

// message encodes a discipline. A root corrects the lengths of packets by the
// link's header, for all that is below it: rates and queues are of IP packets.
func (q *qdisc) message(d *device, create bool) *message {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: q.handle, Parent: q.parent}}
	m.add(nl.TCA_KIND, nl.ZeroTerminated(q.kind))
	switch q.kind {
	case "netem":
		m.attrs = append(m.attrs, q.netem.options(create))
	case "tbf":
		m.attrs = append(m.attrs, q.tbf.options())
	case "htb":
		if create { // it takes no changes
			m.attrs = append(m.attrs, htbOptions())
		}
	case "pfifo", "bfifo":
		m.add(nl.TCA_OPTIONS, u32s(uint32(q.limit)))
	}
	if q.parent == rootOf && d.header > 0 {
		b := make([]byte, 24) // struct tc_sizespec
		native.PutUint32(b[4:], uint32(int32(-d.header)))
		m.add(attrStab, nil).AddRtAttr(1, b)
	}
	return m
}

func (q *qdisc) compare(o *object) error {
	if o.kind != q.kind || o.handle != q.handle {
		return &NotApplied{What: "discipline below " + handleName(q.parent), Wanted: q.kind + " " + handleName(q.handle), Got: o.kind + " " + handleName(o.handle)}
	}
	switch q.kind {
	case "netem":
		return q.netem.compare(o)
	case "tbf":
		return q.tbf.compare(o)
	case "pfifo", "bfifo":
		if len(o.options) < 4 || native.Uint32(o.options) != uint32(q.limit) {
			return &NotApplied{What: q.kind + " " + handleName(q.handle) + ": limit", Wanted: fmt.Sprint(q.limit), Got: fmt.Sprintf("% x", o.options)}
		}
	}
	return nil
}

// byParent reads a device's disciplines by the place where they are.
func (k *kernel) byParent(d *device) (map[uint32]object, error) {
	list, err := k.list(unix.RTM_GETQDISC, d.index, 0)
	if err != nil {
		return nil, err
	}
	m := map[uint32]object{}
	for _, o := range list {
		if o.parent != ingressParent {
			m[o.parent] = o
		}
	}
	return m, nil
}

// reconcile makes a device's tree the wanted one. What has the right kind in the
// right place is changed where it is and keeps its packets.
func (k *kernel) reconcile(d *device, t *tree) error {
	have, err := k.byParent(d)
	if err != nil {
		return err
	}
	// The kernel refuses a netem that duplicates while another one is in the tree:
	// it must come when the others have gone.
	if root, ok := have[rootOf]; ok && isOurs(root.handle) && len(t.qdiscs) > 0 && t.qdiscs[0].netem.duplicate > 0 {
		first := *t
		first.qdiscs = append([]qdisc{}, t.qdiscs...)
		first.qdiscs[0].netem.duplicate = 0
		if err := k.build(d, &first, have); err != nil {
			return err
		}
		if have, err = k.byParent(d); err != nil {
			return err
		}
	}
	if err := k.build(d, t, have); err != nil {
		return err
	}
	return k.verify(d, t)
}

func (k *kernel) build(d *device, t *tree, have map[uint32]object) error {
	for i := range t.classes {
		if i == 0 {
			if err := k.set(d, &t.qdiscs[0], have); err != nil {
				return err
			}
		}
		if err := k.setClass(d, &t.classes[i]); err != nil {
			return err
		}
	}
	wanted := map[uint32]bool{}
	for i := range t.qdiscs {
		if len(t.classes) == 0 || i > 0 {
			if err := k.set(d, &t.qdiscs[i], have); err != nil {
				return err
			}
		}
		wanted[t.qdiscs[i].parent] = true
	}
	if len(t.classes) > 0 {
		if err := k.setFilters(d.index, t.qdiscs[0].handle, t.filters); err != nil {
			return err
		}
		if err := k.pruneClasses(d, t); err != nil {
			return err
		}
	}
	for parent, o := range have {
		if parent == rootOf || !isOurs(o.handle) || wanted[parent] || o.fresh {
			continue
		}
		m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: o.handle, Parent: parent}}
		// Where the one above was replaced it has gone with it.
		if err := k.do(unix.RTM_DELQDISC, 0, m); err != nil && !gone(err) {
			return fmt.Errorf("%s: remove %s %s: %w", d.name, o.kind, handleName(o.handle), err)
		}
	}
	return nil
}

// gone says that what was to be removed is not there.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV)
}

// set makes or changes one discipline.
func (k *kernel) set(d *device, q *qdisc, have map[uint32]object) error {
	o, ok := have[q.parent]
	var err error
	if ok && o.kind == q.kind && o.handle == q.handle {
		if q.kind == "htb" {
			return nil
		}
		err = k.do(unix.RTM_NEWQDISC, 0, q.message(d, false))
	} else {
		err = k.do(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, q.message(d, true))
		// Below a new discipline there is nothing yet.
		have[q.parent] = object{parent: q.parent, handle: q.handle, kind: q.kind, fresh: true}
		delete(have, q.handle|1)
	}
	if err != nil {
		return lacking(q.kind, fmt.Errorf("%s: %s %s: %w", d.name, q.kind, handleName(q.handle), err))
	}
	return nil
}

func (k *kernel) setClass(d *device, c *class) error {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: c.id, Parent: rootHTB}}
	m.add(nl.TCA_KIND, nl.ZeroTerminated("htb"))
	m.attrs = append(m.attrs, c.options())
	if err := k.do(unix.RTM_NEWTCLASS, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, m); err != nil {
		return fmt.Errorf("%s: htb class %s: %w", d.name, handleName(c.id), err)
	}
	return nil
}

// pruneClasses removes the classes that are too many; no filter leads to them any
// more.
func (k *kernel) pruneClasses(d *device, t *tree) error {
	list, err := k.list(unix.RTM_GETTCLASS, d.index, 0)
	if err != nil {
		return err
	}
	for _, o := range list {
		if o.handle&^0xffff != rootHTB || int(o.handle&0xffff) <= len(t.classes) {
			continue
		}
		m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: o.handle, Parent: rootHTB}}
		if err := k.do(unix.RTM_DELTCLASS, 0, m); err != nil && !gone(err) {
			return fmt.Errorf("%s: remove htb class %s: %w", d.name, handleName(o.handle), err)
		}
	}
	return nil
}

// verify reads the whole tree back.
func (k *kernel) verify(d *device, t *tree) error {
	have, err := k.byParent(d)
	if err != nil {
		return err
	}
	for i := range t.qdiscs {
		q := &t.qdiscs[i]
		o, ok := have[q.parent]
		if !ok {
			return &NotApplied{What: "discipline below " + handleName(q.parent), Wanted: q.kind, Got: "none"}
		}
		if err := q.compare(&o); err != nil {
			return err
		}
		delete(have, q.parent)
	}
	for parent, o := range have {
		if isOurs(o.handle) {
			return &NotApplied{What: "discipline below " + handleName(parent), Wanted: "none", Got: o.kind}
		}
	}
	if len(t.classes) == 0 {
		return nil
	}
	list, err := k.list(unix.RTM_GETTCLASS, d.index, 0)
	if err != nil {
		return err
	}
	classes := map[uint32]object{}
	for _, o := range list {
		if o.kind == "htb" {
			classes[o.handle] = o
		}
	}
	for i := range t.classes {
		o, ok := classes[t.classes[i].id]
		if !ok {
			return &NotApplied{What: "htb class " + handleName(t.classes[i].id), Wanted: "there", Got: "missing"}
		}
		if err := t.classes[i].compare(&o); err != nil {
			return err
		}
	}
	if len(classes) != len(t.classes) {
		return &NotApplied{What: "classes of htb", Wanted: fmt.Sprint(len(t.classes)), Got: fmt.Sprint(len(classes))}
	}
	return nil
}

// removeRoot lets the kernel put its default at a device again.
func (k *kernel) removeRoot(d *device) error {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Parent: rootOf}}
	if err := k.do(unix.RTM_DELQDISC, 0, m); err != nil && !gone(err) {
		return fmt.Errorf("%s: remove the root discipline: %w", d.name, err)
	}
	return nil
}
