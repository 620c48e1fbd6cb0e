package wifi

import (
	"fmt"
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Radio describes propagation and receivers. Two models share the type:
//
// Log-distance (Range == 0): the loss at d metres is ReferenceLoss +
// 10·Exponent·log10(d) + X, X normal with deviation Shadowing, drawn once per
// unordered pair from the pair's own stream. A frame's error rate follows from
// its SINR.
//
// Disk (Range > 0): a frame is decoded without error up to Range unless
// interference reaches the capture threshold, and sensed up to SenseRange.
// Powers fall by Exponent, and nothing is heard beyond SenseRange.
type Radio struct {
	TxPower       vtime.DBm
	ReferenceLoss vtime.Decibel // at 1 m
	Exponent      float64
	Shadowing     vtime.Decibel
	// Noise is the noise floor over the channel's bandwidth, noise figure
	// included.
	Noise vtime.DBm
	// Sense is the carrier-sense threshold relative to the decoding threshold of
	// the data rate (usually negative: −7 dB). The decoding threshold is the
	// standard's sensitivity condition (DecodeSNR).
	Sense vtime.Decibel
	// Capture: while a receiver is locked on a frame, a later one takes it over
	// when it is stronger than everything else by this much; in the disk model a
	// frame also survives interference that is weaker by this much. 0 = a locked
	// receiver stays locked, and in the disk model every overlap destroys.
	Capture vtime.Decibel
	// Floor: signals weaker than Noise+Floor are neglected altogether (0 = the
	// default of −10 dB). It bounds the neighbour lists.
	Floor vtime.Decibel

	Range, SenseRange vtime.Metres // the disk model
}

// DefaultFloor is the neglected power relative to the noise: one interferer at
// this level raises the noise by 0.4 dB.
const DefaultFloor vtime.Decibel = -10

// DefaultRadio returns a log-distance radio of common figures: 15 dBm, free-space
// loss at 1 m and 2.4 GHz (40.05 dB), exponent 3.3, no shadowing, −95 dBm noise
// (kTB over 22 MHz and a noise figure of 5.5 dB), sensing 7 dB below decoding,
// capture at 10 dB.
func DefaultRadio() Radio {
	return Radio{TxPower: 15, ReferenceLoss: 40.05, Exponent: 3.3, Noise: -95, Sense: -7, Capture: 10}
}

// DiskRadio returns the disk model with exponent 4 (two-ray ground beyond its
// crossover) and 10 dB capture.
func DiskRadio(decode, sense vtime.Metres) Radio {
	return Radio{Exponent: 4, Capture: 10, Range: decode, SenseRange: sense}
}

// Position is a place in the plane.
type Position struct{ X, Y vtime.Metres }

// Distance returns the distance of p and q.
func (p Position) Distance(q Position) vtime.Metres {
	dx, dy := float64(p.X-q.X), float64(p.Y-q.Y)
	return vtime.Metres(math.Sqrt(float64(dx*dx) + float64(dy*dy)))
}

// Validate reports the first setting that has no meaning.
func (r *Radio) Validate() error {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"transmit power", float64(r.TxPower)}, {"reference loss", float64(r.ReferenceLoss)}, {"path-loss exponent", r.Exponent},
		{"shadowing", float64(r.Shadowing)}, {"noise", float64(r.Noise)}, {"sense threshold", float64(r.Sense)},
		{"capture threshold", float64(r.Capture)}, {"floor", float64(r.Floor)}, {"range", float64(r.Range)}, {"sense range", float64(r.SenseRange)},
	} {
		if !finite(f.v) {
			return fmt.Errorf("radio: %s is %v: want a finite number", f.name, f.v)
		}
	}
	switch {
	case r.Exponent <= 0 || r.Exponent > 10:
		return fmt.Errorf("radio: path-loss exponent %v is out of range: want above 0, at most 10", r.Exponent)
	case r.Shadowing < 0 || r.Shadowing > 30:
		return fmt.Errorf("radio: shadowing %v is out of range: want 0…30dB", r.Shadowing)
	case r.Capture < 0:
		return fmt.Errorf("radio: capture threshold %v is negative: want 0dB (off) or more", r.Capture)
	case r.Floor > 0:
		return fmt.Errorf("radio: floor %v is above the noise: want 0dB (default) or less", r.Floor)
	case r.Range < 0 || r.Range > 0 && r.SenseRange < r.Range:
		return fmt.Errorf("radio: range %v, sense range %v: want 0 < range ≤ sense range", r.Range, r.SenseRange)
	case r.Range == 0 && r.SenseRange != 0:
		return fmt.Errorf("radio: sense range %v without a range: the disk model needs both", r.SenseRange)
	}
	return nil
}
