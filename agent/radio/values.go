package radio

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The names of settings, in the order in which they are shown. Those of a queue
// have the category's name before them ("bk.txop").
const (
	settingMode      = "mode"
	settingNetwork   = "network"
	settingBSSID     = "bssid"
	settingChannel   = "channel"
	settingTxPower   = "tx-power"
	settingStandard  = "standard"
	settingRate      = "rate"
	settingBasicRate = "basic-rate"
	settingPreamble  = "preamble"
	settingRetries   = "retries"
	settingRTS       = "rts"
	settingFragment  = "fragment"

	queueAIFS  = "aifs"
	queueCWMin = "cwmin"
	queueCWMax = "cwmax"
	queueTXOP  = "txop"
	queueAck   = "ack"
	queueLimit = "limit"
)

// Values that are words.
const (
	valueAuto   = "auto" // the driver chooses
	valueOff    = "off"
	valueLong   = "long"
	valueShort  = "short"
	valueNormal = "normal"
	valueNone   = "none"
)

// categories are the names of Config.Queues.
var categories = [4]string{"bk", "be", "vi", "vo"}

// value is a setting in the one textual form that wanted and got are compared in.
type value struct{ name, text string }

// values lists what c wants, in the order of the names above.
func (c *Config) values() []value {
	var out []value
	add := func(set bool, name, text string) {
		if set {
			out = append(out, value{name, text})
		}
	}
	add(c.Mode != "", settingMode, string(c.Mode))
	add(c.Network != "", settingNetwork, c.Network)
	add(c.BSSID != "", settingBSSID, strings.ToLower(c.BSSID))
	add(c.Channel != 0, settingChannel, strconv.Itoa(c.Channel))
	if c.TxPower != nil {
		add(true, settingTxPower, c.TxPower.String())
	}
	add(c.Standard != "", settingStandard, c.Standard)
	add(c.Rate != 0, settingRate, c.Rate.String())
	add(c.BasicRate != 0, settingBasicRate, c.BasicRate.String())
	add(c.Preamble != "", settingPreamble, c.Preamble)
	if c.Retries != nil {
		add(true, settingRetries, strconv.Itoa(*c.Retries))
	}
	if c.RTS != nil {
		add(true, settingRTS, threshold(*c.RTS))
	}
	if c.Fragment != nil {
		add(true, settingFragment, threshold(*c.Fragment))
	}
	for i := range c.Queues {
		out = append(out, c.Queues[i].values(categories[i])...)
	}
	return out
}

func (q *Queue) values(category string) []value {
	var out []value
	number := func(p *int, name string) {
		if p != nil {
			out = append(out, value{category + "." + name, strconv.Itoa(*p)})
		}
	}
	number(q.AIFS, queueAIFS)
	number(q.CWMin, queueCWMin)
	number(q.CWMax, queueCWMax)
	if q.TXOP != nil {
		out = append(out, value{category + "." + queueTXOP, q.TXOP.String()})
	}
	if q.NoAck != nil {
		out = append(out, value{category + "." + queueAck, ackPolicy(*q.NoAck)})
	}
	number(q.Limit, queueLimit)
	return out
}

func ackPolicy(noAck bool) string {
	if noAck {
		return valueNone
	}
	return valueNormal
}

func threshold(n vtime.Bytes) string {
	if n < 0 {
		return valueOff
	}
	return n.String()
}

// megabits writes a rate as tools want it: "5.5".
func megabits(r vtime.BitRate) string {
	return strconv.FormatFloat(float64(r)/1e6, 'f', -1, 64)
}

