package proto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Async is one asynchronous message of an agent; exactly one field is set.
type Async struct {
	Samples *Samples
	Event   *Event
	Log     *Log
	Failure *Failure
}

// Client is the controller's side of one agent. Its methods may be called from
// several goroutines.
//
// The owner must drain Async: when its buffer is full the client stops reading,
// and replies wait behind it.
type Client struct {
	rwc   io.ReadWriteCloser
	async chan Async
	out   chan []byte
	done  chan struct{} // closed when the conversation is over
	shut  chan struct{} // closed by Close: nobody wants to hear more

	heard   atomic.Int64 // when the last message came, Unix time in ns
	closing sync.Once
	mu      sync.Mutex
	seq     uint64
	pending map[uint64]chan Envelope
	err     error
}

// Gone says that an order found no agent any more, or that the agent ended
// before it replied. Why it ended may be known elsewhere.
type Gone struct {
	Order Type
	Err   error // why the conversation is over
}

// Error names the order and the end of the conversation.
func (g *Gone) Error() string { return fmt.Sprintf("order %s: the agent is gone: %v", g.Order, g.Err) }

// Unwrap returns why the conversation is over.
func (g *Gone) Unwrap() error { return g.Err }

// ErrClosed is the end of a conversation that the controller closed.
var ErrClosed = errors.New("closed by the controller")

// NewClient starts the conversation over rwc, which Close closes. Say Hello
// first.
func NewClient(rwc io.ReadWriteCloser) *Client {
	c := &Client{
		rwc:     rwc,
		async:   make(chan Async, 256),
		out:     make(chan []byte),
		done:    make(chan struct{}),
		shut:    make(chan struct{}),
		pending: make(map[uint64]chan Envelope),
	}
	go c.read()
	go c.write()
	return c
}

// Async delivers samples, events, logs and failures in the order in which the
// agent sent them. It is closed when the conversation is over.
func (c *Client) Async() <-chan Async { return c.async }

// Done is closed when the conversation is over; Err then says why.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the conversation ended: nil while it lasts, ErrClosed after
// Close, io.EOF when the agent closed its side, else what went wrong.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the conversation by closing the stream; the agent takes the end
// of its input as the order to revert and exit.
func (c *Client) Close() error {
	c.finish(ErrClosed)
	c.closing.Do(func() { close(c.shut) })
	return c.rwc.Close()
}

func (c *Client) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

func (c *Client) read() {
	defer close(c.async)
	lines := newLineReader(c.rwc)
	for {
		line, err := lines.next()
		if err != nil {
			c.finish(err)
			return
		}
		c.heard.Store(time.Now().UnixNano())
		e, err := DecodeEnvelope(line)
		if err != nil {
			c.finish(err)
			return
		}
		if e.Seq == 0 {
			a, err := decodeAsync(e)
			if err != nil {
				c.finish(err)
				return
			}
			// Not done: an agent that died while an order was being written
			// may have left its reason in the stream.
			select {
			case c.async <- a:
			case <-c.shut:
				return
			}
			continue
		}
		c.mu.Lock()
		ch := c.pending[e.Seq]
		delete(c.pending, e.Seq)
		c.mu.Unlock()
		// A reply whose caller gave up is dropped here.
		if ch != nil {
			ch <- e
		}
	}
}

func decodeAsync(e Envelope) (Async, error) {
	var a Async
	var body any
	switch e.Type {
	case TypeSamples:
		a.Samples = new(Samples)
		body = a.Samples
	case TypeEvent:
		a.Event = new(Event)
		body = a.Event
	case TypeLog:
		a.Log = new(Log)
		body = a.Log
	case TypeFailure:
		a.Failure = new(Failure)
		body = a.Failure
	default:
		return a, &Error{Code: CodeMalformed, What: string(e.Type), Detail: "it is not asynchronous"}
	}
	return a, DecodeBody(e, body)
}

// write is the only writer, so that a caller whose context ends does not hang
// on an agent that no longer reads.
func (c *Client) write() {
	for {
		select {
		case line := <-c.out:
			if _, err := c.rwc.Write(line); err != nil {
				c.finish(fmt.Errorf("writing to the agent: %w", err))
				return
			}
		case <-c.done:
			return
		}
	}
}

