//go:build linux

package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// link is one connection to a neighbour and its session.
type link struct {
	f    *flow
	conn *net.TCPConn
	s    *bundle.Session
	done chan struct{} // the reader has ended

	// Guarded by the flow's mu.
	gone   bool // closed by order, not by the session
	ending bool // the session is over
}

// newLink applies the flow's options to a connection; cc is read back. The flow's
// mu is held.
func (f *flow) newLink(conn *net.TCPConn) (l *link, cc string, err error) {
	err = sock.OnConn(conn, func(fd int) (err error) {
		// Again, because the net package changes TCP_NODELAY after connect.
		if err := f.opt.Apply(fd); err != nil {
			return err
		}
		cc, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return &link{f: f, conn: conn, done: make(chan struct{})}, cc, err
}

// begin runs the session. The flow's mu is held.
func (l *link) begin(s *bundle.Session) {
	l.s = s
	l.f.links = append(l.f.links, l)
	l.f.e.wg.Go(l.read)
	l.f.e.wg.Go(l.write)
}

var (
	errOver = errors.New("the flow is over")
	errOff  = errors.New("the node was switched off")
)

// abort closes the connection with a reset: the flow is over. The flow's mu is
// held.
func (l *link) abort(now vtime.Time) {
	l.gone = true
	l.s.Lost(now, errOver)
	sock.Abort(l.conn)
}

// vanish closes the connection without a word: the node is switched off. The
// flow's mu is held.
func (l *link) vanish(now vtime.Time) {
	l.gone = true
	l.s.Lost(now, errOff)
	sock.Vanish(l.conn)
}

// read hands the peer's messages to the session.
func (l *link) read() {
	defer close(l.done)
	f := l.f
	p := bundle.NewParser(f.cfg.SegmentSize)
	for {
		m, ok, err := p.Next()
		if ok || err != nil {
			if !l.input(&m, err) {
				break
			}
			continue
		}
		n, err := l.conn.Read(p.Space())
		p.Filled(n)
		f.mu.Lock()
		now := f.sched.Clock.Now()
		if n > 0 {
			l.s.Heard(now)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the peer has closed the connection")
			}
			l.s.Lost(now, err)
			f.happened()
		}
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
	// The session is over. What still comes is dropped, so that the kernel does not
	// answer it with a reset that overtakes our last words.
	_, _ = io.Copy(io.Discard, l.conn)
}

// input hands over one message, or says that what came is none, and waits until
// the session takes more. It returns false when the session is over.
func (l *link) input(m *bundle.Message, err error) bool {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		l.s.Broken(f.sched.Clock.Now(), err)
	} else {
		l.s.Input(f.sched.Clock.Now(), m)
	}
	f.happened()
	for !l.s.Reading() && !l.s.Closed() {
		f.changed.Wait()
	}
	return !l.s.Closed()
}

// lingering bounds the time for the last words to arrive and be answered.
const lingering = 500 * time.Millisecond

// write sends what the session has to say, and closes the connection when it is
// over.
func (l *link) write() {
	f := l.f
	var buf []byte
	for {
		m, ok, end, abort := l.poll()
		if end {
			l.close(abort)
			return
		}
		if !ok {
			continue
		}
		var err error
		if buf, err = m.Append(buf[:0]); err == nil {
			_, err = l.conn.Write(buf)
		}
		if err != nil {
			f.mu.Lock()
			l.s.Lost(f.sched.Clock.Now(), err)
			f.happened()
			f.mu.Unlock()
		}
	}
}

// poll waits for the next message, or for the end of the session.
func (l *link) poll() (m bundle.Message, ok, end, abort bool) {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if l.gone {
			return m, false, true, true
		}
		if m, ok = l.s.Poll(f.sched.Clock.Now()); ok {
			return m, ok, false, false
		}
		if over, abort, err := l.s.Over(); over {
			l.told(err)
			return m, false, true, abort
		}
		f.changed.Wait()
	}
}

// told notes why a session has ended. The flow's mu is held.
func (l *link) told(err error) {
	if p, ok := errors.AsType[*bundle.PeerError](err); ok && l.f.sched.Clock.Now() < l.f.stop {
		l.f.e.node.Log("info", fmt.Sprintf("flow %d: session with %v: %v", l.f.order.ID, l.conn.RemoteAddr(), p))
	}
}

// close closes the connection: with a reset, or in good order.
func (l *link) close(abort bool) {
	f := l.f
	f.mu.Lock()
	l.forget()
	f.links = slices.DeleteFunc(f.links, func(o *link) bool { return o == l })
	f.happened()
	f.mu.Unlock()
	if !abort && l.conn.CloseWrite() == nil {
		_ = l.conn.SetReadDeadline(time.Now().Add(lingering))
		<-l.done
		_ = l.conn.Close()
	} else {
		sock.Abort(l.conn)
	}
}

// forget takes the link out of the flow, keeping what its connection has counted.
// The flow's mu is held.
func (l *link) forget() {
	f := l.f
	if f.down == l {
		var s, none proto.Sample
		f.ended, none = none, f.ended
		f.tcp(&s)
		f.ended = none
		sum(&f.ended, &s)
		f.down = nil
	}
	if f.up == l {
		f.up = nil
	}
}
