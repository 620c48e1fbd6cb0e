package hop

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64.
const (
	xxPrime1 = 11400714785074694791
	xxPrime2 = 14029467366897019727
	xxPrime3 = 1609587929392839161
	xxPrime4 = 9650029242287828579
	xxPrime5 = 2870177450012600261
)

// xxRound is the accumulator step of XXH64.
func xxRound(acc, lane uint64) uint64 {
	return bits.RotateLeft64(acc+lane*xxPrime2, 31) * xxPrime1
}

// blockHash is XXH64 with seed 0 over a block (the xxHash specification 0.1.1,
// Y. Collet). It guards against faults of memory and of this code, not
// against an attacker.
func blockHash(b []byte) uint64 {
	le := binary.LittleEndian
	n := uint64(len(b))
	var h uint64 = xxPrime5
	if len(b) >= 32 {
		one := uint64(xxPrime1) // a variable: the sums below wrap
		v1, v2, v3, v4 := one+xxPrime2, uint64(xxPrime2), uint64(0), -one
		for len(b) >= 32 {
			v1 = xxRound(v1, le.Uint64(b))
			v2 = xxRound(v2, le.Uint64(b[8:]))
			v3 = xxRound(v3, le.Uint64(b[16:]))
			v4 = xxRound(v4, le.Uint64(b[24:]))
			b = b[32:]
		}
		h = bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
		for _, v := range [4]uint64{v1, v2, v3, v4} {
			h = (h^xxRound(0, v))*xxPrime1 + xxPrime4
		}
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^xxRound(0, le.Uint64(b)), 27)*xxPrime1 + xxPrime4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(le.Uint32(b))*xxPrime1, 23)*xxPrime2 + xxPrime3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>33) * xxPrime2
	h = (h ^ h>>29) * xxPrime3
	return h ^ h>>32
}
