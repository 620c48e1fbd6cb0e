package lab

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/wifi"
)

// setting is a key with its value as people write it.
type setting struct{ key, value string }

// differences are the settings that an order changed; where it changed none, those
// that it named.
func differences(target string, was, is []setting, as []spec.Assignment) []Changed {
	var out, same []Changed
	for i := range is {
		c := Changed{Target: target, Key: is[i].key, Was: was[i].value, Is: is[i].value}
		if c.Was != c.Is {
			out = append(out, c)
			continue
		}
		for _, a := range as {
			if a.Key == c.Key || strings.HasPrefix(a.Key, c.Key+".") {
				same = append(same, c)
				break
			}
		}
	}
	if len(out) == 0 {
		return same
	}
	return out
}

func upDown(up bool) string {
	if up {
		return "true"
	}
	return "false"
}

func (w *wireSettings) text() []setting {
	c := &w.config
	rate := "unlimited"
	switch {
	case c.Trace != nil:
		rate = "a trace"
	case c.Rate > 0:
		rate = c.Rate.String()
	}
	jitter := "none"
	if c.Jitter.Distribution != pipe.Constant {
		jitter = fmt.Sprintf("%v %v", c.Jitter.Distribution, c.Jitter.Spread)
		if c.Jitter.Overtake {
			jitter += ", overtaking"
		}
	}
	loss := c.Loss.Good.String()
	if c.Loss.ToBad > 0 {
		loss = fmt.Sprintf("good %v, bad %v, to-bad %v, to-good %v", c.Loss.Good, c.Loss.Bad, c.Loss.ToBad, c.Loss.ToGood)
	}
	queue := "unlimited"
	switch q := c.Queue; {
	case q.Packets > 0 && q.Bytes > 0:
		queue = fmt.Sprintf("%d packets or %v", q.Packets, q.Bytes)
	case q.Packets > 0:
		queue = fmt.Sprintf("%d packets", q.Packets)
	case q.Bytes > 0:
		queue = q.Bytes.String()
	}
	reorder := "none"
	if c.Reorder.Share > 0 {
		reorder = fmt.Sprintf("%v by %v", c.Reorder.Share, c.Reorder.Extra)
	}
	return []setting{{"up", upDown(w.up)}, {"rate", rate}, {"delay", c.Delay.String()}, {"jitter", jitter}, {"loss", loss},
		{"queue", queue}, {"reorder", reorder}, {"duplicate", c.Duplicate.String()}}
}

func (a airSettings) text() []setting {
	delivery := "by the radio model"
	if a.delivery > 0 {
		delivery = a.delivery.String()
	}
	return []setting{{"up", upDown(!a.down)}, {"loss", a.loss.String()}, {"delivery", delivery}}
}

func (n *nodeSettings) text() []setting {
	m := &n.iface
	rts := "off"
	if m.RTSThreshold > 0 {
		rts = m.RTSThreshold.String()
	}
	out := []setting{{"up", upDown(n.up)}, {"radio.rate", m.Rate.String()}, {"radio.basic-rate", m.BasicRate.String()}, {"radio.preamble", m.Preamble.String()},
		{"radio.drop", n.radio.Drop.String()}, {"mac.retries", fmt.Sprint(m.Retries)}, {"mac.rts", rts}}
	for ac := range wifi.NumAC {
		q := &m.Queues[ac]
		at := "mac.queues." + wifi.AC(ac).String() + "."
		ack := "normal"
		if q.Ack == wifi.AckNone {
			ack = "none"
		}
		out = append(out, setting{at + "aifs", fmt.Sprint(q.AIFSN)}, setting{at + "cwmin", fmt.Sprint(q.CWmin)}, setting{at + "cwmax", fmt.Sprint(q.CWmax)},
			setting{at + "txop", q.TXOP.String()}, setting{at + "ack", ack}, setting{at + "limit", fmt.Sprint(q.Limit)})
	}
	return out
}
