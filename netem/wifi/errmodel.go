package wifi

import (
	"math"

	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// codeRate is the rate of the convolutional code of an OFDM mode.
type codeRate uint8

const (
	uncoded codeRate = iota
	half
	twoThirds
	threeQuarters
)

// ber returns the bit error rate of a mode at the linear signal-to-
// (noise+interference) ratio g. For DSSS and CCK g is the ratio per chip
// (11 Mchip/s), for OFDM per data subcarrier; interference counts as Gaussian
// noise. Sources: DESIGN.md, "Errors".
func (m *mode) ber(g float64) float64 {
	var p float64
	q := func(k float64) float64 { return fmath.Q(math.Sqrt(float64(k * g))) }
	switch m.mod {
	case dbpsk:
		// Differential BPSK, ½·e^(−Eb/N0); 11 chips per bit.
		p = float64(0.5 * fmath.Exp(-float64(11*g)))
	case dqpsk:
		// Differential QPSK with Gray mapping; 5.5 chips per bit.
		x := float64(5.5 * g)
		c := (math.Sqrt2 + 1) / math.Sqrt(8*math.Pi*math.Sqrt2)
		p = float64(c*fmath.Exp(-float64((2-math.Sqrt2)*x))) / math.Sqrt(x)
	case cck55:
		// Union bound over the 16 words of CCK-5.5.
		p = float64(float64(8.0/15) * (float64(14*q(8)) + q(16)))
	case cck11:
		// Union bound over the 256 words of CCK-11.
		s := float64(24*q(4)) + float64(16*q(6)) + float64(174*q(8)) + float64(16*q(10)) + float64(24*q(12)) + q(16)
		p = float64(float64(128.0/255) * s)
	case bpsk:
		p = m.decoded(float64(0.5 * fmath.Erfc(math.Sqrt(g))))
	case qpsk:
		p = m.decoded(float64(0.5 * fmath.Erfc(math.Sqrt(g/2))))
	case qam16:
		p = m.decoded(float64(0.75 * 0.5 * fmath.Erfc(math.Sqrt(g/10))))
	case qam64:
		p = m.decoded(float64(7.0 / 12 * 0.5 * fmath.Erfc(math.Sqrt(g/42))))
	}
	return math.Min(p, 0.5)
}

// spectrum is the start of the weight spectrum of the 802.11 convolutional code
// (133, 171) at one puncturing: information weights of the paths at distance
// free, free+step, …
type spectrum struct {
	free, step int
	k          float64 // information bits per code period
	weights    []float64
}

var spectra = map[codeRate]spectrum{
	half:          {10, 2, 1, []float64{36, 211, 1404, 11633, 77433, 502690, 3322763, 21292910, 134365911}},
	twoThirds:     {6, 1, 2, []float64{3, 70, 285, 1276, 6160, 27128, 117019, 498860, 2103891, 8784123}},
	threeQuarters: {5, 1, 3, []float64{42, 201, 1492, 10469, 62935, 379644, 2253373, 13073811, 75152755, 428005675}},
}

// decoded returns the bit error rate behind a hard-decision Viterbi decoder whose
// input has the error rate p: the union bound with the Chernoff distance
// D = √(4p(1−p)).
func (m *mode) decoded(p float64) float64 {
	s := spectra[m.code]
	d := math.Sqrt(float64(4 * float64(p*(1-p))))
	term := 1.0
	for i := 0; i < s.free; i++ {
		term = float64(term * d)
	}
	sum := 0.0
	for _, w := range s.weights {
		sum += float64(w * term)
		for i := 0; i < s.step; i++ {
			term = float64(term * d)
		}
	}
	return sum / (2 * s.k)
}

// errorTable holds ln(1−BER) of one mode on a geometric grid of ratios, 64 points
// per octave (0.047 dB) from −30 to +42 dB, so that a segment of a reception
// costs one look-up.
type errorTable struct {
	ln      [tableLen]float64
	perfect float64 // the bit error rate is below 1e-18 from this ratio on
}

const (
	tableMinExp  = -10
	tableOctaves = 24
	tableBits    = 6
	tableLen     = tableOctaves<<tableBits + 1
	tableBase    = uint64(1023+tableMinExp) << tableBits
)

func buildTable(m *mode) *errorTable {
	t := new(errorTable)
	for i := range t.ln {
		g := math.Float64frombits((tableBase + uint64(i)) << (52 - tableBits))
		b := m.ber(g)
		if b >= 1e-18 {
			t.perfect = math.Inf(1)
		} else if math.IsInf(t.perfect, 1) {
			t.perfect = g
		}
		t.ln[i] = -b // ln(1−b) to the precision of a float64
		if b > 1e-9 {
			t.ln[i] = fmath.Log(1 - b)
		}
	}
	return t
}

// lnBit returns ln(1−BER) at the ratio g.
func (t *errorTable) lnBit(g float64) float64 {
	const shift = 52 - tableBits
	b := math.Float64bits(g)
	i := b>>shift - tableBase
	if i >= tableLen-1 {
		if g < 1 {
			return t.ln[0]
		}
		return 0
	}
	frac := float64(float64(b&(1<<shift-1)) * (1.0 / (1 << shift)))
	lo, hi := t.ln[i], t.ln[i+1]
	return lo + float64(frac*(hi-lo))
}

// headerSuccess returns the probability that the PLCP header survives at a
// constant ratio.
func (p *phy) headerSuccess(m *mode, g float64) float64 {
	return p.plcpMode(m).headerSuccess(g)
}

// frameSuccess returns the probability that an MPDU of n bytes survives at a
// constant ratio, the PLCP header included.
func (p *phy) frameSuccess(m *mode, n vtime.Bytes, g float64) float64 {
	return float64(p.headerSuccess(m, g) * fmath.Exp(float64(p.payloadBits(m, p.txTime(m, n))*m.table().lnBit(g))))
}

// payloadBits is the number of bits behind the PLCP header of a frame of
// duration d, as the reception model counts them: rate × time.
func (p *phy) payloadBits(m *mode, d vtime.Duration) float64 {
	return float64(float64(d-p.plcp(m)-p.extension(m)) * m.bitsPerNano())
}

func (m *mode) bitsPerNano() float64 { return float64(float64(m.rate) * 1e-9) }

// bisect returns the ratio, in linear units, at which the rising function f
// crosses want.
func bisect(f func(g float64) float64, want float64) float64 {
	lo, hi := 1e-3, 1e5
	for i := 0; i < 100; i++ {
		mid := math.Sqrt(float64(lo * hi))
		if f(mid) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// decodeRatio is the ratio of the standard's sensitivity test at a mode:
// a frame error rate of 8 % at 1024 bytes for DSSS and CCK (802.11-2012
// 17.4.8), 10 % at 1000 bytes for OFDM (18.3.10).
func (p *phy) decodeRatio(m *mode) float64 {
	n, per := vtime.Bytes(1000), 0.10
	if m.dsss {
		n, per = 1024, 0.08
	}
	return bisect(func(g float64) float64 { return p.frameSuccess(m, n, g) }, 1-per)
}

// DecodeSNR returns the decoding threshold of a rate: the signal-to-noise ratio
// at which a frame of the sensitivity test (1024 bytes at 8 % frame errors for
// DSSS and CCK, 1000 bytes at 10 % for OFDM) is received.
func DecodeSNR(m MAC, rate vtime.BitRate) (vtime.Decibel, error) {
	p, err := newPHY(&m)
	if err != nil {
		return 0, err
	}
	md, err := modeOf(m.Standard, rate)
	if err != nil {
		return 0, err
	}
	return vtime.Decibel(fmath.ToDB(p.decodeRatio(md))), nil
}
