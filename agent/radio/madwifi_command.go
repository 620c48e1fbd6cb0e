package radio

import (
	"math"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// command returns the command that makes one setting. table is the argument
// "bss" of those of queues.
func (d madwifi) command(c Config, v value, table string) ([]string, error) {
	cannot := func(detail, remedy string) error { return c.fail(Unsupported, v.name, v.text, detail, remedy) }
	iwconfig := func(words ...string) ([]string, error) {
		return append([]string{"iwconfig", c.Interface}, words...), nil
	}
	if cat, name, ok := strings.Cut(v.name, "."); ok {
		return d.queueCommand(c, cat, name, v, table)
	}
	switch v.name {
	case settingNetwork:
		if v.text == "" {
			return iwconfig("essid", "any")
		}
		return iwconfig("essid", "--", v.text) // a name such as "any" is no keyword then
	case settingBSSID:
		if v.text == valueNone {
			return iwconfig("ap", "off")
		}
		if c.Mode == ModeAP { // ieee80211_ioctl_siwap: EOPNOTSUPP
			return nil, cannot("an access point has its interface's address", "leave bssid out")
		}
		return iwconfig("ap", v.text)
	case settingChannel:
		return iwconfig("channel", v.text)
	case settingTxPower:
		if v.text == valueAuto {
			return iwconfig("txpower", valueAuto)
		}
		p, err := vtime.ParseDBm(v.text)
		if err != nil || p < 0 || float64(p) != math.Trunc(float64(p)) {
			return nil, cannot("MadWifi takes whole dBm from 0", "round it")
		}
		return iwconfig("txpower", strconv.Itoa(int(p)))
	case settingStandard:
		return []string{"iwpriv", c.Interface, "mode", phyModes[v.text]}, nil
	case settingRate:
		if v.text == valueAuto {
			return iwconfig("rate", valueAuto)
		}
		r, err := vtime.ParseBitRate(v.text)
		if err != nil {
			return nil, cannot(err.Error(), "")
		}
		return iwconfig("rate", megabits(r)+"M")
	case settingBasicRate: // IEEE80211_PARAM_MCAST_RATE: kb/s, from 256 to 54000
		r, err := vtime.ParseBitRate(v.text)
		if err != nil {
			return nil, cannot(err.Error(), "")
		}
		return []string{"iwpriv", c.Interface, "mcast_rate", strconv.Itoa(int(r / 1000))}, nil
	case settingPreamble:
		short := "0"
		if v.text == valueShort {
			short = "1"
		}
		return []string{"iwpriv", c.Interface, "shpreamble", short}, nil
	case settingRetries:
		return iwconfig("retry", v.text)
	case settingRTS, settingFragment:
		word := map[string]string{settingRTS: "rts", settingFragment: "frag"}[v.name]
		if v.text == valueOff {
			return iwconfig(word, valueOff)
		}
		n, err := vtime.ParseBytes(v.text)
		if err != nil || n < 1 || n > 2345 { // 2346 stands for off (IEEE80211_RTS_MAX; ieee80211_ioctl_siwfrag)
			return nil, cannot("MadWifi takes 1B to 2345B", "write off")
		}
		return iwconfig(word, strconv.Itoa(int(n)))
	}
	return nil, cannot("MadWifi has no such setting", "leave it out")
}

func (d madwifi) queueCommand(c Config, cat, name string, v value, table string) ([]string, error) {
	cannot := func(detail, remedy string) error { return c.fail(Unsupported, v.name, v.text, detail, remedy) }
	iwpriv := func(command, arg string) ([]string, error) {
		return []string{"iwpriv", c.Interface, command, strconv.Itoa(wmeCategory[categoryIndex(cat)]), table, arg}, nil
	}
	switch name {
	case queueAIFS:
		return iwpriv("aifs", v.text)
	case queueCWMin, queueCWMax: // the argument is the logarithm, up to 15
		n, err := strconv.Atoi(v.text)
		if err != nil {
			return nil, cannot(err.Error(), "")
		}
		return iwpriv(name, strconv.Itoa(log2(n+1)))
	case queueTXOP: // microseconds, up to 8192; kept in units of 32 (IEEE80211_US_TO_TXOP)
		t, err := vtime.ParseDuration(v.text)
		if err != nil || t > 8192*vtime.Microsecond {
			return nil, cannot("MadWifi takes at most 8192us", "take 8160us, which every version keeps")
		}
		return iwpriv("txoplimit", strconv.Itoa(int(t/vtime.Microsecond)))
	case queueAck:
		policy := "0"
		if v.text == valueNone {
			policy = "1"
		}
		return iwpriv("noackpolicy", policy)
	}
	return nil, cannot("MadWifi's queues share one pool of buffers, and none has a limit of its own", "leave it out")
}

func categoryIndex(name string) int {
	for i, c := range categories {
		if c == name {
			return i
		}
	}
	return -1
}

// log2 of a power of two.
func log2(n int) int {
	k := 0
	for ; n > 1; n >>= 1 {
		k++
	}
	return k
}

var madwifiRemedies = map[string]string{
	// ieee80211_ioctl_siwretry wants IEEE80211_C_SWRETRY, which no version of
	// ath/if_ath.c has: the hardware repeats (ATH_TXMAXTRY, 11 attempts).
	settingRetries: "leave mac.retries out: MadWifi's hardware makes up to 11 attempts by itself; ack: none on a queue makes it one",
	settingTxPower: "take a power that the regulatory domain and the channel permit",
}

// whyOf explains a setting's step in a few words.
func whyOf(name string) string {
	if cat, q, ok := strings.Cut(name, "."); ok {
		return cat + ": " + map[string]string{
			queueAIFS: "slots after SIFS", queueCWMin: "log2 of the window's size", queueCWMax: "log2 of the window's size",
			queueTXOP: "in us", queueAck: "1 = frames are not acknowledged, and so not repeated",
		}[q]
	}
	return map[string]string{
		settingNetwork: "the network's name; the interface joins", settingBSSID: "a fixed cell, so that it cannot split",
		settingChannel: "the channel", settingTxPower: "in dBm, fixed", settingStandard: "the PHY's mode, before the channel",
		settingRate: "of unicast data, fixed", settingBasicRate: "of broadcasts, in kb/s", settingPreamble: "1 = short preambles",
		settingRetries: "retransmissions", settingRTS: "RTS/CTS threshold in bytes", settingFragment: "fragmentation threshold in bytes",
	}[name]
}
