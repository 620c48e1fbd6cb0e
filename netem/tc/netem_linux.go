package tc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/vishvananda/netlink/nl"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Attributes of netem that package nl lacks (linux/pkt_sched.h).
const (
	netemLatency64 = 10
	netemJitter64  = 11
	netemSlot      = 12
	netemSeed      = 14 // Linux 6.6
	netemLossGI    = 1
	netemLossGE    = 2
)

var native = binary.NativeEndian

// share is a probability as netem counts it: all ones are 100 %.
func share(f vtime.Fraction) uint32 { return uint32(math.Round(float64(f) * math.MaxUint32)) }

func u32s(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = native.AppendUint32(b, x)
	}
	return b
}

func u64s(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = native.AppendUint64(b, x)
	}
	return b
}

// ticks are the kernel's units of 64 ns (PSCHED_SHIFT), of fields that had no room
// for nanoseconds.
func ticks(d vtime.Duration) uint32 { return uint32(min(int64(d)>>6, math.MaxUint32)) }

// options encodes a netem. What netem keeps unless it is told otherwise is told
// on every change; on creation it is left out where it is zero.
func (n *netem) options(create bool) *nl.RtAttr {
	loss := uint32(0)
	if n.states == nil && n.loss.ToBad == 0 {
		loss = share(n.loss.Good)
	}
	o := nl.NewRtAttr(nl.TCA_OPTIONS, u32s(ticks(n.latency), uint32(n.limit), loss, 0, share(n.duplicate), ticks(n.jitter)))
	o.AddRtAttr(netemLatency64, u64s(uint64(n.latency)))
	o.AddRtAttr(netemJitter64, u64s(uint64(n.jitter)))
	if n.jitter > 0 {
		var b []byte
		values := table(n.table).values()
		if n.held > 0 {
			values = twoPoints(n.held)
		}
		for _, v := range values {
			b = native.AppendUint16(b, uint16(v))
		}
		o.AddRtAttr(nl.TCA_NETEM_DELAY_DIST, b)
	}
	if n.corrupt > 0 || !create {
		o.AddRtAttr(nl.TCA_NETEM_CORRUPT, u32s(share(n.corrupt), 0))
	}
	if n.rate > 0 || !create {
		if n.rate > math.MaxUint32 {
			o.AddRtAttr(nl.TCA_NETEM_RATE64, u64s(n.rate))
		}
		o.AddRtAttr(nl.TCA_NETEM_RATE, u32s(uint32(min(n.rate, math.MaxUint32)), uint32(int32(n.overhead)), 0, 0))
	}
	if s := n.slots; s != nil || !create {
		if s == nil {
			s = &Slots{}
		}
		b := u64s(uint64(s.Min), uint64(s.Max))
		b = append(b, u32s(uint32(s.Packets), uint32(s.Bytes))...)
		o.AddRtAttr(netemSlot, append(b, u64s(0, 0)...))
	}
	if n.seed != 0 {
		o.AddRtAttr(netemSeed, u64s(n.seed))
	}
	if t := n.states; t != nil {
		o.AddRtAttr(nl.TCA_NETEM_LOSS, nil).AddRtAttr(netemLossGI, u32s(share(t.P13), share(t.P31), share(t.P32), share(t.P14), share(t.P23)))
	} else if l := n.loss; l.ToBad > 0 {
		o.AddRtAttr(nl.TCA_NETEM_LOSS, nil).AddRtAttr(netemLossGE, gilbertElliott(l))
	}
	return o
}

// gilbertElliott encodes the model in netem's words: p, r, h (what the bad state
// lets through) and 1-k (what the good state loses).
func gilbertElliott(l pipe.Loss) []byte {
	return u32s(share(l.ToBad), share(l.ToGood), share(1-l.Bad), share(l.Good))
}

