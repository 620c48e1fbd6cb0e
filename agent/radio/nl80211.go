package radio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/netem/vtime"
)

// nl80211 drives the interfaces of cfg80211 drivers: iw makes the settings,
// because it is what a person would type; the kernel itself is asked for what
// became of them, because iw's output is not stable. The clauses are those of
// Linux 6.12.
type nl80211 struct {
	// settle bounds the wait for the interface to have joined.
	settle time.Duration
}

func (nl80211) Name() string { return NL80211 }

func (d nl80211) Plan(c Config) ([]Step, error) {
	cs, err := d.changes(c)
	return plan(cs), err
}

func (nl80211) Probe(_ context.Context, h Host, c Config) error {
	tools := []struct{ name, pkg string }{{"iw", "iw"}, {"ip", "iproute2"}}
	if c.Mode == ModeAP {
		tools = append(tools, struct{ name, pkg string }{"hostapd", "hostapd"}, struct{ name, pkg string }{"hostapd_cli", "hostapd"})
	}
	for _, p := range tools {
		if err := h.Look(p.name); err != nil {
			return c.fail(Unavailable, "", "", "the program "+p.name+" is not there", "install the package "+p.pkg)
		}
	}
	if _, err := h.Interface(c.Interface); err != nil {
		return c.fail(Unavailable, "", "", err.Error(), "correct the interface in the inventory, or load its driver")
	}
	w, err := h.Wireless(c.Interface)
	if err != nil {
		remedy := "name an interface of a cfg80211 driver"
		if errors.Is(err, fs.ErrNotExist) {
			remedy = "load the driver of the radio (its module brings cfg80211)"
		}
		return c.fail(Unavailable, "", "", err.Error(), remedy)
	}
	if c.Device != "" && c.Device != w.Phy {
		return c.fail(Unavailable, "", "", fmt.Sprintf("the interface is of %s, not of %s", w.Phy, c.Device), "correct the device in the inventory")
	}
	return nil
}

func (d nl80211) Apply(ctx context.Context, h Host, c Config, push undo.Push) error {
	w, err := h.Wireless(c.Interface)
	if err != nil {
		return c.fail(Unavailable, "", "", err.Error(), "")
	}
	i, err := h.Interface(c.Interface)
	if err != nil {
		return c.fail(Unavailable, "", "", err.Error(), "")
	}
	if err := d.restorable(&c, w); err != nil {
		return err
	}
	before := d.state(w)
	if i.Up {
		before[stateUp] = "up"
	}
	cs, err := d.changes(c)
	if err != nil {
		return err
	}
	return c.apply(ctx, h, cs, before, push)
}

// restorable refuses to take an interface out of what it could not be put back
// into.
func (nl80211) restorable(c *Config, w *Wireless) error {
	switch {
	case c.Mode == "":
		return nil
	case w.Network != "" && (w.Mode == ModeStation || w.Mode == ModeAP):
		return c.fail(Unavailable, settingMode, string(c.Mode), fmt.Sprintf("the interface is in the network %q as %s: another program keeps it there, and would take it back", w.Network, w.Mode),
			"end that program for this interface (nmcli device set "+c.Interface+" managed no; systemctl stop wpa_supplicant hostapd)")
	case w.Mode == ModeMesh && w.Frequency != 0:
		return c.fail(Unavailable, settingMode, string(c.Mode), "the interface is in a mesh, whose id the kernel does not tell, so that it could not be joined again",
			"leave it first: iw dev "+c.Interface+" mesh leave")
	case ifTypes[w.Mode] == "" || w.Width == "other":
		return c.fail(Unavailable, settingMode, string(c.Mode), "the interface is of a type or on a channel of a width that could not be put back", "name another interface")
	}
	return nil
}

// tidMaps are the TIDs of each of Config.Queues in a no-ack map (802.11-2012
// table 9-1: user priorities 1 and 2 are BK, 0 and 3 BE, 4 and 5 VI, 6 and 7 VO).
var tidMaps = [4]int{0x0006, 0x0009, 0x0030, 0x00c0}

// maxAttempts is mac80211's IEEE80211_MAX_TX_RETRY.
const maxAttempts = 31

// modeMonitor is what an interface may have been, and is not made into.
const modeMonitor Mode = "monitor"

// ifTypes are the modes as iw set type takes them.
var ifTypes = map[Mode]string{ModeAdhoc: "ibss", ModeMesh: "mesh", ModeStation: "managed", ModeAP: "__ap", modeMonitor: "monitor"}

