package sshclient

import (
	"context"
	"io"
	"net"

	"github.com/hopbed/hopbed/deploy/inventory"
)

// Dialer makes connections to nodes.
type Dialer interface {
	// Dial connects and authenticates. The error is typed (see errors.go) and
	// says what to do. ctx bounds all of it, jump hosts included.
	Dial(ctx context.Context, n *inventory.Node) (Client, error)
}

// Client is a connection to one node. Its methods may be called from several
// goroutines.
type Client interface {
	// Run runs a program and waits for it. The words of argv reach it as they are.
	// stdin may be nil. A non-zero exit status is an *ExitError.
	Run(ctx context.Context, stdin io.Reader, argv ...string) (stdout, stderr []byte, err error)
	// Start runs a program whose standard input and output stay open.
	Start(ctx context.Context, stderr io.Writer, argv ...string) (Process, error)
	// Local and Remote are the ends of the TCP connection to the node itself, nil
	// where a jump host lies between; Remote as the node sees it comes from
	// SSH_CONNECTION.
	Local() net.Addr
	Remote() net.Addr
	// Done is closed when the connection is lost or closed; Err then says why.
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Process is a program on a node.
type Process interface {
	io.ReadWriter             // its standard output and input
	CloseWrite() error        // ends its standard input
	Signal(name string) error // "TERM", "KILL": servers may refuse
	// Wait returns when the program has ended: nil, an *ExitError, or why the
	// connection was lost.
	Wait() error
	Close() error
}
