package bundle

// Content is a payload. Its bytes may be in memory, in a file, or, in virtual
// time, nowhere.
type Content interface {
	// Len returns the length in bytes.
	Len() int
	// Append appends n bytes from the offset on to dst; both lie within the
	// content.
	Append(dst []byte, off, n int) ([]byte, error)
}

// Bytes is a content in memory.
type Bytes []byte

// Len implements Content.
func (b Bytes) Len() int { return len(b) }

// Append implements Content.
func (b Bytes) Append(dst []byte, off, n int) ([]byte, error) {
	return append(dst, b[off:off+n]...), nil
}

// Zeros is a content that nobody looks at: so many zeros.
type Zeros int

// Len implements Content.
func (z Zeros) Len() int { return int(z) }

// Append implements Content.
func (z Zeros) Append(dst []byte, _, n int) ([]byte, error) {
	return append(dst, make([]byte, n)...), nil
}
