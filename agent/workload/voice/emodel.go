package voice

import (
	"math"

	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Codec is what G.113 and G.114 know of a codec.
type Codec struct {
	Ie  float64 // equipment impairment without loss
	Bpl float64 // robustness against the loss of packets, in percent
	// Delay is from the first sample of a packet until it can be sent: the speech
	// in it, and what the encoder looks ahead.
	Delay vtime.Duration
}

// The codecs in packets of 20 ms (ITU-T G.113 appendix I; look-ahead by G.114).
var (
	// G711 conceals lost packets (G.711 appendix I).
	G711 = Codec{Ie: 0, Bpl: 25.1, Delay: 20 * vtime.Millisecond}
	// G711Plain plays silence for a lost packet.
	G711Plain = Codec{Ie: 0, Bpl: 4.3, Delay: 20 * vtime.Millisecond}
	// G729A has two frames of 10 ms a packet and looks 5 ms ahead.
	G729A = Codec{Ie: 11, Bpl: 19, Delay: 25 * vtime.Millisecond}
)

// CodecOf returns the codec of a voip workload by its name there.
func CodecOf(name string) (Codec, bool) {
	switch name {
	case "g711":
		return G711, true
	case "g729":
		return G729A, true
	}
	return Codec{}, false
}

// What follows from G.107's default values (table 3, equations 7-2, 7-3 and 7-8).
const (
	noise = -61.17921438624169   // No: the sum of all noises, in dBm0p
	signs = 15 - 1.5*(8+noise)   // Ro: basic signal-to-noise ratio, with SLR = 8 dB
	loud  = 1.4135680813438616   // Is: impairments simultaneous with the voice
	talk  = -1.5 * (noise - 2)   // Roe, with RLR = 2 dB
	telr  = 65.0                 // talker echo loudness rating, dB
	echo  = 10.5 * (110.0 + 7.0) // Rle without its delay, with WEPL = 110 dB
)

// DelayImpairment is Id for an absolute one-way delay (G.107 equations 7-18 to
// 7-28): talker echo, listener echo, and the delay itself above 100 ms.
func DelayImpairment(delay vtime.Duration) float64 {
	t := float64(max(delay, 0)) / float64(vtime.Millisecond)
	rle := float64(echo * fmath.Pow(float64(2*t)+1, -0.25))
	return talkerEcho(t) + bend((signs-rle)/2, 169) + absolute(t)
}

// talkerEcho is Idte for a delay of t ms.
func talkerEcho(t float64) float64 {
	if t < 1 {
		return 0
	}
	ratio := (1 + t/10) / (1 + t/150)
	terv := telr - float64(40*fmath.Log10(ratio)) + float64(6*fmath.Exp(float64(-0.3*t*t)))
	re := 80 + float64(2.5*(terv-14))
	return float64((bend((talk-re)/2, 100) - 1) * (1 - fmath.Exp(-t)))
}

// bend is x + √(x²+a).
func bend(x, a float64) float64 { return x + math.Sqrt(float64(x*x)+a) }

// absolute is Idd for a delay of t ms.
func absolute(t float64) float64 {
	if t <= 100 {
		return 0
	}
	x := fmath.Log(t/100) / math.Ln2
	return float64(25 * (sixth(x) - float64(3*sixth(x/3)) + 2))
}

// sixth is (1+x⁶)^(1/6), for x above 0.
func sixth(x float64) float64 { return fmath.Pow(1+fmath.Pow(x, 6), 1.0/6) }

// LossImpairment is Ie,eff (G.107 equation 7-29): loss is the share of packets
// that are not played, burst the ratio of their mean run to that of independent
// losses, 1 or more.
func (c Codec) LossImpairment(loss, burst float64) float64 {
	p := float64(100 * loss)
	return c.Ie + float64((95-c.Ie)*p/(p/burst+c.Bpl))
}

// Rating is R for the codec with a one-way delay from mouth to ear, within 0 and
// 100. Without delay and loss a G.711 call has 93.2.
func (c Codec) Rating(mouthToEar vtime.Duration, loss, burst float64) float64 {
	return min(100, max(0, signs-loud-DelayImpairment(mouthToEar)-c.LossImpairment(loss, burst)))
}

// MOS is the estimated mean opinion score of a conversation with the rating r,
// from 1 to 4.5 (G.107 annex B).
func MOS(r float64) float64 {
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	}
	// The polynomial is a little below 1 for the smallest r, where annex B has 1.
	return max(1, 1+float64(0.035*r)+float64(r*(r-60)*(100-r)*7e-6))
}
