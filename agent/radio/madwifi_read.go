package radio

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

func (d madwifi) Readback(ctx context.Context, h Host, c Config) ([]Setting, error) {
	end := time.Now().Add(d.settle)
	for {
		got, err := d.read(ctx, h, c)
		if err != nil {
			return nil, err
		}
		out, err := c.verify(d.answers(c, got))
		if err == nil && got[stateWMM] == "0" {
			e := c.fail(NotTaken, "wmm", "1", "without it the parameters of the queues mean nothing", "load the driver with WMM")
			e.Got = "0"
			err = e
		}
		if e, ok := errors.AsType[*Error](err); ok && (e.Setting == settingChannel || e.Setting == settingBSSID || e.Setting == settingStandard) && time.Now().Before(end) {
			select {
			case <-ctx.Done():
				return out, err
			case <-time.After(200 * time.Millisecond): // it still scans
				continue
			}
		}
		return out, err
	}
}

// answers says what a state means for the wanted settings.
func (d madwifi) answers(c Config, got state) map[string]answer {
	out := map[string]answer{}
	for name, text := range got {
		out[name] = answer{text: text, known: true}
	}
	if got[settingNetwork] == "" {
		out[settingNetwork] = answer{text: "any", known: true, same: func(string) bool { return false }}
	}
	if c.Mode == ModeAhdemo && got[settingMode] == string(ModeAdhoc) {
		out[settingMode] = answer{text: string(ModeAdhoc), why: "iwconfig shows ad hoc for both ahdemo and adhoc"}
	}
	for _, v := range c.values() {
		if told, ok := got[stateBSS+v.name]; ok && told != v.text {
			out[v.name] = answer{text: got[v.name] + ", and " + told + " for the stations", known: true}
		}
	}
	// ieee80211_ioctl_giwrate divides units of 500 kb/s by two.
	if a := out[settingRate]; a.text == (5 * vtime.MbitPerSecond).String() {
		a.same = func(wanted string) bool { return wanted == vtime.BitRate(5_500_000).String() }
		a.why = "iwconfig shows whole Mb/s"
		out[settingRate] = a
	}
	if a := out[settingBasicRate]; c.BasicRate != 0 && a.text == c.BasicRate.String() {
		out[settingBasicRate] = answer{text: a.text, why: "broadcasts have it (get_mcast_rate); MadWifi chooses the rate of acknowledgements among the standard's basic rates"}
	}
	return out
}

// read asks iwconfig for what it shows, and iwpriv for what c wants beside.
func (d madwifi) read(ctx context.Context, h Host, c Config) (state, error) {
	out, err := h.Run(ctx, []string{"iwconfig", c.Interface}, "")
	if err != nil {
		return nil, c.fail(Unavailable, "", "", err.Error(), "")
	}
	got, err := parseIwconfig(out)
	if err != nil {
		return nil, c.fail(Unavailable, "", "", err.Error(), "name an interface of MadWifi")
	}
	get := func(args ...string) (string, bool) {
		out, err := h.Run(ctx, append([]string{"iwpriv", c.Interface}, args...), "")
		if err != nil {
			return "", false
		}
		return parseIwpriv(out, args[0])
	}
	if m, ok := get("get_mode"); ok {
		for standard, mode := range phyModes {
			if strings.EqualFold(m, mode) {
				got[settingStandard] = standard
			}
		}
	}
	if p, ok := get("get_shpreamble"); ok {
		got[settingPreamble] = map[string]string{"0": valueLong, "1": valueShort}[p]
	}
	if r, ok := get("get_mcast_rate"); ok {
		if n, err := strconv.Atoi(r); err == nil && n > 0 {
			got[settingBasicRate] = (vtime.BitRate(n) * 1000).String()
		}
	}
	queues := false
	for _, v := range c.values() {
		cat, name, ok := strings.Cut(v.name, ".")
		command := map[string]string{queueAIFS: "get_aifs", queueCWMin: "get_cwmin", queueCWMax: "get_cwmax", queueTXOP: "get_txoplimit", queueAck: "get_noackpolicy"}[name]
		if !ok || command == "" {
			continue
		}
		queues = true
		ask := func(table, key string) {
			a, _ := get(command, strconv.Itoa(wmeCategory[categoryIndex(cat)]), table)
			if n, err := strconv.Atoi(a); err == nil && n >= 0 {
				got[key] = queueText(name, n)
			}
		}
		ask(wmeOwn, v.name)
		if c.Mode == ModeAP && name != queueAck {
			ask(wmeBSS, stateBSS+v.name)
		}
	}
	if queues {
		if w, ok := get("get_wmm"); ok {
			got[stateWMM] = w
		}
	}
	return got, nil
}

// queueText is the text of a number that the driver keeps of a queue.
func queueText(name string, n int) string {
	switch name {
	case queueCWMin, queueCWMax:
		return strconv.Itoa(1<<min(n, 30) - 1)
	case queueTXOP:
		return (vtime.Duration(n) * vtime.Microsecond).String()
	case queueAck:
		return ackPolicy(n != 0)
	}
	return strconv.Itoa(n)
}

