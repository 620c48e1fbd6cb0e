package radio

import (
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/netdump"
)

func (system) Interface(name string) (Interface, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		if _, ok := err.(netlink.LinkNotFoundError); ok {
			return Interface{}, fmt.Errorf("interface %s: %w", name, fs.ErrNotExist)
		}
		return Interface{}, fmt.Errorf("interface %s: %w", name, err)
	}
	i := Interface{Up: l.Attrs().RawFlags&unix.IFF_UP != 0}
	as, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_V4) })
	if err != nil {
		return Interface{}, fmt.Errorf("addresses of %s: %w", name, err)
	}
	for _, a := range as {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			ones, _ := a.Mask.Size()
			i.Addresses = append(i.Addresses, netip.PrefixFrom(ip, ones))
		}
	}
	return i, nil
}
