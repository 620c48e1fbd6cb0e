package radiotest

import (
	"fmt"
	"strings"
)

// ioctls of the private commands (net80211/ieee80211_wireless.c,
// ieee80211_priv_args), as iwpriv shows them in its errors.
const (
	ioctlSetParam = 0x8BE0
	ioctlSetMode  = 0x8BE2
	ioctlSetWMM   = 0x8BE4
)

func (t tool) iwpriv(args []string) int {
	v := t.vap(args[0])
	if v == nil || len(args) < 2 {
		fmt.Fprintf(t.err, "%-8.16s  no private ioctls.\n\n", args[0])
		return statusPriv
	}
	name, rest := args[1], args[2:]
	refused := func(ioctl int, why string) int {
		fmt.Fprintf(t.err, "Interface doesn't accept private ioctl...\n%s (%X): %s\n", name, ioctl, why)
		return statusPriv
	}
	needs := func(n int) bool {
		if len(rest) != n {
			fmt.Fprintf(t.err, "The command %s needs exactly %d argument(s)...\n", name, n)
			return false
		}
		return true
	}
	show := func(value any) int {
		fmt.Fprintf(t.out, "%-8.16s  %s:%v  \n", v.Name, name, value)
		return 0
	}
	read, get := strings.CutPrefix(name, "get_")
	switch read {
	case "cwmin", "cwmax", "aifs", "txoplimit", "noackpolicy":
		want := 3
		if get {
			want = 2
		}
		if !needs(want) {
			return statusPriv
		}
		var n [3]int
		for i, a := range rest {
			var ok bool
			if n[i], ok = number(a); !ok {
				fmt.Fprintf(t.err, "Invalid integer argument %q\n", a)
				return statusPriv
			}
		}
		if get {
			return show(t.getWMM(read, n[0], n[1]))
		}
		if why := t.setWMM(name, n[0], n[1], n[2]); why != "" {
			return refused(ioctlSetWMM, why)
		}
		return 0
	case "mode":
		if get {
			return show(t.PhyMode)
		}
		if !needs(1) {
			return statusPriv
		}
		switch rest[0] {
		case "11a", "11b", "11g", "auto":
		default:
			return refused(ioctlSetMode, invalid)
		}
		if !t.lies("mode") {
			t.PhyMode = rest[0]
		}
		return 0
	case "shpreamble", "mcast_rate", "wmm":
		p := map[string]*int{"shpreamble": &t.ShPreamble, "mcast_rate": &v.McastRate, "wmm": &t.WMM}[read]
		if get {
			return show(*p)
		}
		if !needs(1) {
			return statusPriv
		}
		n, ok := number(rest[0])
		if !ok || read == "mcast_rate" && (n < 256 || n > 54000) {
			return refused(ioctlSetParam, invalid)
		}
		if !t.lies(read) {
			*p = n
		}
		return 0
	}
	fmt.Fprintln(t.err, "Invalid command : "+name)
	return statusPriv
}

// category is the driver's own leniency: a number beyond the last is best effort.
func category(ac int) int {
	if ac < 0 || ac > 3 {
		return 0
	}
	return ac
}

// setWMM is ieee80211_ioctl_setwmmparams.
func (t tool) setWMM(name string, ac, bss, n int) string {
	if n < 0 {
		return invalid // an unsigned number beyond any bound
	}
	w := &t.Own[category(ac)]
	if bss != 0 {
		w = &t.BSS[category(ac)]
	}
	p := map[string]*int{"cwmin": &w.LogCWMin, "cwmax": &w.LogCWMax, "aifs": &w.AIFS, "txoplimit": &w.TXOP, "noackpolicy": &w.NoAck}[name]
	switch name {
	case "cwmin", "cwmax", "aifs":
		if n > 15 {
			return invalid
		}
	case "txoplimit":
		if n > 8192 {
			return invalid
		}
		n >>= 5
		if t.ShortTXOP {
			n &= 0xff
		}
	case "noackpolicy":
		if bss != 0 || n > 1 {
			return invalid
		}
	}
	if !t.lies(name) {
		*p = n
	}
	return ""
}

// getWMM is ieee80211_ioctl_getwmmparams.
func (t tool) getWMM(name string, ac, bss int) int {
	w := t.Own[category(ac)]
	if bss != 0 {
		w = t.BSS[category(ac)]
	}
	switch name {
	case "cwmin":
		return w.LogCWMin
	case "cwmax":
		return w.LogCWMax
	case "aifs":
		return w.AIFS
	case "txoplimit":
		return w.TXOP << 5
	}
	return t.Own[category(ac)].NoAck
}
