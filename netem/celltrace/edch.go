package celltrace

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	edchTTI = 10 * vtime.Millisecond // 3GPP TS 25.319; the other one is 2 ms
	// edchMaxBits is the largest transport block with a TTI of 10 ms (3GPP TS 25.306).
	edchMaxBits = 20000
	// edchErrors is the share of first transmissions that fail, which the outer loop
	// of the power control aims at; the second, combined with the first, fails with
	// its square.
	edchErrors = 0.1
	// edchProcesses stop and wait (3GPP TS 25.319).
	edchProcesses = 4
)

// Uplink returns the delivery opportunities of an uplink, as Downlink does.
func Uplink(c EDCH, seed uint64, d vtime.Duration) ([]int64, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := length(d); err != nil {
		return nil, err
	}
	var (
		grant = newGaussMarkov(decay(edchTTI, c.GrantTime), des.NewStream(seed, "celltrace/grant"))
		cut   = newOutages(c.Outages, seed)
		air   = link{random: des.NewStream(seed, "celltrace/uplink-errors")}
		out   opportunities
	)
	for n := range int(d / edchTTI) {
		rate := float64(float64(c.Grant) * fmath.Exp(float64(c.Spread*grant.next())))
		if cut.now(vtime.Duration(n) * edchTTI) {
			continue
		}
		b := air.again(n)
		if b == nil {
			b = air.add(block{bits: min(edchMaxBits, int(float64(rate*edchTTI.Seconds())))})
		}
		b.transmissions++
		fails := edchErrors
		for range b.transmissions - 1 {
			fails = float64(fails * edchErrors)
		}
		b.received, b.ready = air.random.Float64() >= fails, n+edchProcesses
		out.deliver(vtime.Duration(n+1)*edchTTI, air.take())
	}
	return out.ms, nil
}
