package tc

import (
	"fmt"
	"math"

	"github.com/vishvananda/netlink/nl"
)

const ethernet = 1 // TC_LINKLAYER_ETHERNET: no tables of rates are needed

// rateSpec is struct tc_ratespec: a rate with a framing overhead per packet.
func rateSpec(rate uint64, overhead int) []byte {
	b := []byte{0, ethernet}
	b = native.AppendUint16(b, uint16(overhead))
	b = native.AppendUint16(b, 0) // cell alignment
	b = native.AppendUint16(b, 0) // mpu
	return native.AppendUint32(b, uint32(min(rate, math.MaxUint32)))
}

// bucketTicks is the time, in the kernel's ticks, that a bucket lasts.
func bucketTicks(rate uint64, burst uint32) uint32 {
	return uint32(uint64(burst) * 1_000_000_000 / rate >> 6)
}

func (t *tbf) options() *nl.RtAttr {
	o := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	b := append(rateSpec(t.rate, t.overhead), make([]byte, 12)...) // no peak rate
	o.AddRtAttr(nl.TCA_TBF_PARMS, append(b, u32s(t.limit, bucketTicks(t.rate, t.burst), 0)...))
	o.AddRtAttr(nl.TCA_TBF_BURST, u32s(t.burst))
	if t.rate > math.MaxUint32 {
		o.AddRtAttr(nl.TCA_TBF_RATE64, u64s(t.rate))
	}
	return o
}

func (t *tbf) compare(o *object) error {
	a, err := attributes(o.options)
	if err != nil {
		return err
	}
	p := a[nl.TCA_TBF_PARMS]
	if len(p) < 36 {
		return fmt.Errorf("tbf's options have %d bytes", len(p))
	}
	c := comparison{what: "tbf " + handleName(o.handle)}
	compareRate(&c, t.rate, t.overhead, p, a[nl.TCA_TBF_RATE64])
	c.number("limit", uint64(t.limit), uint64(native.Uint32(p[24:])))
	// The kernel adds the overhead of one packet to the bucket's time.
	c.near("bucket in ticks", uint64(bucketTicks(t.rate, t.burst+uint32(t.overhead))), uint64(native.Uint32(p[28:])), 1e-3)
	return c.err()
}

func compareRate(c *comparison, rate uint64, overhead int, spec, wide []byte) {
	got := uint64(native.Uint32(spec[8:]))
	if len(wide) >= 8 {
		got = native.Uint64(wide)
	}
	c.number("rate in byte/s", rate, got)
	c.number("overhead", uint64(overhead), uint64(native.Uint16(spec[2:])))
}

// htbOptions are those of the discipline itself: what fits no class passes.
func htbOptions() *nl.RtAttr {
	o := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	o.AddRtAttr(nl.TCA_HTB_INIT, u32s(3, 10, 0, 0, 0)) // version, r2q, no default class
	return o
}

// quantum is what htb lets a class send before it turns to the next: two frames.
const quantum = 2 * 1514

func (k *class) options() *nl.RtAttr {
	o := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	spec, t := rateSpec(k.rate, k.overhead), bucketTicks(k.rate, k.burst)
	b := append(append([]byte{}, spec...), spec...) // rate and ceiling
	o.AddRtAttr(nl.TCA_HTB_PARMS, append(b, u32s(t, t, quantum, 0, 0)...))
	if k.rate > math.MaxUint32 {
		o.AddRtAttr(nl.TCA_HTB_RATE64, u64s(k.rate))
		o.AddRtAttr(nl.TCA_HTB_CEIL64, u64s(k.rate))
	}
	return o
}

func (k *class) compare(o *object) error {
	a, err := attributes(o.options)
	if err != nil {
		return err
	}
	p := a[nl.TCA_HTB_PARMS]
	if len(p) < 44 {
		return fmt.Errorf("htb's options have %d bytes", len(p))
	}
	c := comparison{what: "htb class " + handleName(o.handle)}
	compareRate(&c, k.rate, k.overhead, p, a[nl.TCA_HTB_RATE64])
	compareRate(&c, k.rate, k.overhead, p[12:], a[nl.TCA_HTB_CEIL64])
	c.near("bucket in ticks", uint64(bucketTicks(k.rate, k.burst)), uint64(native.Uint32(p[24:])), 1e-3)
	return c.err()
}
