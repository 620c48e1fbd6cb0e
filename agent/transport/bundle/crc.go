package bundle

import "hash/crc32"

// CRCType is the code of a block's checksum (RFC 9171 §4.2.1).
type CRCType uint8

// The checksums.
const (
	CRCNone CRCType = 0
	CRC16   CRCType = 1 // X.25
	CRC32C  CRCType = 2 // Castagnoli
)

// size is the length of the checksum's value in bytes.
func (t CRCType) size() int { return [...]int{CRCNone: 0, CRC16: 2, CRC32C: 4}[t] }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// x25 is the table of CRC-16/X-25 (ITU-T X.25 §2.2.7.4): polynomial 0x1021, bits
// reflected.
var x25 = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i)
		for range 8 {
			if c&1 != 0 {
				c = c>>1 ^ 0x8408
			} else {
				c >>= 1
			}
		}
		t[i] = c
	}
	return t
}()

// sum is the checksum of a block: it covers the block's encoding with a checksum
// of zeros (RFC 9171 §4.2.1).
type sum struct {
	typ  CRCType
	crc  uint32
	crc2 uint16
}

func newSum(t CRCType) sum { return sum{typ: t, crc2: 0xffff} }

// add goes on over more bytes of the block.
func (s *sum) add(b []byte) {
	switch s.typ {
	case CRC32C:
		s.crc = crc32.Update(s.crc, castagnoli, b)
	case CRC16:
		for _, c := range b {
			s.crc2 = s.crc2>>8 ^ x25[byte(s.crc2)^c]
		}
	}
}

// value ends the sum: the value's bytes as they stand in the block.
func (s *sum) value() []byte {
	switch s.typ {
	case CRC32C:
		return []byte{byte(s.crc >> 24), byte(s.crc >> 16), byte(s.crc >> 8), byte(s.crc)}
	case CRC16:
		c := ^s.crc2
		return []byte{byte(c >> 8), byte(c)}
	}
	return nil
}
