package sshclient

import (
	"context"
	"io"
	"net"

	"github.com/hopbed/hopbed/deploy/inventory"
)

// Dialer makes connections to nodes.
type Dialer interface {
	// Dial connects and authenticates. The error is an *Error and says what to do.
	// ctx bounds all of it, jump hosts included; each host has the time of the
	// Options besides.
	Dial(ctx context.Context, n *inventory.Node) (Client, error)
}

// Client is a connection to one node. Its methods may be called from several
// goroutines.
type Client interface {
	// Run runs a program and waits for it. The words of argv reach it as they are.
	// stdin may be nil. A non-zero exit status is an *ExitError, with what was
	// written until then. When ctx ends, or the output is more than the Options
	// allow, the session is closed and the program killed; but OpenSSH kills nothing
	// of root's, which then ends when it next writes.
	Run(ctx context.Context, stdin io.Reader, argv ...string) (stdout, stderr []byte, err error)
	// Start runs a program whose standard input and output stay open. ctx bounds
	// the start, not the program's life. What it writes to standard error goes to
	// stderr, or nowhere when that is nil.
	Start(ctx context.Context, stderr io.Writer, argv ...string) (Process, error)
	// Local and Remote are the ends of the TCP connection to the node itself, nil
	// where a jump host lies between; Remote as the node sees it comes from
	// SSH_CONNECTION.
	Local() net.Addr
	Remote() net.Addr
	// Done is closed when the connection is lost or closed; Err then says why: an
	// *Error with the reason Lost or Closed. Until then Err is nil.
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Process is a program on a node.
type Process interface {
	io.ReadWriter             // its standard output and input
	CloseWrite() error        // ends its standard input
	Signal(name string) error // "TERM", "KILL": servers may refuse without saying so, OpenSSH those to root's programs
	// Wait returns when the program has ended: nil, an *ExitError, or why the
	// connection was lost. The output must be read, or the program blocks.
	Wait() error
	// Close ends the session. The program sees the end of its input and cannot
	// write any more; it is not killed.
	Close() error
}
