package hopnet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// open makes a node on loopback that ends with the test.
func open(t testing.TB, cfg Config) *Node {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// join makes two nodes that know each other.
func join(t testing.TB, a, b Config) (*Node, *Node) {
	t.Helper()
	a.ID, b.ID, b.Open = 1, 2, true
	y := open(t, b)
	a.Peers = append(a.Peers, Peer{ID: 2, Addr: y.LocalAddr().String()})
	return open(t, a), y
}

// within is a context for what has to happen soon, on a busy machine, too.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

const soon = 30 * time.Second

func listen(t testing.TB, n *Node, s Service) *Listener {
	t.Helper()
	l, err := n.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dial opens a stream from a to a listener of b.
func dial(t testing.TB, a *Node, l *Listener) (c, d *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	go func() {
		d, err := l.AcceptConn(within(t, soon))
		if err != nil {
			t.Error(err)
		}
		accepted <- d
	}()
	c, err := a.Dial(within(t, soon), l.n.cfg.ID, l.service)
	if err != nil {
		t.Fatal(err)
	}
	if d = <-accepted; d == nil {
		t.Fatal("not accepted")
	}
	return c, d
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := 0; i+8 <= n; i += 8 {
		v := r.Uint64()
		for k := range 8 {
			b[i+k] = byte(v >> (8 * k))
		}
	}
	return b
}

// A stream is a net.Conn as the standard library's are.
func TestConnIsANetConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b := join(t, Config{}, Config{})
		l := listen(t, b, 1)
		x, y := dial(t, a, l)
		return x, y, func() { x.Close(); y.Close(); a.Close(); b.Close() }, nil
	})
}

// What is written arrives, both ways at once, whatever the sizes of the pieces,
// and ends with io.EOF.
func TestStream(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	c, d := dial(t, a, listen(t, b, 7))
	if c.RemoteAddr().String() != "2:7" || d.LocalAddr().String() != "2:7" || d.Peer() != 1 || c.LocalAddr().Network() != "hop" {
		t.Errorf("addresses: %v %v, %v %v", c.LocalAddr(), c.RemoteAddr(), d.LocalAddr(), d.RemoteAddr())
	}
	errs := make(chan error, 4)
	for i, x := range []*Conn{c, d} {
		data := random(uint64(i), 12<<20+i)
		go func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for p := data; len(p) > 0; {
				k := min(len(p), 1+r.IntN(300_000))
				if r.IntN(3) == 0 {
					k = min(k, 100)
				}
				n, err := x.Write(p[:k])
				if err != nil || n != k {
					errs <- fmt.Errorf("write: %d of %d, %w", n, k, err)
					return
				}
				p = p[k:]
			}
			errs <- x.CloseWrite()
		}()
		y := []*Conn{d, c}[i]
		go func() {
			got, err := io.ReadAll(y)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("%d bytes came, not the %d that were sent", len(got), len(data))
			}
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []*Conn{c, d} {
		if err := x.Delivered(within(t, soon)); err != nil {
			t.Error(err)
		}
		if _, err := x.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write after CloseWrite: %v", err)
		}
		x.Close()
	}
	if err := a.Shutdown(within(t, soon)); err != nil {
		t.Error(err)
	}
}

// io.Copy takes the way without copies, at both ends.
func TestCopy(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	c, d := dial(t, a, listen(t, b, 7))
	data := random(3, 5<<20)
	go func() {
		if n, err := io.Copy(c, struct{ io.Reader }{bytes.NewReader(data)}); n != int64(len(data)) || err != nil {
			t.Errorf("copied %d bytes: %v", n, err)
		}
		if n, err := c.ReadFrom(&slow{data: []byte("piece by piece")}); n != 14 || err != nil {
			t.Errorf("copied %d bytes: %v", n, err)
		}
		c.Close()
	}()
	h := sha256.New()
	n, err := io.Copy(h, d)
	want := sha256.Sum256(append(bytes.Clone(data), "piece by piece"...))
	if err != nil || n != int64(len(data)+14) || [32]byte(h.Sum(nil)) != want {
		t.Errorf("%d bytes of %d: %v", n, len(data)+14, err)
	}
}

// slow gives a byte at a time.
type slow struct{ data []byte }

func (s *slow) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:1], s.data)
	s.data = s.data[n:]
	return n, nil
}

