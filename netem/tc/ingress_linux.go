package tc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ingressPriority is where the filter is that sends what arrives to the ifb.
const ingressPriority = 0x4850

const (
	ingressParent = 0xfffffff1 // TC_H_INGRESS
	ingressHandle = 0xffff0000
	ingressSide   = 0xfffffff2 // TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
)

// ifbName is the device through which an interface's incoming packets go.
func ifbName(index int) string { return fmt.Sprintf("hifb%d", index) }

// arriving finds the discipline of what arrives: clsact, ingress, or none.
func (k *kernel) arriving(d *device) (kind string, err error) {
	list, err := k.list(unix.RTM_GETQDISC, d.index, 0)
	if err != nil {
		return "", err
	}
	for _, o := range list {
		if o.parent == ingressParent {
			return o.kind, nil
		}
	}
	return "", nil
}

// ourRedirect says whether our filter is there.
func (k *kernel) ourRedirect(d *device) (bool, error) {
	list, err := k.list(unix.RTM_GETTFILTER, d.index, ingressSide)
	if err != nil {
		return false, err
	}
	for _, o := range list {
		if o.info>>16 == ingressPriority {
			return true, nil
		}
	}
	return false, nil
}

// steer sends what arrives at a device to an ifb.
func (k *kernel) steer(d *device, ifb int) error {
	kind, err := k.arriving(d)
	if err != nil {
		return err
	}
	if kind == "" {
		m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: ingressHandle, Parent: ingressParent}}
		m.add(nl.TCA_KIND, nl.ZeroTerminated("clsact"))
		if err := k.do(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m); err != nil {
			return lacking("clsact", fmt.Errorf("%s: clsact: %w", d.name, err))
		}
	}
	if there, err := k.ourRedirect(d); err != nil || there {
		return err
	}
	if err := k.do(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL, redirect(d.index, ingressSide, ifb)); err != nil {
		return lacking("mirred", fmt.Errorf("%s: redirection to %s: %w", d.name, ifbName(d.index), err))
	}
	there, err := k.ourRedirect(d)
	if err == nil && !there {
		err = &NotApplied{What: "redirection of what arrives", Wanted: "a filter of priority " + fmt.Sprint(ingressPriority), Got: "none"}
	}
	return err
}

// unsteer takes the redirection away, and clsact where there was none before us and
// nothing of somebody else's is in it. That the redirection is gone says nothing of
// clsact: who took the one away may have been killed before the other.
func (k *kernel) unsteer(d *device, keepClsact bool) error {
	there, err := k.ourRedirect(d)
	if err != nil {
		return err
	}
	if there {
		m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Parent: ingressSide, Info: info(ingressPriority, protoAll)}}
		m.add(nl.TCA_KIND, nl.ZeroTerminated("u32"))
		if err := k.do(unix.RTM_DELTFILTER, 0, m); err != nil && !gone(err) {
			return fmt.Errorf("%s: remove the redirection of what arrives: %w", d.name, err)
		}
	}
	kind, err := k.arriving(d)
	if err != nil || kind != "clsact" || keepClsact {
		return err
	}
	for _, side := range []uint32{ingressSide, ingressSide + 1} {
		if others, err := k.list(unix.RTM_GETTFILTER, d.index, side); err != nil || len(others) > 0 {
			return err
		}
	}
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: ingressHandle, Parent: ingressParent}}
	if err := k.do(unix.RTM_DELQDISC, 0, m); err != nil && !gone(err) {
		return fmt.Errorf("%s: remove clsact: %w", d.name, err)
	}
	return nil
}

// makeIFB returns the interface's ifb, made if need be and up.
func makeIFB(d *device) (*device, error) {
	name := ifbName(d.index)
	err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: name, TxQLen: leastFlight}})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, lacking("ifb", fmt.Errorf("%s: %w", name, err))
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if l.Type() != "ifb" {
		return nil, fmt.Errorf("%s: is no ifb but a %s of somebody else's: rename it", name, l.Type())
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return nil, fmt.Errorf("%s: bring it up: %w", name, err)
	}
	return &device{name: name, index: l.Attrs().Index, header: d.header}, nil
}

// removeIFB removes a device that makeIFB made; one that is not there is no error.
func removeIFB(name string) error {
	if !strings.HasPrefix(name, "hifb") {
		return fmt.Errorf("%s: is no device of this program's", name)
	}
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if l.Type() != "ifb" {
		return fmt.Errorf("%s: is no ifb but a %s of somebody else's", name, l.Type())
	}
	if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%s: remove it: %w", name, err)
	}
	return nil
}
