package bundle

import (
	"bytes"
	"fmt"
	"slices"
)

// The bundle processing control flags that this package looks at (RFC 9171
// §4.2.3).
const (
	FlagFragment    uint64 = 1 << 0 // the bundle is a fragment
	FlagAdminRecord uint64 = 1 << 1 // the payload is an administrative record
	FlagNoFragment  uint64 = 1 << 2 // the bundle must not be fragmented
)

// The block processing control flags that this package obeys (RFC 9171 §4.2.4).
const (
	BlockFlagDeleteBundle uint64 = 1 << 2 // delete the bundle if the block cannot be processed
	BlockFlagDiscard      uint64 = 1 << 4 // discard the block if it cannot be processed
)

// BlockType is the code of a block (RFC 9171 §9.1).
type BlockType uint64

// The types of blocks that this package understands.
const (
	PayloadBlock      BlockType = 1
	PreviousNodeBlock BlockType = 6
	BundleAgeBlock    BlockType = 7
	HopCountBlock     BlockType = 10
)

// The bounds of a bundle that is accepted. They are far above what any bundle
// of hopbed needs.
const (
	maxBlocks    = 16      // beside the primary and the payload block
	maxBlockData = 4 << 10 // bytes of one such block
)

// Timestamp is a bundle's creation timestamp (RFC 9171 §4.2.7).
type Timestamp struct {
	// Time is in milliseconds since the beginning of 2000 (UTC) without leap
	// seconds; 0 when the source has no clock.
	Time uint64
	// Seq is the sequence number; sources of this package never set it back.
	Seq uint64
}

// Block is an extension block: any but the primary and the payload block.
type Block struct {
	Type   BlockType
	Number uint64 // unique in the bundle; 0 and 1 are the primary's and the payload's
	Flags  uint64
	CRC    CRCType
	Data   []byte
}

// Bundle is a bundle of RFC 9171.
type Bundle struct {
	Flags                       uint64
	CRC                         CRCType // of the primary block
	Destination, Source, Report EID
	Created                     Timestamp
	Lifetime                    uint64 // milliseconds
	// FragmentOffset and TotalLength belong to a fragment (FlagFragment).
	FragmentOffset, TotalLength uint64

	// Blocks are the extension blocks in their order.
	Blocks []Block

	Payload      Content
	PayloadFlags uint64
	PayloadCRC   CRCType
	// payloadSum is the value of the payload block's checksum where it is known:
	// of a bundle that was decoded.
	payloadSum []byte
}

// block returns the first block of a type.
func (b *Bundle) block(t BlockType) *Block {
	for i := range b.Blocks {
		if b.Blocks[i].Type == t {
			return &b.Blocks[i]
		}
	}
	return nil
}

// set replaces the data of the block of a type, or adds one, with a number that
// no other block has. The blocks of other bundles that share the slice stay.
func (b *Bundle) set(t BlockType, data []byte) {
	b.Blocks = slices.Clone(b.Blocks)
	if x := b.block(t); x != nil {
		x.Data = data
		return
	}
	number := uint64(2)
	for slices.ContainsFunc(b.Blocks, func(x Block) bool { return x.Number == number }) {
		number++
	}
	b.Blocks = append(b.Blocks, Block{Type: t, Number: number, CRC: CRC32C, Data: data})
}

// PreviousNode returns the node that forwarded the bundle (RFC 9171 §4.4.1); ok
// is false where the bundle does not say.
func (b *Bundle) PreviousNode() (node EID, ok bool) {
	x := b.block(PreviousNodeBlock)
	if x == nil {
		return EID{}, false
	}
	// The block was checked when the bundle was decoded, or made by set.
	return node, decoder.Unmarshal(x.Data, &node) == nil
}

// SetPreviousNode says which node forwards the bundle.
func (b *Bundle) SetPreviousNode(node EID) { b.set(PreviousNodeBlock, encode(node)) }

// Age returns the bundle's age in milliseconds (RFC 9171 §4.4.2).
func (b *Bundle) Age() (ms uint64, ok bool) {
	x := b.block(BundleAgeBlock)
	return ms, x != nil && decoder.Unmarshal(x.Data, &ms) == nil
}

