package hopnet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// echo answers a service with what comes.
func echo(t testing.TB, n *Node, s Service) *Listener {
	l := listen(t, n, s)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return l
}

// roundTrip sends data to an echo and compares.
func roundTrip(t testing.TB, a *Node, to NodeID, s Service, data []byte) error {
	t.Helper()
	return roundTripIn(t, soon, a, to, s, data)
}

func roundTripIn(t testing.TB, d time.Duration, a *Node, to NodeID, s Service, data []byte) error {
	t.Helper()
	c, err := a.Dial(within(t, d), to, s)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(d))
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		wrote <- errors.Join(err, c.CloseWrite())
	}()
	got, err := io.ReadAll(c)
	if err = errors.Join(err, <-wrote); err != nil {
		return fmt.Errorf("after %d of %d bytes: %w", len(got), len(data), err)
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("%d bytes came back, not the %d that were sent", len(got), len(data))
	}
	return nil
}

// logged keeps what a node says.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) line(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(s + "\n")
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Streams and blocks cross relays that only know their neighbours and a route;
// the way back is learnt.
func TestRelays(t *testing.T) {
	d := open(t, Config{ID: 4, Open: true})
	r2 := open(t, Config{ID: 3, Open: true, Peers: []Peer{{ID: 4, Addr: d.LocalAddr().String()}}})
	r1 := open(t, Config{ID: 2, Open: true, Peers: []Peer{{ID: 3, Addr: r2.LocalAddr().String()}}, Routes: map[NodeID]NodeID{4: 3}})
	a := open(t, Config{ID: 1, Peers: []Peer{{Addr: r1.LocalAddr().String()}}})
	via, err := a.Connect(within(t, soon), r1.LocalAddr().String())
	if err != nil || via != 2 {
		t.Fatalf("the neighbour says that it is %v, %v", via, err)
	}
	a.SetGateway(via)
	echo(t, d, 1)
	if err := roundTrip(t, a, 4, 1, random(1, 5<<20)); err != nil {
		t.Fatal(err)
	}
	l := listen(t, d, 2)
	go a.SendBlock(within(t, soon), 4, 2, random(2, 500_000))
	if b, err := l.ReceiveBlock(within(t, soon)); err != nil || b.From != 1 || !bytes.Equal(b.Data, random(2, 500_000)) {
		t.Errorf("a block over two relays: %v", err)
	}
	for _, r := range []*Node{r1, r2} {
		if c := r.Counts(); c.Senders != 0 || c.Receivers != 0 || c.Hop.DataSent < 5<<20/1400 {
			t.Errorf("relay %v: %d and %d flows, %d packets", r.ID(), c.Senders, c.Receivers, c.Hop.DataSent)
		}
	}
	// Without learning there is no way back.
	r1.mu.Lock()
	_, learnt := r1.routes.learnt[1]
	r1.mu.Unlock()
	if learnt {
		t.Error("a route to a neighbour was learnt")
	}
}

// Everything arrives over a path that loses a fifth of all datagrams, repeats and
// reorders others.
func TestBadPath(t *testing.T) {
	b := open(t, Config{ID: 2, Open: true})
	p := newPath(t, 1, b.LocalAddr())
	p.set(func(p *path) { p.loss, p.dup, p.late, p.lateBy = 0.2, 0.05, 0.05, 5*time.Millisecond })
	a := open(t, Config{ID: 1, Peers: []Peer{{Addr: p.addr()}}})
	if _, err := a.Connect(within(t, soon), p.addr()); err != nil {
		t.Fatal(err)
	}
	echo(t, b, 1)
	if err := roundTrip(t, a, 2, 1, random(1, 3<<20)); err != nil {
		t.Error(err)
	}
	l := listen(t, b, 2)
	errs := make(chan error, 40)
	for i := range 20 {
		go func() { errs <- a.SendBlock(within(t, soon), 2, 2, random(uint64(i), 1+i*1000)) }()
		go func() {
			got, err := l.ReceiveBlock(within(t, soon))
			if err == nil && !bytes.Equal(got.Data, random(uint64(len(got.Data)/1000), len(got.Data))) {
				err = fmt.Errorf("a block of %d bytes that nobody sent", len(got.Data))
			}
			errs <- err
		}()
	}
	for range 40 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	p.set(func(p *path) { t.Logf("%d datagrams passed, %d were lost; %+v", p.passed, p.lost, a.Counts().Hop) })
}