var (
	iwESSID   = regexp.MustCompile(`ESSID:(?:"([^"]*)"|(\S+))`)
	iwMode    = regexp.MustCompile(`Mode:(\S+)`)
	iwFreq    = regexp.MustCompile(`Frequency[:=]([0-9.]+) GHz`)
	iwChannel = regexp.MustCompile(`Channel[:=]([0-9]+)`)
	iwCell    = regexp.MustCompile(`(?:Access Point|Cell): (\S+)`)
	iwRate    = regexp.MustCompile(`Bit Rate([:=])([0-9.]+) ([kMG])b/s`)
	iwPower   = regexp.MustCompile(`Tx-Power([:=])(-?[0-9]+) dBm`)
	iwRetry   = regexp.MustCompile(`Retry(?:(:off)| +(?:(?:short|long|min|max) +)*limit:([0-9]+))`)
	iwRTS     = regexp.MustCompile(`RTS thr[:=](?:(off)|([0-9]+) B)`)
	iwFrag    = regexp.MustCompile(`Fragment thr[:=](?:(off)|([0-9]+) B)`)
	iwAddress = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
)

// iwModes are the modes as iwconfig names them.
var iwModes = map[string]Mode{"Ad-Hoc": ModeAdhoc, "Managed": ModeStation, "Master": ModeAP}

// parseIwconfig reads what iwconfig(8) shows of one interface. A sign of
// equality means that the value is fixed, a colon that the driver chose it.
func parseIwconfig(out string) (state, error) {
	first, _, _ := strings.Cut(out, "\n")
	if !strings.Contains(first, "ESSID:") {
		return nil, &parseError{"iwconfig", out}
	}
	got := state{}
	if m := iwESSID.FindStringSubmatch(out); m != nil {
		got[settingNetwork] = m[1] // "off/any" has no quotes: any network
	}
	if m := iwMode.FindStringSubmatch(out); m != nil {
		mode, ok := iwModes[m[1]]
		if !ok {
			mode = Mode(strings.ToLower(m[1]))
		}
		got[settingMode] = string(mode)
	}
	got[settingChannel] = valueAuto
	if m := iwFreq.FindStringSubmatch(out); m != nil {
		if ghz, err := strconv.ParseFloat(m[1], 64); err == nil && ghz > 0 {
			if ch := ChannelOf(int(ghz*1000 + 0.5)); ch != 0 {
				got[settingChannel] = strconv.Itoa(ch)
			}
		}
	} else if m := iwChannel.FindStringSubmatch(out); m != nil && m[1] != "0" {
		got[settingChannel] = m[1]
	}
	got[settingBSSID] = valueNone
	if m := iwCell.FindStringSubmatch(out); m != nil && iwAddress.MatchString(m[1]) {
		got[settingBSSID] = strings.ToLower(m[1])
	}
	if m := iwRate.FindStringSubmatch(out); m != nil {
		got[settingRate] = valueAuto
		if f, err := strconv.ParseFloat(m[2], 64); err == nil && m[1] == "=" {
			got[settingRate] = vtime.BitRate(f*map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9}[m[3]] + 0.5).String()
		}
	}
	if m := iwPower.FindStringSubmatch(out); m != nil {
		got[settingTxPower] = valueAuto
		if n, err := strconv.Atoi(m[2]); err == nil && m[1] == "=" {
			got[settingTxPower] = vtime.DBm(n).String()
		}
	}
	if m := iwRetry.FindStringSubmatch(out); m != nil {
		got[settingRetries] = valueOff
		if m[1] == "" {
			got[settingRetries] = m[2]
		}
	}
	size := func(re *regexp.Regexp, name string) {
		m := re.FindStringSubmatch(out)
		if m == nil {
			return
		}
		got[name] = valueOff
		if n, err := strconv.Atoi(m[2]); m[1] == "" && err == nil {
			got[name] = vtime.Bytes(n).String()
		}
	}
	size(iwRTS, settingRTS)
	size(iwFrag, settingFragment)
	return got, nil
}

// parseIwpriv reads what iwpriv(8) shows of one private command:
// "ath0      get_cwmin:5  ". Its name is cut at 16 characters.
func parseIwpriv(out, command string) (string, bool) {
	for _, line := range strings.Split(out, "\n") {
		_, rest, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		if v, ok := strings.CutPrefix(strings.TrimSpace(rest), command+":"); ok {
			if f := strings.Fields(v); len(f) > 0 {
				return f[0], true
			}
		}
	}
	return "", false
}

// parseError is output of a tool that is not what the tool writes.
type parseError struct{ tool, output string }

func (e *parseError) Error() string {
	out := strings.Join(strings.Fields(e.output), " ")
	if len(out) > 200 {
		out = out[:200] + " …"
	}
	return e.tool + " says: " + out
}
