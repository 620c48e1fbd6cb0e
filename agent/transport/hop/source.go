package hop

import (
	"encoding/binary"

	"github.com/hopbed/hopbed/netem/vtime"
)

// pattern writes bytes that depend on the stream's seed and on their position
// alone, so that a receiver can check any block by itself and no two blocks
// are equal.
func pattern(seed, pos uint64, buf []byte) {
	var word [8]byte
	if k := pos & 7; k != 0 && len(buf) > 0 { // the rest of a word
		binary.LittleEndian.PutUint64(word[:], mix(seed^mix(pos>>3)))
		n := copy(buf, word[k:])
		buf, pos = buf[n:], pos+uint64(n)
	}
	for ; len(buf) >= 8; buf, pos = buf[8:], pos+8 {
		binary.LittleEndian.PutUint64(buf, mix(seed^mix(pos>>3)))
	}
	binary.LittleEndian.PutUint64(word[:], mix(seed^mix(pos>>3)))
	copy(buf, word[:])
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Generator is a Source of pseudo-random bytes.
type Generator struct {
	seed, pos uint64
	left      vtime.Bytes // < 0: endless
}

// Continual returns a Source that always has a full block.
func Continual(seed uint64) *Generator { return &Generator{seed: seed, left: -1} }

// Sized returns a Source of n bytes; the last block may be short.
func Sized(seed uint64, n vtime.Bytes) *Generator { return &Generator{seed: seed, left: max(n, 0)} }

// Next implements Source.
func (g *Generator) Next(_ vtime.Time, buf []byte) (int, bool) {
	n := len(buf)
	if g.left >= 0 && vtime.Bytes(n) > g.left {
		n = int(g.left)
	}
	pattern(g.seed, g.pos, buf[:n])
	g.pos += uint64(n)
	if g.left >= 0 {
		g.left -= vtime.Bytes(n)
	}
	return n, g.left == 0
}

// CheckPattern reports whether data are the bytes of the Generator with this
// seed from position pos on.
func CheckPattern(seed, pos uint64, data []byte) bool {
	var buf [512]byte
	for len(data) > 0 {
		k := min(len(data), len(buf))
		pattern(seed, pos, buf[:k])
		if string(buf[:k]) != string(data[:k]) {
			return false
		}
		data, pos = data[k:], pos+uint64(k)
	}
	return true
}
