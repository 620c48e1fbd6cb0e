package radio

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

func (d nl80211) Readback(ctx context.Context, h Host, c Config) ([]Setting, error) {
	end := time.Now().Add(d.settle)
	for {
		w, err := h.Wireless(c.Interface)
		if err != nil {
			return nil, c.fail(Unavailable, "", "", err.Error(), "")
		}
		ap := ""
		if c.Mode == ModeAP {
			ap = d.accessPointStatus(ctx, h, c)
		}
		out, err := c.verify(d.answers(c, w, ap))
		if e, ok := errors.AsType[*Error](err); ok && joining(e.Setting) && time.Now().Before(end) {
			select {
			case <-ctx.Done():
				return out, err
			case <-time.After(100 * time.Millisecond):
				continue
			}
		}
		return out, err
	}
}

// joining tells whether a setting is had only once the network is joined.
func joining(setting string) bool {
	switch setting {
	case settingNetwork, settingBSSID, settingChannel, settingTxPower:
		return true
	}
	return false
}

// answers says what nl80211 tells of each wanted setting.
func (d nl80211) answers(c Config, w *Wireless, ap string) map[string]answer {
	out := map[string]answer{
		settingMode:    {text: string(w.Mode), known: true},
		settingNetwork: {text: w.Network, known: true},
		settingBSSID:   {text: w.BSSID, known: true},
		settingChannel: {text: valueOff, known: true},
	}
	if ch := ChannelOf(w.Frequency); ch != 0 {
		out[settingChannel] = answer{text: strconv.Itoa(ch), known: true}
	}
	if c.Mode == ModeMesh {
		out[settingNetwork] = answer{why: "the kernel does not tell the id of a joined mesh"}
		if w.Forwards == nil || *w.Forwards {
			out[settingMode] = answer{text: "mesh that forwards", known: true}
		}
	}
	if w.TxPower != nil {
		out[settingTxPower] = answer{text: w.TxPower.String(), known: true, why: "the power in use: regulatory domain and channel bound it"}
	}
	if w.RetryShort != nil && w.RetryLong != nil {
		a := answer{text: strconv.Itoa(*w.RetryShort - 1), known: true,
			why: "the limit of the phy; rate control may end a frame earlier"}
		if *w.RetryShort != *w.RetryLong {
			a.text += ", and " + strconv.Itoa(*w.RetryLong-1) + " for long frames"
		}
		out[settingRetries] = a
	}
	if w.RTS != nil {
		out[settingRTS] = answer{text: threshold(*w.RTS), known: true}
	}
	if w.Fragment != nil {
		out[settingFragment] = answer{text: threshold(*w.Fragment), known: true}
	}
	d.rateAnswers(c, w, out)
	if c.BasicRate != 0 {
		out[settingBasicRate] = answer{why: "nl80211 does not tell the basic rates of a joined network"}
	}
	if c.Preamble != "" {
		out[settingPreamble] = answer{why: "mac80211 sends long preambles unless an access point offers short ones; nl80211 does not tell"}
	}
	for i := range c.Queues {
		for _, v := range c.Queues[i].values(categories[i]) {
			why := "hostapd gave it to the kernel, which does not tell the parameters of queues"
			if strings.HasSuffix(v.name, "."+queueAck) {
				why = "nl80211 does not tell the map of TIDs that are not acknowledged"
			}
			out[v.name] = answer{why: why}
		}
	}
	if c.Mode == ModeAP && ap != "ENABLED" {
		out[settingMode] = answer{text: "hostapd " + ap, known: true}
	}
	return out
}

// rateAnswers compares the mask of rates, which mac80211 shows in debugfs alone.
func (nl80211) rateAnswers(c Config, w *Wireless, out map[string]answer) {
	b := band(&c)
	have, ok := w.Rates[b]
	if !ok {
		a := answer{why: "only debugfs tells (rc_rateidx_mask_" + strconv.Itoa(b) + "ghz), and it is not there"}
		out[settingRate], out[settingStandard] = a, a
		return
	}
	want := dataRates(&c)
	text := rateList(have)
	if equalRates(have, want) {
		out[settingRate] = answer{text: c.Rate.String(), known: true}
		out[settingStandard] = answer{text: c.Standard, known: true, why: "the rates of data are of this standard"}
		return
	}
	out[settingRate] = answer{text: text, known: true}
	out[settingStandard] = answer{text: "rates " + text, known: true}
}

func rateList(rs []vtime.BitRate) string {
	var out []string
	for _, r := range rs {
		out = append(out, r.String())
	}
	return strings.Join(out, " ")
}
