package des

import "math/bits"

const traceBasis = 0x9e3779b97f4a7c15

// mix is one round of a multiply-fold hash (the core of wyhash): one 128-bit
// multiplication, order-sensitive.
func mix(h, w uint64) uint64 {
	hi, lo := bits.Mul64(h^0xa0761d6478bd642f, w^0xe7037ed1a0b428db)
	return hi ^ lo ^ bits.RotateLeft64(h, 23)
}

// finish is the finaliser of splitmix64 (Steele, Lea, Flood 2014): every input
// bit reaches every output bit.
func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
