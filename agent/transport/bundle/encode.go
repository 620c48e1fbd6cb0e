package bundle

import "encoding/binary"

// timestamp is a creation timestamp as CBOR.
type timestamp struct {
	_         struct{} `cbor:",toarray"`
	Time, Seq uint64
}

// primary and primaryFragment are the primary block as CBOR (RFC 9171 §4.3.1).
type primary struct {
	_                   struct{} `cbor:",toarray"`
	Version, Flags, CRC uint64
	Dst, Src, Report    EID
	Created             timestamp
	Lifetime            uint64
	Sum                 []byte
}

type primaryFragment struct {
	_                   struct{} `cbor:",toarray"`
	Version, Flags, CRC uint64
	Dst, Src, Report    EID
	Created             timestamp
	Lifetime            uint64
	Offset, Total       uint64
	Sum                 []byte
}

// canonical and canonicalSum are an extension block as CBOR (RFC 9171 §4.3.2).
type canonical struct {
	_                        struct{} `cbor:",toarray"`
	Type, Number, Flags, CRC uint64
	Data                     []byte
}

type canonicalSum struct {
	_                        struct{} `cbor:",toarray"`
	Type, Number, Flags, CRC uint64
	Data                     []byte
	Sum                      []byte
}

// version is the bundle protocol's (RFC 9171 §4.3.1).
const version = 7

// The first and the last octet of a bundle: an array of indefinite length.
const (
	bundleBegin = 0x9f
	bundleEnd   = 0xff
)

// CBOR's major types (RFC 8949 §3.1).
const (
	majorUint  = 0
	majorBytes = 2
	majorArray = 4
)

// Encoded is a bundle as octets: what stands before the payload, the payload,
// and what stands after it.
type Encoded struct {
	head, tail []byte
	payload    Content
	bundle     *Bundle
}

// Len returns the length in octets.
func (e *Encoded) Len() int { return len(e.head) + e.payload.Len() + len(e.tail) }

// PayloadAt returns the offset of the payload's first octet.
func (e *Encoded) PayloadAt() int { return len(e.head) }

// Bundle returns what was encoded. It must not be changed.
func (e *Encoded) Bundle() *Bundle { return e.bundle }

// Append appends n octets from the offset on to dst.
func (e *Encoded) Append(dst []byte, off, n int) (_ []byte, err error) {
	if k := len(e.head) - off; k > 0 {
		k = min(k, n)
		dst = append(dst, e.head[off:off+k]...)
		off, n = off+k, n-k
	}
	off -= len(e.head)
	if k := e.payload.Len() - off; k > 0 && n > 0 {
		k = min(k, n)
		if dst, err = e.payload.Append(dst, off, k); err != nil {
			return nil, err
		}
		off, n = off+k, n-k
	}
	if n > 0 {
		off -= e.payload.Len()
		dst = append(dst, e.tail[off:off+n]...)
	}
	return dst, nil
}

// Encode returns the bundle as octets. The checksum of a payload in memory is
// computed unless the bundle was decoded, which keeps its own; that of Zeros is 0.
// The bundle must not be changed while the result is in use.
func (b *Bundle) Encode() *Encoded {
	e := &Encoded{payload: b.Payload, bundle: b, head: append(make([]byte, 0, 192), bundleBegin)}
	e.head = b.appendPrimary(e.head)
	for i := range b.Blocks {
		e.head = b.Blocks[i].append(e.head)
	}
	at := len(e.head)
	e.head = appendPayloadHead(e.head, b.PayloadFlags, b.PayloadCRC, b.Payload.Len())
	if b.PayloadCRC != CRCNone {
		value := b.payloadSum
		if value == nil {
			value = b.sumPayload(e.head[at:])
		}
		e.tail = append(appendHead(e.tail, majorBytes, uint64(len(value))), value...)
	}
	e.tail = append(e.tail, bundleEnd)
	return e
}

// sumPayload is the value of the payload block's checksum.
func (b *Bundle) sumPayload(head []byte) []byte {
	data, ok := b.Payload.(Bytes)
	if !ok {
		return make([]byte, b.PayloadCRC.size())
	}
	s := newSum(b.PayloadCRC)
	s.add(head)
	s.add(data)
	s.add(appendHead(nil, majorBytes, uint64(b.PayloadCRC.size())))
	s.add(make([]byte, b.PayloadCRC.size()))
	return s.value()
}

func (b *Bundle) appendPrimary(dst []byte) []byte {
	at := len(dst)
	created, sum := timestamp{Time: b.Created.Time, Seq: b.Created.Seq}, make([]byte, b.CRC.size())
	if b.Flags&FlagFragment != 0 {
		dst = append(dst, encode(primaryFragment{Version: version, Flags: b.Flags, CRC: uint64(b.CRC), Dst: b.Destination, Src: b.Source, Report: b.Report,
			Created: created, Lifetime: b.Lifetime, Offset: b.FragmentOffset, Total: b.TotalLength, Sum: sum})...)
	} else {
		dst = append(dst, encode(primary{Version: version, Flags: b.Flags, CRC: uint64(b.CRC), Dst: b.Destination, Src: b.Source, Report: b.Report,
			Created: created, Lifetime: b.Lifetime, Sum: sum})...)
	}
	return b.CRC.patch(dst, at)
}

func (x *Block) append(dst []byte) []byte {
	at := len(dst)
	if x.CRC == CRCNone {
		return append(dst, encode(canonical{Type: uint64(x.Type), Number: x.Number, Flags: x.Flags, Data: x.Data})...)
	}
	dst = append(dst, encode(canonicalSum{Type: uint64(x.Type), Number: x.Number, Flags: x.Flags, CRC: uint64(x.CRC), Data: x.Data, Sum: make([]byte, x.CRC.size())})...)
	return x.CRC.patch(dst, at)
}

// patch replaces the zeros at the end of the block that begins at an index by
// its checksum.
func (t CRCType) patch(dst []byte, at int) []byte {
	s := newSum(t)
	s.add(dst[at:])
	value := s.value()
	copy(dst[len(dst)-len(value):], value)
	return dst
}

// appendPayloadHead appends the payload block up to its first octet of payload.
// It is written here and not by the library, which would have to copy the
// payload.
func appendPayloadHead(dst []byte, flags uint64, crc CRCType, n int) []byte {
	elements := uint64(5)
	if crc != CRCNone {
		elements = 6
	}
	dst = appendHead(dst, majorArray, elements)
	dst = appendHead(dst, majorUint, uint64(PayloadBlock))
	dst = appendHead(dst, majorUint, 1) // the payload block's number
	dst = appendHead(dst, majorUint, flags)
	dst = appendHead(dst, majorUint, uint64(crc))
	return appendHead(dst, majorBytes, uint64(n))
}

// appendHead appends the head of an item in its shortest form (RFC 8949 §3).
func appendHead(dst []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}