// SetAge sets the bundle's age in milliseconds.
func (b *Bundle) SetAge(ms uint64) { b.set(BundleAgeBlock, encode(ms)) }

// hops is the content of the hop count block (RFC 9171 §4.4.3).
type hops struct {
	_            struct{} `cbor:",toarray"`
	Limit, Count uint64
}

// Hops returns the hop limit and how many hops the bundle has made.
func (b *Bundle) Hops() (limit, count uint64, ok bool) {
	x := b.block(HopCountBlock)
	var h hops
	return h.Limit, h.Count, x != nil && decoder.Unmarshal(x.Data, &h) == nil
}

// SetHops sets the hop limit and the number of hops made.
func (b *Bundle) SetHops(limit, count uint64) {
	b.set(HopCountBlock, encode(hops{Limit: limit, Count: count}))
}

// encode writes one of this package's own items, none of which can fail.
func encode(v any) []byte {
	data, err := encoder.Marshal(v)
	if err != nil {
		panic("bundle: " + err.Error())
	}
	return data
}

// check reports what is wrong with a bundle's parts.
func (b *Bundle) check() error {
	if b.CRC == CRCNone {
		return fmt.Errorf("the primary block has no CRC, and this node knows no other proof of its integrity (RFC 9171 §4.3.1)")
	}
	if b.Flags&FlagFragment != 0 {
		if b.Flags&FlagNoFragment != 0 {
			return fmt.Errorf("the bundle is a fragment of one that must not be fragmented")
		}
		if n := uint64(b.Payload.Len()); b.FragmentOffset > b.TotalLength || n > b.TotalLength-b.FragmentOffset {
			return fmt.Errorf("a fragment of %d bytes at %d does not lie within %d", n, b.FragmentOffset, b.TotalLength)
		}
	}
	if len(b.Blocks) > maxBlocks {
		return fmt.Errorf("%d extension blocks: at most %d", len(b.Blocks), maxBlocks)
	}
	for i, x := range b.Blocks {
		if err := b.checkBlock(&x); err != nil {
			return fmt.Errorf("block %d of type %d: %w", x.Number, x.Type, err)
		}
		for _, y := range b.Blocks[:i] {
			if y.Number == x.Number {
				return fmt.Errorf("two blocks have the number %d", x.Number)
			}
			if y.Type == x.Type && known(x.Type) {
				return fmt.Errorf("two blocks of type %d", x.Type)
			}
		}
	}
	if _, ok := b.Age(); !ok && b.Created.Time == 0 {
		return fmt.Errorf("neither a creation time nor a bundle age block (RFC 9171 §4.4.2)")
	}
	return nil
}

func known(t BlockType) bool {
	return t == PreviousNodeBlock || t == BundleAgeBlock || t == HopCountBlock
}

func (b *Bundle) checkBlock(x *Block) error {
	if x.Number < 2 || x.Type <= PayloadBlock {
		return fmt.Errorf("an extension block has neither this number nor this type")
	}
	if len(x.Data) > maxBlockData {
		return fmt.Errorf("%d bytes: at most %d", len(x.Data), maxBlockData)
	}
	var h hops
	switch x.Type {
	case PreviousNodeBlock:
		return readBack(x.Data, &EID{})
	case BundleAgeBlock:
		return readBack(x.Data, new(uint64))
	case HopCountBlock:
		if err := readBack(x.Data, &h); err != nil {
			return err
		}
		if h.Limit < 1 || h.Limit > 255 {
			return fmt.Errorf("the hop limit is %d, want 1 to 255", h.Limit)
		}
	}
	return nil
}

// readBack decodes a block's data, which must be deterministically encoded.
func readBack(data []byte, to any) error {
	if err := decoder.Unmarshal(data, to); err != nil {
		return err
	}
	if !bytes.Equal(encode(to), data) {
		return errEncoding
	}
	return nil
}

// Detached returns a copy of a bundle that shares no memory with what it was
// decoded from, but for its payload.
func (b *Bundle) Detached() *Bundle {
	c := *b
	c.Blocks = slices.Clone(b.Blocks)
	for i := range c.Blocks {
		c.Blocks[i].Data = slices.Clone(c.Blocks[i].Data)
	}
	return &c
}
