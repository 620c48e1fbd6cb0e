package hopfile

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
)

// Received is one file that has come.
type Received struct {
	From   hopnet.NodeID
	Name   string
	Bytes  int64
	Resume int64 // of these, those that were here already
	Err    error // nil: it is complete and checked
}

// Receiver takes files. Set the fields before Serve and leave them alone then.
type Receiver struct {
	// Dir is the folder that files come to, if Out is nil. Parts of files are in it
	// under names that begin with ".hopbed-".
	Dir string
	// Out takes the bytes of one file at a time instead. A transfer that is broken off
	// after some of them ends Serve: nothing must follow half a file.
	Out io.Writer
	// MaxSize is the largest file that is taken, in bytes (DefaultMaxSize).
	MaxSize int64
	// Idle ends a transfer of which nothing comes (10 min).
	Idle time.Duration
	// KeepParts is how long the parts of transfers that were broken off are kept
	// (24 h); < 0 keeps none.
	KeepParts time.Duration
	// AtOnce bounds the transfers under way; others wait (16; 1 with Out).
	AtOnce int

	// Done, if set, is told of every transfer that has ended, Progress of the bytes
	// that are here. They are called by many goroutines.
	Done     func(Received)
	Progress func(from hopnet.NodeID, name string, done, size int64)

	silence time.Duration // see store
}

// The defaults of Receiver.
const (
	DefaultMaxSize = 16 << 30
	defaultIdle    = 10 * time.Minute
	defaultKeep    = 24 * time.Hour
	defaultAtOnce  = 16
	defaultSilence = 5 * time.Second
)

// Serve takes files from a listener until count have come (0: for ever), ctx ends,
// or the listener fails. With count, the error is that of the last transfer that
// failed, if none followed that did not.
func (r *Receiver) Serve(ctx context.Context, l *hopnet.Listener, count int) error {
	x := *r
	if x.MaxSize == 0 {
		x.MaxSize = DefaultMaxSize
	}
	if x.Idle == 0 {
		x.Idle = defaultIdle
	}
	if x.KeepParts == 0 {
		x.KeepParts = defaultKeep
	}
	if x.AtOnce == 0 {
		x.AtOnce = defaultAtOnce
	}
	var out *counted
	if x.Out != nil {
		x.AtOnce = 1
		out = &counted{w: x.Out}
		x.Out = out
	}
	var s *store
	if x.Out == nil {
		var err error
		if s, err = openStore(x.Dir, x.KeepParts); err != nil {
			return err
		}
		defer s.close()
		if s.silence = x.silence; s.silence == 0 {
			s.silence = defaultSilence
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var over sync.WaitGroup
	defer over.Wait()
	slots := make(chan struct{}, x.AtOnce)
	var mu sync.Mutex
	good := 0
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return done(ctx, &mu, &good, count)
		}
		c, err := l.AcceptConn(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return done(ctx, &mu, &good, count)
			}
			return err
		}
		over.Go(func() {
			got := x.transfer(ctx, c, s)
			if x.Done != nil {
				x.Done(got)
			}
			mu.Lock()
			if got.Err == nil {
				good++
			}
			switch {
			case count > 0 && good >= count:
				cancel(nil)
			case got.Err != nil && out != nil && out.used:
				cancel(fmt.Errorf("what has been written of %q is all there will be: %w", got.Name, got.Err))
			}
			if out != nil {
				out.used = false
			}
			mu.Unlock()
			<-slots
		})
	}
}

// done is the end of Serve: nil if as many have come as were wanted.
func done(ctx context.Context, mu *sync.Mutex, good *int, count int) error {
	mu.Lock()
	defer mu.Unlock()
	if count > 0 && *good >= count {
		return nil
	}
	return context.Cause(ctx)
}

// counted notes whether anything was written.
type counted struct {
	w    io.Writer
	used bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.used = true
	return c.w.Write(b)
}

// transfer takes one file.
func (r *Receiver) transfer(ctx context.Context, c *hopnet.Conn, s *store) Received {
	stop := context.AfterFunc(ctx, func() { c.Abort() })
	defer stop()
	got := Received{From: c.Peer()}
	got.Err = r.take(c, s, &got)
	res := result{Name: got.Name}
	if got.Err != nil {
		res.Error = got.Err.Error()
	}
	c.SetDeadline(time.Now().Add(r.Idle))
	if err := writeMessage(c, res); got.Err == nil && err != nil {
		got.Err = fmt.Errorf("the file is here, but its sender cannot be told: %w", err)
	}
	if got.Err == nil {
		// The sender closes when it has read the result; what it sent has all come.
		if err := c.CloseWrite(); err == nil {
			wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Idle)
			_ = c.Delivered(wait)
			cancel()
		}
	}
	c.Close()
	return got
}

