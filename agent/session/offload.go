//go:build linux

package session

import (
	"errors"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

// offloads is the table of what would make "packets" on the interface
// something else than packets on the air, with the ioctl commands that get and
// set each (linux/ethtool.h).
var offloads = []struct {
	name     string
	get, set uint32
}{
	{"tso", unix.ETHTOOL_GTSO, unix.ETHTOOL_STSO},
	{"gso", unix.ETHTOOL_GGSO, unix.ETHTOOL_SGSO},
	{"gro", unix.ETHTOOL_GGRO, unix.ETHTOOL_SGRO},
}

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct{ cmd, data uint32 }

func ethtool(iface string, v *ethtoolValue) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// struct ifreq: the name, then a pointer to the command.
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	if len(iface) >= unix.IFNAMSIZ {
		return unix.EINVAL
	}
	copy(req.name[:], iface)
	req.data = unsafe.Pointer(v)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

func readOffloads(iface string) ([]proto.Offload, error) {
	var out []proto.Offload
	for _, o := range offloads {
		v := ethtoolValue{cmd: o.get}
		err := ethtool(iface, &v)
		if errors.Is(err, unix.EOPNOTSUPP) {
			continue // the driver does not have it
		}
		if err != nil {
			return nil, &proto.Error{Code: proto.CodeSystem, What: o.name + " of " + iface, Detail: err.Error()}
		}
		out = append(out, proto.Offload{Name: o.name, On: v.data != 0})
	}
	return out, nil
}

func (s *session) offloadsOff(link netlink.Link) error {
	iface := link.Attrs().Name
	have, err := readOffloads(iface)
	if err != nil {
		return err
	}
	for _, h := range have {
		if !h.On {
			continue
		}
		for _, o := range offloads {
			if o.name != h.Name {
				continue
			}
			if err := s.push(kindOffload, o.name+" of "+iface, oldOffload{deviceOf(link), o.name}); err != nil {
				return err
			}
			if err := ethtool(iface, &ethtoolValue{cmd: o.set}); err != nil {
				return &proto.Error{Code: proto.CodeSystem, What: o.name + " of " + iface, Wanted: "off", Got: "on", Detail: err.Error()}
			}
		}
	}
	return nil
}
