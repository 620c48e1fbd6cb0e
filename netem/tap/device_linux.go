package tap

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DefaultQueueLength is the number of frames in the ring between the kernel and
// the emulator, which reads it at once: it has to hold one burst (a TCP send of
// 64 KiB is 45 frames, and several sockets may send together), while the queue
// that the experiment sees is the medium's. Measured: no frame is lost in it in
// a mesh of 100 nodes with 100 TCP flows at 54 Mb/s.
const DefaultQueueLength = 256

// MaxFrame is the longest frame of a device: Ethernet header and MTU. Without
// IFF_VNET_HDR the kernel segments and checksums before it hands frames over,
// so none is longer.
const MaxFrame = 14 + MTU

// Config describes a device.
type Config struct {
	Name            string // interface name; "" = Interface
	HardwareAddress HardwareAddress
	MTU             int // bytes; 0 = MTU
	QueueLength     int // frames; 0 = DefaultQueueLength
	// IPv6 leaves IPv6 on in the namespace; without it it is switched off before
	// the device comes up.
	IPv6 bool
}

// Device is a TAP device that lives in another process's network namespace and
// as long as its descriptor is open. Read and Write do not allocate.
type Device struct {
	fd   int
	name string
	pid  int
}

// Create makes a device in the network namespace of process pid, gives it its
// address, MTU and queue length, and brings it up. IPv6 is switched off in the
// namespace before, unless the description keeps it. The device vanishes with Close, with the process that holds
// it, or with the namespace.
//
// IFF_VNET_HDR is not set (the device would get segments of 64 KiB), nor
// IFF_NAPI (GRO would change TCP's acknowledgements).
func Create(pid int, c Config) (*Device, error) {
	if c.Name == "" {
		c.Name = Interface
	}
	if c.MTU == 0 {
		c.MTU = MTU
	}
	if c.QueueLength == 0 {
		c.QueueLength = DefaultQueueLength
	}
	if c.MTU < 68 || c.MTU > MTU {
		return nil, fmt.Errorf("device %s: MTU %d is out of range: want 68 to %d bytes", c.Name, c.MTU, MTU)
	}
	d := &Device{fd: -1, name: c.Name, pid: pid}
	err := InNamespace(pid, func() error {
		quiet := silenceIPv6
		if c.IPv6 {
			quiet = calmIPv6
		}
		if err := quiet(); err != nil {
			return err
		}
		return d.open(c)
	})
	if err != nil {
		if d.fd >= 0 {
			_ = unix.Close(d.fd)
		}
		return nil, fmt.Errorf("device %s in the namespace of process %d: %w", c.Name, pid, err)
	}
	return d, nil
}

const tunPath = "/dev/net/tun"

func (d *Device) open(c Config) error {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return unavailable(err)
	}
	d.fd = fd
	ifr, err := unix.NewIfreq(c.Name)
	if err != nil {
		return fmt.Errorf("interface name %q: %w (at most %d characters)", c.Name, err, unix.IFNAMSIZ-1)
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		if errors.Is(err, unix.EPERM) {
			return unavailable(err)
		}
		return fmt.Errorf("create the interface: %w", err)
	}
	return configure(c)
}

// unavailable explains why a TAP cannot be made here.
func unavailable(err error) error {
	u := &Unavailable{What: "TAP devices", Err: err}
	switch {
	case errors.Is(err, unix.ENOENT):
		u.Because, u.Do = tunPath+" does not exist", "load the module with `modprobe tun`, or pass the device into the container (docker run --device /dev/net/tun)"
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		u.Because, u.Do = fmt.Sprintf("%s: %v: the kernel has no TUN/TAP driver", tunPath, err), "load the module with `modprobe tun` (CONFIG_TUN)"
	case errors.Is(err, unix.EACCES):
		u.Because, u.Do = fmt.Sprintf("%s: %v", tunPath, err), "run as root, or let users open it with `chmod 0666 "+tunPath+"` (most distributions do)"
	case errors.Is(err, unix.EPERM):
		u.Because, u.Do = fmt.Sprintf("%s: %v", tunPath, err), "run as root; inside a container allow the device and CAP_NET_ADMIN (docker run --device /dev/net/tun --cap-add NET_ADMIN --cap-add SYS_ADMIN)"
	default:
		return fmt.Errorf("open %s: %w", tunPath, err)
	}
	return u
}

// Probe says whether a TAP device could be opened here, without making one.
func Probe() error {
	f, err := os.OpenFile(tunPath, os.O_RDWR, 0)
	if err != nil {
		return unavailable(err)
	}
	return f.Close()
}

// ErrEmpty is what Read returns when no frame waits.
const ErrEmpty = unix.EAGAIN

// Read takes one frame. It never blocks: it fails with ErrEmpty when none
// waits. A frame longer than b is cut.
func (d *Device) Read(b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Write hands one frame to the namespace: the receiver's network stack runs
// inside this call.
func (d *Device) Write(b []byte) error {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Counters reads the interface's counts through the process in whose namespace
// it lives; it fails when that process has ended.
func (d *Device) Counters() (Counters, error) {
	path := fmt.Sprintf("/proc/%d/net/dev", d.pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return Counters{}, fmt.Errorf("counters of %s: %w", d.name, err)
	}
	c, err := parseCounters(b, d.name)
	if err != nil {
		return Counters{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// FD is the descriptor, for a poll loop. It stays with the device.
func (d *Device) FD() int { return d.fd }

// Name is the interface's name inside the namespace.
func (d *Device) Name() string { return d.name }

// Close removes the device.
func (d *Device) Close() error { return unix.Close(d.fd) }
