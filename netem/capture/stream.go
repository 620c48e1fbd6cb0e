package capture

import (
	"io"

	"github.com/hopbed/hopbed/netem/vtime"
)

// bufferSize is the size of a Stream's buffers; recordSize is the room that any
// record fits into: a packet of 2304 bytes with all headers, or a line.
const (
	bufferSize = 256 * 1024
	recordSize = 4096
)

// Stream is a file of records. One goroutine fills it; the file holds whole
// records whatever happens: a write that fails ends the file after the last
// buffer that was written entirely.
type Stream struct {
	w       io.Writer
	buf     []byte
	written int64 // bytes of whole buffers
	err     error // the first

	// Of a stream that somebody else writes: empty and filled buffers.
	free, full chan []byte
}

// NewStream returns a stream that writes each full buffer at once.
func NewStream(w io.Writer) *Stream {
	return &Stream{w: w, buf: make([]byte, 0, bufferSize)}
}

// NewBackground returns a stream whose records wait in memory of the given size
// until another goroutine, which runs Drain, has written them. Who fills it is
// never made to wait: records that find no room are dropped.
func NewBackground(w io.Writer, room vtime.Bytes) *Stream {
	n := max(2, int(room/bufferSize))
	s := &Stream{w: w, free: make(chan []byte, n), full: make(chan []byte, n)}
	for range n {
		b := make([]byte, bufferSize)
		for i := 0; i < len(b); i += recordSize {
			b[i] = 1 // the page exists before the pacing thread wants it
		}
		s.free <- b[:0]
	}
	s.buf = <-s.free
	return s
}

// room returns the buffer to which one record may be appended; nil when there is
// none.
func (s *Stream) room() []byte {
	if cap(s.buf)-len(s.buf) < recordSize {
		s.pass()
	}
	return s.buf
}

// done takes the buffer back with its new record.
func (s *Stream) done(b []byte) { s.buf = b }

// pass gives a buffer away and takes an empty one, where there is one.
func (s *Stream) pass() {
	switch {
	case s.free == nil:
		s.write(s.buf)
		s.buf = s.buf[:0]
		return
	case len(s.buf) > 0:
		s.full <- s.buf // has room for all buffers
		s.buf = nil
	}
	if s.buf == nil {
		select {
		case s.buf = <-s.free:
		default:
		}
	}
}

// Flush hands on what is there, so that a reader of the file sees it soon.
func (s *Stream) Flush() {
	if len(s.buf) > 0 {
		s.pass()
	}
}

// Close hands on the rest. Of a background stream Drain then returns; of another
// the file is complete.
func (s *Stream) Close() {
	s.Flush()
	if s.full != nil {
		close(s.full)
	}
}

// Drain writes filled buffers until Close.
func (s *Stream) Drain() {
	for b := range s.full {
		s.write(b)
		s.free <- b[:0]
	}
}

// write appends a buffer to the file; after an error nothing more.
func (s *Stream) write(b []byte) {
	if s.err != nil || len(b) == 0 {
		return
	}
	n, err := s.w.Write(b)
	if err == nil {
		s.written += int64(n)
		return
	}
	s.err = err
	if f, ok := s.w.(interface{ Truncate(int64) error }); ok && n > 0 {
		_ = f.Truncate(s.written) // a torn last record is the lesser evil
	}
}

// Err returns why the file is incomplete. It may be called when Close or, of a
// background stream, Drain has returned.
func (s *Stream) Err() error { return s.err }
