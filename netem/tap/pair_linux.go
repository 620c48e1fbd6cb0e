package tap

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Attributes of a veth pair (linux/if_link.h, linux/veth.h).
const (
	linkInfoKind = 1
	linkInfoData = 2
	vethInfoPeer = 1
)

// Pair joins two network namespaces by a pair of virtual Ethernet devices, one at
// either end: a cable that the kernel carries by itself. pids name a process in
// each. The devices get address, MTU and queue length, and come up; IPv6 is
// switched off in the namespaces before, unless the descriptions keep it. Both
// vanish when either namespace does.
func Pair(pids [2]int, ends [2]Config) error {
	for i := range ends {
		c := &ends[i]
		if c.MTU == 0 {
			c.MTU = MTU
		}
		if c.QueueLength == 0 {
			c.QueueLength = DefaultQueueLength
		}
		if c.Name == "" {
			return fmt.Errorf("a pair of devices: end %d has no name", i)
		}
	}
	fail := func(err error) error {
		return fmt.Errorf("devices %s and %s in the namespaces of processes %d and %d: %w", ends[0].Name, ends[1].Name, pids[0], pids[1], err)
	}
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pids[1]))
	if err != nil {
		return fail(err)
	}
	defer there.Close()
	for i := range ends {
		if ends[i].IPv6 {
			continue
		}
		if err := InNamespace(pids[i], silenceIPv6); err != nil {
			return fail(err)
		}
	}
	err = InNamespace(pids[0], func() error { return makePair(ends, int(there.Fd())) })
	for i := range ends {
		if err == nil {
			err = InNamespace(pids[i], func() error { return configure(ends[i]) })
		}
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// makePair makes the devices, the second one in another namespace.
func makePair(ends [2]Config, there int) error {
	name := func(b []byte, c Config) []byte {
		b = attribute(b, unix.IFLA_IFNAME, append([]byte(c.Name), 0))
		return attribute(b, unix.IFLA_ADDRESS, c.HardwareAddress[:])
	}
	peer := name(make([]byte, unix.SizeofIfInfomsg), ends[1])
	peer = attribute(peer, unix.IFLA_NET_NS_FD, binary.NativeEndian.AppendUint32(nil, uint32(there)))
	info := attribute(nil, linkInfoKind, []byte("veth"))
	info = attribute(info, linkInfoData, attribute(nil, vethInfoPeer, peer))
	body := attribute(name(make([]byte, unix.SizeofIfInfomsg), ends[0]), unix.IFLA_LINKINFO, info)
	if err := request(unix.RTM_NEWLINK, body, unix.NLM_F_CREATE|unix.NLM_F_EXCL); err != nil {
		if err == unix.EOPNOTSUPP {
			return &Unavailable{What: "pairs of virtual Ethernet devices", Because: "the kernel has no veth: " + err.Error(), Do: "load the module with `modprobe veth`, or use the emulator \"user\"", Err: err}
		}
		return fmt.Errorf("create them: %w", err)
	}
	return nil
}
