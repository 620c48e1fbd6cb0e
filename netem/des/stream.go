package des

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/hopbed/hopbed/netem/des/fmath"
)

// Stream is one random stream: xoshiro256** (Blackman, Vigna 2018; period
// 2^256−1). A component owns the stream of its name, so that adding a component
// never changes what another one draws.
type Stream struct{ s [4]uint64 }

// NewStream returns the stream of (seed, name). The state is the SHA-256 of
// both: states that are shifted by a constant (a counter, a multiple of
// splitmix's increment) would make streams that are shifted copies of each
// other, and two stations would then collide in lock-step.
func NewStream(seed uint64, name string) *Stream {
	s := new(Stream)
	s.Reseed(seed, name)
	return s
}

// Reseed makes s the stream of (seed, name), as NewStream does.
func (s *Stream) Reseed(seed uint64, name string) {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write([]byte("hopbed stream 1\x00"))
	h.Write(b[:])
	h.Write([]byte(name))
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	for i := range s.s {
		s.s[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	if s.s == [4]uint64{} { // the one state that xoshiro never leaves
		s.s[0] = 1
	}
}

// Uint64 returns 64 uniform bits.
func (s *Stream) Uint64() uint64 {
	r := bits.RotateLeft64(s.s[1]*5, 7) * 9
	t := s.s[1] << 17
	s.s[2] ^= s.s[0]
	s.s[3] ^= s.s[1]
	s.s[1] ^= s.s[2]
	s.s[0] ^= s.s[3]
	s.s[2] ^= t
	s.s[3] = bits.RotateLeft64(s.s[3], 45)
	return r
}

// IntN returns a uniform integer in [0, n), without bias (Lemire 2019). It
// panics when n is not positive.
func (s *Stream) IntN(n int) int {
	if n <= 0 {
		panic(fmt.Sprintf("des: IntN(%d): the bound must be positive", n))
	}
	hi, lo := bits.Mul64(s.Uint64(), uint64(n))
	if lo < uint64(n) {
		for reject := -uint64(n) % uint64(n); lo < reject; {
			hi, lo = bits.Mul64(s.Uint64(), uint64(n))
		}
	}
	return int(hi)
}

// Float64 returns a uniform number in [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(float64(s.Uint64()>>11) * 0x1p-53) }

// Bool is true with probability p. It always draws once, so that the stream's
// later values do not depend on p.
func (s *Stream) Bool(p float64) bool { return s.Float64() < p }

// Normal returns a draw of the standard normal distribution, by inversion: one
// number per draw, equal on every architecture.
func (s *Stream) Normal() float64 {
	// The half keeps the argument off 0 and 1.
	return fmath.NormalQuantile(float64((float64(s.Uint64()>>12) + 0.5) * 0x1p-52))
}

// Exp returns a draw of the exponential distribution with mean 1.
func (s *Stream) Exp() float64 {
	return -fmath.Log(float64((float64(s.Uint64()>>12) + 0.5) * 0x1p-52))
}

// Shuffle permutes n elements through swap, uniformly.
func (s *Stream) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.IntN(i+1))
	}
}

// Perm returns a uniform permutation of 0…n−1.
func (s *Stream) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	s.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}
