package hopfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
)

// Service is where a Receiver listens by default.
const Service hopnet.Service = 1

// File is what Send sends.
type File struct {
	Name string    // that it shall have at the other end: no path
	Size int64     // bytes; < 0 if it is not known
	Time time.Time // of the last change; zero if there is none
	// Data are its bytes from the beginning. If it is an io.Seeker, a transfer that
	// was broken off goes on where it stopped.
	Data io.Reader
}

// Sent is the outcome of Send.
type Sent struct {
	Name   string // that the file has at the other end
	Bytes  int64  // its size
	Resume int64  // of these, those that were there already
	SHA256 [sha256.Size]byte
}

// RefusedError is what a Receiver says why it does not take a file.
type RefusedError struct {
	Node hopnet.NodeID
	Text string
}

// Error quotes the other end.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("node %v does not take the file: %s", e.Node, e.Text)
}

// Send sends a file to the Receiver at a node's service and waits until that has
// all of it, checked and under its name. progress, if not nil, is told how many
// bytes have been given to the network, those that were there already included.
func Send(ctx context.Context, n *hopnet.Node, to hopnet.NodeID, s hopnet.Service, f File, progress func(done int64)) (Sent, error) {
	c, err := n.Dial(ctx, to, s)
	if err != nil {
		return Sent{}, err
	}
	stop := context.AfterFunc(ctx, func() { c.Abort() })
	defer stop()
	defer c.Close()
	sent, err := send(c, f, progress)
	switch {
	case ctx.Err() != nil:
		c.Abort()
		return sent, fmt.Errorf("%s: broken off after %d bytes: %w", f.Name, sent.Bytes, context.Cause(ctx))
	case err != nil:
		c.Abort()
		return sent, fmt.Errorf("%s: %w", f.Name, err)
	}
	return sent, nil
}

func send(c *hopnet.Conn, f File, progress func(int64)) (Sent, error) {
	var out Sent
	o := offer{Version: version, Name: f.Name, Size: max(f.Size, -1)}
	if !f.Time.IsZero() {
		o.Time = f.Time.Unix()
	}
	if err := writeMessage(c, o); err != nil {
		return out, err
	}
	var r reply
	if err := readMessage(c, &r); err != nil {
		return out, err
	}
	if r.Error != "" {
		return out, &RefusedError{c.Peer(), r.Error}
	}
	h := sha256.New()
	at, err := resume(f, &r, h)
	if err != nil {
		return out, err
	}
	out.Bytes, out.Resume = at, at
	if err := writeMessage(c, begin{at}); err != nil {
		return out, err
	}
	if err := chunks(c, f, h, &out, progress); err != nil {
		// Where the receiver has stopped reading, it has said why.
		var res result
		if errors.Is(err, hopnet.ErrReset) && readMessage(c, &res) == nil && res.Error != "" {
			return out, &RefusedError{c.Peer(), res.Error}
		}
		return out, err
	}
	h.Sum(out.SHA256[:0])
	if _, err := c.Write(append(make([]byte, 4), out.SHA256[:]...)); err != nil {
		return out, err
	}
	if err := c.CloseWrite(); err != nil {
		return out, err
	}
	var res result
	if err := readMessage(c, &res); err != nil {
		return out, fmt.Errorf("no word that it has arrived: %w", err)
	}
	if res.Error != "" {
		return out, &RefusedError{c.Peer(), res.Error}
	}
	out.Name = res.Name
	return out, nil
}

// resume moves the file to where the receiver's part ends, if that is the same,
// and puts the part into the hash.
func resume(f File, r *reply, h hash.Hash) (int64, error) {
	seeker, ok := f.Data.(io.Seeker)
	if !ok || r.Offset <= 0 || f.Size >= 0 && r.Offset > f.Size {
		return 0, nil
	}
	if n, err := io.CopyN(h, f.Data, r.Offset); err == nil && bytes.Equal(h.Sum(nil), r.Hash) {
		return n, nil
	}
	h.Reset()
	_, err := seeker.Seek(0, io.SeekStart)
	return 0, err
}

// chunks sends the rest of the file.
func chunks(c *hopnet.Conn, f File, h hash.Hash, out *Sent, progress func(int64)) error {
	buf := make([]byte, 4+chunkSize)
	for {
		if progress != nil {
			progress(out.Bytes)
		}
		n, err := io.ReadFull(f.Data, buf[4:])
		if n > 0 {
			h.Write(buf[4 : 4+n])
			binary.BigEndian.PutUint32(buf, uint32(n))
			if _, err := c.Write(buf[:4+n]); err != nil {
				return err
			}
			out.Bytes += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if f.Size >= 0 && out.Bytes != f.Size {
				return fmt.Errorf("it has changed: %d bytes instead of %d", out.Bytes, f.Size)
			}
			if progress != nil {
				progress(out.Bytes)
			}
			return nil
		case err != nil:
			return fmt.Errorf("read: %w", err)
		}
	}
}
