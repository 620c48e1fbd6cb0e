package topology

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/wifi"
)

// MAC returns the medium access control that a Config describes: the medium's
// defaults for the standard, changed by what the file says.
func MAC(c *spec.Config) (wifi.MAC, error) {
	std := wifi.StandardB
	switch c.Radio.Standard {
	case spec.Standard11g:
		std = wifi.StandardG
	case spec.Standard11a:
		std = wifi.StandardA
	}
	m := wifi.DefaultMAC(std)
	m.Rate, m.BasicRate = c.Radio.Rate, c.Radio.BasicRate
	if c.Radio.Preamble == spec.PreambleShort {
		m.Preamble = wifi.PreambleShort
	}
	if c.MAC.Retries != nil {
		m.Retries = *c.MAC.Retries
	}
	if c.MAC.RTS != nil {
		m.RTSThreshold = *c.MAC.RTS
	}
	for ac, q := range queues(c) {
		apply(&m.Queues[ac], *q)
	}
	variants(c, &m)
	if err := m.Validate(); err != nil {
		return wifi.MAC{}, fmt.Errorf("the blocks radio and mac: %w", err)
	}
	return m, nil
}

// variants applies those of the flows' transports that are settings of the queue
// of their data. A node has one queue for each access category, so a variant holds
// for whatever else uses the queue; a file whose flows want one queue to be two
// things is refused before (spec).
func variants(c *spec.Config, m *wifi.MAC) {
	for i := range c.Flows {
		f := &c.Flows[i]
		ac := category(f)
		q := &m.Queues[ac]
		for _, v := range f.Transport.Alters() {
			switch v {
			case "arq":
				q.Ack = wifi.AckNormal
			case "no-arq":
				q.Ack = wifi.AckNone
			case "no-txop":
				q.TXOP = 0
			case "txop":
				if given := queues(c)[ac].TXOP; given == nil || *given == 0 {
					q.TXOP = spec.VariantTXOP
				}
			}
		}
	}
}

// category is the access category of a flow's data.
func category(f *spec.Flow) wifi.AC {
	if f.Transport.Family() == spec.FamilyHop {
		return wifi.BK
	}
	return wifi.CategoryOf(uint8(f.DSCPValue()))
}

// queues are the file's settings by access category.
func queues(c *spec.Config) [wifi.NumAC]*spec.Queue {
	q := &c.MAC.Queues
	return [wifi.NumAC]*spec.Queue{wifi.BK: &q.BK, wifi.BE: &q.BE, wifi.VI: &q.VI, wifi.VO: &q.VO}
}

func apply(to *wifi.Queue, q spec.Queue) {
	if q.AIFS != nil {
		to.AIFSN = *q.AIFS
	}
	if q.CWMin != nil {
		to.CWmin = *q.CWMin
		to.CWmax = max(to.CWmax, to.CWmin)
	}
	if q.CWMax != nil {
		to.CWmax = *q.CWMax
		to.CWmin = min(to.CWmin, to.CWmax)
	}
	if q.TXOP != nil {
		to.TXOP = *q.TXOP
	}
	switch q.Ack {
	case spec.AckNone:
		to.Ack = wifi.AckNone
	case spec.AckNormal:
		to.Ack = wifi.AckNormal
	}
	if q.Limit != nil {
		to.Limit = *q.Limit
	}
}

// Radio returns the propagation and receiver model that a Config describes.
func Radio(c *spec.Config) (wifi.Radio, error) {
	p := &c.Radio.PathLoss
	var r wifi.Radio
	if p.Kind == spec.Disk {
		r = wifi.DiskRadio(p.Range, p.SenseRange)
	} else {
		r = wifi.DefaultRadio()
		if c.Radio.TxPower != nil {
			r.TxPower = *c.Radio.TxPower
		}
		if c.Radio.Noise != nil {
			r.Noise = *c.Radio.Noise
		}
		if c.Radio.Sense != nil {
			r.Sense = *c.Radio.Sense
		}
		if p.ReferenceLoss != nil {
			r.ReferenceLoss = *p.ReferenceLoss
		}
		if p.Shadowing != nil {
			r.Shadowing = *p.Shadowing
		}
	}
	if p.Exponent != nil {
		r.Exponent = *p.Exponent
	}
	if c.Radio.Capture != nil {
		r.Capture = *c.Radio.Capture
	}
	if err := r.Validate(); err != nil {
		return wifi.Radio{}, fmt.Errorf("the block radio: %w", err)
	}
	return r, nil
}
