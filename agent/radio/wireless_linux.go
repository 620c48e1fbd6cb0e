package radio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/internal/netdump"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// debugfs is where mac80211 shows what nl80211 does not.
const debugfs = "/sys/kernel/debug/ieee80211/"

func (system) Wireless(name string) (*Wireless, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	f, err := netlink.GenlFamilyGet("nl80211")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this kernel has no nl80211: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("this kernel has no nl80211 (%v): %w", err, fs.ErrNotExist)
	}
	q := query{family: f.ID, index: uint32(i.Index)}
	w := &Wireless{Rates: map[int][]vtime.BitRate{}, Bands: map[int][]vtime.BitRate{}}
	wiphy, err := q.iface(w)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, fmt.Errorf("%s is no interface of cfg80211", name)
	}
	if err != nil {
		return nil, fmt.Errorf("nl80211, interface %s: %w", name, err)
	}
	w.PhyIndex = int(wiphy)
	if err := q.wiphy(wiphy, w); err != nil {
		return nil, fmt.Errorf("nl80211, phy of %s: %w", name, err)
	}
	if err := q.cell(w); err != nil {
		return nil, fmt.Errorf("nl80211, cell of %s: %w", name, err)
	}
	if w.Mode == ModeMesh {
		if err := q.mesh(w); err != nil {
			return nil, fmt.Errorf("nl80211, mesh of %s: %w", name, err)
		}
	}
	for b, all := range w.Bands {
		mask, err := (system{}).ReadFile(debugfs + w.Phy + "/netdev:" + name + "/rc_rateidx_mask_" + strconv.Itoa(b) + "ghz")
		if err != nil {
			continue // no debugfs: nothing to be had
		}
		if m, err := strconv.ParseUint(strings.TrimSpace(string(mask)), 0, 32); err == nil {
			w.Rates[b] = masked(all, uint32(m))
		}
	}
	return w, nil
}

// masked are the rates whose bits are set, in the order of the phy's table.
func masked(all []vtime.BitRate, mask uint32) []vtime.BitRate {
	var out []vtime.BitRate
	for i, r := range all {
		if i < 32 && mask&(1<<i) != 0 {
			out = append(out, r)
		}
	}
	return out
}

// query asks nl80211 about one interface.
type query struct {
	family uint16
	index  uint32
}

// attributes are those of one message, by type.
type attributes map[uint16][]byte

