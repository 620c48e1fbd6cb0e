package topology

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
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
	if err := variants(c, &m); err != nil {
		return wifi.MAC{}, err
	}
	if err := m.Validate(); err != nil {
		return wifi.MAC{}, fmt.Errorf("the blocks radio and mac: %w", err)
	}
	return m, nil
}

// variantTxop is the txop limit that the variant txop of UDP gives to its queue
// where the file gives none: the largest that MadWifi's 8-bit field holds (Hop,
// NSDI 2009, section 4).
const variantTxop = 8160 * vtime.Microsecond

// queueVariants is the table of transports' variants that are settings of a
// queue. A node has one queue for each access category, so a variant holds for
// whatever else uses the queue.
var queueVariants = []struct {
	family, variant string
	set             func(q *wifi.Queue, file *spec.Queue)
	not             string // the variant that asks for the opposite
}{
	{spec.FamilyHop, "arq", func(q *wifi.Queue, _ *spec.Queue) { q.Ack = wifi.AckNormal }, "no-arq"},
	{spec.FamilyHop, "no-txop", func(q *wifi.Queue, _ *spec.Queue) { q.TXOP = 0 }, "txop"},
	{spec.FamilyUDP, "no-arq", func(q *wifi.Queue, _ *spec.Queue) { q.Ack = wifi.AckNone }, "arq"},
	{spec.FamilyUDP, "txop", burst, "no-txop"},
}

func burst(q *wifi.Queue, file *spec.Queue) {
	if file.TXOP == nil || *file.TXOP == 0 {
		q.TXOP = variantTxop
	}
}

// variants applies what the flows' transports ask of the queues. Two flows that
// ask one queue for opposites are an error, and so are UDP flows of different
// variants in one queue: one of them would not be what its name says.
func variants(c *spec.Config, m *wifi.MAC) error {
	var udp [wifi.NumAC]spec.Transport
	for i := range c.Flows {
		f := &c.Flows[i]
		ac := category(f)
		if f.Transport.Family() == spec.FamilyUDP {
			if other := udp[ac]; other != "" && other != f.Transport {
				return fmt.Errorf("flows[%d].transport: %s runs beside %s in the queue %v, which is one for both: give one of them another dscp, or compare them by the matrix", i, f.Transport, other, ac)
			}
			udp[ac] = f.Transport
		}
		for _, v := range queueVariants {
			if f.Transport.Family() != v.family || !f.Transport.Has(v.variant) {
				continue
			}
			for j := range c.Flows {
				if g := &c.Flows[j]; category(g) == ac && g.Transport.Has(v.not) {
					return fmt.Errorf("flows[%d].transport: %s runs beside %s in the queue %v, which cannot be both: give one of them another dscp, or compare them by the matrix", i, f.Transport, g.Transport, ac)
				}
			}
			v.set(&m.Queues[ac], queues(c)[ac])
		}
	}
	return nil
}

// category is the access category of a flow's data.
func category(f *spec.Flow) wifi.AC {
	if f.Transport.Family() == spec.FamilyHop {
		return wifi.BK
	}
	return wifi.BE
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