func (d nl80211) changes(c Config) ([]change, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := d.supported(&c); err != nil {
		return nil, err
	}
	dev := func(words ...string) []string { return append([]string{"iw", "dev", c.Interface}, words...) }
	phy := func(words ...string) []string {
		if c.Device != "" {
			return append([]string{"iw", "phy", c.Device}, words...)
		}
		return append([]string{"iw", phyOf + c.Interface}, words...)
	}
	link := func(state string) []string { return []string{"ip", "link", "set", "dev", c.Interface, state} }
	var out []change
	step := func(argv []string, why string, undo func(state) [][]string, settings ...string) {
		out = append(out, change{Step: Step{Argv: argv, Why: why, Settings: settings}, undo: undo})
	}

	if c.Mode != "" {
		step(link("down"), "the type of an interface changes only while it is down; this also leaves any network", func(b state) [][]string {
			return append(linkBack(b, link), d.rejoin(b, dev)...)
		})
		if c.Mode != ModeAP { // hostapd makes the type itself
			step(dev("set", "type", ifTypes[c.Mode]), "", func(b state) [][]string {
				old, ok := ifTypes[Mode(b[settingMode])]
				if !ok || c.Mode == Mode(b[settingMode]) {
					return [][]string{link("down")}
				}
				return [][]string{link("down"), dev("set", "type", old)}
			}, settingMode)
		}
	}
	if c.Mode == ModeAP {
		step(link("up"), "some settings want an interface that is up", func(state) [][]string { return [][]string{link("down")} })
	} else {
		out = append(out, change{
			Step: Step{Argv: link("up"), Why: "rates and joins want an interface that is up", Unless: d.unlessUp(c)},
			met:  func(b state) bool { return c.Mode == "" && b[stateUp] != "" },
			undo: func(b state) [][]string {
				if c.Mode != "" || b[stateUp] != "" {
					return nil
				}
				return [][]string{link("down")}
			},
		})
	}
	out = append(out, d.phySettings(c, phy)...)
	if rates := d.rates(c); rates != nil {
		step(dev(append([]string{"set", "bitrates"}, rates...)...), "the rates of unicast data; before the join, which wants one of the basic rates among them afterwards",
			func(state) [][]string { return [][]string{dev("set", "bitrates")} }, d.rateSettings(c)...)
	}
	out = append(out, d.join(c, dev)...)
	if m, any := d.noAckMap(c); any {
		var names []string
		for i, q := range c.Queues {
			if q.NoAck != nil {
				names = append(names, categories[i]+"."+queueAck)
			}
		}
		step(dev("set", "noack_map", fmt.Sprintf("0x%04x", m)), "TIDs whose frames are not acknowledged: 0x0006 BK, 0x0009 BE, 0x0030 VI, 0x00c0 VO",
			func(state) [][]string { return [][]string{dev("set", "noack_map", "0x0000")} }, names...)
	}
	return out, nil
}

func (nl80211) unlessUp(c Config) string {
	if c.Mode == "" {
		return c.Interface + " is up"
	}
	return ""
}

func linkBack(b state, link func(string) []string) [][]string {
	if b[stateUp] != "" {
		return [][]string{link("up")}
	}
	return [][]string{link("down")}
}

// rejoin enters the IBSS again that an interface was in. Its basic rates and a key
// are not told by the kernel.
func (nl80211) rejoin(b state, dev func(...string) []string) [][]string {
	if b[settingMode] != string(ModeAdhoc) || b[stateNetwork] == "" {
		return nil
	}
	argv := dev("ibss", "join", b[stateNetwork], b[stateFrequency], b[stateWidth], "fixed-freq")
	if b[stateBSSID] != "" {
		argv = append(argv, b[stateBSSID])
	}
	return [][]string{argv}
}

