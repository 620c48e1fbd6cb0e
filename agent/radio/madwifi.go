package radio

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/undo"
)

// madwifi drives Atheros interfaces of the MadWifi driver through the Wireless
// Extensions' tools and wlanconfig. The clauses of its sources are those of
// madwifi-0.9.4, net80211/ieee80211_wireless.c where no other file is named.
type madwifi struct {
	// settle bounds the wait for the interface to be on its channel and in its cell.
	settle time.Duration
}

const madwifiBase = "wifi0"

// wmeCategory is the driver's number of each of Config.Queues
// (net80211/ieee80211.h, WME_AC_BE 0, BK 1, VI 2, VO 3). A number beyond them is
// silently taken as best effort (ieee80211_ioctl_setwmmparams).
var wmeCategory = [4]int{1, 0, 2, 3}

// What of the driver's tables a queue's command concerns: the interface's own
// transmissions, or what an access point tells its stations (the argument "bss"
// of ieee80211_ioctl_setwmmparams).
const (
	wmeOwn = "0"
	wmeBSS = "1"
)

// wlanModes are the modes as wlanconfig takes them (tools/man/wlanconfig.8), with
// those that an interface may have been and is not made into, by the names that
// iwconfig has for them.
var wlanModes = map[string]string{
	string(ModeAdhoc): "adhoc", string(ModeAhdemo): "ahdemo", string(ModeStation): "sta", string(ModeAP): "ap",
	"monitor": "monitor", "repeater": "wds",
}

// phyModes are the standards as iwpriv mode takes and shows them.
var phyModes = map[string]string{"802.11a": "11a", "802.11b": "11b", "802.11g": "11g", valueAuto: "auto"}

func (madwifi) Name() string { return Madwifi }

func (d madwifi) Plan(c Config) ([]Step, error) {
	cs, err := d.changes(c, nil)
	return plan(cs), err
}

func (d madwifi) Probe(_ context.Context, h Host, c Config) error {
	for _, p := range []struct{ name, pkg string }{
		{"iwconfig", "wireless-tools"}, {"iwpriv", "wireless-tools"}, {"wlanconfig", "madwifi-tools"}, {"ip", "iproute2"},
	} {
		if err := h.Look(p.name); err != nil {
			return c.fail(Unavailable, "", "", "the program "+p.name+" is not there", "install the package "+p.pkg)
		}
	}
	if _, err := h.Interface(c.Interface); err == nil {
		if _, err := h.ReadFile(parentFile(c.Interface)); err != nil {
			return c.fail(Unavailable, "", "", fmt.Sprintf("%s is no interface of MadWifi: %v", c.Interface, err),
				"name MadWifi's interface, or take the driver "+NL80211+" (ath5k, ath9k …)")
		}
		return nil
	}
	base := cmp.Or(c.Device, madwifiBase)
	if _, err := h.Interface(base); err != nil {
		return c.fail(Unavailable, "", "", fmt.Sprintf("there is neither %s nor its base device %s", c.Interface, base), "load the driver: modprobe ath_pci")
	}
	if c.Mode == "" {
		return c.fail(Unavailable, "", "", "the interface is not there, and without a mode it cannot be created", "write mode: adhoc in the inventory")
	}
	return nil
}

// parentFile holds the name of an interface's base device
// (net80211/ieee80211_linux.c, "%parent").
func parentFile(iface string) string { return "/proc/sys/net/" + iface + "/%parent" }

func (d madwifi) Apply(ctx context.Context, h Host, c Config, push undo.Push) error {
	var iface Interface
	before := state{}
	if i, err := h.Interface(c.Interface); err == nil {
		iface = i
		if before, err = d.read(ctx, h, c); err != nil {
			return err
		}
		before[stateExists] = c.Interface
		if i.Up {
			before[stateUp] = "up"
		}
		if c.Mode != "" && wlanModes[before[settingMode]] == "" {
			return c.fail(Unavailable, settingMode, string(c.Mode), fmt.Sprintf("the interface is in the mode %q, which could not be put back", before[settingMode]), "destroy it first: wlanconfig "+c.Interface+" destroy")
		}
	}
	cs, err := d.changes(c, &iface)
	if err != nil {
		return err
	}
	return c.apply(ctx, h, cs, before, push)
}

