package bundle

import (
	"bytes"
	"errors"
	"fmt"
)

// Decode reads one bundle, which must be all of data. The result's payload and
// blocks are parts of data. It is strict: every block must be deterministically
// encoded (RFC 9171 §4.1), only the bundle itself is of indefinite length (the
// RFC allows that inside blocks, too), and every checksum must be right.
func Decode(data []byte) (*Bundle, error) {
	b, rest, err := decodePrimary(data)
	if err != nil {
		return nil, err
	}
	for {
		var block alias
		if rest, err = next(rest, &block); err != nil {
			return nil, fmt.Errorf("bundle: a block after %d extension blocks: %w", len(b.Blocks), err)
		}
		last, err := b.decodeBlock(block)
		if err != nil {
			return nil, fmt.Errorf("bundle: a block after %d extension blocks: %w", len(b.Blocks), err)
		}
		if last {
			break
		}
		if len(b.Blocks) > maxBlocks {
			return nil, fmt.Errorf("bundle: more than %d extension blocks", maxBlocks)
		}
	}
	if len(rest) != 1 || rest[0] != bundleEnd {
		return nil, fmt.Errorf("bundle: %d bytes after the payload block, want the end of the bundle", len(rest))
	}
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return b, nil
}

// maxPrimary bounds the primary block, in bytes.
const maxPrimary = 4 << 10

// decodePrimary reads the first block and returns what follows it.
func decodePrimary(data []byte) (*Bundle, []byte, error) {
	if len(data) < 2 {
		return nil, nil, fmt.Errorf("bundle: %d bytes are none", len(data))
	}
	if data[0] != bundleBegin {
		return nil, nil, fmt.Errorf("bundle: it begins with %#x, want an array of indefinite length (%#x)", data[0], bundleBegin)
	}
	// The number of elements says whether there are fields of fragments and a
	// checksum (RFC 9171 §4.3.1).
	elements := int(data[1]) - majorArray<<5
	if elements < 8 || elements > 11 {
		return nil, nil, fmt.Errorf("bundle: the primary block begins with %#x, want an array of 8 to 11 elements", data[1])
	}
	var block alias
	if _, err := next(data[1:min(len(data), 1+maxPrimary)], &block); err != nil {
		return nil, nil, fmt.Errorf("bundle: primary block: %w", err)
	}
	b, err := parsePrimary(block, elements)
	if err != nil {
		return nil, nil, fmt.Errorf("bundle: primary block: %w", err)
	}
	return b, data[1+len(block):], nil
}

func parsePrimary(block []byte, elements int) (*Bundle, error) {
	var p primaryFragment
	switch elements {
	case 11:
		if err := decoder.Unmarshal(block, &p); err != nil {
			return nil, err
		}
	case 9:
		var q primary
		if err := decoder.Unmarshal(block, &q); err != nil {
			return nil, err
		}
		p = primaryFragment{Version: q.Version, Flags: q.Flags, CRC: q.CRC, Dst: q.Dst, Src: q.Src, Report: q.Report, Created: q.Created, Lifetime: q.Lifetime, Sum: q.Sum}
	default:
		return nil, fmt.Errorf("it has no CRC, and this node knows no other proof of its integrity (RFC 9171 §4.3.1)")
	}
	if p.Version != version {
		return nil, fmt.Errorf("version %d of the bundle protocol, want %d", p.Version, version)
	}
	if (p.Flags&FlagFragment != 0) != (elements == 11) {
		return nil, fmt.Errorf("%d elements with the flags %#x", elements, p.Flags)
	}
	b := &Bundle{Flags: p.Flags, Destination: p.Dst, Source: p.Src, Report: p.Report, Created: Timestamp{Time: p.Created.Time, Seq: p.Created.Seq},
		Lifetime: p.Lifetime, FragmentOffset: p.Offset, TotalLength: p.Total}
	if p.CRC < 1 || p.CRC > uint64(CRC32C) {
		return nil, fmt.Errorf("the CRC type %d is none of 1 and 2", p.CRC)
	}
	b.CRC = CRCType(p.CRC)
	// One comparison tells a wrong checksum and an encoding that is not the
	// deterministic one.
	if !bytes.Equal(b.appendPrimary(nil), block) {
		return nil, errEncoding
	}
	return b, nil
}

var errEncoding = errors.New("the checksum is wrong, or the encoding is not the deterministic one")

// next reads the first item of data and returns what follows it.
func next(data []byte, item *alias) ([]byte, error) {
	rest, err := decoder.UnmarshalFirst(data, item)
	if err == nil && len(*item) == 0 {
		err = errors.New("an item without a value")
	}
	return rest, err
}

// decodeBlock reads a block after the primary one; last says that it was the
// payload block.
func (b *Bundle) decodeBlock(block []byte) (last bool, err error) {
	var head [6]alias
	n, rest := int(block[0])-majorArray<<5, block[1:]
	if n != 5 && n != 6 {
		return false, fmt.Errorf("it begins with %#x, want an array of 5 or 6 elements", block[0])
	}
	for i := range n {
		if rest, err = next(rest, &head[i]); err != nil {
			return false, err
		}
	}
	var typ, number, flags, crc uint64
	for i, to := range []*uint64{&typ, &number, &flags, &crc} {
		if err := decoder.Unmarshal(head[i], to); err != nil {
			return false, err
		}
	}
	if crc > uint64(CRC32C) || (crc == uint64(CRCNone)) != (n == 5) {
		return false, fmt.Errorf("%d elements with the CRC type %d", n, crc)
	}
	data, err := byteString(head[4])
	if err != nil {
		return false, err
	}
	if BlockType(typ) == PayloadBlock {
		return true, b.decodePayload(block, number, flags, CRCType(crc), data, head[5])
	}
	x := Block{Type: BlockType(typ), Number: number, Flags: flags, CRC: CRCType(crc), Data: data}
	if len(data) > maxBlockData {
		return false, fmt.Errorf("%d bytes: at most %d", len(data), maxBlockData)
	}
	if !bytes.Equal(x.append(nil), block) {
		return false, errEncoding
	}
	b.Blocks = append(b.Blocks, x)
	return false, nil
}

func (b *Bundle) decodePayload(block []byte, number, flags uint64, crc CRCType, data []byte, value alias) error {
	if number != 1 {
		return fmt.Errorf("the payload block has the number %d, want 1", number)
	}
	b.Payload, b.PayloadFlags, b.PayloadCRC = Bytes(data), flags, crc
	head := appendPayloadHead(nil, flags, crc, len(data))
	if !bytes.HasPrefix(block, head) {
		return errEncoding
	}
	if crc == CRCNone {
		return nil
	}
	b.payloadSum = b.sumPayload(head)
	if want := append(appendHead(nil, majorBytes, uint64(crc.size())), b.payloadSum...); !bytes.Equal(value, want) {
		return fmt.Errorf("the payload's checksum is %x, want %x", []byte(value), want)
	}
	return nil
}

// byteString returns the content of a well-formed byte string of definite
// length, as a part of it.
func byteString(item alias) ([]byte, error) {
	if item[0]>>5 != majorBytes {
		return nil, fmt.Errorf("an item begins with %#x, want a byte string", item[0])
	}
	head := [...]int{24: 2, 25: 3, 26: 5, 27: 9}
	if info := int(item[0] & 0x1f); info >= 24 {
		return item[head[info]:], nil
	}
	return item[1:], nil
}

// peek returns a bundle of which only the primary block is known: that of a
// bundle that begins with data. ok is false when data do not tell.
func peek(data []byte) (b *Bundle, ok bool) {
	b, _, err := decodePrimary(data)
	return b, err == nil
}