// Call sends one order and waits for its reply. body and reply may be nil when
// the order has none. The error is an *Error when the agent refused, the
// cause of the context's end when it ended first, else why the conversation is over.
func (c *Client) Call(ctx context.Context, typ Type, body, reply any) error {
	if !known(typ, orders) {
		return &Error{Code: CodeInternal, What: string(typ), Detail: "it is not an order"}
	}
	ch := make(chan Envelope, 1)
	c.mu.Lock()
	c.seq++
	seq := c.seq
	c.pending[seq] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, seq)
		c.mu.Unlock()
	}()
	line, err := EncodeEnvelope(seq, typ, body, nil)
	if err != nil {
		return err
	}
	select {
	case c.out <- line:
	case <-ctx.Done():
		return fmt.Errorf("order %s: %w", typ, context.Cause(ctx))
	case <-c.done:
		return &Gone{typ, c.Err()}
	}
	select {
	case e := <-ch:
		return replied(e, typ, reply)
	case <-ctx.Done():
		return fmt.Errorf("order %s: no reply: %w", typ, context.Cause(ctx))
	case <-c.done:
		// The reply may have come in the same moment (bye).
		select {
		case e := <-ch:
			return replied(e, typ, reply)
		default:
		}
		return &Gone{typ, c.Err()}
	}
}

func replied(e Envelope, typ Type, reply any) error {
	switch {
	case e.Error != nil:
		return e.Error
	case e.Type != typ:
		return &Error{Code: CodeMalformed, What: string(typ), Detail: fmt.Sprintf("the reply has the type %q", e.Type)}
	}
	return DecodeBody(e, reply)
}

// Hello opens the conversation; a version mismatch is an *Error of CodeVersion.
func (c *Client) Hello(ctx context.Context, h Hello) (HelloReply, error) {
	var r HelloReply
	return r, c.Call(ctx, TypeHello, h, &r)
}

// Configure makes the node and returns what was read back. A setting that did
// not take is an *Error of CodeNotApplied.
func (c *Client) Configure(ctx context.Context, cfg *Configure) (*Readback, error) {
	r := new(Readback)
	if err := c.Call(ctx, TypeConfigure, cfg, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Readback reads the configuration from the kernel again and compares.
func (c *Client) Readback(ctx context.Context) (*Readback, error) {
	r := new(Readback)
	if err := c.Call(ctx, TypeReadback, nil, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Clock reads the agent's monotonic clock.
func (c *Client) Clock(ctx context.Context) (Clock, error) {
	var r Clock
	return r, c.Call(ctx, TypeClock, nil, &r)
}

// Probe schedules link probes.
func (c *Client) Probe(ctx context.Context, p Probe) error { return c.Call(ctx, TypeProbe, p, nil) }

// Heard ends the probing and returns what was heard.
func (c *Client) Heard(ctx context.Context) (*Heard, error) {
	h := new(Heard)
	if err := c.Call(ctx, TypeHeard, nil, h); err != nil {
		return nil, err
	}
	return h, nil
}

// Start schedules the flows and returns before they begin.
func (c *Client) Start(ctx context.Context, s Start) error {
	return c.Call(ctx, TypeStart, s, nil)
}

// Stop ends every flow at once; it returns when none runs any more.
func (c *Client) Stop(ctx context.Context) error { return c.Call(ctx, TypeStop, nil, nil) }

// Collect returns the results of the flows that were stopped.
func (c *Client) Collect(ctx context.Context) (*Results, error) {
	r := new(Results)
	if err := c.Call(ctx, TypeCollect, nil, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Revert undoes the configuration, newest change first.
func (c *Client) Revert(ctx context.Context) (*Reverted, error) {
	r := new(Reverted)
	if err := c.Call(ctx, TypeRevert, nil, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Bye makes the agent revert what is left and exit.
func (c *Client) Bye(ctx context.Context) error { return c.Call(ctx, TypeBye, nil, nil) }