// A path that is down for a while costs that while.
func TestOutage(t *testing.T) {
	b := open(t, Config{ID: 2, Open: true})
	p := newPath(t, 1, b.LocalAddr())
	a := open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: p.addr()}}})
	c, d := dial(t, a, listen(t, b, 1))
	data := random(1, 8<<20)
	go func() { c.Write(data); c.Close() }()
	head := make([]byte, 1<<20)
	if _, err := io.ReadFull(d, head); err != nil {
		t.Fatal(err)
	}
	p.set(func(p *path) { p.down = true })
	time.Sleep(300 * time.Millisecond)
	p.set(func(p *path) { p.down = false })
	d.SetReadDeadline(time.Now().Add(soon))
	rest, err := io.ReadAll(d)
	if err != nil || !bytes.Equal(append(head, rest...), data) {
		t.Errorf("%d bytes of %d: %v", len(rest)+len(head), len(data), err)
	}
}

// A node that restarts is a new one to the others: what belonged to its earlier
// life fails, and is told apart from what is new.
func TestRestart(t *testing.T) {
	b := open(t, Config{ID: 2, Open: true})
	at := b.LocalAddr().String()
	a := open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: at}}})
	c, _ := dial(t, a, listen(t, b, 1))
	if _, err := c.Write(random(1, 3<<20)); err != nil {
		t.Fatal(err)
	}
	idle, _ := dial(t, a, b.listeners[1])
	b.Close()
	b = open(t, Config{ID: 2, Open: true, Listen: at})
	if err := writeUntilError(c); !errors.Is(err, ErrRestarted) {
		t.Errorf("write to a node that has restarted: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, ErrRestarted) {
		t.Errorf("read from a node that has restarted: %v", err)
	}
	// A block finds the new life, and it tells of itself: the idle stream ends.
	l := listen(t, b, 3)
	go a.SendBlock(within(t, soon), 2, 3, []byte("hello"))
	if x, err := l.ReceiveBlock(within(t, soon)); err != nil || string(x.Data) != "hello" {
		t.Errorf("a block to the new life: %v", err)
	}
	idle.SetReadDeadline(time.Now().Add(soon))
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, ErrRestarted) {
		t.Errorf("read of an idle stream: %v", err)
	}
	// And the one that dialled restarts.
	c, d := dial(t, a, listen(t, b, 1))
	if _, err := c.Write([]byte("half a message")); err != nil {
		t.Fatal(err)
	}
	io.ReadFull(d, make([]byte, 14))
	a.Close()
	a = open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: at}}})
	echo(t, b, 9)
	if err := roundTrip(t, a, 2, 9, random(4, 100_000)); err != nil {
		t.Error(err)
	}
	d.SetReadDeadline(time.Now().Add(soon))
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, ErrRestarted) {
		t.Errorf("read of what a node began before it restarted: %v", err)
	}
}

// Neighbours find each other's ids, and nobody else gets in.
func TestIntroductions(t *testing.T) {
	var said logged
	b := open(t, Config{ID: 2, Log: said.line}) // not open
	a := open(t, Config{ID: 1, Peers: []Peer{{Addr: b.LocalAddr().String()}}})
	if _, err := a.Connect(within(t, 300*time.Millisecond), b.LocalAddr().String()); err == nil {
		t.Error("a node that takes no strangers has answered one")
	}
	if c := b.Counts(); c.Strangers == 0 || c.Neighbours != 0 || c.Socket.Sent != 0 {
		t.Errorf("a stranger: %+v", c)
	}
	// Both have the other's address, neither an id.
	c := open(t, Config{ID: 3, Listen: "127.0.0.1:0"})
	d := open(t, Config{ID: 4, Peers: []Peer{{Addr: c.LocalAddr().String()}}})
	if id, err := c.Connect(within(t, soon), d.LocalAddr().String()); id != 4 || err != nil {
		t.Errorf("%v, %v", id, err)
	}
	if id, err := d.Connect(within(t, soon), c.LocalAddr().String()); id != 3 || err != nil {
		t.Errorf("%v, %v", id, err)
	}
	// One that says it is another than was configured.
	e := open(t, Config{ID: 5, Open: true})
	f := open(t, Config{ID: 6, Log: said.line, Peers: []Peer{{ID: 7, Addr: e.LocalAddr().String()}}})
	for f.Counts().BadIntros == 0 {
		time.Sleep(time.Millisecond)
	}
	if !strings.Contains(said.String(), "was configured as node 7 and says that it is node 5") {
		t.Errorf("it said:\n%s", said.String())
	}
	// Two with one id: the one that began later, at another address.
	g := open(t, Config{ID: 8, Open: true})
	h := open(t, Config{ID: 9, Peers: []Peer{{Addr: g.LocalAddr().String()}}})
	h.Connect(within(t, soon), g.LocalAddr().String())
	h.Close()
	h = open(t, Config{ID: 9, Peers: []Peer{{Addr: g.LocalAddr().String()}}})
	h.Connect(within(t, soon), g.LocalAddr().String())
	echo(t, g, 1)
	if err := roundTrip(t, h, 8, 1, []byte("hello")); err != nil {
		t.Error(err)
	}
	if n := g.Counts().Neighbours; n != 1 {
		t.Errorf("%d neighbours, want the one that lives", n)
	}
}

