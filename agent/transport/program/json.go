package program

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// loose makes the JSON that iperf3 writes into JSON: it leaves out what stands
// before, between and after its documents (warnings, errors) and mends numbers
// that are none (-nan, inf, "5e 06", a decimal comma).
type loose struct {
	in      *bufio.Reader
	out     bytes.Buffer
	pending error

	stack    []byte // of { and [
	inString bool
	escaped  bool
	last     byte // of the output, blanks aside
	// stray is the end of the text outside of documents.
	stray []byte
}

const (
	maxDepth = 32
	maxStray = 400 // bytes
)

var errDepth = errors.New("the JSON is nested too deeply")

func newLoose(r io.Reader) *loose { return &loose{in: bufio.NewReaderSize(r, 32<<10)} }

// Read implements io.Reader.
func (l *loose) Read(p []byte) (int, error) {
	// What is there is taken at once; only the first byte is waited for.
	for l.pending == nil && (l.out.Len() == 0 || l.out.Len() < len(p) && l.in.Buffered() > 0) {
		l.pending = l.step()
	}
	if l.out.Len() == 0 {
		return 0, l.pending
	}
	return l.out.Read(p)
}

func (l *loose) emit(b ...byte) {
	l.out.Write(b)
	if c := b[len(b)-1]; c > ' ' {
		l.last = c
	}
}

// step takes a byte or a word.
func (l *loose) step() error {
	c, err := l.in.ReadByte()
	if err != nil {
		return err
	}
	switch {
	case l.inString:
		l.string(c)
	case len(l.stack) == 0:
		l.outside(c)
	default:
		return l.inside(c)
	}
	return nil
}

func (l *loose) string(c byte) {
	switch {
	case l.escaped:
		l.escaped = false
	case c == '\\':
		l.escaped = true
	case c == '"':
		l.inString = false
	}
	if c < ' ' {
		c = ' ' // a control character would end the decoding
	}
	l.emit(c)
}

// outside waits for a document.
func (l *loose) outside(c byte) {
	if c == '{' {
		l.stack = append(l.stack, c)
		l.emit(c)
		return
	}
	if len(l.stray) >= 2*maxStray {
		l.stray = append(l.stray[:0], l.stray[maxStray:]...)
	}
	l.stray = append(l.stray, c)
}

func (l *loose) inside(c byte) error {
	switch {
	case c == '"':
		l.inString = true
		l.emit(c)
	case c == '{' || c == '[':
		if len(l.stack) == maxDepth {
			return errDepth
		}
		l.stack = append(l.stack, c)
		l.emit(c)
	case c == '}' || c == ']':
		l.stack = l.stack[:len(l.stack)-1]
		l.emit(c)
		if len(l.stack) == 0 {
			l.emit('\n')
		}
	case c == ',' && digit(l.last) && l.stack[len(l.stack)-1] == '{' && l.digitFollows():
		l.emit('.') // a key would have to follow
	case c == ' ' && (l.last == 'e' || l.last == 'E') && l.digitFollows():
		l.emit('+') // "5.924e 06"
	case c == 'n' || c == 'N' || c == 'i' || c == 'I':
		l.word(c)
	case c == '-':
		if b, err := l.in.Peek(1); err == nil && !digit(b[0]) {
			return nil // -nan, -inf: the word follows
		}
		l.emit(c)
	default:
		l.emit(c)
	}
	return nil
}

// word replaces null, nan, nan(0x8) and inf by null.
func (l *loose) word(first byte) {
	w := []byte{first}
	for len(w) < 40 {
		b, err := l.in.Peek(1)
		if err != nil || strings.IndexByte(",}] \t\r\n", b[0]) >= 0 {
			break
		}
		w = append(w, b[0])
		_, _ = l.in.Discard(1) // it was there a moment ago
	}
	switch s := strings.ToLower(string(w)); {
	case s == "null", strings.HasPrefix(s, "nan"), s == "inf", s == "infinity":
		l.emit([]byte("null")...)
	default:
		l.emit(w...) // for the decoder to complain about
	}
}

func (l *loose) digitFollows() bool {
	b, err := l.in.Peek(1)
	return err == nil && digit(b[0])
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// strayText is the end of what stood outside of the documents.
func (l *loose) strayText() string { return oneLine(l.stray) }
