package site

import (
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// driver is the radio driver of a node; an inventory that names none leaves the
// radio as it is.
func driver(n *inventory.Node) string {
	if n.Radio.Driver == "" {
		return radio.None
	}
	return n.Radio.Driver
}

// Radio is what a scenario and a lab want of a node's radio. The lab says what
// joins the nodes of a network, the experiment what is compared. What decides a
// result in the emulated medium (standard, rates, RTS, no fragments) is set here, too;
// what neither file says is left as the driver has it. A driver that does nothing
// is given what the file writes only, so that results can say that it was not
// applied. It is nil where there is nothing to say.
func Radio(sc *plan.Scenario, n *inventory.Node) *radio.Config {
	c, m := sc.Config(), &sc.Topology.MAC
	lab := &n.Radio
	out := &radio.Config{Driver: driver(n), Interface: n.Interface}
	passive := out.Driver == radio.None || out.Driver == radio.Emulated
	if !passive {
		out.Device, out.Mode, out.Network, out.BSSID, out.Channel = lab.Device, radio.Mode(lab.Mode), lab.Network, lab.BSSID, lab.Channel
		out.TxPower = lab.TxPower
		out.Standard, out.Rate = string(c.Radio.Standard), c.Radio.Rate
		// Where links are measured it is the rate of the probes.
		if probing := len(c.Flows) == 0; probing || c.Radio.BasicRate != defaultBasicRate(c) {
			out.BasicRate = c.Radio.BasicRate
		}
		if c.Radio.Preamble == spec.PreambleShort {
			out.Preamble = string(c.Radio.Preamble)
		}
		out.RTS, out.Fragment = orOff(c.MAC.RTS), orOff(c.MAC.Fragment)
	} else {
		out.RTS, out.Fragment = c.MAC.RTS, c.MAC.Fragment
	}
	if out.TxPower == nil {
		out.TxPower = c.Radio.TxPower
	}
	out.Retries = c.MAC.Retries
	usual := wifi.DefaultMAC(m.Standard)
	given := [4]*spec.Queue{&c.MAC.Queues.BK, &c.MAC.Queues.BE, &c.MAC.Queues.VI, &c.MAC.Queues.VO}
	for k, ac := range []wifi.AC{wifi.BK, wifi.BE, wifi.VI, wifi.VO} {
		out.Queues[k] = queue(given[k], &m.Queues[ac], &usual.Queues[ac])
	}
	if passive && out.TxPower == nil && out.RTS == nil && out.Fragment == nil && out.Retries == nil && out.Queues == [4]radio.Queue{} {
		return nil
	}
	return out
}

// orOff is a threshold that is off where the file has none.
func orOff(n *vtime.Bytes) *vtime.Bytes {
	if n != nil {
		return n
	}
	off := vtime.Bytes(-1)
	return &off
}

// queue is what is wanted of an access category: what the file writes, and what a
// variant of a transport made of it (topology.MAC).
func queue(given *spec.Queue, is, usual *wifi.Queue) radio.Queue {
	q := radio.Queue{AIFS: given.AIFS, CWMin: given.CWMin, CWMax: given.CWMax, Limit: given.Limit}
	if given.TXOP != nil || is.TXOP != usual.TXOP {
		txop := is.TXOP
		q.TXOP = &txop
	}
	if given.Ack != "" || is.Ack != usual.Ack {
		none := is.Ack == wifi.AckNone
		q.NoAck = &none
	}
	return q
}

// defaultBasicRate is what a file that names no basic rate gets (experiments/spec).
func defaultBasicRate(c *spec.Config) vtime.BitRate {
	if c.Radio.Standard == spec.Standard11b {
		return min(2*vtime.MbitPerSecond, c.Radio.Rate)
	}
	return min(24*vtime.MbitPerSecond, c.Radio.Rate)
}
