package relay

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Version of the header.
const Version = 1

// HeaderLen is the length of the header in bytes.
const HeaderLen = 20

var magic = [4]byte{'H', 'b', 'H', 'T'}

// Header opens each hop's connection. All integers are big-endian.
//
//	0  magic "HbHT"
//	4  version
//	5  zero
//	8  flow
//	12 source node
//	16 destination node
type Header struct {
	Flow, Src, Dst uint32
}

// Append appends the header's bytes.
func (h Header) Append(b []byte) []byte {
	b = append(b, magic[:]...)
	b = append(b, Version, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, h.Flow)
	b = binary.BigEndian.AppendUint32(b, h.Src)
	return binary.BigEndian.AppendUint32(b, h.Dst)
}

// ParseHeader reads a header from exactly HeaderLen bytes.
func ParseHeader(b []byte) (Header, error) {
	if len(b) != HeaderLen || [4]byte(b[:4]) != magic {
		return Header{}, fmt.Errorf("relay: the connection does not begin with a header (%q)", b[:min(len(b), 8)])
	}
	if b[4] != Version || b[5] != 0 || b[6] != 0 || b[7] != 0 {
		return Header{}, fmt.Errorf("relay: header version %d, want %d: the nodes run agents of different builds", b[4], Version)
	}
	return Header{
		Flow: binary.BigEndian.Uint32(b[8:]),
		Src:  binary.BigEndian.Uint32(b[12:]),
		Dst:  binary.BigEndian.Uint32(b[16:]),
	}, nil
}

// ReadHeader reads a header.
func ReadHeader(r io.Reader) (Header, error) {
	var b [HeaderLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Header{}, fmt.Errorf("relay: header: %w", err)
	}
	return ParseHeader(b[:])
}
