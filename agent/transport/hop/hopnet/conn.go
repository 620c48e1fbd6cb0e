package hopnet

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Conn is a stream between two programs: two flows of Hop, one each way. It is a
// net.Conn. One Read and one Write at a time make progress, others wait.
//
// Write returns when the bytes are taken, not when they have arrived; it waits
// while the other end does not read. Close ends both directions: what was
// written is still delivered, as long as the Node is open. Delivered tells when.
type Conn struct {
	n             *Node
	local, remote Addr

	reading sync.Mutex // who reads
	rest    []byte     // of the chunk that is being read
	chunk   []byte     // … the whole of it
	writing sync.Mutex // who writes

	// The Node's lock protects the rest.
	s             *sender
	r             *receiver
	answered      bool
	closed        bool
	wrote         bool // CloseWrite was called
	refused       error
	changed       waiting // of what is above and below
	readDeadline  time.Time
	writeDeadline time.Time
}

var _ net.Conn = (*Conn)(nil)

// Dial opens a stream to a service of a node. It waits until that node has
// accepted or refused it, or ctx ends.
func (n *Node) Dial(ctx context.Context, to NodeID, service Service) (*Conn, error) {
	c := &Conn{n: n, local: Addr{Node: n.cfg.ID}, remote: Addr{to, service}}
	n.mu.Lock()
	now := n.now()
	err := n.reachable(to)
	if err == nil {
		c.s, err = n.open(now, c.remote, preamble{kind: kindStream, service: service}, nil)
	}
	if err != nil {
		n.mu.Unlock()
		return nil, c.fault("dial", err)
	}
	n.dialling[c.s.key.Flow] = c
	n.settle(now)
	for err == nil && !c.answered {
		if c.refused != nil {
			err = c.refused
			break
		}
		change := c.changed.on()
		n.mu.Unlock()
		if err = await(ctx, change, time.Time{}); err != nil {
			err = noAnswer{err}
		}
		n.mu.Lock()
	}
	defer n.mu.Unlock()
	switch {
	case c.answered && err == nil:
		return c, nil
	case c.answered: // just now
		c.shut(n.now())
	case !n.closed:
		delete(n.dialling, c.s.key.Flow)
		if c.refused == nil {
			n.notify(c.remote, preamble{flow: c.s.key.Flow, code: codeAbort, mine: true})
		}
		c.s.abort(err)
		n.settle(n.now())
	}
	return nil, c.fault("dial", err)
}

// noAnswer is the end of a context while the other node said nothing.
type noAnswer struct{ error }

func (e noAnswer) Error() string { return "no answer: " + e.error.Error() }
func (e noAnswer) Unwrap() error { return e.error }

// refuse ends a Dial. The lock is held.
func (c *Conn) refuse(reason error) {
	c.refused = reason
	c.changed.wake()
}

// fault makes the error of a method.
func (c *Conn) fault(op string, err error) error { return &Error{Op: op, Peer: c.remote, Err: err} }

// Read reads what has come, as soon as anything has. At the end of the stream
// the error is io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if err := c.fetch(len(p) == 0); err != nil || len(p) == 0 {
		return 0, err
	}
	k := copy(p, c.rest)
	c.consumed(k)
	return k, nil
}

// WriteTo writes the stream to w until its end; io.WriterTo. Blocks are not
// copied.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		if err := c.fetch(false); err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		k, err := w.Write(c.rest)
		n += int64(k)
		c.consumed(k)
		if err != nil {
			return n, err
		}
	}
}

// fetch has bytes in rest, unless peek: then it only looks for errors.
func (c *Conn) fetch(peek bool) error {
	n := c.n
	for {
		n.mu.Lock()
		err := error(nil)
		switch {
		case c.closed:
			err = net.ErrClosed
		case expired(c.readDeadline):
			err = os.ErrDeadlineExceeded
		case peek || len(c.rest) > 0:
			n.mu.Unlock()
			return nil
		}
		if err == nil {
			if c.chunk = c.r.next(); c.chunk != nil {
				c.rest = c.chunk
				if len(n.later) > 0 {
					n.settle(n.now())
				}
				n.mu.Unlock()
				return nil
			}
			if err = c.r.err; err == nil && c.r.ended {
				n.mu.Unlock()
				return io.EOF
			}
		}
		if err != nil {
			n.mu.Unlock()
			return c.fault("read", err)
		}
		if c.r.longed(); len(n.later) > 0 {
			n.settle(n.now())
		}
		change, deadline := c.r.changed.on(), c.readDeadline
		n.mu.Unlock()
		_ = await(context.Background(), change, deadline) // the loop finds what has happened
	}
}

// consumed takes k bytes off rest.
func (c *Conn) consumed(k int) {
	if c.rest = c.rest[k:]; len(c.rest) == 0 && c.chunk != nil {
		release(c.chunk)
		c.rest, c.chunk = nil, nil
	}
}

// Write takes the bytes of p; it waits while Config.WriteBuffer bytes have not
// found their way into blocks.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for {
		room, err := c.room(len(p) == 0)
		if err != nil || len(p) == 0 {
			return n, err
		}
		k := min(len(p), room, writeChunk)
		if c.addSmall(p[:k]) {
			n, p = n+k, p[k:]
		} else {
			chunk := append(newWriteChunk(k), p[:k]...)
			if !c.add(chunk) {
				continue // room tells why
			}
			n, p = n+k, p[k:]
		}
		if len(p) == 0 {
			return n, nil
		}
	}
}