// A source that may not send is not heard.
func TestAllow(t *testing.T) {
	a, b := join(t, Config{}, Config{Allow: func(id NodeID) bool { return id != 1 }})
	listen(t, b, 1)
	if _, err := a.Dial(within(t, 200*time.Millisecond), 2, 1); err == nil {
		t.Error("dialled where it is not allowed")
	}
	if c := b.Counts(); c.Receivers != 0 {
		t.Errorf("%d flows", c.Receivers)
	}
}

// Shutdown waits for what was written, and says what was not delivered.
func TestShutdown(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	c, d := dial(t, a, listen(t, b, 1))
	data := random(1, 3<<20)
	got := make(chan []byte)
	go func() { x, _ := io.ReadAll(d); got <- x }()
	c.Write(data)
	c.Close()
	if err := a.Shutdown(within(t, soon)); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(<-got, data) {
		t.Error("not everything was delivered")
	}
	a, b = join(t, Config{}, Config{ReadBuffer: 1000})
	c, _ = dial(t, a, listen(t, b, 1))
	c.Write(data[:50_000])
	c.Write(data[:1<<20])
	c.CloseWrite()
	if err := a.Shutdown(within(t, 100*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "1 streams or blocks are not acknowledged") {
		t.Errorf("shut down with data that nobody takes: %v", err)
	}
	if _, err := c.Write(data); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after it: %v", err)
	}
}

// Flows are forgotten, and their repetitions are still known.
func TestForgottenFlows(t *testing.T) {
	a, b := join(t, Config{}, Config{})
	l := listen(t, b, 1)
	go func() {
		for {
			if _, err := l.ReceiveBlock(within(t, 2*soon)); err != nil {
				return
			}
		}
	}()
	const k = rememberEnded + 300
	work, errs := make(chan int), make(chan error, k)
	for range 16 {
		go func() {
			for i := range work {
				errs <- a.SendBlock(within(t, soon), 2, 1, fmt.Appendf(nil, "block %d", i))
			}
		}()
	}
	for i := range k {
		work <- i
	}
	close(work)
	for range k {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*Node{a, b} {
		c := n.Counts()
		if c.Receivers > rememberEnded+64 || c.Hop.Flows > 2*rememberEnded {
			t.Errorf("node %v: %d receivers, %d flows after %d blocks", n.ID(), c.Receivers, c.Hop.Flows, k)
		}
		n.mu.Lock()
		if got := len(n.ended); got > rememberEnded {
			t.Errorf("node %v remembers %d ended flows", n.ID(), got)
		}
		n.mu.Unlock()
	}
}

// The window of a source's flows.
func TestSeen(t *testing.T) {
	var s source
	for _, c := range []struct {
		id   hop.FlowID
		want bool
	}{
		{^hop.FlowID(0) - 5, false}, {^hop.FlowID(0) - 5, true}, {^hop.FlowID(0) - 7, false}, {^hop.FlowID(0) - 7, true},
		{3, false}, {3, true}, {^hop.FlowID(0) - 5, true}, {2, false}, {^hop.FlowID(0) - 6, false}, {4000, false}, {3, true}, {1, false},
		{20_000, false}, {4000, true}, {15_904, true}, {15_905, false}, {15_905, true}, {19_999, false}, {20_000 + 64, false}, {20_000, true}, {19_999, true},
	} {
		if got := s.seen(c.id); got != c.want {
			t.Errorf("flow %d: seen %v, want %v", c.id, got, c.want)
		}
	}
}
