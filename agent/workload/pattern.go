package workload

import (
	"bytes"
	"encoding/binary"
)

// The content of every stream: period bytes of a splitmix64 sequence, seeded
// with the flow's id and repeated. The period is a prime near 64 KiB, so that
// no power-of-two buffer, segment or block size maps an offset onto itself: a
// stream that lost, repeated or moved bytes differs from the pattern at once.
const (
	period   = 65521
	maxChunk = 64 << 10
)

// MaxChunk is the largest piece that Pattern.At returns, in bytes.
const MaxChunk = maxChunk

// Pattern is the content of one flow.
type Pattern struct{ buf []byte }

// NewPattern returns the content of the flow with the given id.
func NewPattern(flow int) *Pattern {
	buf := make([]byte, period+maxChunk)
	state := uint64(flow)*0x9e3779b97f4a7c15 + 0x243f6a8885a308d3
	var word [8]byte
	for i := 0; i < period; i += 8 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(word[:], z^z>>31)
		copy(buf[i:period], word[:])
	}
	// A piece may be longer than the period: the copy goes on where it began.
	for i := period; i < len(buf); i += period {
		copy(buf[i:], buf[:period])
	}
	return &Pattern{buf}
}

// At returns n bytes of the stream from offset on, at most MaxChunk. The slice
// must not be changed.
func (p *Pattern) At(offset int64, n int) []byte {
	if n > maxChunk {
		n = maxChunk
	}
	i := int(offset % period)
	return p.buf[i : i+n : i+n]
}

// Check compares data with the stream from offset on. It returns -1 when all
// of it is right, else the index of the first wrong byte.
func (p *Pattern) Check(offset int64, data []byte) int {
	for done := 0; done < len(data); {
		part := data[done:]
		if len(part) > maxChunk {
			part = part[:maxChunk]
		}
		want := p.At(offset+int64(done), len(part))
		if !bytes.Equal(part, want) {
			for i := range part {
				if part[i] != want[i] {
					return done + i
				}
			}
		}
		done += len(part)
	}
	return -1
}