// ReadFrom writes what r gives until its end; io.ReaderFrom.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	chunk := newWriteChunk(writeChunk)
	defer func() { release(chunk) }()
	for {
		room, err := c.room(false)
		if err != nil {
			return n, err
		}
		k, err := r.Read(chunk[:min(room, writeChunk)])
		if k > 0 {
			n += int64(k)
			ok := false
			if k >= writeChunk/4 {
				ok = c.add(chunk[:k])
				chunk = newWriteChunk(writeChunk)
			} else { // a chunk for each few bytes would be waste
				ok = c.addSmall(chunk[:k]) || c.add(append(newWriteChunk(k), chunk[:k]...))
			}
			if !ok {
				_, err := c.room(false)
				return n - int64(k), err
			}
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
	}
}

// room waits until bytes may be added and returns how many; peek only looks for
// errors.
func (c *Conn) room(peek bool) (int, error) {
	n := c.n
	for {
		n.mu.Lock()
		var err error
		switch {
		case c.closed || c.wrote:
			err = net.ErrClosed
		case c.s.err != nil:
			err = c.s.err
		case expired(c.writeDeadline):
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			n.mu.Unlock()
			return 0, c.fault("write", err)
		}
		room := n.cfg.WriteBuffer - c.s.size
		if room > 0 || peek {
			n.mu.Unlock()
			return room, nil
		}
		change, deadline := c.s.changed.on(), c.writeDeadline
		n.mu.Unlock()
		_ = await(context.Background(), change, deadline) // the loop finds what has happened
	}
}

// add gives a chunk to the sender; false if that has ended.
func (c *Conn) add(chunk []byte) bool {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed || c.wrote || c.s.err != nil {
		release(chunk)
		return false
	}
	c.s.chunks = append(c.s.chunks, chunk)
	c.s.size += len(chunk)
	c.s.stir(n.now())
	return true
}

// addSmall puts a few bytes behind those that wait already, if they fit.
func (c *Conn) addSmall(p []byte) bool {
	n := c.n
	if len(p) > smallChunk {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := c.s
	k := len(s.chunks) - 1
	if c.closed || c.wrote || s.err != nil || k < 0 || cap(s.chunks[k])-len(s.chunks[k]) < len(p) {
		return false
	}
	s.chunks[k] = append(s.chunks[k], p...)
	s.size += len(p)
	s.stir(n.now())
	return true
}

// CloseWrite ends what is written: the other end reads io.EOF behind it.
func (c *Conn) CloseWrite() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return c.fault("close", net.ErrClosed)
	}
	c.endWrite()
	return nil
}

// endWrite ends the sender. The lock is held.
func (c *Conn) endWrite() {
	if !c.wrote {
		c.wrote = true
		c.s.finish(c.n.now())
		c.s.changed.wake()
	}
}

// Close ends both directions and returns at once. What was written before is
// still delivered; what has come and was not read is thrown away, and the other
// end's writes fail.
func (c *Conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if !c.closed {
		c.shut(c.n.now())
	}
	return nil
}

// shut is Close. The lock is held.
func (c *Conn) shut(now vtime.Time) {
	c.closed = true
	c.endWrite()
	c.s.orphan = true
	if r := c.r; !r.ended && r.err == nil && !c.n.closed {
		r.stop()
	}
	c.r.drop()
	c.s.changed.wake()
	c.r.changed.wake()
	c.n.settle(now)
}

// Abort closes the stream without delivering what is left: the other end's
// reader finds ErrReset.
func (c *Conn) Abort() error {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if !c.s.acked && !c.s.gone && !n.closed {
		n.notify(c.remote, preamble{flow: c.s.key.Flow, code: codeAbort, mine: true})
		c.s.abort(net.ErrClosed)
	}
	if !c.closed {
		c.shut(n.now())
	}
	return nil
}

// Delivered waits until everything that was written before CloseWrite or Close
// has been acknowledged by the other node, or ctx ends. It does not tell that the
// program there has read it.
func (c *Conn) Delivered(ctx context.Context) error {
	n := c.n
	for {
		n.mu.Lock()
		err, acked := c.s.err, c.s.acked
		change := c.s.changed.on()
		n.mu.Unlock()
		switch {
		case acked:
			return nil
		case err != nil:
			return c.fault("delivery", err)
		}
		if err := await(ctx, change, time.Time{}); err != nil {
			return c.fault("delivery", err)
		}
	}
}

// LocalAddr returns this end, an Addr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end, an Addr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Peer is the other end's node.
func (c *Conn) Peer() NodeID { return c.remote.Node }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline ends present and later Reads at t; the zero time ends none.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline ends present and later Writes at t; the zero time ends none.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *Conn) setDeadlines(read, write *time.Time) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return c.fault("set deadline", net.ErrClosed)
	}
	if read != nil {
		c.readDeadline = *read
		c.r.changed.wake()
	}
	if write != nil {
		c.writeDeadline = *write
		c.s.changed.wake()
	}
	return nil
}
