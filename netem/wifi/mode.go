package wifi

import (
	"fmt"
	"strings"
	"sync"

	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// modulation is the family of a rate's error model.
type modulation uint8

const (
	dbpsk modulation = iota
	dqpsk
	cck55
	cck11
	bpsk
	qpsk
	qam16
	qam64
)

// mode is one rate of the PHY. Modes are package constants: every medium shares
// their tables.
type mode struct {
	rate  vtime.BitRate
	dsss  bool
	mod   modulation
	code  codeRate
	table func() *errorTable
	// lock is the ratio below which no receiver synchronises to a PLCP header at
	// this rate: less than half of the headers would decode.
	lock func() float64
}

func newMode(rate vtime.BitRate, dsss bool, mod modulation, code codeRate) *mode {
	m := &mode{rate: rate, dsss: dsss, mod: mod, code: code}
	m.table = sync.OnceValue(func() *errorTable { return buildTable(m) })
	m.lock = sync.OnceValue(func() float64 { return bisect(m.headerSuccess, 0.5) })
	return m
}

const mbit = vtime.MbitPerSecond

var dsssModes = []*mode{
	newMode(1*mbit, true, dbpsk, uncoded),
	newMode(2*mbit, true, dqpsk, uncoded),
	newMode(5500*vtime.KbitPerSecond, true, cck55, uncoded),
	newMode(11*mbit, true, cck11, uncoded),
}

var ofdmModes = []*mode{ // 802.11-2012 table 18-4
	newMode(6*mbit, false, bpsk, half),
	newMode(9*mbit, false, bpsk, threeQuarters),
	newMode(12*mbit, false, qpsk, half),
	newMode(18*mbit, false, qpsk, threeQuarters),
	newMode(24*mbit, false, qam16, half),
	newMode(36*mbit, false, qam16, threeQuarters),
	newMode(48*mbit, false, qam64, twoThirds),
	newMode(54*mbit, false, qam64, threeQuarters),
}

// Rates returns the bit rates of a standard, ascending within each PHY.
func Rates(s Standard) []vtime.BitRate {
	var r []vtime.BitRate
	for _, m := range modes(s) {
		r = append(r, m.rate)
	}
	return r
}

func modes(s Standard) []*mode {
	switch s {
	case StandardB:
		return dsssModes
	case StandardG:
		return append(append([]*mode(nil), ofdmModes...), dsssModes...)
	}
	return ofdmModes
}

func modeOf(s Standard, r vtime.BitRate) (*mode, error) {
	for _, m := range modes(s) {
		if m.rate == r {
			return m, nil
		}
	}
	var names []string
	for _, m := range modes(s) {
		names = append(names, m.rate.String())
	}
	return nil, fmt.Errorf("%v is not a rate of %v, want one of %s", r, s, strings.Join(names, ", "))
}

// plcpMode is the rate of a frame's PLCP header (DSSS: PLCP header; OFDM: the
// SIGNAL symbol).
func (p *phy) plcpMode(m *mode) *mode {
	switch {
	case !m.dsss:
		return ofdmModes[0]
	case p.plcp(m) < 192*vtime.Microsecond:
		return dsssModes[1]
	}
	return dsssModes[0]
}

// headerBits is the number of bits of a PLCP header sent at the rate.
func (m *mode) headerBits() int {
	if m.dsss {
		return 48
	}
	return 24
}

// headerSuccess returns the probability that a PLCP header at the rate survives at
// the constant ratio g.
func (m *mode) headerSuccess(g float64) float64 {
	return fmath.Exp(float64(float64(m.headerBits()) * m.table().lnBit(g)))
}
