package tc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Features are what the running kernel can emulate with.
type Features struct {
	Netem   error // nil = it has it; else a *tap.Unavailable
	Seed    bool  // netem's draws can be seeded (Linux 6.6)
	TBF     error
	HTB     error // with u32 filters
	Ingress error // ifb and mirred
}

var probed struct {
	sync.Mutex
	f *Features
}

// Probe says what the running kernel has. It tries, in a network namespace of its
// own, which goes at once; nothing of the host's is touched. Its error is that
// there can be no such namespace.
func Probe() (*Features, error) {
	probed.Lock()
	defer probed.Unlock()
	if probed.f != nil {
		return probed.f, nil
	}
	f := &Features{}
	if err := elsewhere(f.probe); err != nil {
		return nil, err
	}
	if f.Netem == nil {
		// A lack is not kept: the module may come while this program runs.
		probed.f = f
	}
	return f, nil
}

// elsewhere runs f on a thread in a new network namespace.
func elsewhere(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			done <- fmt.Errorf("own network namespace: %w", err)
			return
		}
		defer unix.Close(home)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- &tap.Unavailable{What: "the kernel's link emulation", Because: fmt.Sprintf("a network namespace cannot be made to try it in: %v", err), Do: "run as root, or in a user namespace", Err: err}
			return
		}
		err = f()
		if back := unix.Setns(home, unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		} else { // the thread ends with the goroutine
			err = errors.Join(err, fmt.Errorf("return from a network namespace: %w", back))
		}
		done <- err
	}()
	return <-done
}

// probe tries everything at the namespace's own lo.
func (f *Features) probe() error {
	k, err := dial()
	if err != nil {
		return err
	}
	defer k.close()
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	d := &device{name: "lo", index: lo.Attrs().Index}
	try := func(t tree) error {
		err := k.build(d, &t, map[uint32]object{})
		return errors.Join(err, k.removeRoot(d))
	}
	n := tree{qdiscs: []qdisc{{handle: handleOf("netem", 0, 0), parent: rootOf, kind: "netem", netem: netem{latency: vtime.Millisecond, limit: leastFlight, seed: 1}}}}
	if f.Netem = k.build(d, &n, map[uint32]object{}); f.Netem == nil {
		f.Seed = k.verify(d, &n) == nil
		if err := k.removeRoot(d); err != nil {
			return err
		}
	}
	f.TBF = try(tree{qdiscs: []qdisc{{handle: handleOf("tbf", 0, 0), parent: rootOf, kind: "tbf", tbf: tbf{rate: 125000, burst: 3200, limit: 10000}}}})
	h := class{id: rootHTB | 1, rate: line, burst: bucket(line)}
	f.HTB = try(tree{qdiscs: []qdisc{{handle: rootHTB, parent: rootOf, kind: "htb"}}, classes: []class{h}, filters: []filter{{1, protoAll, h.id, []key{{}}}}})
	f.Ingress = k.probeIngress(d)
	return nil
}

func (k *kernel) probeIngress(d *device) error {
	name := ifbName(d.index)
	if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
		return lacking("ifb", fmt.Errorf("%s: %w", name, err))
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return k.steer(d, l.Attrs().Index)
}

// packages name what the distributions call the rest of the kernel's modules.
var modules = map[string]string{"netem": "sch_netem", "tbf": "sch_tbf", "htb": "sch_htb", "pfifo": "sch_fifo", "bfifo": "sch_fifo",
	"clsact": "sch_ingress", "u32": "cls_u32", "mirred": "act_mirred", "ifb": "ifb"}

// lacking turns the kernel's word for "no such module" into what a user can do.
func lacking(kind string, err error) error {
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	module := modules[kind]
	return &tap.Unavailable{What: "the kernel's link emulation", Because: fmt.Sprintf("the kernel has no %s (%v)", module, err), Do: fmt.Sprintf(
		"load it (modprobe %s); if there is no such module, install linux-modules-extra-%s (Ubuntu) or linux-image-amd64 in place of a cloud image (Debian), or use the emulator \"user\"", module, release()), Err: err}
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "$(uname -r)"
	}
	return unix.ByteSliceToString(u.Release[:])
}
