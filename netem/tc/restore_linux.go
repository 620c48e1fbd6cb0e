package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// restore puts a former root back, in place of ours.
func (k *kernel) restore(d *device, f *Former) error {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: f.Handle, Parent: rootOf}}
	m.add(nl.TCA_KIND, nl.ZeroTerminated(f.Kind))
	if len(f.Options) > 0 {
		m.add(nl.TCA_OPTIONS, f.Options)
	}
	err := k.do(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, m)
	if err != nil && len(f.Options) > 0 {
		// A description that the kernel does not take back: at least the kind.
		m.attrs = m.attrs[:1]
		err = k.do(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, m)
	}
	if err != nil {
		return fmt.Errorf("%s: put the discipline %s %s back: %w", d.name, f.Kind, handleName(f.Handle), err)
	}
	have, err := k.byParent(d)
	if err != nil {
		return err
	}
	if o := have[rootOf]; o.kind != f.Kind {
		return &NotApplied{Interface: d.name, What: "former root discipline", Wanted: f.Kind, Got: o.kind}
	}
	return nil
}
