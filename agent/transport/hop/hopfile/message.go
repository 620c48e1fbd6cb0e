package hopfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A transfer is one stream:
//
//	sender    offer
//	receiver  reply: where it wants to begin, and the hash of what it has
//	sender    begin: where the sender begins
//	sender    chunks: length u32 (1 to maxChunk), bytes; 0 ends them
//	sender    SHA-256 of the whole file, 32 bytes
//	receiver  result
//
// Offer, reply, begin and result are JSON behind their length, a u32; integers
// are big endian.

const (
	maxMessage = 16 << 10
	maxChunk   = 1 << 20
	chunkSize  = 256 << 10
	hashLen    = 32
	version    = 1
)

type offer struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Size    int64  `json:"size"` // -1: not known before its end
	Time    int64  `json:"time"` // of the last change, seconds since 1970
}

type reply struct {
	Error  string `json:"error,omitempty"`
	Offset int64  `json:"offset,omitempty"` // bytes that are here from an earlier transfer …
	Hash   []byte `json:"hash,omitempty"`   // … and their SHA-256
}

type begin struct {
	Offset int64 `json:"offset"`
}

type result struct {
	Error string `json:"error,omitempty"`
	Name  string `json:"name,omitempty"` // that it has there
}

func writeMessage(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("a message of %d bytes, %d are the most", len(b), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readMessage(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return whole(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("a message of %d bytes, %d are the most: the other end is no hopbed", n, maxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return whole(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("a message that makes no sense: %w", err)
	}
	return nil
}

// whole turns the end of a stream where more has to come into an error.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