// What else Apply knows of the interface beside its settings.
const (
	stateExists = "+exists"
	stateUp     = "+up"
)

// changes plans; iface is the interface as it was, nil where nobody has looked.
func (d madwifi) changes(c Config, iface *Interface) ([]change, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	var out []change
	if c.Mode != "" {
		mode, err := d.mode(c, iface)
		if err != nil {
			return nil, err
		}
		out = mode
	}
	keep := func(before state) bool { return c.Mode == "" || d.inMode(c, before) }
	for _, v := range d.ordered(c) {
		argv, err := d.command(c, v, wmeOwn)
		if err != nil {
			return nil, err
		}
		one := change{Step: Step{Argv: argv, Settings: []string{v.name}, Why: whyOf(v.name)}, remedy: madwifiRemedies[v.name]}
		one.undo = func(before state) [][]string {
			old, ok := before[v.name]
			if !ok || !keep(before) { // a new interface has nothing to be put back
				return nil
			}
			back := []value{{v.name, old}}
			// The old rate may be none of the new standard: it comes back after the old one.
			if r, ok := before[settingRate]; ok && v.name == settingStandard {
				back = append(back, value{settingRate, r})
			}
			if v.name == settingRate && c.Standard != "" {
				back[0].text = valueAuto
			}
			var out [][]string
			for _, b := range back {
				if argv, err := d.command(c, b, wmeOwn); err == nil { // else only the driver itself can have made it
					out = append(out, argv)
				}
			}
			return out
		}
		if first, _, ok := strings.Cut(v.name, "."); ok && !planned(out, "wmm") {
			out = append(out, d.wmm(c, first))
		}
		out = append(out, one)
		if c.Mode == ModeAP && strings.Contains(v.name, ".") && !strings.HasSuffix(v.name, "."+queueAck) {
			// The policy of acknowledgements is of the own transmissions alone: the driver
			// refuses it for the others (IEEE80211_WMMPARAMS_NOACKPOLICY with bss).
			tell := one
			tell.undo = func(before state) [][]string {
				argv, err := d.command(c, value{v.name, before[stateBSS+v.name]}, wmeBSS)
				if before[stateBSS+v.name] == "" || err != nil {
					return nil
				}
				return [][]string{argv}
			}
			tell.Why = "the same for the stations: an access point tells them their parameters"
			if tell.Argv, err = d.command(c, v, wmeBSS); err != nil {
				return nil, err
			}
			out = append(out, tell)
		}
	}
	if len(out) > 0 {
		out = append(out, change{
			Step: Step{Argv: []string{"ip", "link", "set", "dev", c.Interface, "up"}, Why: "settings take effect on an interface that is up", Unless: c.Interface + " is up"},
			met:  func(before state) bool { return before[stateUp] != "" && keep(before) },
			undo: func(before state) [][]string {
				if before[stateExists] == "" || before[stateUp] != "" {
					return nil
				}
				return [][]string{{"ip", "link", "set", "dev", c.Interface, "down"}}
			},
		})
	}
	return out, nil
}

func planned(cs []change, word string) bool {
	for i := range cs {
		if len(cs[i].Argv) > 2 && cs[i].Argv[2] == word {
			return true
		}
	}
	return false
}

// inMode tells whether the interface is in the wanted mode. iwconfig shows an
// ahdemo interface as ad hoc, so that nothing is known to be one.
func (madwifi) inMode(c Config, before state) bool {
	return before[settingMode] == string(c.Mode) && c.Mode != ModeAhdemo
}

