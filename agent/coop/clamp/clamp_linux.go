package clamp

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

// Clamp is a program in the kernel, and the caps that it has set.
//
// The program belongs to the control group of this process. Everything hangs on
// descriptors of this process: when it ends, however it does, the kernel takes the
// program away (bpf_link, Linux 5.7), so that no record of the change is needed. It
// sees the events of other sockets of the group as well, and leaves those that were
// not added alone.
type Clamp struct {
	caps *ebpf.Map
	prog *ebpf.Program
	at   link.Link
}

// value is an element of the map, by the socket's cookie.
type value struct {
	Cap     uint32 // segments; 0 = not yet any
	Applied uint32 // the cap that the kernel has taken
}

// None is the cap of a window that may grow as it likes.
const None = math.MaxInt32

// maxSockets bounds the sockets that are added at one time.
const maxSockets = 4096

// New loads the program. The error is of proto.CodeUnavailable where this kernel,
// or the rights of this process, do not allow it.
func New() (*Clamp, error) {
	c := &Clamp{}
	if err := c.open(); err != nil {
		return nil, errors.Join(unavailable(err), c.Close())
	}
	return c, nil
}

func unavailable(err error) error {
	e := &proto.Error{Code: proto.CodeUnavailable, What: "caps of live TCP sockets by BPF (TCP_BPF_SNDCWND_CLAMP)", Detail: err.Error()}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, fs.ErrPermission):
		e.Remedy = "run as root, or with the capabilities CAP_BPF and CAP_NET_ADMIN outside a user namespace"
	case errors.Is(err, fs.ErrNotExist):
		e.Remedy = "mount a cgroup2 hierarchy (mount -t cgroup2 none /sys/fs/cgroup)"
	default:
		e.Remedy = "use Linux 5.7 or later with CONFIG_CGROUP_BPF"
	}
	return e
}

func (c *Clamp) open() (err error) {
	group, err := ownGroup()
	if err != nil {
		return err
	}
	// Before Linux 5.11 a map counts as locked memory; where this fails, the map says so.
	_ = rlimit.RemoveMemlock()
	c.caps, err = ebpf.NewMap(&ebpf.MapSpec{Name: "hopbed_caps", Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: maxSockets})
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	c.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "hopbed_clamp", Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, Instructions: program(c.caps.FD())})
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	dir, err := os.Open(group)
	if err != nil {
		return err
	}
	defer dir.Close()
	// Not AttachCgroup, which without links would leave the program there when this
	// process is killed.
	c.at, err = link.AttachRawLink(link.RawLinkOptions{Target: int(dir.Fd()), Program: c.prog, Attach: ebpf.AttachCGroupSockOps})
	if err != nil {
		return fmt.Errorf("attach to %s: %w", group, err)
	}
	return nil
}

// The numbers of linux/bpf.h that the program needs.
const (
	opEstablished = 4      // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB
	opRTT         = 12     // BPF_SOCK_OPS_RTT_CB
	flagRTT       = 1 << 3 // BPF_SOCK_OPS_RTT_CB_FLAG
	sndCwndClamp  = 1002   // TCP_BPF_SNDCWND_CLAMP
	ctxOp         = 0      // struct bpf_sock_ops: op
	ctxReply      = 4      // and reply
)

