//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/route"
	"github.com/hopbed/hopbed/agent/undo"
)

// The kinds of change that a session makes by itself, beside those of route and
// radio.
const (
	kindSysctl  = "sysctl"
	kindSysctls = "sysctls"
	kindMTU     = "mtu"
	kindDown    = "down"
	kindOffload = "offload"
	kindAddress = "address"
	kindBridge  = "bridge"
)

// undoers is the table of all that an agent can take back. caps are those of the
// process; another one passes new ones.
func undoers(caps *route.Caps) undo.Table {
	return undo.Table{
		undo.KindCommand: undo.RunCommand,
		kindSysctl:       undo.Of[oldSysctl](),
		kindSysctls:      undo.Of[oldSysctls](),
		kindMTU:          undo.Of[oldMTU](),
		kindDown:         undo.Of[wasDown](),
		kindOffload:      undo.Of[oldOffload](),
		kindAddress:      undo.Of[newAddress](),
		kindBridge:       undo.Of[newBridge](),
		kindShaper:       undoShaper,
		route.KindTable:  route.Restore,
		route.KindCaps:   caps.Forget,
	}
}

// device is an interface that was changed. Its index tells it from another one
// that has its name by now.
type device struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
}

func deviceOf(link netlink.Link) device {
	return device{Name: link.Attrs().Name, Index: link.Attrs().Index}
}

// find returns nil when the interface is gone.
func (d device) find() (netlink.Link, error) {
	link, err := netlink.LinkByIndex(d.Index)
	if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
		return nil, nil
	}
	return link, goneIsFine(err)
}

// goneIsFine: an interface that was removed took its settings with it.
func goneIsFine(err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

type oldSysctl struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (o oldSysctl) Undo(context.Context) error {
	now, err := readSysctl(o.Key)
	if err == nil && now != o.Value {
		err = writeSysctl(o.Key, o.Value)
	}
	// The interface may be gone, and its settings with it.
	if e, ok := errors.AsType[*proto.Error](err); ok && e.Code == proto.CodeUnavailable {
		return nil
	}
	return err
}

// oldSysctls are put back in their order.
type oldSysctls []oldSysctl

func (o oldSysctls) Undo(ctx context.Context) error {
	var errs []error
	for _, one := range o {
		errs = append(errs, one.Undo(ctx))
	}
	return errors.Join(errs...)
}

type oldMTU struct {
	Device device `json:"device"`
	MTU    int    `json:"mtu"`
}

func (o oldMTU) Undo(context.Context) error {
	link, err := o.Device.find()
	if link == nil || err != nil || link.Attrs().MTU == o.MTU {
		return err
	}
	return goneIsFine(netlink.LinkSetMTU(link, o.MTU))
}

type wasDown struct {
	Device device `json:"device"`
}

func (o wasDown) Undo(context.Context) error {
	link, err := o.Device.find()
	if link == nil || err != nil || link.Attrs().Flags&net.FlagUp == 0 {
		return err
	}
	return goneIsFine(netlink.LinkSetDown(link))
}

type oldOffload struct {
	Device  device `json:"device"`
	Offload string `json:"offload"` // it was on
}

func (o oldOffload) Undo(context.Context) error {
	link, err := o.Device.find()
	if link == nil || err != nil {
		return err
	}
	for _, f := range offloads {
		if f.name == o.Offload {
			return goneIsFine(ethtool(link.Attrs().Name, &ethtoolValue{cmd: f.set, data: 1}))
		}
	}
	return fmt.Errorf("%q is no offload", o.Offload)
}

type newAddress struct {
	Device  device       `json:"device"`
	Address netip.Prefix `json:"address"`
}

func (n newAddress) Undo(context.Context) error {
	link, err := n.Device.find()
	if link == nil || err != nil {
		return err
	}
	return goneIsFine(netlink.AddrDel(link, linkAddr(n.Address)))
}

// newBridge is a bridge that the agent made. One of its name with another
// hardware address is somebody else's.
type newBridge struct {
	Name            string `json:"name"`
	HardwareAddress string `json:"hardware_address"`
}

func (n newBridge) Undo(context.Context) error {
	link, err := netlink.LinkByName(n.Name)
	if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
		return nil
	}
	if err != nil || link.Type() != "bridge" || link.Attrs().HardwareAddr.String() != n.HardwareAddress {
		return err
	}
	return goneIsFine(netlink.LinkDel(link))
}

// push records how a change is undone. After an error it must not be made.
func (s *session) push(kind, what string, data any) error {
	if err := s.undo.Push(undo.New(kind, what, data)); err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: what, Detail: err.Error()}
	}
	return nil
}

// putBack carries out all records, as the controller is told.
func (s *session) putBack(ctx context.Context) proto.Reverted {
	r := proto.Reverted{Undone: []string{}}
	undone, failed := s.undo.Revert(ctx)
	r.Undone = append(r.Undone, undone...)
	for _, f := range failed {
		e := *proto.AsError(f.Err, proto.CodeSystem)
		if e.What == "" {
			e.What = f.Record.What
		}
		e.Node = s.name
		r.Failed = append(r.Failed, e)
	}
	return r
}