func parseAttributes(b []byte) (attributes, error) {
	out := attributes{}
	as, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	for _, a := range as {
		out[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return out, nil
}

func (a attributes) u32(t uint16) (uint32, bool) {
	if b := a[t]; len(b) >= 4 {
		return binary.NativeEndian.Uint32(b), true
	}
	return 0, false
}

func (a attributes) u8(t uint16) (int, bool) {
	if b := a[t]; len(b) >= 1 {
		return int(b[0]), true
	}
	return 0, false
}

// ask sends a command and calls each for every message of the answer.
func (q query) ask(command uint8, flags int, each func(attributes) error, as ...*nl.RtAttr) error {
	req := nl.NewNetlinkRequest(int(q.family), flags)
	req.AddData(&nl.Genlmsg{Command: command})
	for _, a := range as {
		req.AddData(a)
	}
	msgs, err := netdump.Whole(func() ([][]byte, error) { return req.Execute(unix.NETLINK_GENERIC, 0) })
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if len(m) < nl.SizeofGenlmsg {
			return errors.New("a message is too short")
		}
		a, err := parseAttributes(m[nl.SizeofGenlmsg:])
		if err != nil {
			return err
		}
		if err := each(a); err != nil {
			return err
		}
	}
	return nil
}

func (q query) ifindex() *nl.RtAttr {
	return nl.NewRtAttr(unix.NL80211_ATTR_IFINDEX, nl.Uint32Attr(q.index))
}

var nlModes = map[uint32]Mode{
	unix.NL80211_IFTYPE_ADHOC: ModeAdhoc, unix.NL80211_IFTYPE_STATION: ModeStation,
	unix.NL80211_IFTYPE_AP: ModeAP, unix.NL80211_IFTYPE_MESH_POINT: ModeMesh,
	unix.NL80211_IFTYPE_MONITOR: modeMonitor,
}

// iface reads NL80211_CMD_GET_INTERFACE and returns the number of the phy.
func (q query) iface(w *Wireless) (uint32, error) {
	var wiphy uint32
	err := q.ask(unix.NL80211_CMD_GET_INTERFACE, 0, func(a attributes) error {
		wiphy, _ = a.u32(unix.NL80211_ATTR_WIPHY)
		t, _ := a.u32(unix.NL80211_ATTR_IFTYPE)
		w.Mode = nlModes[t]
		w.Network = string(a[unix.NL80211_ATTR_SSID])
		f, _ := a.u32(unix.NL80211_ATTR_WIPHY_FREQ)
		w.Frequency = int(f)
		w.Width = width(a, f)
		if w.Mode == ModeAP && w.Network != "" {
			w.BSSID = net.HardwareAddr(a[unix.NL80211_ATTR_MAC]).String()
		}
		if p, ok := a.u32(unix.NL80211_ATTR_WIPHY_TX_POWER_LEVEL); ok { // mBm
			dbm := vtime.DBm(float64(int32(p)) / 100)
			w.TxPower = &dbm
		}
		return nil
	}, q.ifindex())
	return wiphy, err
}

// width is the width of the channel in iw's words.
func width(a attributes, control uint32) string {
	w, ok := a.u32(unix.NL80211_ATTR_CHANNEL_WIDTH)
	if !ok {
		return ""
	}
	switch w {
	case unix.NL80211_CHAN_WIDTH_20_NOHT:
		return "NOHT"
	case unix.NL80211_CHAN_WIDTH_20:
		return "HT20"
	case unix.NL80211_CHAN_WIDTH_40:
		if centre, _ := a.u32(unix.NL80211_ATTR_CENTER_FREQ1); centre < control {
			return "HT40-"
		}
		return "HT40+"
	case unix.NL80211_CHAN_WIDTH_80:
		return "80MHz"
	}
	return "other"
}

// wiphy reads NL80211_CMD_GET_WIPHY, which comes in parts.
func (q query) wiphy(n uint32, w *Wireless) error {
	return q.ask(unix.NL80211_CMD_GET_WIPHY, unix.NLM_F_DUMP, func(a attributes) error {
		if m, ok := a.u32(unix.NL80211_ATTR_WIPHY); !ok || m != n {
			return nil
		}
		if b := a[unix.NL80211_ATTR_WIPHY_NAME]; len(b) > 0 {
			w.Phy = strings.TrimRight(string(b), "\x00")
		}
		if v, ok := a.u8(unix.NL80211_ATTR_WIPHY_RETRY_SHORT); ok {
			w.RetryShort = &v
		}
		if v, ok := a.u8(unix.NL80211_ATTR_WIPHY_RETRY_LONG); ok {
			w.RetryLong = &v
		}
		if v, ok := a.u32(unix.NL80211_ATTR_WIPHY_RTS_THRESHOLD); ok {
			w.RTS = limit(v)
		}
		if v, ok := a.u32(unix.NL80211_ATTR_WIPHY_FRAG_THRESHOLD); ok {
			w.Fragment = limit(v)
		}
		return bands(a[unix.NL80211_ATTR_WIPHY_BANDS], w)
	}, nl.NewRtAttr(unix.NL80211_ATTR_SPLIT_WIPHY_DUMP, nil), nl.NewRtAttr(unix.NL80211_ATTR_WIPHY, nl.Uint32Attr(n)))
}

// limit is a threshold; all ones stand for none.
func limit(v uint32) *vtime.Bytes {
	n := vtime.Bytes(v)
	if v == 1<<32-1 {
		n = -1
	}
	return &n
}

// bands reads the rates of each band.
func bands(b []byte, w *Wireless) error {
	bs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return err
	}
	for _, band := range bs {
		ghz, ok := map[uint16]int{unix.NL80211_BAND_2GHZ: 2, unix.NL80211_BAND_5GHZ: 5}[band.Attr.Type&nl.NLA_TYPE_MASK]
		if !ok {
			continue
		}
		as, err := parseAttributes(band.Value)
		if err != nil {
			return err
		}
		rates, err := nl.ParseRouteAttr(as[unix.NL80211_BAND_ATTR_RATES])
		if err != nil {
			return err
		}
		for _, r := range rates {
			ra, err := parseAttributes(r.Value)
			if err != nil {
				return err
			}
			if v, ok := ra.u32(unix.NL80211_BITRATE_ATTR_RATE); ok { // 100 kb/s
				w.Bands[ghz] = append(w.Bands[ghz], vtime.BitRate(v)*100_000)
			}
		}
	}
	return nil
}

// cell finds the BSS that the interface is in among the results of scans: the
// only place where nl80211 tells the cell of an IBSS.
func (q query) cell(w *Wireless) error {
	err := q.ask(unix.NL80211_CMD_GET_SCAN, unix.NLM_F_DUMP, func(a attributes) error {
		bss, err := parseAttributes(a[unix.NL80211_ATTR_BSS])
		if err != nil {
			return err
		}
		if _, in := bss.u32(unix.NL80211_BSS_STATUS); !in {
			return nil
		}
		w.BSSID = net.HardwareAddr(bss[unix.NL80211_BSS_BSSID]).String()
		if f, ok := bss.u32(unix.NL80211_BSS_FREQUENCY); ok && w.Frequency == 0 {
			w.Frequency = int(f)
		}
		return nil
	}, q.ifindex())
	if errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// meshForwarding is NL80211_MESHCONF_FORWARDING.
const meshForwarding = unix.NL80211_MESHCONF_FORWARDING

func (q query) mesh(w *Wireless) error {
	err := q.ask(unix.NL80211_CMD_GET_MESH_CONFIG, 0, func(a attributes) error {
		p, err := parseAttributes(a[unix.NL80211_ATTR_MESH_CONFIG])
		if err != nil {
			return err
		}
		if v, ok := p.u8(meshForwarding); ok {
			on := v != 0
			w.Forwards = &on
		}
		return nil
	}, q.ifindex())
	if errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}