// program is called by the kernel when a connection of the group stands, and then,
// for those that are in the map, at every measurement of the round-trip time: there
// it sets a cap that is new. TCP_BPF_SNDCWND_CLAMP sets the most that the window
// grows to and, with it, the slow-start threshold.
func program(caps int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.StoreImm(asm.R6, ctxReply, -1, asm.Word), // no answer of ours to other questions
		asm.LoadMem(asm.R7, asm.R6, ctxOp, asm.Word),
		asm.JEq.Imm(asm.R7, opEstablished, "ours"),
		asm.JNE.Imm(asm.R7, opRTT, "out"),

		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("ours"),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, caps),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -8),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JEq.Imm(asm.R7, opRTT, "set"),

		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, flagRTT),
		asm.FnSockOpsCbFlagsSet.Call(),
		asm.Ja.Label("out"),

		asm.LoadMem(asm.R9, asm.R8, 0, asm.Word).WithSymbol("set"),
		asm.JEq.Imm(asm.R9, 0, "out"),
		asm.LoadMem(asm.R1, asm.R8, 4, asm.Word),
		asm.JEq.Reg(asm.R1, asm.R9, "out"),
		asm.StoreMem(asm.RFP, -16, asm.R9, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, unix.SOL_TCP),
		asm.Mov.Imm(asm.R3, sndCwndClamp),
		asm.Mov.Reg(asm.R4, asm.RFP),
		asm.Add.Imm(asm.R4, -16),
		asm.Mov.Imm(asm.R5, 4),
		asm.FnSetsockopt.Call(),
		asm.JNE.Imm(asm.R0, 0, "out"),
		asm.StoreMem(asm.R8, 4, asm.R9, asm.Word),

		asm.Mov.Imm(asm.R0, 1).WithSymbol("out"),
		asm.Return(),
	}
}

// Add makes a socket that is not yet connected one of those that can be capped. It
// returns the key by which it is.
func (c *Clamp) Add(fd int) (key uint64, err error) {
	key, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return 0, &proto.Error{Code: proto.CodeSystem, What: "SO_COOKIE", Detail: err.Error()}
	}
	return key, c.put(key, 0)
}

// Set caps a socket at n segments, from its next measurement of the round-trip
// time on; None takes the cap away.
func (c *Clamp) Set(key uint64, n int) error {
	if n < 1 || n > None {
		return &proto.Error{Code: proto.CodeOrder, What: "cap of a congestion window", Got: fmt.Sprint(n), Wanted: fmt.Sprintf("1 to %d", None)}
	}
	return c.put(key, uint32(n))
}

func (c *Clamp) put(key uint64, cap uint32) error {
	if err := c.caps.Put(key, value{Cap: cap}); err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "cap of a congestion window", Wanted: fmt.Sprint(cap), Detail: err.Error()}
	}
	return nil
}

// Applied returns the cap that the kernel took last for a socket; 0 = none since it
// was last set.
func (c *Clamp) Applied(key uint64) (int, error) {
	var v value
	if err := c.caps.Lookup(key, &v); err != nil {
		return 0, &proto.Error{Code: proto.CodeSystem, What: "cap of a congestion window", Detail: err.Error()}
	}
	return int(v.Applied), nil
}

// Remove forgets a socket, which keeps its last cap.
func (c *Clamp) Remove(key uint64) { _ = c.caps.Delete(key) } // it is there, or nothing is to be done

// Close takes the program out of the kernel. It may be called twice.
func (c *Clamp) Close() error {
	var errs []error
	if c.at != nil {
		errs = append(errs, c.at.Close())
	}
	errs = append(errs, c.prog.Close(), c.caps.Close())
	*c = Clamp{}
	return errors.Join(errs...)
}

// ownGroup is the folder of the cgroup2 control group of this process.
func ownGroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mount, root, ok := mountOf(string(mounts))
	if !ok {
		return "", fmt.Errorf("no cgroup2 hierarchy is mounted: %w", fs.ErrNotExist)
	}
	own, ok := groupOf(string(groups))
	if !ok {
		return "", fmt.Errorf("this process is in no group of cgroup2: %w", fs.ErrNotExist)
	}
	// A container sees its own part of the hierarchy as the root.
	rel, err := filepath.Rel(root, own)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return mount, nil
	}
	return filepath.Join(mount, rel), nil
}

// mountOf finds the cgroup2 hierarchy in the text of mountinfo (proc(5)).
func mountOf(mountinfo string) (at, root string, ok bool) {
	for line := range strings.Lines(mountinfo) {
		before, after, found := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if t := strings.Fields(after); found && len(f) > 4 && len(t) > 0 && t[0] == "cgroup2" {
			return f[4], f[3], true
		}
	}
	return "", "", false
}

// groupOf finds this process's group of the unified hierarchy (cgroups(7)).
func groupOf(cgroup string) (string, bool) {
	for line := range strings.Lines(cgroup) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(rest, "\n"), true
		}
	}
	return "", false
}