// supported refuses what no cfg80211 driver lets set.
func (d nl80211) supported(c *Config) error {
	no := func(setting, wanted, detail, remedy string) error {
		return c.fail(Unsupported, setting, wanted, detail, remedy)
	}
	switch {
	case c.Mode == ModeAhdemo:
		return no(settingMode, string(c.Mode), "cfg80211 has no IBSS without beacons", "take adhoc with a fixed bssid, which cannot split either")
	case c.Mode == "" && (c.Network != "" || c.BSSID != "" || c.Channel != 0):
		return c.fail(Invalid, settingMode, "", "network, bssid and channel are of a network to join, and there is no mode", "write mode: adhoc, mesh, station or ap")
	case c.Mode != "" && c.Network == "":
		return c.fail(Invalid, settingNetwork, "", "the mode "+string(c.Mode)+" needs a network's name", "write network: in the inventory")
	case c.Mode != "" && c.Mode != ModeStation && c.Channel == 0:
		return c.fail(Invalid, settingChannel, "", "the mode "+string(c.Mode)+" needs a channel", "write channel: in the inventory")
	case c.BSSID != "" && c.Mode != ModeAdhoc && c.Mode != ModeStation:
		return no(settingBSSID, c.BSSID, "a "+string(c.Mode)+" has its interface's address", "leave bssid out")
	case c.TxPower != nil && (float64(*c.TxPower) != math.Trunc(float64(*c.TxPower)) || *c.TxPower < 0):
		return no(settingTxPower, c.TxPower.String(), "mac80211 takes whole dBm from 0 (ieee80211_set_tx_power)", "round it")
	case c.Retries != nil && *c.Retries+1 > maxAttempts:
		return no(settingRetries, strconv.Itoa(*c.Retries), fmt.Sprintf("mac80211 takes at most %d attempts (IEEE80211_MAX_TX_RETRY)", maxAttempts), fmt.Sprintf("take %d", maxAttempts-1))
	case c.Preamble == valueShort && c.Mode != ModeAP:
		return no(settingPreamble, c.Preamble, "mac80211 uses short preambles only where an access point offers them", "take long")
	case c.BasicRate != 0 && c.Mode != ModeAdhoc && c.Mode != ModeMesh && c.Mode != ModeAP:
		return no(settingBasicRate, c.BasicRate.String(), "basic rates are those of the network that is joined", "leave it out, or write mode: adhoc or mesh")
	case c.Rate != 0 && c.BasicRate > c.Rate:
		return c.fail(Invalid, settingBasicRate, c.BasicRate.String(), "is above the rate of data, "+c.Rate.String(), "take a lower one")
	}
	for i := range c.Queues {
		q, cat := &c.Queues[i], categories[i]
		for _, v := range q.values(cat) {
			switch {
			case strings.HasSuffix(v.name, "."+queueAck):
			case strings.HasSuffix(v.name, "."+queueLimit):
				return no(v.name, v.text, "mac80211 queues by flow, with one limit for all of a phy (iw phy … set txq limit)", "leave it out")
			case c.Mode != ModeAP:
				// nl80211_set_wiphy: NL80211_ATTR_WIPHY_TXQ_PARAMS wants an interface of type AP
				// or P2P_GO; a station takes its access point's, an IBSS and a mesh the defaults.
				return no(v.name, v.text, "the kernel lets only access points set the parameters of queues (NL80211_ATTR_WIPHY_TXQ_PARAMS)",
					"leave it out, write mode: ap or station, or take "+Madwifi)
			}
		}
		if q.CWMin != nil && *q.CWMin == 0 {
			return no(cat+"."+queueCWMin, "0", "hostapd takes windows from 1", "take 1")
		}
		if q.TXOP != nil && burst(*q.TXOP) < 0 {
			return no(cat+"."+queueTXOP, q.TXOP.String(), "hostapd takes units of 100us and the kernel makes units of 32us of them; none of them gives this one",
				"take "+nearBursts(*q.TXOP))
		}
		if q.anyTXQ() && !q.allTXQ() {
			return c.fail(Unsupported, cat, "", "hostapd sets the four parameters of a queue together", "write aifs, cwmin, cwmax and txop")
		}
	}
	return nil
}

func (q *Queue) anyTXQ() bool {
	return q.AIFS != nil || q.CWMin != nil || q.CWMax != nil || q.TXOP != nil
}

func (q *Queue) allTXQ() bool {
	return q.AIFS != nil && q.CWMin != nil && q.CWMax != nil && q.TXOP != nil
}