// mode makes the interface anew: the driver refuses to change the mode of one
// (ieee80211_ioctl_siwmode).
func (d madwifi) mode(c Config, iface *Interface) ([]change, error) {
	if c.Mode == ModeMesh {
		return nil, c.fail(Unsupported, settingMode, string(c.Mode), "MadWifi has no 802.11s", "take adhoc or ahdemo")
	}
	base := cmp.Or(c.Device, madwifiBase)
	create := func(mode string) []string {
		return []string{"wlanconfig", c.Interface, "create", "wlandev", base, "wlanmode", wlanModes[mode]}
	}
	destroy := []string{"wlanconfig", c.Interface, "destroy"}
	var addresses [][]string
	up := false
	if iface != nil {
		up = iface.Up
		for _, a := range iface.Addresses {
			addresses = append(addresses, []string{"ip", "address", "add", a.String(), "dev", c.Interface})
		}
	}
	back := func(before state) [][]string {
		c := c
		c.Mode = Mode(before[settingMode])
		cmds := [][]string{destroy, create(before[settingMode])}
		for _, name := range d.restored(c) {
			if old, ok := before[name]; ok {
				if argv, err := d.command(c, value{name, old}, wmeOwn); err == nil {
					cmds = append(cmds, argv)
				}
			}
		}
		cmds = append(cmds, addresses...)
		if up {
			cmds = append(cmds, []string{"ip", "link", "set", "dev", c.Interface, "up"})
		}
		return cmds
	}
	unless := c.Interface + " is in this mode"
	if c.Mode == ModeAhdemo {
		unless = "" // iwconfig cannot tell
	}
	gone := unless
	if gone != "" {
		gone += ", or "
	}
	return []change{
		{
			Step: Step{Argv: destroy, Why: "MadWifi changes no interface's mode; it makes a new one", Unless: gone + "there is no " + c.Interface},
			met:  func(b state) bool { return b[stateExists] == "" || d.inMode(c, b) },
			undo: back,
		},
		{
			Step: Step{Argv: create(string(c.Mode)), Settings: []string{settingMode}, Why: "the interface, with the addresses that it had", Unless: unless},
			met:  func(b state) bool { return d.inMode(c, b) },
			undo: func(b state) [][]string {
				if b[stateExists] != "" {
					return nil // what the step before pushed makes the old one again
				}
				return [][]string{destroy}
			},
			after: func(ctx context.Context, h Host) error {
				for _, argv := range addresses {
					if _, err := h.Run(ctx, argv, ""); err != nil {
						return c.refused(&change{Step: Step{Argv: argv}}, err)
					}
				}
				return nil
			},
		},
	}, nil
}

// wmm switches the parameters of the categories on, which an interface without
// WMM ignores.
func (d madwifi) wmm(c Config, category string) change {
	return change{
		Step: Step{Argv: []string{"iwpriv", c.Interface, "wmm", "1"}, Why: "802.11e, for " + category + " and the others", Unless: "it is on (iwpriv " + c.Interface + " get_wmm)"},
		met:  func(b state) bool { return b[stateWMM] == "1" },
		undo: func(b state) [][]string {
			if b[stateWMM] == "" {
				return nil
			}
			return [][]string{{"iwpriv", c.Interface, "wmm", b[stateWMM]}}
		},
		remedy: "load the driver with WMM (the hardware needs more than one transmit queue)",
	}
}

const (
	stateWMM = "+wmm"
	stateBSS = "+bss:" // before the name of a queue's setting: what stations are told
)

// ordered is Config.values in the order in which the driver wants them: the
// PHY's mode before the channel, which it may discard (ieee80211_ioctl_setmode),
// and the name of the network last, since it begins the join.
func (madwifi) ordered(c Config) []value {
	rank := map[string]int{settingStandard: 0, settingPreamble: 1, settingChannel: 2, settingBSSID: 3, settingNetwork: 4}
	var early [5]*value
	var late []value
	for _, v := range c.values() {
		if v.name == settingMode {
			continue
		}
		if r, ok := rank[v.name]; ok {
			early[r] = &v
			continue
		}
		late = append(late, v)
	}
	var out []value
	for _, v := range early {
		if v != nil {
			out = append(out, *v)
		}
	}
	return append(out, late...)
}

// restored are the settings that are lost with an interface.
func (d madwifi) restored(c Config) []string {
	names := []string{settingStandard, settingPreamble, settingChannel, settingBSSID, settingNetwork, settingRate, settingTxPower, settingRTS, settingFragment}
	for _, v := range c.values() {
		if strings.Contains(v.name, ".") || v.name == settingBasicRate || v.name == settingRetries {
			names = append(names, v.name)
		}
	}
	return names
}