// take is transfer up to the result.
func (r *Receiver) take(c *hopnet.Conn, s *store, got *Received) error {
	c.SetDeadline(time.Now().Add(r.Idle))
	var o offer
	if err := readMessage(c, &o); err != nil {
		return err
	}
	got.Name = o.Name
	p, err := r.open(c, &o, s)
	if err != nil {
		return errors.Join(writeMessage(c, reply{Error: err.Error()}), err)
	}
	defer p.close()
	if err := writeMessage(c, reply{Offset: p.have, Hash: p.hash.Sum(nil)}); err != nil {
		return err
	}
	var b begin
	if err := readMessage(c, &b); err != nil {
		return err
	}
	switch b.Offset {
	case p.have:
		got.Resume = p.have
	case 0:
		if err := p.restart(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the sender begins at byte %d, %d are here", b.Offset, p.have)
	}
	if err := r.chunks(c, &o, p); err != nil {
		got.Bytes = p.have
		if p.taken.Load() {
			err = errors.New("another transfer of it goes on with what has come")
		}
		return err
	}
	got.Bytes = p.have
	var want [hashLen]byte
	if _, err := io.ReadFull(c, want[:]); err != nil {
		return whole(err)
	}
	if [hashLen]byte(p.hash.Sum(nil)) != want {
		p.discard()
		return errors.New("the SHA-256 of what has come is not that of the file: it is thrown away")
	}
	p.whole.Store(true)
	return p.finish(&o)
}

// chunks takes the file's bytes.
func (r *Receiver) chunks(c *hopnet.Conn, o *offer, p *part) error {
	buf := make([]byte, maxChunk)
	in := &heard{c, p}
	for {
		if r.Progress != nil {
			r.Progress(c.Peer(), o.Name, p.have, o.Size)
		}
		c.SetDeadline(time.Now().Add(r.Idle))
		if _, err := io.ReadFull(in, buf[:4]); err != nil {
			return whole(err)
		}
		n := binary.BigEndian.Uint32(buf)
		switch {
		case n == 0:
			if o.Size >= 0 && p.have != o.Size {
				return fmt.Errorf("%d bytes have come of a file of %d", p.have, o.Size)
			}
			return nil
		case n > maxChunk:
			return fmt.Errorf("a chunk of %d bytes, %d are the most", n, maxChunk)
		case p.have+int64(n) > r.MaxSize, o.Size >= 0 && p.have+int64(n) > o.Size:
			p.discard()
			return fmt.Errorf("more than %d bytes have come", min(r.MaxSize, max(o.Size, p.have)))
		}
		if _, err := io.ReadFull(in, buf[:n]); err != nil {
			return whole(err)
		}
		if err := p.write(buf[:n]); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// open checks an offer and opens what it goes to.
func (r *Receiver) open(c *hopnet.Conn, o *offer, s *store) (*part, error) {
	switch {
	case o.Version != version:
		return nil, fmt.Errorf("version %d of the transfer is not known here, %d is", o.Version, version)
	case o.Size > r.MaxSize:
		return nil, fmt.Errorf("it has %d bytes, files of up to %d are taken", o.Size, r.MaxSize)
	}
	if err := checkName(o.Name); err != nil {
		return nil, err
	}
	if s == nil {
		return &part{out: r.Out, hash: sha256.New()}, nil
	}
	return s.open(o, func() { c.Abort() })
}

// heard notes when something of a part has come.
type heard struct {
	c *hopnet.Conn
	p *part
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.c.Read(b)
	if n > 0 {
		h.p.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// part is a file that is coming.
type part struct {
	out  io.Writer // if it is not a file
	file writeFile
	s    *store
	key  string
	have int64
	hash hash.Hash

	abort func()        // ends its transfer
	heard atomic.Int64  // when something of it came, nanoseconds since 1970
	whole atomic.Bool   // all of it has come
	taken atomic.Bool   // another transfer goes on with it
	gone  chan struct{} // closed when it is not written any more
}

func (p *part) write(b []byte) error {
	var err error
	if p.out != nil {
		_, err = p.out.Write(b)
	} else {
		_, err = p.file.Write(b)
	}
	if err == nil {
		p.hash.Write(b)
		p.have += int64(len(b))
	}
	return err
}
