//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

const (
	// claimPatience covers an agent that was cut off from its controller: it puts
	// its settings back and ends after its watchdog.
	claimPatience = 8 * time.Second
	claimAgain    = 100 * time.Millisecond
)

// claims are the interfaces that this agent uses. Of two agents that set the same
// one, the later would take the settings of the first for the machine's own, and
// leave them there for good. A claim is an abstract socket (unix(7)): it belongs to
// the network namespace, ends with the process, however that ends, and is no file.
type claims []int

// take claims the interfaces, or none of them. It waits for an agent that is about
// to end.
func (c *claims) take(ctx context.Context, interfaces []string) error {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	for _, name := range interfaces {
		for {
			fd, err := claim(name)
			if err == nil {
				*c = append(*c, fd)
				break
			}
			if !errors.Is(err, unix.EADDRINUSE) {
				c.drop()
				return &proto.Error{Code: proto.CodeSystem, What: "claim of " + name, Detail: err.Error()}
			}
			select {
			case <-time.After(claimAgain):
				continue
			case <-ctx.Done():
			}
			c.drop()
			return &proto.Error{Code: proto.CodeUnavailable, What: "interface " + name, Detail: "another hopbed uses it" + holder(name),
				Remedy: "wait until that one has finished, or end it; an agent that was cut off ends by itself within seconds"}
		}
	}
	return nil
}

// drop gives all up.
func (c *claims) drop() {
	for _, fd := range *c {
		_ = unix.Close(fd)
	}
	*c = nil
}

func claimAddress(name string) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@hopbed-agent/" + name}
}

func claim(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(unix.Bind(fd, claimAddress(name)), unix.Listen(fd, 1)); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// holder names the process that has the claim, where it can be seen.
func holder(name string) string {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	if unix.Connect(fd, claimAddress(name)) != nil {
		return ""
	}
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || c.Pid == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d of uid %d)", c.Pid, c.Uid)
}