// phySettings are those that all interfaces of a phy share.
func (nl80211) phySettings(c Config, phy func(...string) []string) []change {
	var out []change
	add := func(name, why string, argv []string, back func(old string) []string) {
		out = append(out, change{Step: Step{Argv: argv, Why: why, Settings: []string{name}}, undo: func(b state) [][]string {
			old, ok := b[name]
			if !ok {
				return nil
			}
			return [][]string{back(old)}
		}})
	}
	if c.Retries != nil {
		attempts := strconv.Itoa(*c.Retries + 1)
		out = append(out, change{
			Step: Step{Argv: phy("set", "retry", "short", attempts, "long", attempts), Why: "attempts, the first included", Settings: []string{settingRetries}},
			undo: func(b state) [][]string {
				if b[stateShort] == "" || b[stateLong] == "" {
					return nil
				}
				return [][]string{phy("set", "retry", "short", b[stateShort], "long", b[stateLong])}
			},
		})
	}
	plain := func(text string) string {
		if text == valueOff {
			return text
		}
		n, err := vtime.ParseBytes(text)
		if err != nil {
			return text
		}
		return strconv.Itoa(int(n))
	}
	if c.RTS != nil {
		add(settingRTS, "RTS/CTS threshold in bytes", phy("set", "rts", plain(threshold(*c.RTS))), func(old string) []string { return phy("set", "rts", plain(old)) })
	}
	if c.TxPower != nil {
		// By the phy: on one interface alone the kernel takes a power only before the join.
		out = append(out, change{
			Step: Step{Argv: phy("set", "txpower", "fixed", strconv.Itoa(int(*c.TxPower)*100)), Why: "in mBm", Settings: []string{settingTxPower}},
			undo: func(state) [][]string { return [][]string{phy("set", "txpower", "auto")} },
		})
	}
	if c.Fragment != nil {
		add(settingFragment, "fragmentation threshold in bytes", phy("set", "frag", plain(threshold(*c.Fragment))), func(old string) []string { return phy("set", "frag", plain(old)) })
	}
	return out
}

// What Apply knows of a phy beside its settings.
const (
	stateShort     = "+retry-short"
	stateLong      = "+retry-long"
	stateNetwork   = "+network"
	stateFrequency = "+frequency"
	stateWidth     = "+width"
	stateBSSID     = "+bssid"
)

// join enters the network, the last thing but for what the join would reset. It
// is left when the interface is taken down, for its type to be put back.
func (d nl80211) join(c Config, dev func(...string) []string) []change {
	f, _ := Frequency(c.Channel)
	mhz := strconv.Itoa(f)
	var basic []string
	names := []string{settingNetwork}
	for _, v := range c.values() {
		if v.name == settingBSSID || v.name == settingChannel || v.name == settingBasicRate {
			names = append(names, v.name)
		}
	}
	if c.BasicRate != 0 {
		basic = []string{"basic-rates", megabits(c.BasicRate), "mcast-rate", megabits(c.BasicRate)}
	}
	switch c.Mode {
	case ModeAdhoc:
		argv := dev("ibss", "join", c.Network, mhz, "NOHT", "fixed-freq")
		if c.BSSID != "" {
			argv = append(argv, strings.ToLower(c.BSSID))
		}
		return []change{{
			Step: Step{Argv: append(argv, basic...), Why: "the IBSS, without 802.11n and without moving to another channel", Settings: names},
		}}
	case ModeMesh:
		argv := append(dev("mesh", "join", c.Network, "freq", mhz, "NOHT"), basic...)
		return []change{{
			Step: Step{Argv: append(argv, "mesh_fwding=0"), Why: "the mesh; it forwards nothing, since routes are the experiment's", Settings: names},
		}}
	case ModeStation:
		argv := dev("connect", c.Network)
		if f != 0 {
			argv = append(argv, mhz)
		}
		if c.BSSID != "" {
			argv = append(argv, strings.ToLower(c.BSSID))
		}
		return []change{{
			Step: Step{Argv: argv, Why: "the access point's network, which is open", Settings: names},
		}}
	case ModeAP:
		return []change{d.accessPoint(c, mhz, names)}
	}
	return nil
}

// state is the texts of what the kernel tells.
func (nl80211) state(w *Wireless) state {
	s := state{settingMode: string(w.Mode), stateNetwork: w.Network, stateBSSID: w.BSSID,
		stateFrequency: strconv.Itoa(w.Frequency), stateWidth: cmp.Or(w.Width, "NOHT")}
	if w.RetryShort != nil && w.RetryLong != nil {
		s[stateShort], s[stateLong] = strconv.Itoa(*w.RetryShort), strconv.Itoa(*w.RetryLong)
	}
	if w.RTS != nil {
		s[settingRTS] = threshold(*w.RTS)
	}
	if w.Fragment != nil {
		s[settingFragment] = threshold(*w.Fragment)
	}
	return s
}