// A block arrives once and whole, and its sender knows when the program there has
// it; not before.
func TestBlocks(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	l := listen(t, b, 5)
	for _, size := range []int{1, 100, 1400, 16_384, 100_000, MaxBlock} {
		data := random(uint64(size), size)
		sent := make(chan error, 1)
		go func() { sent <- a.SendBlock(within(t, soon), 2, 5, data) }()
		if size == 100_000 {
			for b.Counts().Unread == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond)
			select {
			case err := <-sent:
				t.Fatalf("confirmed (%v) before it was taken", err)
			default:
			}
		}
		got, err := l.ReceiveBlock(within(t, soon))
		if err != nil || got.From != 1 || !bytes.Equal(got.Data, data) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if err := <-sent; err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	for _, size := range []int{0, MaxBlock + 1} {
		if err := a.SendBlock(within(t, soon), 2, 5, make([]byte, size)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if c := b.Counts(); c.Unread != 0 {
		t.Errorf("%d bytes are said to be unread", c.Unread)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := a.SendBlock(ctx, 2, 5, []byte("not taken"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not taken it") {
		t.Errorf("a block that nobody takes: %v", err)
	}
}

// Many streams and blocks at once do not disturb each other.
func TestManyAtOnce(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	l, echo := listen(t, b, 5), listen(t, b, 6)
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	const k = 40
	errs := make(chan error, 3*k)
	for i := range k {
		size := 1 + i*i*150
		go func() {
			errs <- a.SendBlock(within(t, soon), 2, 5, random(uint64(i), size))
		}()
		go func() {
			got, err := l.ReceiveBlock(within(t, soon))
			if err == nil {
				for j := range k {
					if len(got.Data) == 1+j*j*150 && bytes.Equal(got.Data, random(uint64(j), len(got.Data))) {
						errs <- nil
						return
					}
				}
				err = fmt.Errorf("a block of %d bytes that nobody sent", len(got.Data))
			}
			errs <- err
		}()
		go func() {
			c, err := a.Dial(within(t, soon), 2, 6)
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			data := random(uint64(i+1000), size)
			go func() { c.Write(data); c.CloseWrite() }()
			got, err := io.ReadAll(c)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("the echo of %d bytes has %d", len(data), len(got))
			}
			errs <- err
		}()
	}
	for range 3 * k {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// A writer waits while the other end does not read, and no more is kept than was
// configured; other streams go on.
func TestBackPressure(t *testing.T) {
	const buffer = 1 << 20
	a, b := join(t, Config{WriteBuffer: buffer}, Config{ReadBuffer: buffer})
	l := listen(t, b, 1)
	c, d := dial(t, a, l)
	go func() {
		for b.Counts().Unread < buffer {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond) // for what should not come
		c.SetWriteDeadline(time.Now())
	}()
	written, err := c.Write(make([]byte, 64<<20))
	if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
		t.Fatalf("wrote %d bytes that nobody reads: %v", written, err)
	}
	most := 2*buffer + 5<<20 // and what is under way, and at most one block beyond
	if got := b.Counts().Unread; got < buffer || got > buffer+1<<20 || written > most {
		t.Errorf("%d bytes were taken from the writer, %d are unread; want at most %d and %d to %d", written, got, most, buffer, buffer+1<<20)
	}
	e, f := dial(t, a, l)
	go func() { e.Write(random(1, 300_000)); e.Close() }()
	if got, err := io.ReadAll(f); err != nil || len(got) != 300_000 {
		t.Errorf("another stream: %d bytes, %v", len(got), err)
	}
	c.SetWriteDeadline(time.Time{})
	go func() { c.Write(make([]byte, 3<<20)); c.Close() }()
	n, err := io.Copy(io.Discard, d)
	if n != int64(written)+3<<20 || err != nil {
		t.Errorf("%d bytes came of %d: %v", n, written+3<<20, err)
	}
}

// When all streams together hold too much, none gets more until they are read.
func TestUnreadLimit(t *testing.T) {
	const limit = 3 << 20
	a, b := join(t, Config{}, Config{UnreadLimit: limit})
	l := listen(t, b, 1)
	var ends []*Conn
	for range 6 {
		c, d := dial(t, a, l)
		ends = append(ends, d)
		go func() { c.Write(make([]byte, 2<<20)); c.Close() }()
	}
	for b.Counts().Unread < limit {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	if got := b.Counts().Unread; got > limit+1<<20 {
		t.Errorf("%d bytes are unread, want %d and a block", got, limit)
	}
	for _, d := range ends {
		if n, err := io.Copy(io.Discard, d); n != 2<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

// Errors say what happened, and are what their documentation says.
func TestErrors(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	l := listen(t, b, 1)
	if _, err := b.Listen(1); err == nil {
		t.Error("two listeners of one service")
	}
	if _, err := a.Dial(within(t, soon), 2, 9); !errors.Is(err, ErrRefused) {
		t.Errorf("dial a service without a listener: %v", err)
	}
	if err := a.SendBlock(within(t, soon), 2, 9, []byte("x")); !errors.Is(err, ErrRefused) {
		t.Errorf("a block to a service without a listener: %v", err)
	}
	if _, err := a.Dial(within(t, soon), 77, 1); !errors.Is(err, ErrNoRoute) {
		t.Errorf("dial a node that no route leads to: %v", err)
	}
	if _, err := a.Dial(within(t, soon), 1, 1); err == nil {
		t.Error("dial oneself")
	}
	// Nobody is there.
	gone := open(t, Config{ID: 9})
	gone.Close()
	if _, err := gone.Dial(within(t, soon), 2, 1); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial with a closed node: %v", err)
	}
	e := open(t, Config{ID: 3, Peers: []Peer{{ID: 9, Addr: gone.LocalAddr().String()}}})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := e.Dial(ctx, 9, 1); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("dial where nobody is: %v", err)
	}
	if _, err := e.Connect(ctx, "127.0.0.1:9"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connect where nobody is: %v", err)
	}

	// The other end stops reading, or gives up.
	c, d := dial(t, a, l)
	d.Close()
	if err := writeUntilError(c); !errors.Is(err, ErrReset) {
		t.Errorf("write to a stream that nobody reads: %v", err)
	}
	c, d = dial(t, a, l)
	c.Write([]byte("half"))
	buf := make([]byte, 100)
	if n, err := io.ReadFull(d, buf[:4]); err != nil {
		t.Fatal(n, err)
	}
	c.Abort()
	if _, err := d.Read(buf); !errors.Is(err, ErrReset) {
		t.Errorf("read of a stream that was given up: %v", err)
	}
	if _, err := c.Read(buf); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of an aborted stream: %v", err)
	}

	// This end closes.
	c, _ = dial(t, a, l)
	reading := make(chan error)
	go func() { _, err := c.Read(buf); reading <- err }()
	a.Close()
	if err := <-reading; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read while the node closes: %v", err)
	}
	accepting := make(chan error)
	go func() { _, err := l.Accept(); accepting <- err }()
	l.Close()
	if err := <-accepting; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept while the listener closes: %v", err)
	}
	for _, cfg := range []Config{{Listen: "nowhere.invalid:1"}, {Listen: "127.0.0.1:99999"}, {Peers: []Peer{{Addr: ":1"}}}, {ID: noNode},
		{ID: 1, Peers: []Peer{{ID: 1, Addr: "127.0.0.1:1"}}}, {Peers: []Peer{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:1"}}}, {Streams: -1},
		{Routes: map[NodeID]NodeID{0: 1}}, {Peers: []Peer{{ID: 4, Addr: "127.0.0.1:1"}, {ID: 4, Addr: "127.0.0.1:2"}}}, {Custody: 1}} {
		if n, err := Open(cfg); err == nil {
			n.Close()
			t.Errorf("opened with %+v", cfg)
		}
	}
}

func writeUntilError(c *Conn) error {
	c.SetWriteDeadline(time.Now().Add(soon))
	for {
		if _, err := c.Write(make([]byte, 10_000)); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// A node that is closed leaves no goroutine, whatever was under way.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		a, b := join(t, Config{}, Config{})
		l := listen(t, b, 1)
		c, d := dial(t, a, l)
		go c.Write(make([]byte, 50<<20))
		go d.Read(make([]byte, 10))
		go l.Accept()
		go l.ReceiveBlock(context.Background())
		go a.SendBlock(context.Background(), 2, 1, make([]byte, 1000))
		go a.Dial(context.Background(), 2, 1)
		time.Sleep(10 * time.Millisecond)
		a.Close()
		b.Close()
	}
	for end := time.Now().Add(soon); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d now\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}
