//go:build linux

package route

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// chunk bounds one batch in bytes. The kernel's default socket buffers
// (net.core.wmem_default and rmem_default, 212,992 B) have to hold all of it, and
// an answer to each request where all are refused, as they are when an interface
// is gone: about 770 B for each of at most 190.
const chunk = 8 << 10

// receiveTimeout bounds the wait for the kernel's answer. It answers within
// the send call; a missing answer is a fault, not slowness.
var receiveTimeout = unix.Timeval{Sec: 5}

// failure is the kernel's refusal of one request of a batch.
type failure struct {
	index int // into the requests
	err   error
}

// send executes many requests with one acknowledgement per chunk. The kernel
// reports every refused request, acknowledged or not (netlink(7)). On a 2-core
// machine it takes about a third of the time of one request a call.
func send(reqs []*nl.NetlinkRequest) ([]failure, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	defer s.Close()
	if err := s.SetReceiveTimeout(&receiveTimeout); err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	var failed []failure
	var buf []byte
	first := 0
	for i, r := range reqs {
		last := i == len(reqs)-1 || len(buf) >= chunk
		if last {
			r.Flags |= unix.NLM_F_ACK
		}
		buf = append(buf, r.Serialize()...)
		for len(buf)%unix.NLMSG_ALIGNTO != 0 {
			buf = append(buf, 0)
		}
		if !last {
			continue
		}
		if err := unix.Sendto(s.GetFd(), buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return failed, fmt.Errorf("netlink: %d requests: %w", i+1-first, err)
		}
		f, err := answers(s, reqs[first:i+1], first)
		failed = append(failed, f...)
		if err != nil {
			return failed, err
		}
		buf, first = buf[:0], i+1
	}
	return failed, nil
}

// answers reads until the last request of the batch is acknowledged or
// refused.
func answers(s *nl.NetlinkSocket, reqs []*nl.NetlinkRequest, base int) ([]failure, error) {
	bySeq := make(map[uint32]int, len(reqs))
	for i, r := range reqs {
		bySeq[r.Seq] = i
	}
	var failed []failure
	for {
		msgs, _, err := s.Receive()
		if err != nil {
			if errors.Is(err, unix.EAGAIN) {
				err = errors.New("the kernel did not answer within 5 s")
			}
			return failed, fmt.Errorf("netlink: %w", err)
		}
		for _, m := range msgs {
			i, ours := bySeq[m.Header.Seq]
			if m.Header.Type != unix.NLMSG_ERROR || !ours || len(m.Data) < 4 {
				continue
			}
			if code := int32(nl.NativeEndian().Uint32(m.Data)); code != 0 {
				failed = append(failed, failure{base + i, syscall.Errno(-code)})
			}
			if i == len(reqs)-1 {
				return failed, nil
			}
		}
	}
}
