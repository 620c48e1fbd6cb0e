package proto

import (
	"fmt"
	"io"
	"sync"
)

// Server is the agent's side. Next is for one goroutine; the writing methods
// may be called from several.
type Server struct {
	lines *lineReader

	mu sync.Mutex
	w  io.Writer
}

// NewServer speaks the protocol over r and w.
func NewServer(r io.Reader, w io.Writer) *Server {
	return &Server{lines: newLineReader(r), w: w}
}

// Next waits for the next order. io.EOF means that the controller is gone; any
// other error too means that the conversation cannot go on, and the controller
// has been told where that was possible.
func (s *Server) Next() (Envelope, error) {
	line, err := s.lines.next()
	if err != nil {
		return Envelope{}, err
	}
	e, err := DecodeEnvelope(line)
	if err == nil && !known(e.Type, orders) {
		err = &Error{Code: CodeMalformed, What: string(e.Type), Detail: "it is not an order"}
	}
	if err != nil {
		// The sequence number of a line that could not be decoded is not
		// known, so the answer is a failure, not a reply.
		if sendErr := s.Send(TypeFailure, Failure{Node: -1, Error: *AsError(err, CodeMalformed)}); sendErr != nil {
			return Envelope{}, fmt.Errorf("%w (and the controller could not be told: %w)", err, sendErr)
		}
		return Envelope{}, err
	}
	return e, nil
}

// Reply answers an order; body may be nil.
func (s *Server) Reply(order Envelope, body any) error {
	line, err := EncodeEnvelope(order.Seq, order.Type, body, nil)
	if err != nil {
		return s.Fail(order, err)
	}
	return s.write(line)
}

// Fail answers an order with an error.
func (s *Server) Fail(order Envelope, failure error) error {
	line, err := EncodeEnvelope(order.Seq, order.Type, nil, AsError(failure, CodeInternal))
	if err != nil {
		return err
	}
	return s.write(line)
}

// Send sends an asynchronous message.
func (s *Server) Send(typ Type, body any) error {
	if !known(typ, asyncs) {
		return &Error{Code: CodeInternal, What: string(typ), Detail: "it is not asynchronous"}
	}
	line, err := EncodeEnvelope(0, typ, body, nil)
	if err != nil {
		return err
	}
	return s.write(line)
}

// write sends one whole line; the lock keeps lines apart.
func (s *Server) write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.w.Write(line)
	return err
}