// compare reads a netem back.
func (n *netem) compare(o *object) error {
	if len(o.options) < 24 {
		return fmt.Errorf("netem's options have %d bytes", len(o.options))
	}
	word := func(i int) uint32 { return native.Uint32(o.options[4*i:]) }
	a, err := attributes(o.options[24:])
	if err != nil {
		return err
	}
	c := comparison{what: "netem " + handleName(o.handle)}
	if b := a[netemLatency64]; len(b) >= 8 {
		c.duration("delay", n.latency, vtime.Duration(native.Uint64(b)), 0)
		c.duration("jitter", n.jitter, vtime.Duration(native.Uint64(a[netemJitter64])), 0)
	} else { // before Linux 4.15
		c.duration("delay", n.latency, vtime.Duration(word(0))<<6, 64)
		c.duration("jitter", n.jitter, vtime.Duration(word(5))<<6, 64)
	}
	c.number("limit", uint64(n.limit), uint64(word(1)))
	c.number("duplicate (of 2^32)", uint64(share(n.duplicate)), uint64(word(4)))
	second := func(kind uint16) []byte {
		if b := a[kind]; len(b) >= 4 {
			return b
		}
		return make([]byte, 16)
	}
	c.number("gap", 0, uint64(word(3)))
	c.number("corrupt (of 2^32)", uint64(share(n.corrupt)), uint64(native.Uint32(second(nl.TCA_NETEM_CORRUPT))))
	r := second(nl.TCA_NETEM_RATE)
	rate := uint64(native.Uint32(r))
	if b := a[nl.TCA_NETEM_RATE64]; len(b) >= 8 {
		rate = native.Uint64(b)
	}
	c.number("rate in byte/s", n.rate, rate)
	if n.rate > 0 {
		c.number("overhead", uint64(uint32(int32(n.overhead))), uint64(native.Uint32(r[4:])))
	}
	n.compareLoss(&c, a[nl.TCA_NETEM_LOSS], word(2))
	n.compareSlots(&c, a[netemSlot])
	if n.seed != 0 {
		if b := a[netemSeed]; len(b) >= 8 {
			c.number("seed", n.seed, native.Uint64(b))
		} else {
			c.differs("seed", fmt.Sprint(n.seed), "none (it has seeds from Linux 6.6 on): leave the seed out")
		}
	}
	return c.err()
}

func (n *netem) compareLoss(c *comparison, nested []byte, random uint32) {
	model, err := attributes(nested)
	switch {
	case err != nil:
		c.differs("loss", "a model", err.Error())
	case n.states != nil:
		t := n.states
		c.bytes("loss of four states", u32s(share(t.P13), share(t.P31), share(t.P32), share(t.P14), share(t.P23)), model[netemLossGI])
	case n.loss.ToBad > 0:
		c.bytes("loss of Gilbert and Elliott", gilbertElliott(n.loss), model[netemLossGE])
	default:
		if len(model[netemLossGI])+len(model[netemLossGE]) > 0 {
			c.differs("loss", "no model of bursts", "one")
		}
		c.number("loss (of 2^32)", uint64(share(n.loss.Good)), uint64(random))
	}
}

func (n *netem) compareSlots(c *comparison, b []byte) {
	if n.slots == nil {
		if len(b) >= 16 && (native.Uint64(b) != 0 || native.Uint64(b[8:]) != 0) {
			c.differs("slots", "none", fmt.Sprintf("%v to %v", vtime.Duration(native.Uint64(b)), vtime.Duration(native.Uint64(b[8:]))))
		}
		return
	}
	if len(b) < 24 {
		c.differs("slots", fmt.Sprintf("%v to %v", n.slots.Min, n.slots.Max), "none (it has them from Linux 4.15 on)")
		return
	}
	c.duration("shortest slot", n.slots.Min, vtime.Duration(native.Uint64(b)), 0)
	c.duration("longest slot", n.slots.Max, vtime.Duration(native.Uint64(b[8:])), 0)
	orAll := func(v uint64) uint64 { // no limit is told as the largest number
		if v == 0 {
			return math.MaxInt32
		}
		return v
	}
	c.number("packets of a slot", orAll(uint64(n.slots.Packets)), orAll(uint64(native.Uint32(b[16:]))))
	c.number("bytes of a slot", orAll(uint64(n.slots.Bytes)), orAll(uint64(native.Uint32(b[20:]))))
}