// validate reports what no driver could do.
func (c *Config) validate() error {
	bad := func(setting, wanted, detail string) error { return c.fail(Invalid, setting, wanted, detail, "") }
	if err := validName(c.Interface); err != nil {
		return bad("interface", c.Interface, err.Error())
	}
	if c.Device != "" {
		if err := validName(c.Device); err != nil {
			return bad("device", c.Device, err.Error())
		}
	}
	if len(c.Network) > 32 || strings.HasPrefix(c.Network, "-") || strings.ContainsFunc(c.Network, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return bad(settingNetwork, c.Network, "want at most 32 printable ASCII characters, no dash first, without double quotes and backslashes")
	}
	if c.BSSID != "" {
		if a, err := net.ParseMAC(c.BSSID); err != nil || len(a) != 6 {
			return bad(settingBSSID, c.BSSID, "want six octets such as 02:ca:fe:00:00:01")
		} else if a[0]&1 != 0 {
			return bad(settingBSSID, c.BSSID, "its group bit is set; want an individual address such as 02:ca:fe:00:00:01")
		}
	}
	switch c.Standard {
	case "", "802.11b", "802.11g", "802.11a":
	default:
		return bad(settingStandard, c.Standard, "want 802.11b, 802.11g or 802.11a")
	}
	switch c.Mode {
	case "", ModeAdhoc, ModeAhdemo, ModeMesh, ModeStation, ModeAP:
	default:
		return bad(settingMode, string(c.Mode), "want adhoc, ahdemo, mesh, station or ap")
	}
	switch c.Preamble {
	case "", valueLong, valueShort:
	default:
		return bad(settingPreamble, c.Preamble, "want long or short")
	}
	if c.Channel != 0 {
		f, err := Frequency(c.Channel)
		if err != nil {
			return bad(settingChannel, strconv.Itoa(c.Channel), err.Error())
		}
		if (c.Standard == "802.11a") != (f > 5000) && c.Standard != "" {
			return bad(settingChannel, strconv.Itoa(c.Channel), fmt.Sprintf("%d MHz is not of the band of %s", f, c.Standard))
		}
	}
	for name, r := range map[string]vtime.BitRate{settingRate: c.Rate, settingBasicRate: c.BasicRate} {
		if r != 0 && !legacyRate(c.Standard, r) {
			return bad(name, r.String(), "is no rate of "+cmp.Or(c.Standard, "802.11a, b and g"))
		}
	}
	if c.Retries != nil && (*c.Retries < 0 || *c.Retries > 255) {
		return bad(settingRetries, strconv.Itoa(*c.Retries), "want 0 to 255 retransmissions")
	}
	// 802.11-2012 9.5: fragments have an even number of octets, 256 at least.
	if f := c.Fragment; f != nil && *f >= 0 && (*f < 256 || *f > 2346 || *f%2 != 0) {
		return bad(settingFragment, f.String(), "want an even number from 256B to 2346B, or off")
	}
	for i := range c.Queues {
		if err := c.validateQueue(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateQueue(i int) error {
	q, cat := &c.Queues[i], categories[i]
	bad := func(name string, wanted any, detail string) error {
		return c.fail(Invalid, cat+"."+name, fmt.Sprint(wanted), detail, "")
	}
	window := func(p *int) bool { return p == nil || *p >= 0 && *p <= 32767 && *p&(*p+1) == 0 }
	switch {
	case q.AIFS != nil && (*q.AIFS < 1 || *q.AIFS > 15):
		return bad(queueAIFS, *q.AIFS, "want 1 to 15 slots")
	case !window(q.CWMin):
		return bad(queueCWMin, *q.CWMin, "want a power of two minus one, 32767 at most")
	case !window(q.CWMax):
		return bad(queueCWMax, *q.CWMax, "want a power of two minus one, 32767 at most")
	case q.CWMin != nil && q.CWMax != nil && *q.CWMin > *q.CWMax:
		return bad(queueCWMin, *q.CWMin, fmt.Sprintf("is above cwmax=%d", *q.CWMax))
	case q.TXOP != nil && (*q.TXOP < 0 || *q.TXOP%txopUnit != 0):
		return bad(queueTXOP, *q.TXOP, "want a multiple of 32us, the unit of the field (802.11-2012 8.4.2.31)")
	case q.Limit != nil && *q.Limit < 1:
		return bad(queueLimit, *q.Limit, "want at least one packet")
	}
	return nil
}

const txopUnit = 32 * vtime.Microsecond

// validName accepts the names of interfaces and devices: words of any tool's
// command line, and of a path.
func validName(s string) error {
	if s == "" || len(s) > 15 || s[0] == '-' || s[0] == '.' ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == ':' || r == '%' }) {
		return fmt.Errorf("is no name of a network interface: want 1 to 15 characters without spaces, slashes and colons")
	}
	return nil
}

// legacyRate tells whether r is a rate of the standard: DSSS and CCK of 802.11b,
// OFDM of 802.11a, both in 802.11g.
func legacyRate(standard string, r vtime.BitRate) bool {
	switch r {
	case 1_000_000, 2_000_000, 5_500_000, 11_000_000:
		return standard != "802.11a"
	case 6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000:
		return standard != "802.11b"
	}
	return false
}

// Frequency returns the centre of an IEEE channel in MHz (802.11-2012 18.4.6.2
// and 20.3.15): 1 to 14 are those of 2.4 GHz.
func Frequency(channel int) (int, error) {
	switch {
	case channel >= 1 && channel <= 13:
		return 2407 + 5*channel, nil
	case channel == 14:
		return 2484, nil
	case channel >= 34 && channel <= 177:
		return 5000 + 5*channel, nil
	}
	return 0, fmt.Errorf("is no channel: want 1 to 14, or 34 to 177")
}

// ChannelOf is the reverse of Frequency; 0 = none.
func ChannelOf(mhz int) int {
	switch {
	case mhz == 2484:
		return 14
	case mhz > 2407 && mhz <= 2472 && (mhz-2407)%5 == 0:
		return (mhz - 2407) / 5
	case mhz >= 5170 && mhz <= 5885 && mhz%5 == 0:
		return (mhz - 5000) / 5
	}
	return 0
}
