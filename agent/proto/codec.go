package proto

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// orders and asyncs are the explicit tables of message types; DecodeEnvelope
// refuses everything else.
var (
	orders = []Type{TypeHello, TypeConfigure, TypeReadback, TypeClock, TypeProbe, TypeHeard, TypeStart, TypeStop, TypeCollect, TypeRevert, TypeBye}
	asyncs = []Type{TypeSamples, TypeEvent, TypeLog, TypeFailure}
)

func known(t Type, table []Type) bool {
	for _, k := range table {
		if k == t {
			return true
		}
	}
	return false
}

// excerpt shortens what came in for an error message.
func excerpt(line []byte) string {
	const most = 120
	if len(line) > most {
		return fmt.Sprintf("%s… (%d bytes)", line[:most], len(line))
	}
	return string(line)
}

// DecodeEnvelope reads one line (without or with its newline). Errors are of
// type *Error: CodeVersion when the other side speaks another version,
// CodeMalformed for everything that is not exactly one message. Unknown fields
// are refused: with equal versions they can only be a mistake.
func DecodeEnvelope(line []byte) (Envelope, error) {
	var e Envelope
	if len(line) > MaxLine {
		return e, &Error{Code: CodeMalformed, What: "message", Detail: fmt.Sprintf("%d bytes, at most %d are allowed", len(line), MaxLine)}
	}
	// The version is looked at before the rest, because a message of another
	// version may well have other fields.
	var v struct {
		V *int `json:"v"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return e, &Error{Code: CodeMalformed, What: "message", Got: excerpt(line), Detail: err.Error()}
	}
	if v.V == nil {
		return e, &Error{Code: CodeMalformed, What: "message", Got: excerpt(line), Detail: "it has no version (\"v\")"}
	}
	if *v.V != Version {
		return e, &Error{Code: CodeVersion, What: "protocol version", Wanted: fmt.Sprint(Version), Got: fmt.Sprint(*v.V),
			Remedy: "use the agent that was built with this controller (on real nodes: hopbed deploy push)"}
	}
	if err := decodeStrict(line, &e); err != nil {
		return Envelope{}, &Error{Code: CodeMalformed, What: "message", Got: excerpt(line), Detail: err.Error()}
	}
	switch {
	case known(e.Type, orders):
		if e.Seq == 0 {
			return Envelope{}, &Error{Code: CodeMalformed, What: string(e.Type), Detail: "an order or its reply has a sequence number above 0"}
		}
	case known(e.Type, asyncs):
		if e.Seq != 0 {
			return Envelope{}, &Error{Code: CodeMalformed, What: string(e.Type), Detail: fmt.Sprintf("an asynchronous message has the sequence number 0, not %d", e.Seq)}
		}
	default:
		return Envelope{}, &Error{Code: CodeMalformed, What: "message type", Got: string(e.Type), Detail: fmt.Sprintf("want one of %v or %v", orders, asyncs)}
	}
	return e, nil
}

// DecodeBody reads the body of an envelope into v, strictly. An absent body is
// an error unless v is nil; a present one is an error when v is nil.
func DecodeBody(e Envelope, v any) error {
	if v == nil {
		if len(e.Body) > 0 && !bytes.Equal(e.Body, []byte("null")) {
			return &Error{Code: CodeMalformed, What: string(e.Type), Detail: "it has a body and should have none", Got: excerpt(e.Body)}
		}
		return nil
	}
	if len(e.Body) == 0 {
		return &Error{Code: CodeMalformed, What: string(e.Type), Detail: "it has no body"}
	}
	if err := decodeStrict(e.Body, v); err != nil {
		return &Error{Code: CodeMalformed, What: string(e.Type), Got: excerpt(e.Body), Detail: err.Error()}
	}
	return nil
}

// decodeStrict decodes exactly one JSON value without unknown fields.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the JSON value")
	}
	return nil
}

// EncodeEnvelope writes one line with its newline. body may be nil.
func EncodeEnvelope(seq uint64, typ Type, body any, failure *Error) ([]byte, error) {
	e := Envelope{V: Version, Seq: seq, Type: typ, Error: failure}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, &Error{Code: CodeInternal, What: string(typ), Detail: err.Error()}
		}
		e.Body = b
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, &Error{Code: CodeInternal, What: string(typ), Detail: err.Error()}
	}
	if len(line)+1 > MaxLine {
		return nil, &Error{Code: CodeMalformed, What: string(typ), Detail: fmt.Sprintf("%d bytes, at most %d are allowed", len(line)+1, MaxLine)}
	}
	return append(line, '\n'), nil
}

// lineReader reads bounded lines.
type lineReader struct{ r *bufio.Reader }

func newLineReader(r io.Reader) *lineReader { return &lineReader{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line without its newline. It returns io.EOF at a clean
// end, io.ErrUnexpectedEOF within a line, and an *Error when the line is too
// long, after which the stream is not in step any more.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return nil, &Error{Code: CodeMalformed, What: "message", Detail: fmt.Sprintf("longer than %d bytes", MaxLine), Got: excerpt(append(line, part...))}
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
