package sshns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/internal/reexec"
)

// Part is the name under which this program becomes a namespace's SSH server; its
// arguments are the server's command.
const Part = "hopbed-sshd"

// Main brings the loopback of its namespace up and becomes the server. It returns
// only after an error.
func Main() int {
	fail := func(what string, err error) int {
		fmt.Fprintf(os.Stderr, "%s: %s: %v\n", Part, what, err)
		return 1
	}
	if len(os.Args) < 2 {
		return fail("start", errors.New("no server's command"))
	}
	if err := loopbackUp(); err != nil {
		return fail("bring up lo", err)
	}
	if err := os.Unsetenv(reexec.Marker); err != nil {
		return fail("environment", err)
	}
	return fail(os.Args[1], unix.Exec(os.Args[1], os.Args[1:], os.Environ()))
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// listenWithin bounds the wait for a server to listen.
const listenWithin = 20 * time.Second

// dial connects to the server of a node, from inside its namespace.
func (g *group) dial(ctx context.Context, n *inventory.Node, _, _ string) (net.Conn, error) {
	server := g.names[n.Name]
	if server == nil {
		return nil, fmt.Errorf("node %s has no server", n.Name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listenWithin, fmt.Errorf("the server does not listen within %v", listenWithin))
	defer cancel()
	for {
		c, err := connect(ctx, fmt.Sprintf("/proc/%d/ns/net", server.PID()))
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENETUNREACH) { // lo is not up yet
			return c, err
		}
		select {
		case <-server.Done():
			return nil, fmt.Errorf("its SSH server has ended: %w; %s", err, server.Stderr())
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w; %s", err, context.Cause(ctx), server.Stderr())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// connect makes a TCP connection inside a network namespace. A socket stays in the
// namespace that it was made in, so that nothing else has to be done there.
func connect(ctx context.Context, namespace string) (net.Conn, error) {
	fd, err := socketIn(namespace)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "connection to "+address.String())
	defer file.Close() // the connection has a descriptor of its own
	err = unix.Connect(fd, &unix.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())})
	for errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EINTR) {
		var ready int
		ready, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 100)
		switch {
		case err != nil:
		case ready == 0:
			if err = context.Cause(ctx); err == nil {
				err = unix.EINPROGRESS
			}
		default:
			var status int
			if status, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && status != 0 {
				err = unix.Errno(status)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return net.FileConn(file)
}

// socketIn makes a socket in a network namespace, on a thread that goes there and
// comes back.
func socketIn(namespace string) (int, error) {
	target, err := os.Open(namespace)
	if err != nil {
		return -1, fmt.Errorf("network namespace: %w", err)
	}
	defer target.Close()
	type result struct {
		fd  int
		err error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			done <- result{-1, fmt.Errorf("own network namespace: %w", err)}
			return
		}
		defer home.Close()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- result{-1, fmt.Errorf("enter network namespace %s: %w", namespace, err)}
			return
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread() // else the thread ends with this goroutine
		}
		done <- result{fd, err}
	}()
	r := <-done
	return r.fd, r.err
}
