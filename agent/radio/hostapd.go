package radio

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// hostapdDir is where hostapd's control sockets are; hostapd_cli ends it, also
// long after the agent that began it.
const hostapdDir = "/run/hopbed-hostapd"

// hostapdQueues are the numbers of hostapd's tx_queue_dataN of each of
// Config.Queues (hostapd.conf: data0 is voice, data3 background).
var hostapdQueues = [4]int{3, 2, 1, 0}

// hostapdClasses are its names of the categories in what it tells stations.
var hostapdClasses = [4]string{"bk", "be", "vi", "vo"}

func (d nl80211) accessPoint(c Config, mhz string, names []string) change {
	names = append([]string{settingMode}, names...)
	if c.Standard != "" {
		names = append(names, settingStandard)
	}
	if c.Preamble != "" {
		names = append(names, settingPreamble)
	}
	for i := range c.Queues {
		for _, v := range c.Queues[i].values(categories[i]) {
			if !strings.HasSuffix(v.name, "."+queueAck) {
				names = append(names, v.name)
			}
		}
	}
	return change{
		Step: Step{Argv: []string{"hostapd", "-B", "/proc/self/fd/0"}, Input: d.hostapdConf(c), Settings: names,
			Why: "an open access point on " + mhz + " MHz; only hostapd can set the parameters of queues"},
		undo:   func(state) [][]string { return [][]string{hostapdCLI(c.Interface, "raw", "TERMINATE")} },
		remedy: "end what else uses the radio, and take a channel that the regulatory domain permits to access points",
	}
}

func hostapdCLI(iface string, words ...string) []string {
	return append([]string{"hostapd_cli", "-p", hostapdDir, "-i", iface}, words...)
}

// hostapdConf is the configuration of an open access point (hostapd.conf(5)).
func (nl80211) hostapdConf(c Config) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("interface=%s", c.Interface)
	line("driver=nl80211")
	line("ctrl_interface=%s", hostapdDir)
	line("ssid=%s", c.Network)
	line("channel=%d", c.Channel)
	mode := map[string]string{"802.11a": "a", "802.11b": "b", "802.11g": "g"}[c.Standard]
	if mode == "" {
		mode = map[int]string{2: "g", 5: "a"}[band(&c)]
	}
	line("hw_mode=%s", mode)
	line("wmm_enabled=1")
	if c.Preamble == valueShort {
		line("preamble=1")
	}
	if c.BasicRate != 0 { // in units of 100 kb/s
		line("basic_rates=%d", c.BasicRate/100_000)
	}
	for i := range c.Queues {
		q := &c.Queues[i]
		if !q.allTXQ() {
			continue
		}
		n, class := hostapdQueues[i], hostapdClasses[i]
		line("tx_queue_data%d_aifs=%d", n, *q.AIFS)
		line("tx_queue_data%d_cwmin=%d", n, *q.CWMin)
		line("tx_queue_data%d_cwmax=%d", n, *q.CWMax)
		line("tx_queue_data%d_burst=%s", n, strconv.FormatFloat(float64(burst(*q.TXOP))/10, 'f', 1, 64)) // ms
		line("wmm_ac_%s_aifs=%d", class, *q.AIFS)
		line("wmm_ac_%s_cwmin=%d", class, log2(*q.CWMin+1))
		line("wmm_ac_%s_cwmax=%d", class, log2(*q.CWMax+1))
		line("wmm_ac_%s_txop_limit=%d", class, *q.TXOP/txopUnit)
	}
	return b.String()
}

// burst is the txop in hostapd's units of 100 µs, of which it makes units of 32 µs
// (src/drivers/driver_nl80211.c, nl80211_set_tx_queue_params: (n · 100 + 16) / 32);
// -1 = no number gives it.
func burst(d vtime.Duration) int {
	want := int(d / txopUnit)
	for n := want * 32 / 100; n <= want*32/100+1; n++ {
		if (n*100+16)/32 == want {
			return n
		}
	}
	return -1
}

// nearBursts are the nearest durations below and above d that burst has.
func nearBursts(d vtime.Duration) string {
	var out []string
	for _, step := range []vtime.Duration{-txopUnit, txopUnit} {
		t := d + step
		for t > 0 && burst(t) < 0 {
			t += step
		}
		out = append(out, t.String())
	}
	return strings.Join(out, " or ")
}

// accessPointStatus is hostapd's own word for the state it is in.
func (nl80211) accessPointStatus(ctx context.Context, h Host, c Config) string {
	out, err := h.Run(ctx, hostapdCLI(c.Interface, "status"), "")
	if err != nil {
		return "does not answer: " + err.Error()
	}
	for _, l := range strings.Split(out, "\n") {
		if s, ok := strings.CutPrefix(l, "state="); ok {
			return s
		}
	}
	return "tells no state"
}
