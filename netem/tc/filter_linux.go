package tc

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// u32 matches words of a packet (net/sched/cls_u32.c, linux/pkt_cls.h).
const (
	u32ClassID  = 1
	u32Sel      = 5
	u32Act      = 7
	u32Terminal = 1

	actKind    = 1
	actOptions = 2
	mirredSpec = 2

	actStolen   = 4 // TC_ACT_STOLEN
	egressRedir = 1 // TCA_EGRESS_REDIR
)

// info is where a filter's priority and protocol are in a message.
func info(priority, protocol uint16) uint32 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], protocol)
	return uint32(priority)<<16 | uint32(native.Uint16(b[:]))
}

// selector is struct tc_u32_sel with its keys.
func selector(keys []key) []byte {
	b := make([]byte, 16)
	b[0], b[2] = u32Terminal, byte(len(keys))
	for _, k := range keys {
		b = binary.BigEndian.AppendUint32(b, k.mask)
		b = binary.BigEndian.AppendUint32(b, k.value&k.mask)
		b = append(b, u32s(uint32(k.offset), 0)...)
	}
	return b
}

func (f *filter) message(index int, parent uint32) *message {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent, Info: info(f.priority, f.protocol)}}
	m.add(nl.TCA_KIND, nl.ZeroTerminated("u32"))
	o := m.add(nl.TCA_OPTIONS, nil)
	o.AddRtAttr(u32ClassID, u32s(f.class))
	o.AddRtAttr(u32Sel, selector(f.keys))
	return m
}

// redirect is the filter that sends all that arrives to another device.
func redirect(index int, parent uint32, to int) *message {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent, Info: info(ingressPriority, protoAll)}}
	m.add(nl.TCA_KIND, nl.ZeroTerminated("u32"))
	o := m.add(nl.TCA_OPTIONS, nil)
	o.AddRtAttr(u32Sel, selector([]key{{}}))
	act := o.AddRtAttr(u32Act, nil).AddRtAttr(1, nil)
	act.AddRtAttr(actKind, nl.ZeroTerminated("mirred"))
	act.AddRtAttr(actOptions, nil).AddRtAttr(mirredSpec, u32s(0, 0, actStolen, 0, 0, egressRedir, uint32(to)))
	return m
}

// present is a filter as the kernel has it.
type present struct {
	info  uint32 // priority and protocol
	class uint32
	sel   string
}

func comparePresent(a, b present) int {
	return cmp.Or(cmp.Compare(a.info, b.info), cmp.Compare(a.class, b.class), cmp.Compare(a.sel, b.sel))
}

// readFilters returns the filters of a discipline by their place.
func (k *kernel) readFilters(index int, parent uint32) ([]present, error) {
	list, err := k.list(unix.RTM_GETTFILTER, index, parent)
	if err != nil {
		return nil, err
	}
	var out []present
	for _, o := range list {
		a, err := attributes(o.options)
		if err != nil {
			return nil, err
		}
		if sel := a[u32Sel]; sel != nil {
			p := present{info: o.info, sel: string(normal(sel))}
			if c := a[u32ClassID]; len(c) >= 4 {
				p.class = native.Uint32(c)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// normal is a selector without what the kernel adds to it.
func normal(sel []byte) []byte {
	if len(sel) < 16 {
		return sel
	}
	n := int(sel[2])
	b := make([]byte, 16, len(sel))
	b[0], b[2] = sel[0]&u32Terminal, sel[2]
	for i := range n {
		if at := 16 + 16*i; at+16 <= len(sel) {
			b = append(b, sel[at:at+16]...)
		}
	}
	return b
}

func places(want []filter) []present {
	out := make([]present, len(want))
	for i := range want {
		out[i] = present{info(want[i].priority, want[i].protocol), want[i].class, string(selector(want[i].keys))}
	}
	return out
}

// setFilters makes the filters of a discipline those that are wanted: what is
// there already stays, so that no packet passes by.
func (k *kernel) setFilters(index int, parent uint32, want []filter) error {
	have, err := k.readFilters(index, parent)
	if err != nil {
		return err
	}
	wanted := places(want)
	// A place (priority and protocol) whose filters differ is made anew.
	group := func(ps []present) map[uint32][]present {
		g := map[uint32][]present{}
		for _, p := range ps {
			g[p.info] = append(g[p.info], p)
		}
		for _, ps := range g {
			slices.SortFunc(ps, comparePresent)
		}
		return g
	}
	old, now := group(have), group(wanted)
	keep := map[uint32]bool{}
	for place, ps := range old {
		if slices.Equal(ps, now[place]) {
			keep[place] = true
			continue
		}
		m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent, Info: place}}
		m.add(nl.TCA_KIND, nl.ZeroTerminated("u32"))
		if err := k.do(unix.RTM_DELTFILTER, 0, m); err != nil {
			return fmt.Errorf("remove the filters of priority %d: %w", place>>16, err)
		}
	}
	for i := range want {
		if keep[wanted[i].info] {
			continue
		}
		if err := k.do(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL, want[i].message(index, parent)); err != nil {
			return fmt.Errorf("filter of priority %d: %w", want[i].priority, err)
		}
	}
	return k.verifyFilters(index, parent, want)
}

// verifyFilters compares the filters of a discipline with those that are wanted.
func (k *kernel) verifyFilters(index int, parent uint32, want []filter) error {
	wanted := places(want)
	have, err := k.readFilters(index, parent)
	if err != nil {
		return err
	}
	slices.SortFunc(have, comparePresent)
	slices.SortFunc(wanted, comparePresent)
	if !slices.Equal(have, wanted) {
		return &NotApplied{What: "filters of " + handleName(parent), Wanted: fmt.Sprintf("%d, as asked", len(wanted)), Got: fmt.Sprintf("%d", len(have))}
	}
	return nil
}
