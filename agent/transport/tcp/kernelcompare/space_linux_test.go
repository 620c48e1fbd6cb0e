package kernelcompare

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// space is a network namespace of its own, held by one locked thread that
// runs what it is given. The namespace dies with the thread and its sockets.
type space struct {
	do chan func()
	fd int
}

func newSpace(addr, peer string, mac, peerMAC byte) (*space, error) {
	s := &space{do: make(chan func())}
	errc := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not be reused
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = s.setup(addr, peer, mac, peerMAC)
		}
		errc <- err
		if err != nil {
			return
		}
		for f := range s.do {
			f()
		}
	}()
	return s, <-errc
}

// run executes f on the namespace's thread.
func (s *space) run(f func() error) error {
	errc := make(chan error)
	s.do <- func() { errc <- f() }
	return <-errc
}

func (s *space) close() {
	close(s.do)
	unix.Close(s.fd)
}

func (s *space) setup(addr, peer string, mac, peerMAC byte) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq("tap0")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI) // no IFF_VNET_HDR: no TSO
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	s.fd = fd
	hw := func(b byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, b} }
	link, err := netlink.LinkByName("tap0")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetHardwareAddr(link, hw(mac)); err != nil {
		return err
	}
	a, err := netlink.ParseAddr(addr + "/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, a); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	if err := netlink.NeighAdd(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: unix.AF_INET,
		State: netlink.NUD_PERMANENT, IP: net.ParseIP(peer), HardwareAddr: hw(peerMAC)}); err != nil {
		return err
	}
	for k, v := range map[string]string{"ipv4/tcp_no_metrics_save": "1", "ipv6/conf/all/disable_ipv6": "1"} {
		if err := os.WriteFile("/proc/sys/net/"+k, []byte(v), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
