package hopnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
)

// The reasons that errors of this package wrap, for errors.Is. Besides them
// there are net.ErrClosed (by this program), os.ErrDeadlineExceeded, and the
// errors of contexts.
var (
	// ErrRefused: the node there has no listener for the service, or takes no more.
	ErrRefused = errors.New("refused by the other node")
	// ErrReset: the other end gave the stream up.
	ErrReset = errors.New("given up by the other end")
	// ErrRestarted: the other node has begun a new life and knows nothing of the
	// stream; what was not confirmed may or may not have arrived.
	ErrRestarted = errors.New("the other node has restarted")
	// ErrNoRoute: no next hop is known towards the node.
	ErrNoRoute = errors.New("no route to the node")
	// ErrTooLarge: a block of more than MaxBlock bytes.
	ErrTooLarge = fmt.Errorf("a block has %d bytes at most; use a stream", MaxBlock)
	// ErrTooMany: Config.Streams are under way.
	ErrTooMany = errors.New("too many streams are under way")
)

// Error is what this package's methods return.
type Error struct {
	Op   string // "dial", "read", "write", "send block" …
	Peer Addr   // the other end; zero if there is none
	Err  error
}

// Error says what failed, towards whom and why.
func (e *Error) Error() string {
	if e.Peer == (Addr{}) {
		return fmt.Sprintf("hopnet: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("hopnet: %s, node %v, service %d: %v", e.Op, e.Peer.Node, e.Peer.Service, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Timeout tells that a deadline has passed; net.Error.
func (e *Error) Timeout() bool {
	return errors.Is(e.Err, os.ErrDeadlineExceeded) || errors.Is(e.Err, context.DeadlineExceeded)
}

// Temporary is Timeout; net.Error.
func (e *Error) Temporary() bool { return e.Timeout() }

var _ net.Error = (*Error)(nil)
